/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why the telling is exact. Let R be the moment of the question. The process
 * walks its live table after R, while its threads go on.
 *
 * - A life that is told is live unless its end has been read ('ended') or will be.
 * - A life that is not told and whose birth was read before R has ended: the walk
 *   would have seen it. It is swept; a record of its end that comes later finds
 *   nothing, and is forgotten when the telling is over.
 * - A life whose birth was read after R is kept ('told' has it): its end comes
 *   through a ring, or is lost; but a loss after R is seen, and asked about again.
 *
 * A loss is seen as a counter. Before the question the rings are read as far as
 * they were written when it was seen, so that a birth that was still in a ring
 * when its end was lost is read before R.
 *
 * Why the order of rings is of no account. A birth is in its ring before its end
 * is in any. Whoever reads the end has the birth behind him, or reads it before
 * he has read all that is in the rings at that moment: that long, two passes, an
 * end is remembered. A birth that comes meanwhile ends at once, as the end says:
 * the history has both. A life that was told has a birth that may still come after
 * its end, and that is not believed. While it is told, nothing is forgotten, as
 * tellings may be on their way for long.
 *
 * The records of one look at the rings are taken in order of time all the same:
 * what threads did beside each other is told so.
 */
#include "server/tracked.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "server/peer.h"
#include "server/record.h"
#include "wire/attach.h"
#include "wire/event.h"
#include "wire/frame.h"
#include "wire/life_row.h"
#include "wire/note.h"

#define RECORDS_PER_SLICE 1024
#define SHARE_LEAST 16 /* records of one ring that are read at a time */
#define SWEEP_PER_SLICE 4096
#define CALM_READS 8
#define PACE_NS UINT64_C(50000)
/*
 * Between two looks at rings that are filled slowly: to wake up costs as much as a hundred
 * records. A ring that fills up earlier wakes us, and who asks gets what is in the rings.
 */
#define DOZE_NS UINT64_C(10000000)
#define TOLD_SLICES 16 /* that are read before a frame of what is live */
#define DRAIN_MAX (1u << 18)
#define ENDED_MAX (1u << 22)
#define LATE_NAMES_MAX 256
#define RATE_NS UINT64_C(1000000000)
#define SUM_CBS_NS UINT64_C(100000000) /* at most so often while events come in */
#define ALONE_CHECK 10                 /* visits until it is looked at whether it is still there */
#define ALONE_NS UINT64_C(50000000)    /* a process without connection may be unable to wake us */

static void activate(struct ttm_tracked *tracked)
{
    struct ttm_server *server = tracked->client->server;

    tracked->empty_reads = 0;
    if (ttm_list_is_empty(&tracked->active_link))
        ttm_list_append(&server->rings, &tracked->active_link);
    server->rings_pause_ns = 0;
}

static void handle_wake(struct ttm_watch *watch, uint32_t events)
{
    (void)events;
    activate((struct ttm_tracked *)watch);
}

static void ignore_event(struct ttm_watch *watch, uint32_t events)
{
    (void)watch;
    (void)events;
}

/* Asks the process to tell all that is live. */
static void ask(struct ttm_tracked *tracked)
{
    uint8_t payload[TTM_TOLD_HEAD_SIZE];

    if (!tracked->session)
        return;
    tracked->epoch++;
    tracked->is_telling = true;
    ttm_u64_set_done(&tracked->told);
    ttm_told_head_encode(tracked->epoch, 0, payload);
    (void)ttm_frame_append(&tracked->session->out, TTM_FRAME_TELL, payload, sizeof(payload));
    ttm_session_dirty(tracked->session);
}

static void take_device(struct ttm_tracked *tracked, uint32_t id);

static struct ttm_tracked *new_tracked(struct ttm_client *client, int wake_fd)
{
    struct ttm_tracked *tracked = calloc(1, sizeof(*tracked));

    if (!tracked)
        return NULL;
    tracked->wake_watch.handle = handle_wake;
    tracked->client = client;
    tracked->wake_fd = wake_fd;
    tracked->lost_known = UINT64_MAX;
    ttm_list_init(&tracked->active_link);
    ttm_list_init(&tracked->alone_link);
    ttm_u64_set_init(&tracked->told);
    ttm_u64_set_init(&tracked->ended);
    ttm_u64_set_init(&tracked->ended_before);
    ttm_early_ends_init(&tracked->early_ends);
    return tracked;
}

