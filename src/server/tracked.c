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
 * end is remembered, and a birth that comes meanwhile is not believed. The same
 * goes for a life that was told: its birth may still come, after its end. While
 * it is told, nothing is forgotten, as tellings may be on their way for long.
 */
#include "server/tracked.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/bytes.h"
#include "wire/attach.h"
#include "wire/event.h"
#include "wire/frame.h"
#include "wire/life_row.h"

#define RECORDS_PER_SLICE 1024
#define SWEEP_PER_SLICE 4096
#define CALM_READS 8
#define DRAIN_MAX (1u << 18)
#define ENDED_MAX (1u << 22)
#define NOTES_MAX 4096

static void activate(struct ttm_tracked *tracked)
{
    tracked->empty_reads = 0;
    if (ttm_list_is_empty(&tracked->active_link))
        ttm_list_append(&tracked->client->server->rings, &tracked->active_link);
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
    ttm_u64_set_init(&tracked->told);
    ttm_u64_set_init(&tracked->ended);
    ttm_u64_set_init(&tracked->ended_before);
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
    ttm_tracked_free(client->tracked);
    client->tracked = tracked;
    tracked->session = session;
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
}

void ttm_tracked_free(struct ttm_tracked *tracked)
{
    if (!tracked)
        return;
    ttm_list_remove(&tracked->active_link);
    /* The process has the same eventfd open, so closing ours does not end the watch. */
    (void)epoll_ctl(tracked->client->server->epoll_fd, EPOLL_CTL_DEL, tracked->wake_fd, NULL);
    (void)close(tracked->wake_fd);
    ttm_ring_reader_close(&tracked->reader);
    ttm_u64_set_done(&tracked->told);
    ttm_u64_set_done(&tracked->ended);
    ttm_u64_set_done(&tracked->ended_before);
    (void)ttm_life_view_release(&tracked->sweep, UINT32_MAX);
    free(tracked->notes);
    free(tracked->sets);
    tracked->wake_watch.handle = ignore_event;
    ttm_list_append(&tracked->client->server->dead_rings, &tracked->active_link);
}

/* ---- what a record or a telling says ---- */

static int learn_set(struct ttm_tracked *tracked, uint32_t note, uint32_t *ret)
{
    struct ttm_registry *reg = tracked->client->server->reg;
    uint8_t bytes[2 * TTM_DEVICE_COUNT];
    uint16_t devices[TTM_DEVICE_COUNT];
    const long n =
        ttm_ring_reader_note(&tracked->reader, note, TTM_NOTE_DEVICES, bytes, sizeof(bytes));

    if (n < 0 || tracked->note_count == NOTES_MAX)
        return -EINVAL;
    for (long i = 0; i < n / 2; i++)
        devices[i] = get_le16(bytes + 2 * i);
    int r = ttm_device_sets_intern(&reg->sets, devices, (uint32_t)(n / 2), ret);
    if (r < 0)
        return r;
    uint32_t *notes = realloc(tracked->notes, (tracked->note_count + 1) * sizeof(notes[0]));
    if (!notes)
        return -ENOMEM;
    tracked->notes = notes;
    uint32_t *sets = realloc(tracked->sets, (tracked->note_count + 1) * sizeof(sets[0]));
    if (!sets)
        return -ENOMEM;
    tracked->sets = sets;
    tracked->notes[tracked->note_count] = note;
    tracked->sets[tracked->note_count++] = *ret;
    return 0;
}

static int device_set_of(struct ttm_tracked *tracked, uint32_t devices, uint32_t *ret)
{
    if (devices < TTM_DEVICE_COUNT) {
        *ret = devices;
        return 0;
    }
    for (uint32_t i = 0; i < tracked->note_count; i++) {
        if (tracked->notes[i] == devices) {
            *ret = tracked->sets[i];
            return 0;
        }
    }
    return learn_set(tracked, devices, ret);
}

static void refuse(struct ttm_tracked *tracked, enum ttm_counter why)
{
    tracked->client->server->counter[why]++;
    tracked->client->process->counters.refused++;
}

