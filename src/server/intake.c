/* SPDX-License-Identifier: Apache-2.0 */
#include "server/intake.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "model/brief.h"
#include "server/pairs.h"
#include "server/record.h"
#include "server/resident.h"
#include "server/telling.h"
#include "server/tracked.h"
#include "wire/attach.h"
#include "wire/event.h"
#include "wire/life_row.h"
#include "wire/note.h"

#define LATE_NAMES_MAX 256
/*
 * The work of a unit, in allocations on one device, each of which takes 50 ns to 1 us (where memory
 * is new): so a unit takes a few milliseconds at most. Usual records cost 1 and a slice of them is
 * one unit.
 */
#define COST_MAX 4096
#define COST_OF_FAILURE 2048 /* whose owners are summed up */
#define COST_OF_NOTE 32
/* Events of a recording that one record makes at most: a birth and its end that came before it. */
#define RECORDED_PER_RECORD 2

static void refuse(struct ttm_tracked *tracked, enum ttm_counter why)
{
    tracked->client->server->counter[why]++;
    tracked->client->process->counters.refused++;
    if (why == TTM_COUNTER_REFUSED_MEMORY)
        ttm_client_lack_memory(tracked->client);
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
static enum ttm_counter why_refused(const struct ttm_tracked *tracked, int r)
{
    if (r == -ENOSPC && !tracked->account->is_privileged)
        return TTM_COUNTER_REFUSED_SHARE;
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
        .time_ns = told->birth_ns,
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

/* ---- births that are alike ---- */

/* What a birth says of its site lies in the last 16 bytes of its record. */
_Static_assert(offsetof(struct ttm_record, allocator) == sizeof(struct ttm_record) - 16,
               "the site");

static inline void words_of(const struct ttm_record *record, uint64_t ret[2])
{
    memcpy(ret, &record->allocator, 2 * sizeof(ret[0]));
}

/* One of two places side by side. Who makes births meet there has each of them looked up. */
static inline uint32_t place_of_alike(const uint64_t words[2])
{
    return (uint32_t)((words[0] * 31 + words[1]) * 0x9e3779b97f4a7c15ull >> 32) % TTM_ALIKE;
}

/* Where the site of such births is; NULL when it is not remembered. */
static inline const struct ttm_alike *find_alike(const struct ttm_tracked *tracked,
                                                 const uint64_t words[2])
{
    const uint32_t place = place_of_alike(words);

    for (uint32_t i = 0; i < 2; i++) {
        const struct ttm_alike *alike = &tracked->alike[place ^ i];
        if (alike->words[0] == words[0] && alike->words[1] == words[1])
            return alike;
    }
    return NULL;
}

/* After a birth: the site that was asked for last is that of the next one like it. */
static void remember_site(struct ttm_tracked *tracked, const struct ttm_record *record)
{
    const struct ttm_process *process = tracked->client->process;
    struct ttm_alike alike;
    uint32_t set;

    words_of(record, alike.words);
    if (process->sites.count == 0 || find_alike(tracked, alike.words) ||
        ttm_notes_device_set(&tracked->notes, record->devices, &set) < 0)
        return;
    /* Unless it was refused, had a name of its own, or one whose note cannot be read. */
    const struct ttm_site *site = ttm_site_table_get(&process->sites, process->sites.last);
    if (site->allocator != record->allocator || site->device_set != set ||
        site->origin != record->origin || site->banks != record->banks ||
        site->region != record->region || site->kind != record->kind ||
        site->flags != record->flags ||
        !ttm_brief_site_of(process, process->sites.last, &alike.site))
        return;
    const uint32_t place = place_of_alike(alike.words);
    tracked->alike[place ^ 1] = tracked->alike[place];
    tracked->alike[place] = alike;
}

/* One that is told before its record is read was heard of all the same, if nothing is missing. */
static bool was_heard_of(const struct ttm_client *client)
{
    const struct ttm_process_counters *counters = &client->process->counters;

    return !counters->has_gap && counters->lost_events == 0;
}

/* Returns whether it was live already. */
static bool take_birth(struct ttm_tracked *tracked, const struct ttm_told *told, bool is_news)
{
    struct ttm_client *client = tracked->client;
    struct ttm_server *server = client->server;
    struct ttm_birth birth;
    int cores;

    int r = translate(tracked, told, &birth, &cores);
    if (r < 0) {
        refuse(tracked, r == -EINVAL ? TTM_COUNTER_REFUSED_DEVICE : why_refused(tracked, r));
        return false;
    }
    birth.is_unknown = !is_news; /* what is told was looked for */
    r = ttm_registry_birth(server->reg, client->process, &birth, NULL);
    if (r == -EEXIST)
        return true;
    if (r < 0) {
        refuse(tracked, why_refused(tracked, r));
        return false;
    }
    if (cores >= 0)
        ttm_resident_place(tracked, &birth, cores, told->devices);
    ttm_record_birth(client, told, birth.site.origin, is_news || was_heard_of(client));
    if (!is_news || ttm_list_is_empty(&server->tails))
        return false;
    const struct ttm_life life = {
        .id = birth.id,
        .address = birth.address,
        .bytes = birth.bytes,
        .footprint_bytes = birth.footprint_bytes,
    };
    ttm_tail_life(server, client, birth.time_ns, TTM_EVENT_BIRTH, &birth.site, &life);
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
        ttm_record_end(client, time_ns, serial, how);
    if (r == 0 && !ttm_list_is_empty(&server->tails))
        ttm_tail_life(server, client, time_ns, events[how], &ended.site, &ended.life);
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
    remember_site(tracked, record);
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
        ttm_record_rename(client, record->time_ns, record->serial, origin);
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
    (void)ttm_story_add_mark(&tracked->client->process->story, record->time_ns, name);
    ttm_record_mark(tracked->client, record->time_ns, name);
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
        .time_ns = record->time_ns,
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
    ttm_tail_failure(client->server, client, &failure);
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

/* ---- lives whose birth and end were read together ---- */

/*
 * Such a life is not entered into the tables of the registry and the recording (model/brief.h);
 * what it does to sums, to the recording and to those who watch is done at the birth and at the end,
 * each in its turn, as of any other. Whatever is unusual about a birth is left to take_record().
 */
struct brief {
    struct ttm_brief_site site;
    struct ttm_encoder_brief recorded;
};

/* What holds for a slice, or until a record was taken in the usual way. */
struct batch {
    struct ttm_tracked *tracked;
    struct ttm_client *client;
    struct ttm_registry *reg;
    struct ttm_process *process;
    bool is_recorded;
    bool is_watched;
    bool has_to_remember; /* the ends, ttm_telling_ended() */
    struct ttm_brief_runs runs;
    bool is_usual; /* any birth can mean nothing but that a life begins, as its record has it */
};

static bool is_usual(const struct ttm_tracked *tracked)
{
    return tracked->late_name_count == 0 && tracked->early_ends.ages[0].count == 0 &&
           tracked->early_ends.ages[1].count == 0 && tracked->ended.count == 0 &&
           tracked->ended_before.count == 0;
}

/* The same of one life: while a process tells what is live, ends are remembered all the time. */
static bool is_usual_birth(const struct ttm_tracked *tracked, uint64_t serial)
{
    return tracked->late_name_count == 0 && !ttm_early_ends_has(&tracked->early_ends, serial) &&
           !ttm_telling_has_ended(tracked, serial);
}

static inline struct ttm_brief_life brief_life(const struct ttm_record *birth)
{
    return (struct ttm_brief_life){
        .serial = birth->serial,
        .bytes = birth->bytes,
        .footprint_bytes = birth->footprint_bytes,
        .birth_ns = birth->time_ns,
    };
}

static void publish_brief(struct batch *batch, uint64_t time_ns, uint8_t op,
                          const struct ttm_record *birth, uint32_t site)
{
    const struct ttm_life life = {
        .id = birth->id,
        .address = birth->address,
        .bytes = birth->bytes,
        .footprint_bytes = birth->footprint_bytes,
    };

    ttm_brief_settle(batch->reg, batch->process, &batch->runs); /* an event has totals */
    ttm_tail_life(batch->client->server, batch->client, time_ns, op,
                  ttm_site_table_get(&batch->process->sites, site), &life);
}

/* Returns whether the life has begun; else nothing has changed. */
static inline bool begin_brief(struct batch *batch, const struct ttm_record *record,
                               struct brief *ret)
{
    uint64_t words[2];

    words_of(record, words);
    const struct ttm_alike *alike = find_alike(batch->tracked, words);
    if (!alike || (!batch->is_usual && !is_usual_birth(batch->tracked, record->serial)))
        return false;
    const struct ttm_brief_life life = brief_life(record);
    if (!ttm_brief_begin(batch->reg, batch->process, &batch->runs, &alike->site, &life))
        return false;
    batch->process->counters.events++;
    ret->site = alike->site;
    if (batch->is_recorded)
        ttm_record_brief_birth(batch->client, record, &ret->recorded);
    if (batch->is_watched)
        publish_brief(batch, record->time_ns, TTM_EVENT_BIRTH, record, alike->site.number);
    return true;
}

static inline void end_brief(struct batch *batch, const struct ttm_record *birth,
                             const struct ttm_record *record, const struct brief *brief)
{
    const struct ttm_brief_life life = brief_life(birth);

    batch->process->counters.events++;
    ttm_brief_end(batch->reg, batch->process, &batch->runs, &brief->site, &life);
    if (batch->is_recorded)
        ttm_record_brief_end(batch->client, record->time_ns, &brief->recorded);
    if (batch->is_watched)
        publish_brief(batch, record->time_ns, TTM_EVENT_END, birth, brief->site.number);
    if (batch->has_to_remember)
        ttm_telling_ended(batch->tracked, record->serial, true);
}

static void take_usual(struct batch *batch, const struct ttm_record *record)
{
    ttm_brief_settle(batch->reg, batch->process, &batch->runs);
    take_record(batch->tracked, record);
    batch->is_usual = is_usual(batch->tracked);
}

static void take_pairs(struct ttm_tracked *tracked, const struct ttm_record *records,
                       const uint16_t *order, uint32_t n)
{
    static struct ttm_pairs pairs; /* one loop thread */
    static struct brief briefs[TTM_PAIRS_MAX];
    struct ttm_client *client = tracked->client;
    struct batch batch = {
        .tracked = tracked,
        .client = client,
        .reg = client->server->reg,
        .process = client->process,
        .is_recorded = ttm_record_is_on(client),
        .is_watched = !ttm_list_is_empty(&client->server->tails),
        .has_to_remember = ttm_telling_remembers(tracked),
        .is_usual = is_usual(tracked),
    };

    ttm_pairs_find(&pairs, records, order, n);
    for (uint32_t i = 0; i < n; i++) {
        const uint16_t at = order[i];
        const uint16_t mate = pairs.mate[at];
        if (mate == TTM_PAIR_NONE) {
            take_usual(&batch, &records[at]);
        } else if (records[at].op == TTM_RECORD_END) {
            end_brief(&batch, &records[mate], &records[at], &briefs[mate]);
        } else if (!begin_brief(&batch, &records[at], &briefs[at])) {
            pairs.mate[mate] = TTM_PAIR_NONE;
            take_usual(&batch, &records[at]);
        }
    }
    ttm_brief_settle(batch.reg, batch.process, &batch.runs);
}

/* ---- cost ---- */

static uint32_t cost_of(const struct ttm_tracked *tracked, const struct ttm_record *record)
{
    const struct ttm_notes *notes = &tracked->notes;

    switch (record->op) {
    case TTM_RECORD_BIRTH:
        return ttm_notes_cost(notes, record->devices, record->origin) +
               (record->flags & TTM_RECORD_CORES ? COST_OF_NOTE : 0);
    case TTM_RECORD_END:
    case TTM_RECORD_REPLACED:
    case TTM_RECORD_CLOSED:
        return 1 + tracked->client->process->largest_set;
    case TTM_RECORD_NAMED:
        return ttm_notes_cost(notes, 0, record->origin);
    case TTM_RECORD_FAILURE:
        return COST_OF_FAILURE + ttm_notes_cost(notes, record->devices, record->origin) +
               tracked->client->process->sites.count / 8;
    case TTM_RECORD_PEAKS:
        return 1 + tracked->client->process->device_count;
    default:
        return COST_OF_NOTE;
    }
}

/* Who is shown each of its events. */
static uint32_t count_readers(const struct ttm_client *client)
{
    uint32_t count = 0;

    TTM_LIST_FOR_EACH(pos, &client->server->tails) {
        const struct ttm_session *session = TTM_CONTAINER_OF(pos, struct ttm_session, tail_link);
        count += ttm_session_may_see(session, client->uid);
    }
    return count;
}

uint32_t ttm_intake_affordable(const struct ttm_tracked *tracked, const struct ttm_record *records,
                               const uint16_t *order, uint32_t n, uint32_t *ret_cost)
{
    const uint32_t readers = count_readers(tracked->client);
    uint32_t cost = 0, count = 0;

    while (count < n) {
        const uint32_t more = cost_of(tracked, &records[order[count]]) + readers;
        if (count > 0 && cost + more > COST_MAX)
            break;
        cost += more;
        count++;
    }
    *ret_cost = cost;
    return count;
}

uint32_t ttm_intake_cost_of_told(const struct ttm_tracked *tracked, const uint8_t *told)
{
    struct ttm_told one;

    ttm_told_decode(told, &one);
    return ttm_notes_cost(&tracked->notes, one.devices, one.origin) +
           (one.flags & TTM_RECORD_CORES ? COST_OF_NOTE : 0);
}

void ttm_intake_records(struct ttm_tracked *tracked, const struct ttm_record *records,
                        const uint16_t *order, uint32_t n)
{
    const struct ttm_client *client = tracked->client;

    if (n <= TTM_PAIRS_MAX && ttm_brief_has_room(client->server->reg, client->process, n) &&
        ttm_record_takes_brief(client, RECORDED_PER_RECORD * n)) {
        take_pairs(tracked, records, order, n);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        take_record(tracked, &records[order[i]]);
}

/* ---- what a process tells ---- */

/* With its time on our clock. */
static void decode_told(const struct ttm_tracked *tracked, const uint8_t *told,
                        struct ttm_told *ret)
{
    ttm_told_decode(told, ret);
    ret->birth_ns = ttm_tracked_time(tracked, ret->birth_ns, tracked->client->server->now_ns);
}

/*
 * The same as a life of a known site, with no struct ttm_told in memory between: what was just stored by
 * words cannot be loaded by pairs of them without a wait.
 */
static inline void life_told(const struct ttm_tracked *tracked, const uint8_t *told,
                             uint64_t now_ns, uint32_t site, struct ttm_life *ret)
{
    struct ttm_told one;

    ttm_told_decode(told, &one);
    *ret = (struct ttm_life){
        .serial = one.serial,
        .id = one.id,
        .address = one.address,
        .bytes = one.bytes,
        .footprint_bytes = one.footprint_bytes,
        .birth_ns = ttm_tracked_time(tracked, one.birth_ns, now_ns),
        .site = site,
    };
}

/* As the record of its birth has it, but for the time and the serial. */
static struct ttm_record site_record(const struct ttm_told *told)
{
    return (struct ttm_record){
        .allocator = told->allocator,
        .banks = told->banks,
        .devices = told->devices,
        .origin = told->origin,
        .op = TTM_RECORD_BIRTH,
        .region = told->region,
        .kind = told->kind,
        .flags = told->flags,
    };
}

/* As many as have the site of the first, where that is remembered. Returns how many were taken. */
static uint32_t take_alike(struct ttm_tracked *tracked, const uint8_t *const *told, uint32_t count,
                           const struct ttm_record *record)
{
    struct ttm_client *client = tracked->client;
    struct ttm_life lives[TTM_FIND_MAX];
    struct ttm_told one;
    uint64_t words[2];
    uint32_t n = 0;

    words_of(record, words);
    const struct ttm_alike *alike = find_alike(tracked, words);
    if (!alike || tracked->late_name_count > 0)
        return 0;
    do {
        life_told(tracked, told[n], client->server->now_ns, alike->site.number, &lives[n]);
        n++;
    } while (n < count && ttm_told_is_alike(told[0], told[n]));
    n = ttm_registry_births(client->server->reg, client->process, lives, n);
    for (uint32_t i = 0; ttm_record_is_on(client) && i < n; i++) {
        decode_told(tracked, told[i], &one);
        ttm_record_birth(client, &one, one.origin, was_heard_of(client));
    }
    return n;
}

void ttm_intake_told(struct ttm_tracked *tracked, const uint8_t *const *told, uint32_t count)
{
    struct ttm_told first;

    for (uint32_t done = 0; done < count;) {
        decode_told(tracked, told[done], &first);
        const struct ttm_record record = site_record(&first);
        const uint32_t n = take_alike(tracked, told + done, count - done, &record);
        done += n;
        if (n > 0)
            continue;
        (void)take_birth(tracked, &first, false);
        remember_site(tracked, &record);
        done++;
    }
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