int ttm_tracked_attach(struct ttm_session *session, int segment_fd, int wake_fd)
{
    struct ttm_server *server = session->server;
    struct ttm_tracked *tracked = NULL;
    struct ttm_client *client;

    int r = ttm_client_of(session, TTM_SOURCE_TRACKED, &client);
    if (r == 0)
        tracked = new_tracked(client, wake_fd);
    if (!tracked) {
        (void)close(segment_fd);
        (void)close(wake_fd);
        return r < 0 ? r : -ENOMEM;
    }
    struct stat st = {0};
    (void)fstat(segment_fd, &st);
    tracked->segment_inode = st.st_ino;
    r = ttm_ring_reader_open(segment_fd, &tracked->reader);
    (void)close(segment_fd);
    if (r == 0)
        /* Edges, and it is never read: whatever fd that is, it can neither stop us nor keep us busy. */
        r = ttm_server_watch(server, server->epoll_fd, wake_fd, EPOLLIN | EPOLLET,
                             &tracked->wake_watch);
    if (r < 0) {
        ttm_tracked_free(tracked);
        return r;
    }
    /* It connected before: what that connection's rings said is in the new telling. */
    const bool is_back =
        client->tracked && client->tracked->segment_inode == tracked->segment_inode;
    /* Or it is another program by now, whose serials and notes begin anew. */
    if (client->tracked && !is_back && ttm_client_renew(client) < 0) {
        ttm_tracked_free(tracked);
        return -ENOMEM;
    }
    ttm_tracked_free(client->tracked);
    client->tracked = tracked;
    tracked->session = session;
    tracked->rate_since_ns = server->now_ns;
    ttm_notes_init(&tracked->notes, &tracked->reader, client);
    client->process->counters.is_disabled = false;
    if (!is_back && ttm_ring_reader_is_late(&tracked->reader))
        client->process->counters.has_gap = true;
    for (uint32_t id = 0; id < TTM_SEGMENT_DEVICES; id++)
        take_device(tracked, id);
    activate(tracked); /* what is in the rings is read first, then all is asked for */
    return 0;
}

void ttm_tracked_detach(struct ttm_session *session)
{
    struct ttm_tracked *tracked = session->client ? session->client->tracked : NULL;

    if (!tracked || tracked->session != session)
        return;
    tracked->session = NULL;
    tracked->is_telling = false;
    /* A program that has closed all its fds goes on writing, but its eventfd is gone. */
    struct ttm_server *server = session->server;
    if (ttm_list_is_empty(&server->alone))
        server->visit_alone_ns = server->now_ns + ALONE_NS;
    ttm_list_append(&server->alone, &tracked->alone_link);
}

/* An exec() puts another program in its place, which may have nothing to do with us. */
static bool has_gone(struct ttm_tracked *tracked)
{
    if (++tracked->alone_visits % ALONE_CHECK != 0)
        return false;
    return ttm_peer_has_unmapped(tracked->client->pid, (uint64_t)tracked->segment_inode);
}

void ttm_tracked_visit_alone(struct ttm_server *server)
{
    TTM_LIST_FOR_EACH_SAFE(pos, &server->alone) {
        struct ttm_tracked *tracked = TTM_CONTAINER_OF(pos, struct ttm_tracked, alone_link);
        if (has_gone(tracked))
            ttm_client_end(tracked->client);
        else
            activate(tracked);
    }
    server->visit_alone_ns = server->now_ns + ALONE_NS;
}

void ttm_tracked_free(struct ttm_tracked *tracked)
{
    if (!tracked)
        return;
    ttm_list_remove(&tracked->active_link);
    ttm_list_remove(&tracked->alone_link);
    /* The process has the same eventfd open, so closing ours does not end the watch. */
    (void)epoll_ctl(tracked->client->server->epoll_fd, EPOLL_CTL_DEL, tracked->wake_fd, NULL);
    (void)close(tracked->wake_fd);
    ttm_ring_reader_close(&tracked->reader);
    ttm_u64_set_done(&tracked->told);
    ttm_u64_set_done(&tracked->ended);
    ttm_u64_set_done(&tracked->ended_before);
    ttm_early_ends_done(&tracked->early_ends);
    (void)ttm_life_view_release(&tracked->sweep, UINT32_MAX);
    ttm_notes_done(&tracked->notes);
    free(tracked->late_names);
    tracked->late_names = NULL;
    tracked->late_name_count = 0;
    tracked->wake_watch.handle = ignore_event;
    ttm_list_append(&tracked->client->server->dead_rings, &tracked->active_link);
}

