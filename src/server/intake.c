/* SPDX-License-Identifier: Apache-2.0 */
#include "server/intake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/record.h"
#include "server/resident.h"
#include "server/telling.h"
#include "server/tracked.h"
#include "wire/attach.h"
#include "wire/event.h"
#include "wire/life_row.h"
#include "wire/note.h"

#define LATE_NAMES_MAX 256

static void refuse(struct ttm_tracked *tracked, enum ttm_counter why)
{
    tracked->client->server->counter[why]++;
    tracked->client->process->counters.refused++;
}

/* Both sides read one clock; what lies ahead of it is not believed. */
static uint64_t time_of(const struct ttm_tracked *tracked, uint64_t time_ns)
{
    const uint64_t now_ns = tracked->client->server->now_ns;

    return time_ns < now_ns ? time_ns : now_ns;
}

/* The name that a life was given before its birth was read; 0: none. */
static uint32_t late_name_of(const struct ttm_tracked *tracked, uint64_t serial)
{
    for (uint32_t i = tracked->late_name_count; i-- > 0;) {
        if (tracked->late_names[i].serial == serial)
            return tracked->late_names[i].origin;
    }
    return 0;
}

/* What is wrong with a birth that the registry did not take. */
static enum ttm_counter why_refused(int r)
{
    return r == -ERANGE   ? TTM_COUNTER_REFUSED_SIZE
           : r == -EINVAL ? TTM_COUNTER_REFUSED_REGION
                          : TTM_COUNTER_REFUSED_MEMORY;
}

/* A birth as the registry wants it. Returns 0 or a negative errno. */
static int translate(struct ttm_tracked *tracked, const struct ttm_told *told,
                     struct ttm_birth *ret, int *ret_cores)
{
    *ret = (struct ttm_birth){
        .serial = told->serial,
        .id = told->id,
        .address = told->address,
        .bytes = told->bytes,
        .footprint_bytes = told->footprint_bytes,
        .time_ns = time_of(tracked, told->birth_ns),
        .site = {.allocator = told->allocator,
                 .banks = told->banks,
                 .region = told->region,
                 .kind = told->kind,
                 .flags = told->flags},
    };
    *ret_cores = -1;
    if (told->flags & TTM_RECORD_CORES) {
        ret->bytes = told->footprint_bytes;
        *ret_cores = ttm_notes_cores(&tracked->notes, (uint32_t)told->bytes);
        if (*ret_cores < 0)
            ret->site.flags &= (uint8_t)~TTM_SITE_CORES;
    }
    const uint32_t late = tracked->late_name_count > 0 ? late_name_of(tracked, told->serial) : 0;
    ret->site.origin = ttm_notes_origin(&tracked->notes, late != 0 ? late : told->origin);
    if (told->serial == 0)
        return -EINVAL;
    return ttm_notes_device_set(&tracked->notes, told->devices, &ret->site.device_set);
}

/* Returns whether it was live already. */
static bool take_birth(struct ttm_tracked *tracked, const struct ttm_told *told, bool is_news)
{
    struct ttm_client *client = tracked->client;
    struct ttm_server *server = client->server;
    struct ttm_birth birth;
    int cores;

    if (translate(tracked, told, &birth, &cores) < 0) {
        refuse(tracked, TTM_COUNTER_REFUSED_DEVICE);
        return false;
    }
    birth.is_unknown = !is_news; /* what is told was looked for */
    const int r = ttm_registry_birth(server->reg, client->process, &birth, NULL);
    if (r == -EEXIST)
        return true;
    if (r < 0) {
        refuse(tracked, why_refused(r));
        return false;
    }
    if (cores >= 0)
        ttm_resident_place(tracked, &birth, cores, told->devices);
    /* One that is told before its record is read was heard of all the same, if nothing is missing. */
    const struct ttm_process_counters *counters = &client->process->counters;
    ttm_record_birth(client, told, birth.site.origin,
                     is_news || (!counters->has_gap && counters->lost_events == 0));
    if (!is_news || ttm_list_is_empty(&server->tails))
        return false;
    const struct ttm_life life = {
        .id = birth.id,
        .address = birth.address,
        .bytes = birth.bytes,
        .footprint_bytes = birth.footprint_bytes,
    };
    ttm_tail_life(server, client, TTM_EVENT_BIRTH, &birth.site, &life);
    return false;
}