static void take_birth(struct ttm_tracked *tracked, const struct ttm_told *told, bool is_news)
{
    struct ttm_client *client = tracked->client;
    struct ttm_server *server = client->server;
    struct ttm_birth birth = {
        .serial = told->serial,
        .id = told->id,
        .address = told->address,
        .bytes = told->bytes,
        .footprint_bytes = told->footprint_bytes,
        /* Both sides read one clock; what lies ahead of it is not believed. */
        .time_ns = told->birth_ns < server->now_ns ? told->birth_ns : server->now_ns,
        .site = {.allocator = told->allocator,
                 .region = told->region,
                 .kind = told->kind,
                 .flags = told->flags},
    };

    if (told->serial == 0 || device_set_of(tracked, told->devices, &birth.site.device_set) < 0) {
        refuse(tracked, TTM_COUNTER_REFUSED_DEVICE);
        return;
    }
    const int r = ttm_registry_birth(server->reg, client->process, &birth, NULL);
    if (r == -EEXIST)
        return;
    if (r < 0) {
        refuse(tracked, r == -ERANGE   ? TTM_COUNTER_REFUSED_SIZE
                        : r == -EINVAL ? TTM_COUNTER_REFUSED_REGION
                                       : TTM_COUNTER_REFUSED_MEMORY);
        return;
    }
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

static void take_record(struct ttm_tracked *tracked, const struct ttm_record *record)
{
    struct ttm_client *client = tracked->client;
    struct ttm_server *server = client->server;
    struct ttm_ended ended;

    client->process->counters.events++;
    if (record->op == TTM_RECORD_BIRTH) {
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
        if (has_ended(tracked, record->serial))
            return; /* its end was read first */
        if (tracked->is_telling)
            remember_told(tracked, record->serial);
        take_birth(tracked, &told, true);
        return;
    }
    if ((record->op != TTM_RECORD_END && record->op != TTM_RECORD_REPLACED) ||
        record->serial == 0) {
        refuse(tracked, TTM_COUNTER_REFUSED_TYPE);
        return;
    }
    const bool is_replaced = record->op == TTM_RECORD_REPLACED;
    const int r =
        ttm_registry_end_serial(server->reg, client->process, record->serial, is_replaced, &ended);
    remember_end(tracked, record->serial);
    if (r == 0 && !ttm_list_is_empty(&server->tails))
        ttm_tail_life(server, client, is_replaced ? TTM_EVENT_REPLACED : TTM_EVENT_END, &ended.site,
                      &ended.life);
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
        if (!ttm_u64_set_has(&tracked->told, life->serial))
            (void)ttm_registry_end_serial(client->server->reg, client->process, life->serial, false,
                                          &ended);
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
}

/* A loss since the last telling: once every ring was read again, the process is asked. */
static void watch_losses(struct ttm_tracked *tracked)
{
    const uint64_t lost = ttm_ring_reader_lost(&tracked->reader);

    tracked->client->process->counters.lost_events = lost;
    if (tracked->is_spoiled && !tracked->is_telling) {
        tracked->lost_known = UINT64_MAX;
        tracked->is_spoiled = false;
    }
    if (lost == tracked->lost_known || tracked->is_telling) {
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
    ttm_u64_set_done(&tracked->ended_before);
    tracked->ended_before = tracked->ended;
    ttm_u64_set_init(&tracked->ended);
}

/* Whether the rings can be left alone until the process wakes us. */
static bool may_sleep(struct ttm_tracked *tracked)
{
    if (tracked->empty_reads < CALM_READS || !ttm_ring_reader_sleep(&tracked->reader))
        return false;
    if (!tracked->session || tracked->is_telling ||
        ttm_ring_reader_lost(&tracked->reader) == tracked->lost_known)
        return true;
    ttm_ring_reader_wake(&tracked->reader); /* there is something to ask first */
    return false;
}

bool ttm_tracked_read(struct ttm_tracked *tracked)
{
    struct ttm_server *server = tracked->client->server;
    static struct ttm_record records[RECORDS_PER_SLICE]; /* one loop thread; 64 KiB */
    const uint64_t looked = tracked->looked;
    const uint32_t n =
        ttm_ring_reader_read(&tracked->reader, records, RECORDS_PER_SLICE, &tracked->looked);

    for (uint32_t i = 0; i < n; i++)
        take_record(tracked, &records[i]);
    server->counter[TTM_COUNTER_EVENTS] += n;
    tracked->empty_reads = n > 0 ? 0 : tracked->empty_reads + 1;
    if (n == 0 || tracked->looked != looked)
        count_pass(tracked);
    if (tracked->is_sweeping && sweep(tracked))
        end_telling(tracked);
    watch_losses(tracked);
    if (n > 0 || tracked->is_sweeping)
        return n == RECORDS_PER_SLICE || tracked->is_sweeping;
    if (may_sleep(tracked))
        ttm_list_remove(&tracked->active_link);
    return false;
}

void ttm_tracked_drain(struct ttm_tracked *tracked)
{
    for (uint32_t i = 0; i < DRAIN_MAX / RECORDS_PER_SLICE; i++) {
        (void)ttm_tracked_read(tracked);
        if (tracked->empty_reads > 0)
            return;
    }
}

bool ttm_tracked_is_behind(const struct ttm_tracked *tracked)
{
    const uint64_t lost = ttm_ring_reader_lost(&tracked->reader);

    return lost > 0 && lost != tracked->lost_known;
}