/* ---- what a record or a telling says ---- */

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

static void raise_peak_resident(struct ttm_tracked *tracked, uint32_t device_set, uint64_t bytes)
{
    struct ttm_registry *reg = tracked->client->server->reg;
    struct ttm_process *process = tracked->client->process;
    const struct ttm_device_set set = ttm_device_sets_get(&reg->sets, device_set);

    for (uint16_t i = 0; i < set.count; i++) {
        const uint16_t id = set.devices[i];
        struct ttm_cb_totals *both[] = {
            &process->devices[process->slots[id] - 1].totals.cb,
            &reg->devices[id]->totals.cb,
        };
        for (size_t b = 0; b < 2; b++) {
            if (bytes > both[b]->peak_resident_bytes)
                both[b]->peak_resident_bytes = bytes;
        }
    }
}

/* A circular buffer whose cores are known takes part in the sums over cores. */
static void place_cb(struct ttm_tracked *tracked, const struct ttm_birth *birth, int cores)
{
    struct ttm_cb_map *map = &tracked->client->process->cbs;
    const struct ttm_cb cb = {
        .serial = birth->serial,
        .program = birth->id,
        .address = birth->address,
        .core_bytes = birth->footprint_bytes / map->core_sets[cores].count,
        .core_set = (uint32_t)cores,
        .device_set = birth->site.device_set,
    };

    if (ttm_cb_map_add(map, &cb) < 0)
        tracked->client->server->counter[TTM_COUNTER_REFUSED_MEMORY]++;
    /* Resident is all that one program has, be it for a moment between two sums. */
    tracked->cb_program_bytes =
        (tracked->cb_program == birth->id ? tracked->cb_program_bytes : 0) + birth->footprint_bytes;
    tracked->cb_program = birth->id;
    raise_peak_resident(tracked, birth->site.device_set, tracked->cb_program_bytes);
}

static void take_birth(struct ttm_tracked *tracked, const struct ttm_told *told, bool is_news)
{
    struct ttm_client *client = tracked->client;
    struct ttm_server *server = client->server;
    struct ttm_birth birth;
    int cores;

    if (translate(tracked, told, &birth, &cores) < 0) {
        refuse(tracked, TTM_COUNTER_REFUSED_DEVICE);
        return;
    }
    const int r = ttm_registry_birth(server->reg, client->process, &birth, NULL);
    if (r == -EEXIST)
        return;
    if (r < 0) {
        refuse(tracked, why_refused(r));
        return;
    }
    if (cores >= 0)
        place_cb(tracked, &birth, cores);
    /* One that is told before its record is read was heard of all the same, if nothing is missing. */
    const struct ttm_process_counters *counters = &client->process->counters;
    ttm_record_birth(client, told, birth.site.origin,
                     is_news || (!counters->has_gap && counters->lost_events == 0));
    if (!is_news || ttm_list_is_empty(&server->tails))
        return;
    const struct ttm_life life = {
        .id = birth.id,
        .address = birth.address,
        .bytes = birth.bytes,
        .footprint_bytes = birth.footprint_bytes,
    };
    ttm_tail_life(server, client, TTM_EVENT_BIRTH, &birth.site, &life);
}

/* Remembers an end; when there are too many to remember, a telling makes it good. */
static void remember_end(struct ttm_tracked *tracked, uint64_t serial)
{
    if (tracked->ended.count >= ENDED_MAX || ttm_u64_set_add(&tracked->ended, serial) < 0)
        tracked->is_spoiled = true;
}

static bool has_ended(const struct ttm_tracked *tracked, uint64_t serial)
{
    return ttm_u64_set_has(&tracked->ended, serial) ||
           ttm_u64_set_has(&tracked->ended_before, serial);
}