/* Returns 0; -ENOENT when its birth was not read. */
static int end_life(struct ttm_tracked *tracked, uint64_t serial, uint64_t time_ns,
                    enum ttm_end how)
{
    static const uint8_t events[] = {
        [TTM_END_FREED] = TTM_EVENT_END,
        [TTM_END_REPLACED] = TTM_EVENT_REPLACED,
        [TTM_END_CLOSED] = TTM_EVENT_CLOSED,
    };
    struct ttm_client *client = tracked->client;
    struct ttm_server *server = client->server;
    struct ttm_ended ended;

    const int r = ttm_registry_end_serial(server->reg, client->process, serial, how, &ended);
    if (r == 0)
        ttm_record_end(client, time_of(tracked, time_ns), serial, how);
    if (r == 0 && !ttm_list_is_empty(&server->tails))
        ttm_tail_life(server, client, events[how], &ended.site, &ended.life);
    return r;
}

static void take_birth_record(struct ttm_tracked *tracked, const struct ttm_record *record)
{
    const struct ttm_told told = {
        .serial = record->serial,
        .id = record->id,
        .address = record->address,
        .bytes = record->bytes,
        .footprint_bytes = record->footprint_bytes,
        .birth_ns = record->time_ns,
        .devices = record->devices,
        .origin = record->origin,
        .allocator = record->allocator,
        .banks = record->banks,
        .region = record->region,
        .kind = record->kind,
        .flags = record->flags,
    };

    struct ttm_early_end end;
    if (ttm_early_ends_take(&tracked->early_ends, record->serial, &end)) {
        (void)take_birth(tracked, &told, true);
        (void)end_life(tracked, record->serial, end.time_ns, end.how);
        return;
    }
    if (ttm_telling_has_ended(tracked, record->serial))
        return; /* it was told, and has ended since */
    (void)take_birth(tracked, &told, true);
}

static void take_end(struct ttm_tracked *tracked, const struct ttm_record *record, enum ttm_end how)
{
    const struct ttm_early_end end = {.time_ns = record->time_ns, .how = (uint8_t)how};

    if (record->serial == 0) {
        refuse(tracked, TTM_COUNTER_REFUSED_TYPE);
        return;
    }
    const int r = end_life(tracked, record->serial, record->time_ns, how);
    if (r < 0 && ttm_early_ends_add(&tracked->early_ends, record->serial, &end) < 0)
        tracked->is_spoiled = true;
    ttm_telling_ended(tracked, record->serial, r == 0);
}

static void take_name(struct ttm_tracked *tracked, const struct ttm_record *record)
{
    struct ttm_client *client = tracked->client;
    const uint32_t origin = ttm_notes_origin(&tracked->notes, record->origin);

    const int r = origin != 0 ? ttm_registry_set_origin(client->server->reg, client->process,
                                                        record->serial, origin)
                              : -EINVAL;
    if (r == 0)
        ttm_record_rename(client, time_of(tracked, record->time_ns), record->serial, origin);
    if (r != -ENOENT)
        return;
    /* Another thread named it, and its ring was read first. */
    if (tracked->late_name_count == LATE_NAMES_MAX)
        return;
    if (!tracked->late_names)
        tracked->late_names = malloc(LATE_NAMES_MAX * sizeof(tracked->late_names[0]));
    if (tracked->late_names)
        tracked->late_names[tracked->late_name_count++] =
            (struct ttm_late_name){record->serial, record->origin};
}

static void take_mark(struct ttm_tracked *tracked, const struct ttm_record *record)
{
    char name[TTM_STRING_MAX + 1] = "";

    if (record->origin != 0) {
        ttm_notes_text(&tracked->notes, record->origin, name);
    } else {
        memcpy(name, (const char *)record + TTM_MARK_TEXT_AT, TTM_MARK_TEXT_MAX);
        name[TTM_MARK_TEXT_MAX] = '\0';
    }
    (void)ttm_story_add_mark(&tracked->client->process->story, time_of(tracked, record->time_ns),
                             name);
    ttm_record_mark(tracked->client, time_of(tracked, record->time_ns), name);
}