static void remember_told(struct ttm_tracked *tracked, uint64_t serial)
{
    if (ttm_u64_set_add(&tracked->told, serial) < 0)
        tracked->is_spoiled = true;
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
        .allocator = (uint16_t)record->allocator,
        .region = record->region,
        .kind = record->kind,
        .flags = record->flags,
    };

    struct ttm_early_end end;
    if (ttm_early_ends_take(&tracked->early_ends, record->serial, &end)) {
        take_birth(tracked, &told, true);
        (void)end_life(tracked, record->serial, end.time_ns, end.how);
        return;
    }
    if (has_ended(tracked, record->serial))
        return; /* it was told, and has ended since */
    if (tracked->is_telling)
        remember_told(tracked, record->serial);
    take_birth(tracked, &told, true);
}

static void take_end(struct ttm_tracked *tracked, const struct ttm_record *record, enum ttm_end how)
{
    const struct ttm_early_end end = {.time_ns = record->time_ns, .how = (uint8_t)how};

    if (record->serial == 0) {
        refuse(tracked, TTM_COUNTER_REFUSED_TYPE);
        return;
    }
    if (end_life(tracked, record->serial, record->time_ns, how) < 0 &&
        ttm_early_ends_add(&tracked->early_ends, record->serial, &end) < 0)
        tracked->is_spoiled = true;
    remember_end(tracked, record->serial);
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
    ttm_record_failure(client, &failure, record->devices, (uint16_t)record->allocator);
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
        take_device(tracked, record->devices);
        break;
    default:
        refuse(tracked, TTM_COUNTER_REFUSED_TYPE);
        break;
    }
}

/* ---- what holds now ---- */

static void sum_cbs_of_device(struct ttm_tracked *tracked, struct ttm_process_device *device)
{
    struct ttm_server *server = tracked->client->server;
    struct ttm_cb_totals *own = &device->totals.cb;
    struct ttm_cb_totals *all = &server->reg->devices[device->id]->totals.cb;
    struct ttm_device_state state;
    struct ttm_cb_sums sums;

    ttm_ring_reader_device(&tracked->reader, device->id, &state);
    if (ttm_cb_map_sum(&tracked->client->process->cbs, &server->reg->sets, device->id,
                       state.programs, state.program_count, &sums) < 0)
        return;
    sums.registered_bytes += own->coreless_bytes;
    sums.resident_bytes += own->coreless_bytes;
    all->registered_bytes += sums.registered_bytes - own->registered_bytes;
    all->resident_bytes += sums.resident_bytes - own->resident_bytes;
    own->registered_bytes = sums.registered_bytes;
    own->resident_bytes = sums.resident_bytes;
    struct ttm_cb_totals *both[] = {own, all};
    for (size_t i = 0; i < 2; i++) {
        if (both[i]->registered_bytes > both[i]->peak_registered_bytes)
            both[i]->peak_registered_bytes = both[i]->registered_bytes;
        if (both[i]->resident_bytes > both[i]->peak_resident_bytes)
            both[i]->peak_resident_bytes = both[i]->resident_bytes;
    }
}

static uint64_t dispatched(const struct ttm_tracked *tracked)
{
    const struct ttm_process *process = tracked->client->process;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < process->device_count; i++) {
        struct ttm_device_state state;
        ttm_ring_reader_device(&tracked->reader, process->devices[i].id, &state);
        sum += state.dispatched;
    }
    return sum;
}

static void sum_cbs(struct ttm_tracked *tracked)
{
    struct ttm_process *process = tracked->client->process;
    const uint64_t sent = dispatched(tracked);

    if (!process->cbs.is_changed && sent == tracked->cbs_dispatched)
        return;
    process->cbs.is_changed = false;
    tracked->cbs_dispatched = sent;
    tracked->cbs_summed_ns = tracked->client->server->now_ns;
    for (uint32_t i = 0; i < process->device_count; i++)
        sum_cbs_of_device(tracked, &process->devices[i]);
}

/* Counts events for the rate, which is that of the last second or so. */
static void count_rate(struct ttm_tracked *tracked, uint32_t n)
{
    const uint64_t now_ns = tracked->client->server->now_ns;
    const uint64_t elapsed_ns = now_ns - tracked->rate_since_ns;

    tracked->rate_events += n;
    if (elapsed_ns < RATE_NS)
        return;
    tracked->client->process->counters.events_per_s =
        (uint32_t)((double)tracked->rate_events * 1e9 / (double)elapsed_ns);
    tracked->rate_events = 0;
    tracked->rate_since_ns = now_ns;
}

void ttm_tracked_refresh(struct ttm_tracked *tracked)
{
    struct ttm_process *process = tracked->client->process;
    struct ttm_process_state state;

    ttm_ring_reader_process(&tracked->reader, &state);
    process->counters.unknown_ends = state.unknown_ends;
    process->counters.untracked = state.untracked;
    process->counters.ring_permille = (uint16_t)ttm_ring_reader_fill(&tracked->reader);
    ttm_notes_text(&tracked->notes, state.runtime_note, process->runtime);
    ttm_notes_text(&tracked->notes, state.trouble_note, process->trouble);
    count_rate(tracked, 0);
    sum_cbs(tracked);
}

/* ---- telling ---- */

static struct ttm_tracked *telling_of(struct ttm_session *session, uint32_t epoch)
{
    struct ttm_tracked *tracked = session->client ? session->client->tracked : NULL;

    return tracked && tracked->session == session && tracked->is_telling && !tracked->is_sweeping &&
                   tracked->epoch == epoch
               ? tracked
               : NULL;
}

int ttm_tracked_told(struct ttm_session *session, const uint8_t *payload, size_t length)
{
    uint32_t epoch;
    const long count = ttm_told_head_decode(payload, length, &epoch);

    if (count < 0)
        return -EBADMSG;
    struct ttm_tracked *tracked = telling_of(session, epoch);
    /* What is told was born before, and most of it is in the rings: in the order it happened. */
    uint32_t slices = TOLD_SLICES;
    if (tracked)
        ttm_tracked_catch_up(tracked, &slices);
    for (long i = 0; tracked && i < count; i++) {
        struct ttm_told told;
        ttm_told_decode(payload + TTM_TOLD_HEAD_SIZE + i * TTM_TOLD_SIZE, &told);
        if (told.serial == 0 || has_ended(tracked, told.serial))
            continue;
        remember_told(tracked, told.serial);
        take_birth(tracked, &told, false);
    }
    return 0;
}

int ttm_tracked_told_end(struct ttm_session *session, const uint8_t *payload, size_t length)
{
    uint32_t epoch;

    if (ttm_told_head_decode(payload, length, &epoch) < 0)
        return -EBADMSG;
    struct ttm_tracked *tracked = telling_of(session, epoch);
    if (!tracked)
        return 0;
    if (ttm_life_view_take(&tracked->client->process->lives.store, &tracked->sweep) < 0) {
        tracked->is_telling = false;
        tracked->is_spoiled = true;
        return 0;
    }
    tracked->sweep_at = 0;
    tracked->is_sweeping = true;
    activate(tracked);
    return 0;
}

/* Ends what was neither told nor born since. Returns whether all was looked at. */
static bool sweep(struct ttm_tracked *tracked)
{
    struct ttm_client *client = tracked->client;
    const struct ttm_life *life;
    struct ttm_ended ended;

    for (uint32_t i = 0; i < SWEEP_PER_SLICE; i++) {
        life = ttm_life_view_next(&tracked->sweep, &tracked->sweep_at);
        if (!life)
            return true;
        if (ttm_u64_set_has(&tracked->told, life->serial))
            continue;
        const uint64_t serial = life->serial;
        if (ttm_registry_end_serial(client->server->reg, client->process, serial, TTM_END_FREED,
                                    &ended) == 0)
            ttm_record_unheard(client, serial);
    }
    return false;
}

static void end_telling(struct ttm_tracked *tracked)
{
    (void)ttm_life_view_release(&tracked->sweep, UINT32_MAX);
    tracked->is_sweeping = false;
    tracked->is_telling = false;
    tracked->lost_known = tracked->lost_asked;
    ttm_u64_set_done(&tracked->told);
    if (tracked->has_told || tracked->client->process->counters.has_gap)
        tracked->client->process->counters.resyncs++;
    tracked->has_told = true;
}