static void take_failure(struct ttm_tracked *tracked, const struct ttm_record *record)
{
    struct ttm_client *client = tracked->client;
    uint32_t set;

    if (record->region >= TTM_REGION_COUNT || record->kind >= TTM_FAILURE_KIND_COUNT ||
        ttm_notes_device_set(&tracked->notes, record->devices, &set) < 0) {
        refuse(tracked, TTM_COUNTER_REFUSED_REGION);
        return;
    }
    const struct ttm_device_set devices = ttm_device_sets_get(&client->server->reg->sets, set);
    struct ttm_failure_row failure = {
        .time_ns = time_of(tracked, record->time_ns),
        .wanted_bytes = record->id,
        .bank_wanted_bytes = record->address,
        .bank_free_bytes = record->bytes,
        .bank_largest_bytes = record->footprint_bytes,
        .origin = ttm_notes_origin(&tracked->notes, record->origin),
        .device_id = devices.count > 0 ? devices.devices[0] : 0,
        .region = record->region,
        .kind = record->kind,
    };
    ttm_failure_find_owners(&tracked->failures, client->server->reg, client->process,
                            client->server->now_ns, &failure);
    (void)ttm_story_add_failure(&client->process->story, &failure);
    ttm_record_failure(client, &failure, record->devices, record->allocator);
    const struct ttm_server_options *options = &client->server->options;
    if (options->allocation_failed)
        options->allocation_failed(options->failure_context, client->server->reg, client->process,
                                   &failure);
}

static void take_device(struct ttm_tracked *tracked, uint32_t id)
{
    struct ttm_device_state state;

    ttm_ring_reader_device(&tracked->reader, id, &state);
    if (state.note != 0)
        ttm_notes_device(&tracked->notes, state.note);
}

static void take_record(struct ttm_tracked *tracked, const struct ttm_record *record)
{
    tracked->client->process->counters.events++;
    if (tracked->is_off)
        return;
    switch (record->op) {
    case TTM_RECORD_BIRTH:
        take_birth_record(tracked, record);
        break;
    case TTM_RECORD_END:
        take_end(tracked, record, TTM_END_FREED);
        break;
    case TTM_RECORD_REPLACED:
        take_end(tracked, record, TTM_END_REPLACED);
        break;
    case TTM_RECORD_CLOSED:
        take_end(tracked, record, TTM_END_CLOSED);
        break;
    case TTM_RECORD_NAMED:
        take_name(tracked, record);
        break;
    case TTM_RECORD_MARK:
        take_mark(tracked, record);
        break;
    case TTM_RECORD_FAILURE:
        take_failure(tracked, record);
        break;
    case TTM_RECORD_DEVICE:
        /* As it was then: by now it may be closed, and its cell empty. */
        if (record->origin != 0)
            ttm_notes_device(&tracked->notes, record->origin);
        else
            take_device(tracked, record->devices);
        break;
    case TTM_RECORD_KEPT:
        ttm_notes_keepers(&tracked->notes, record->origin);
        break;
    case TTM_RECORD_PEAKS:
        ttm_registry_reset_peaks(tracked->client->process);
        break;
    default:
        refuse(tracked, TTM_COUNTER_REFUSED_TYPE);
        break;
    }
}

void ttm_intake_records(struct ttm_tracked *tracked, const struct ttm_record *records,
                        const uint16_t *order, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        take_record(tracked, &records[order[i]]);
}

void ttm_intake_told(struct ttm_tracked *tracked, const struct ttm_told *told)
{
    (void)take_birth(tracked, told, false);
}

void ttm_intake_devices(struct ttm_tracked *tracked)
{
    for (uint32_t id = 0; id < TTM_SEGMENT_DEVICES; id++)
        take_device(tracked, id);
}

void ttm_intake_pass(struct ttm_tracked *tracked)
{
    ttm_early_ends_age(&tracked->early_ends);
    tracked->late_name_count -= tracked->late_names_old;
    if (tracked->late_name_count > 0)
        memmove(tracked->late_names, tracked->late_names + tracked->late_names_old,
                tracked->late_name_count * sizeof(tracked->late_names[0]));
    tracked->late_names_old = tracked->late_name_count;
}