/* The recording ends what is not known any more. */
static void record_forgotten(struct ttm_tracked *tracked)
{
    struct ttm_client *client = tracked->client;
    struct ttm_life_view view;
    const struct ttm_life *life;
    uint64_t at = 0;

    if (!client->server->options.recorder ||
        ttm_life_view_take(&client->process->lives.store, &view) < 0)
        return;
    while ((life = ttm_life_view_next(&view, &at)) != NULL)
        ttm_record_unheard(client, life->serial);
    (void)ttm_life_view_release(&view, UINT32_MAX);
}

int ttm_tracked_switched(struct ttm_session *session, const uint8_t *payload, size_t length)
{
    struct ttm_tracked *tracked = session->client ? session->client->tracked : NULL;
    uint32_t is_on;

    if (ttm_told_head_decode(payload, length, &is_on) < 0)
        return -EBADMSG;
    if (!tracked || tracked->session != session)
        return 0;
    struct ttm_process *process = tracked->client->process;
    if (is_on == 0) {
        ttm_tracked_drain(tracked);
        if (tracked->is_sweeping)
            end_telling(tracked);
        tracked->is_telling = false;
        record_forgotten(tracked);
        ttm_registry_forget_lives(tracked->client->server->reg, process);
        process->counters.has_gap = true;
    } else {
        tracked->lost_known = UINT64_MAX; /* asks for what is live */
        activate(tracked);
    }
    tracked->is_off = is_on == 0;
    process->counters.is_disabled = tracked->is_off;
    return 0;
}

/* A loss since the last telling: once every ring was read again, the process is asked. */
static void watch_losses(struct ttm_tracked *tracked)
{
    const uint64_t lost = ttm_ring_reader_lost(&tracked->reader);

    if (lost > tracked->client->process->counters.lost_events)
        ttm_record_loss(tracked->client, lost - tracked->client->process->counters.lost_events);
    tracked->client->process->counters.lost_events = lost;
    if (tracked->is_spoiled && !tracked->is_telling) {
        tracked->lost_known = UINT64_MAX;
        tracked->is_spoiled = false;
    }
    if (lost == tracked->lost_known || tracked->is_telling || tracked->is_off) {
        tracked->ask_at_pass = 0;
        return;
    }
    if (tracked->ask_at_pass == 0) {
        tracked->ask_at_pass = tracked->passed + 2;
        tracked->lost_asked = lost; /* what is lost from here on is asked about another time */
        tracked->empty_reads = 0;
    } else if (tracked->passed >= tracked->ask_at_pass || tracked->empty_reads > 1) {
        ask(tracked);
    }
}

/* Counts a pass when all that was in the rings at its beginning has been read. */
static void count_pass(struct ttm_tracked *tracked)
{
    if (!ttm_ring_reader_is_past_mark(&tracked->reader))
        return;
    ttm_ring_reader_mark(&tracked->reader);
    tracked->passed++;
    if (tracked->is_telling)
        return;
    /* An end without a birth is one whose birth was lost: the process reports only its own. */
    const struct ttm_u64_set emptied = tracked->ended_before;
    tracked->ended_before = tracked->ended;
    tracked->ended = emptied;
    ttm_u64_set_clear(&tracked->ended);
    ttm_early_ends_age(&tracked->early_ends);
    /* The same goes for names. */
    tracked->late_name_count -= tracked->late_names_old;
    if (tracked->late_name_count > 0)
        memmove(tracked->late_names, tracked->late_names + tracked->late_names_old,
                tracked->late_name_count * sizeof(tracked->late_names[0]));
    tracked->late_names_old = tracked->late_name_count;
}

/* Whether the rings can be left alone until the process wakes us. */
static bool may_sleep(struct ttm_tracked *tracked)
{
    if (tracked->empty_reads < CALM_READS || !ttm_ring_reader_sleep(&tracked->reader))
        return false;
    if (!tracked->session || tracked->is_telling || tracked->is_off ||
        ttm_ring_reader_lost(&tracked->reader) == tracked->lost_known)
        return true;
    ttm_ring_reader_wake(&tracked->reader); /* there is something to ask first */
    return false;
}

/* When to look again at rings that have been read. */
static uint64_t pause_ns(struct ttm_tracked *tracked)
{
    /* A loss is asked about when every ring was looked at twice. */
    if (tracked->session && tracked->ask_at_pass != 0)
        return PACE_NS;
    if (!ttm_list_is_empty(&tracked->active_link)) /* or nobody would look by himself */
        ttm_ring_reader_doze(&tracked->reader);
    return DOZE_NS;
}

/* Records of several rings, each in the order it has them, and their order by time. */
struct slice {
    struct ttm_record records[RECORDS_PER_SLICE];
    uint16_t order[RECORDS_PER_SLICE];
    uint32_t count;
};

static uint64_t time_at(const struct slice *slice, uint32_t place)
{
    return slice->records[slice->order[place]].time_ns;
}

/* The next 'n' records are of another ring. They are merged into the order from its end on. */
static void merge(struct slice *slice, uint32_t n)
{
    uint32_t older = slice->count, newer = slice->count + n;

    slice->count += n;
    for (uint32_t at = slice->count; newer > slice->count - n && at-- > 0;) {
        const uint64_t time_ns = slice->records[newer - 1].time_ns;
        slice->order[at] = older > 0 && time_at(slice, older - 1) > time_ns ? slice->order[--older]
                                                                            : (uint16_t)--newer;
    }
}

/* Looks at each ring, again and again until the slice is full: none gets far ahead of the others. */
static void read_rings(struct ttm_tracked *tracked, struct slice *slice)
{
    const uint32_t share = RECORDS_PER_SLICE / 2 / (ttm_ring_reader_used(&tracked->reader) + 1);
    const uint32_t least = share < SHARE_LEAST ? SHARE_LEAST : share;
    uint32_t n;

    slice->count = 0;
    do {
        const uint32_t room = RECORDS_PER_SLICE - slice->count;
        n = ttm_ring_reader_read(&tracked->reader, slice->records + slice->count,
                                 room < least ? room : least, &tracked->looked);
        merge(slice, n);
    } while (n > 0 && slice->count < RECORDS_PER_SLICE);
}

uint64_t ttm_tracked_read(struct ttm_tracked *tracked)
{
    struct ttm_server *server = tracked->client->server;
    static struct slice slice; /* one loop thread; 66 KiB */
    const uint64_t looked = tracked->looked;

    read_rings(tracked, &slice);
    const uint32_t n = slice.count;
    for (uint32_t i = 0; i < n; i++)
        take_record(tracked, &slice.records[slice.order[i]]);
    server->counter[TTM_COUNTER_EVENTS] += n;
    if (n > 0) {
        count_rate(tracked, n);
        if (tracked->client->process->cbs.is_changed &&
            server->now_ns - tracked->cbs_summed_ns > SUM_CBS_NS)
            sum_cbs(tracked);
    }
    tracked->empty_reads = n > 0 ? 0 : tracked->empty_reads + 1;
    if (n == 0 || tracked->looked != looked)
        count_pass(tracked);
    if (tracked->is_sweeping && sweep(tracked))
        end_telling(tracked);
    watch_losses(tracked);
    if (n == RECORDS_PER_SLICE || tracked->is_sweeping)
        return 0;
    if (n == 0 && may_sleep(tracked)) {
        ttm_list_remove(&tracked->active_link);
        return UINT64_MAX;
    }
    return pause_ns(tracked);
}

void ttm_tracked_drain(struct ttm_tracked *tracked)
{
    for (uint32_t i = 0; i < DRAIN_MAX / RECORDS_PER_SLICE; i++) {
        (void)ttm_tracked_read(tracked);
        if (tracked->empty_reads > 0)
            return;
    }
}

void ttm_tracked_catch_up(struct ttm_tracked *tracked, uint32_t *budget)
{
    if (!ttm_ring_reader_has_more(&tracked->reader))
        return;
    const uint64_t looked = tracked->looked;
    /* Each ring is looked at once: after two rounds that began now, all is read that was there. */
    while (*budget > 0 && tracked->looked - looked < 2) {
        (*budget)--;
        (void)ttm_tracked_read(tracked);
        if (tracked->empty_reads > 0)
            break;
    }
}

bool ttm_tracked_is_behind(const struct ttm_tracked *tracked)
{
    const uint64_t lost = ttm_ring_reader_lost(&tracked->reader);

    return lost > 0 && lost != tracked->lost_known;
}
