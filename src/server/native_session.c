/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native protocol: hello, then requests. Totals are answered at once; lives
 * and checks, which may be millions, are worked off in steps from a snapshot.
 */
#include "server/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "server/telling.h"
#include "server/tracked.h"
#include "wire/attach.h"
#include "wire/frame.h"
#include "wire/hello.h"
#include "wire/life_row.h"
#include "wire/origin_row.h"
#include "wire/totals.h"

#ifndef TTM_VERSION
#error "the build defines TTM_VERSION"
#endif

#define LIVES_PER_FRAME 512
/* Turns that an answer waits for what its user's processes, and others', reported before it. */
#define TURNS_FOR_OWN 32
#define TURNS_FOR_OTHERS 4
#define INTERVAL_MIN_MS 10
#define INTERVAL_MAX_MS 3600000

static void say_error(struct ttm_session *session, const char *text)
{
    (void)ttm_frame_append(&session->out, TTM_FRAME_ERROR, text, (uint32_t)strlen(text));
    session->is_closing = true;
    ttm_session_dirty(session);
}

static void say_end(struct ttm_session *session)
{
    (void)ttm_frame_append(&session->out, TTM_FRAME_END, NULL, 0);
    ttm_session_dirty(session);
}

static void take_hello(struct ttm_session *session, const struct ttm_frame *frame)
{
    struct ttm_hello peer, own = ttm_hello_own(getpid());
    uint8_t buf[TTM_HELLO_SIZE];

    if (frame->type != TTM_FRAME_HELLO ||
        ttm_hello_decode(frame->payload, frame->length, &peer) < 0) {
        say_error(session, "this is a tt-mem server, and what it heard is no tt-mem client");
        return;
    }
    if (ttm_hello_check(&peer) < 0) {
        char text[160];
        (void)snprintf(text, sizeof(text),
                       "the server is tt-mem %s (protocol %u.%u), the client %.31s (protocol "
                       "%u.%u): use the same version",
                       TTM_VERSION, TTM_HELLO_MAJOR, TTM_HELLO_MINOR, peer.software, peer.major,
                       peer.minor);
        say_error(session, text);
        return;
    }
    session->has_said_hello = true;
    ttm_hello_encode(&own, buf);
    (void)ttm_frame_append(&session->out, TTM_FRAME_HELLO, buf, sizeof(buf));
    ttm_session_dirty(session);
}

/*
 * The process wrote these texts itself, so they have the rights of its allocations. That it has
 * trouble is for all: its totals are incomplete.
 */
static void put_texts(struct ttm_process_row *row, const struct ttm_process *proc)
{
    if (row->has_lives) {
        memcpy(row->runtime, proc->runtime, sizeof(row->runtime));
        memcpy(row->trouble, proc->trouble, sizeof(row->trouble));
    } else if (proc->trouble[0] != '\0') {
        (void)snprintf(row->trouble, sizeof(row->trouble), "something in it is not tracked");
    }
}

void ttm_native_put_process(struct ttm_session *session, uint32_t index,
                            const struct ttm_process *proc,
                            const struct ttm_process_counters *counters, uint32_t lives)
{
    uint8_t buf[TTM_ROW_SIZE_MAX];
    struct ttm_process_row row = {
        .index = index,
        .pid = proc->info.pid,
        .uid = proc->info.uid,
        .source = proc->info.source,
        .has_lives = ttm_session_may_see(session, proc->info.uid),
        .connections = counters->connections,
        .lives = lives,
        .start_ns = proc->info.start_ns,
        .events = counters->events,
        .unknown_frees = counters->unknown_frees,
        .ambiguous_frees = counters->ambiguous_frees,
        .replaced = counters->replaced,
        .refused = ttm_process_refused(counters),
        .lost_events = counters->lost_events,
        .resyncs = counters->resyncs,
        .untracked = counters->untracked,
        .unknown_ends = counters->unknown_ends,
        .events_per_s = counters->events_per_s,
        .ring_permille = counters->ring_permille,
        .is_disabled = counters->is_disabled,
        .has_gap = counters->has_gap,
        .is_behind = counters->is_behind,
        .resync_us = counters->resync_us,
        .run = ttm_session_may_see(session, proc->info.uid) ? proc->info.run : 0,
        .notes_left_out = counters->notes_left_out,
        .failures = proc->story.failure_count,
    };

    put_texts(&row, proc);
    if (row.trouble[0] == '\0' && counters->server_trouble)
        (void)snprintf(row.trouble, sizeof(row.trouble), "%s", counters->server_trouble);
    memcpy(row.command, proc->info.command, sizeof(row.command));
    if (!row.has_lives) /* its arguments are no business of other users */
        row.command[strcspn(row.command, " ")] = '\0';
    const size_t n = ttm_process_row_encode(&row, buf);
    (void)ttm_frame_append(&session->out, TTM_FRAME_PROCESS, buf, (uint32_t)n);
}

void ttm_native_put_device(struct ttm_session *session, uint16_t id,
                           const struct ttm_device *device)
{
    uint8_t buf[TTM_ROW_SIZE_MAX];
    struct ttm_device_row row = {
        .id = id,
        .arch = device->arch,
        .core_count = device->core_count,
        .totals = device->totals,
    };

    memcpy(row.capacity_bytes, device->capacity_bytes, sizeof(row.capacity_bytes));
    memcpy(row.bank_count, device->bank_count, sizeof(row.bank_count));
    memcpy(row.board, device->board, sizeof(row.board));
    const size_t n = ttm_device_row_encode(&row, buf);
    (void)ttm_frame_append(&session->out, TTM_FRAME_DEVICE, buf, (uint32_t)n);
}

static void put_process_devices(struct ttm_session *session, uint32_t index,
                                const struct ttm_process_device *devices, uint32_t count)
{
    uint8_t buf[TTM_ROW_SIZE_MAX];

    for (uint32_t i = 0; i < count; i++) {
        const struct ttm_process_device_row row = {
            .process_index = index,
            .device_id = devices[i].id,
            .totals = devices[i].totals,
        };
        const size_t n = ttm_process_device_row_encode(&row, buf);
        (void)ttm_frame_append(&session->out, TTM_FRAME_PROCESS_DEVICE, buf, (uint32_t)n);
    }
}

static void put_moment(struct ttm_session *session, uint64_t time_ns, uint32_t processes)
{
    const struct ttm_server *server = session->server;
    const struct ttm_moment moment = {
        .time_ns = time_ns + server->wall_offset_ns,
        .uptime_ns = time_ns - server->start_ns,
        .device_count = server->reg->device_count,
        .process_count = processes,
    };
    uint8_t buf[TTM_ROW_SIZE_MAX];
    const size_t n = ttm_moment_encode(&moment, buf);

    (void)ttm_frame_append(&session->out, TTM_FRAME_TOTALS, buf, (uint32_t)n);
}

/* Whose reports are not up to date yet: a turn has no time for more. */
struct behind {
    bool is_own_user;
    bool is_another;
};

/* An answer has what was reported before the question, and what is worked out only when asked. */
static struct behind refresh(const struct ttm_session *session)
{
    struct behind behind = {0};

    TTM_LIST_FOR_EACH(pos, &session->server->clients) {
        const struct ttm_client *client = TTM_CONTAINER_OF(pos, struct ttm_client, link);
        if (!client->tracked || ttm_tracked_prepare_answer(client->tracked))
            continue;
        if (client->account == session->account)
            behind.is_own_user = true;
        else
            behind.is_another = true;
    }
    return behind;
}

/*
 * Whether the question at hand can be answered. It does not wait for ever, as some report without
 * end, and least for the processes of other users.
 */
static bool is_prepared(struct ttm_session *session)
{
    const struct behind behind = refresh(session);
    const uint32_t turns = behind.is_own_user  ? TURNS_FOR_OWN
                           : behind.is_another ? TURNS_FOR_OTHERS
                                               : 0;

    if (++session->prepare_turns <= turns)
        return false;
    session->prepare_turns = 0;
    return true;
}

static void put_totals(struct ttm_session *session)
{
    const struct ttm_registry *reg = session->server->reg;
    uint32_t index = 0;

    put_moment(session, session->server->now_ns, reg->process_count);
    for (uint16_t id = 0; id < TTM_DEVICE_COUNT; id++) {
        if (reg->devices[id])
            ttm_native_put_device(session, id, reg->devices[id]);
    }
    TTM_LIST_FOR_EACH(pos, &reg->processes) {
        const struct ttm_process *proc = TTM_CONTAINER_OF(pos, struct ttm_process, link);
        ttm_native_put_process(session, index, proc, &proc->counters, proc->lives.store.live);
        put_process_devices(session, index, proc->devices, proc->device_count);
        index++;
    }
}

static void answer_totals(struct ttm_session *session)
{
    put_totals(session);
    say_end(session);
}

static void answer_sites(struct ttm_session *session, uint32_t frames)
{
    put_totals(session);
    if (ttm_sites_put(session, frames) < 0)
        say_error(session, "memory is short");
    else
        say_end(session);
}

static void answer_status(struct ttm_session *session)
{
    const struct ttm_registry *reg = session->server->reg;
    uint8_t buf[TTM_STATUS_SIZE];
    struct ttm_status status;
    uint32_t index = 0;

    ttm_server_status(session->server, &status);
    ttm_status_encode(&status, buf);
    (void)ttm_frame_append(&session->out, TTM_FRAME_STATUS, buf, sizeof(buf));
    TTM_LIST_FOR_EACH(pos, &reg->processes) {
        const struct ttm_process *proc = TTM_CONTAINER_OF(pos, struct ttm_process, link);
        ttm_native_put_process(session, index++, proc, &proc->counters, proc->lives.store.live);
    }
    say_end(session);
}

static void set_busy(struct ttm_session *session)
{
    const bool is_busy = session->lives.snap || session->check || session->has_requests ||
                         session->totals_interval_ms > 0;

    if (!is_busy)
        ttm_list_remove(&session->busy_link);
    else if (ttm_list_is_empty(&session->busy_link))
        ttm_list_append(&session->server->busy, &session->busy_link);
}

/* Every dump and check under way may come to hold a copy of all lives. */
static bool may_take_snapshot(const struct ttm_session *session)
{
    const struct ttm_account *account = session->account;

    return account->is_privileged ||
           (account->snapshots < TTM_USER_SNAPSHOTS && session->server->snapshots < TTM_DUMPS_MAX);
}

static void count_snapshots(struct ttm_session *session, int change)
{
    session->account->snapshots += (uint32_t)change;
    if (!session->account->is_privileged)
        session->server->snapshots += (uint32_t)change;
}

/* Whether answers that nobody reads have not come to take too much memory. */
static bool has_room_for_answers(const struct ttm_account *account)
{
    uint64_t bytes = 0;

    if (account->is_privileged)
        return true;
    TTM_LIST_FOR_EACH(pos, &account->sessions) {
        const struct ttm_session *session = TTM_CONTAINER_OF(pos, struct ttm_session, account_link);
        bytes += ttm_queue_length(&session->out);
    }
    return bytes < TTM_USER_ANSWER_BYTES;
}

void ttm_native_put_failure(struct ttm_session *session, uint32_t process_index,
                            const struct ttm_failure_row *failure)
{
    uint8_t buf[TTM_ROW_SIZE_MAX];
    struct ttm_failure_row row = *failure;

    row.process_index = process_index;
    row.time_ns += session->server->wall_offset_ns;
    const size_t n = ttm_failure_row_encode(&row, buf);
    (void)ttm_frame_append(&session->out, TTM_FRAME_FAILURE, buf, (uint32_t)n);
}

/* Marks and failures, which are few. */
static void put_story(struct ttm_session *session, uint32_t index, const struct ttm_story *story)
{
    const uint64_t wall_ns = session->server->wall_offset_ns;
    uint8_t buf[TTM_ROW_SIZE_MAX];

    for (uint32_t i = 0; i < ttm_story_marks(story); i++) {
        const struct ttm_mark *mark = ttm_story_mark(story, i);
        struct ttm_mark_row row = {.process_index = index, .time_ns = mark->time_ns + wall_ns};
        memcpy(row.name, mark->name, strnlen(mark->name, TTM_STRING_MAX));
        const size_t n = ttm_mark_row_encode(&row, buf);
        (void)ttm_frame_append(&session->out, TTM_FRAME_MARK, buf, (uint32_t)n);
    }
    for (uint32_t i = 0; i < ttm_story_failures(story); i++)
        ttm_native_put_failure(session, index, ttm_story_failure(story, i));
}

/* Returns whether lives can be sent now; otherwise it is said why not. */
static bool can_begin_lives(struct ttm_session *session)
{
    if (session->lives.snap) {
        say_error(session, "an answer is already under way on this connection");
        return false;
    }
    if (!may_take_snapshot(session)) {
        say_error(session, "too many dumps are under way, try again in a moment");
        return false;
    }
    return true;
}

/* With the allocations that the session may see. */
static struct ttm_snapshot *take_snapshot(const struct ttm_session *session)
{
    struct ttm_server *server = session->server;
    const bool sees_all = session->uid == 0 || session->uid == server->uid;

    return ttm_snapshot_take_for(server->reg, server->now_ns,
                                 sees_all ? TTM_USER_NONE : session->uid);
}

static void set_lives(struct ttm_session *session, struct ttm_snapshot *snap,
                      struct ttm_chosen_lives *chosen)
{
    const uint64_t now_ns = session->server->now_ns;

    session->lives = (struct ttm_lives_answer){.snap = snap, .began_ns = now_ns, .chosen = chosen};
    count_snapshots(session, 1);
    session->progress_ns = now_ns;
    set_busy(session);
    ttm_session_dirty(session);
}

/* Totals of the snapshot at once; its lives follow in ttm_native_work(). */
static void begin_lives(struct ttm_session *session, uint32_t ticket)
{
    struct ttm_server *server = session->server;
    struct ttm_snapshot *snap = NULL;

    if (!can_begin_lives(session))
        return;
    if (!ticket)
        snap = take_snapshot(session);
    else if (session->uid == server->uid || session->uid == 0)
        snap = ttm_ticket_redeem(server, ticket);
    if (!snap) {
        say_error(session, ticket ? "that ticket is not valid any more" : "memory is short");
        return;
    }
    put_moment(session, snap->time_ns, snap->process_count);
    for (uint32_t i = 0; i < snap->device_count; i++)
        ttm_native_put_device(session, snap->devices[i].id, &snap->devices[i].device);
    for (uint32_t i = 0; i < snap->process_count; i++) {
        const struct ttm_snapshot_process *p = &snap->processes[i];
        ttm_native_put_process(session, i, p->process, &p->counters, p->live_count);
        put_process_devices(session, i, p->devices, p->device_count);
        if (ttm_session_may_see(session, p->process->info.uid))
            put_story(session, i, &p->process->story);
    }
    set_lives(session, snap, NULL);
}

/* Devices and processes at once, without their totals; the lives that are chosen follow. */
static void begin_lives_of(struct ttm_session *session, const struct ttm_lives_request *request)
{
    if (!can_begin_lives(session))
        return;
    struct ttm_snapshot *snap = take_snapshot(session);
    struct ttm_chosen_lives *chosen = snap ? ttm_chosen_lives_new(request, snap) : NULL;
    if (!chosen) {
        ttm_snapshot_free(snap);
        say_error(session, "memory is short");
        return;
    }
    put_moment(session, snap->time_ns, snap->process_count);
    for (uint32_t i = 0; i < snap->device_count; i++)
        ttm_native_put_device(session, snap->devices[i].id, &snap->devices[i].device);
    for (uint32_t i = 0; i < snap->process_count; i++) {
        const struct ttm_snapshot_process *p = &snap->processes[i];
        ttm_native_put_process(session, i, p->process, &p->counters, p->live_count);
    }
    set_lives(session, snap, chosen);
}

void ttm_native_put_site(struct ttm_session *session, uint32_t process_index,
                         const struct ttm_site *site, const struct ttm_site_counts *counts,
                         uint32_t number)
{
    const struct ttm_device_set set =
        ttm_device_sets_get(&session->server->reg->sets, site->device_set);
    uint8_t buf[TTM_SITE_ROW_SIZE_MAX];
    struct ttm_site_row row = {
        .process_index = process_index,
        .site = number,
        .allocator = site->allocator,
        .births = counts->births,
        .ends = counts->ends,
        .origin = site->origin,
        .region = site->region,
        .kind = site->kind,
        .flags = site->flags,
        .banks = site->banks,
        .device_count = set.count,
    };

    memcpy(row.devices, set.devices, set.count * sizeof(row.devices[0]));
    const size_t n = ttm_site_row_encode(&row, buf);
    (void)ttm_frame_append(&session->out, TTM_FRAME_SITE, buf, (uint32_t)n);
}

/* The first lines of a text, copied to 'room'; all of it where it has no more. */
static const char *first_lines(const char *text, uint32_t lines, char room[TTM_FRAMES_TEXT_MAX + 1])
{
    size_t length = 0;

    for (uint32_t i = 0; i < lines && text[length]; i++) {
        length += strcspn(text + length, "\n");
        length += text[length] == '\n';
    }
    if (lines == 0 || !text[length] || length > TTM_FRAMES_TEXT_MAX)
        return text;
    memcpy(room, text, length);
    room[length] = '\0';
    return room;
}

void ttm_native_put_origin(struct ttm_session *session, uint32_t process_index,
                           const struct ttm_origin *origin, uint32_t frames)
{
    char python[TTM_FRAMES_TEXT_MAX + 1], native[TTM_FRAMES_TEXT_MAX + 1];
    const struct ttm_origin_row row = {
        .process_index = process_index,
        .number = origin->number,
        .context = origin->text[TTM_ORIGIN_CONTEXT],
        .name = origin->text[TTM_ORIGIN_NAME],
        .thread = origin->text[TTM_ORIGIN_THREAD],
        .operation = origin->text[TTM_ORIGIN_OPERATION],
        .python = first_lines(origin->text[TTM_ORIGIN_PYTHON], frames, python),
        .native = first_lines(origin->text[TTM_ORIGIN_NATIVE], frames, native),
    };
    uint8_t buf[TTM_ORIGIN_ROW_SIZE_MAX];
    const size_t n = ttm_origin_row_encode(&row, buf);

    (void)ttm_frame_append(&session->out, TTM_FRAME_ORIGIN, buf, (uint32_t)n);
}

void ttm_native_life_row(const struct ttm_life *life, uint32_t site, uint64_t now_ns, uint8_t *buf)
{
    const struct ttm_life_row row = {
        .id = life->id,
        .address = life->address,
        .bytes = life->bytes,
        .footprint_bytes = life->footprint_bytes,
        .age_ns = now_ns - life->birth_ns,
        .site = site,
    };

    ttm_life_row_encode(&row, buf);
}

/* One frame of lives. Returns whether the process may have more. */
static bool put_lives(struct ttm_session *session, struct ttm_snapshot_process *p)
{
    struct ttm_lives_answer *answer = &session->lives;
    uint8_t buf[TTM_LIVES_HEAD_SIZE + LIVES_PER_FRAME * TTM_LIFE_ROW_SIZE];
    const struct ttm_life *life = NULL;
    uint32_t count = 0;

    while (count < LIVES_PER_FRAME && (life = ttm_life_view_next(&p->lives, &answer->at)) != NULL) {
        ttm_native_life_row(life, life->site, answer->snap->time_ns,
                            buf + TTM_LIVES_HEAD_SIZE + (size_t)count * TTM_LIFE_ROW_SIZE);
        count++;
    }
    if (count > 0) {
        ttm_lives_head_encode(answer->process, count, buf);
        (void)ttm_frame_append(&session->out, TTM_FRAME_LIVES, buf,
                               TTM_LIVES_HEAD_SIZE + count * TTM_LIFE_ROW_SIZE);
    }
    return life != NULL;
}

static void forget_lives(struct ttm_session *session)
{
    if (session->lives.snap)
        count_snapshots(session, -1);
    ttm_chosen_lives_free(session->lives.chosen);
    ttm_snapshot_free(session->lives.snap);
    session->lives = (struct ttm_lives_answer){0};
}

static void continue_chosen(struct ttm_session *session)
{
    const int r = ttm_chosen_lives_continue(session);

    if (r == 0)
        return;
    forget_lives(session);
    if (r < 0)
        say_error(session, "memory is short");
    else
        say_end(session);
}

/* Fills the queue up to its low mark and no further. */
static void continue_lives(struct ttm_session *session)
{
    struct ttm_lives_answer *answer = &session->lives;

    while (answer->process < answer->snap->process_count) {
        struct ttm_snapshot_process *p = &answer->snap->processes[answer->process];

        if (ttm_session_may_see(session, p->process->info.uid)) {
            while (answer->origins_sent < p->origin_count) {
                if (ttm_queue_length(&session->out) > TTM_OUT_LOW)
                    return;
                ttm_native_put_origin(session, answer->process,
                                      p->process->origins.origins[answer->origins_sent++], 0);
            }
            while (answer->sites_sent < p->site_count) {
                if (ttm_queue_length(&session->out) > TTM_OUT_LOW)
                    return;
                const uint32_t number = answer->sites_sent++;
                ttm_native_put_site(session, answer->process,
                                    ttm_site_table_get(&p->process->sites, number),
                                    &p->site_counts[number], number);
            }
            do {
                if (ttm_queue_length(&session->out) > TTM_OUT_LOW)
                    return;
            } while (put_lives(session, p));
        }
        answer->process++;
        answer->origins_sent = 0;
        answer->sites_sent = 0;
        answer->at = 0;
    }
    forget_lives(session);
    say_end(session);
}

static void begin_check(struct ttm_session *session)
{
    struct ttm_server *server = session->server;

    if (session->check) {
        say_error(session, "a check is already under way on this connection");
        return;
    }
    if (!may_take_snapshot(session)) {
        say_error(session, "too many checks are under way, try again in a moment");
        return;
    }
    session->check = malloc(sizeof(*session->check));
    if (!session->check ||
        ttm_snapshot_check_init(session->check, server->reg,
                                ttm_snapshot_take(server->reg, server->now_ns)) < 0) {
        free(session->check);
        session->check = NULL;
        say_error(session, "memory is short");
        return;
    }
    count_snapshots(session, 1);
    set_busy(session);
}

static void end_check(struct ttm_session *session)
{
    if (!session->check)
        return;
    count_snapshots(session, -1);
    ttm_snapshot_check_done(session->check);
    free(session->check);
    session->check = NULL;
}

static void continue_check(struct ttm_session *session)
{
    const uint32_t budget = session->server->check_budget;

    if (budget == 0)
        return; /* others have used this turn up */
    const uint64_t before = session->check->work;
    const int r = ttm_snapshot_check_step(session->check, budget);
    const uint64_t done = session->check->work - before;
    session->server->check_budget -= done < budget ? (uint32_t)done : budget;
    uint8_t buf[TTM_CHECKED_SIZE];

    if (r == 0)
        return;
    const struct ttm_checked checked = {
        .lives = session->check->lives,
        .processes = session->check->process,
        .mismatches = session->check->mismatches,
    };
    end_check(session);
    if (r < 0) {
        say_error(session, "memory is short");
        return;
    }
    ttm_checked_encode(&checked, buf);
    (void)ttm_frame_append(&session->out, TTM_FRAME_CHECKED, buf, sizeof(buf));
    say_end(session);
}

static void subscribe_totals(struct ttm_session *session, uint32_t interval_ms)
{
    if (interval_ms < INTERVAL_MIN_MS)
        interval_ms = INTERVAL_MIN_MS;
    if (interval_ms > INTERVAL_MAX_MS)
        interval_ms = INTERVAL_MAX_MS;
    session->totals_interval_ms = interval_ms;
    session->totals_due_ns = session->server->now_ns;
    set_busy(session);
}

static void continue_totals(struct ttm_session *session)
{
    const uint64_t interval_ns = session->totals_interval_ms * TTM_NS_PER_MS;
    const uint64_t now_ns = session->server->now_ns;

    if (now_ns < session->totals_due_ns)
        return;
    /* A reader that is behind skips moments instead of piling them up. */
    if (ttm_queue_length(&session->out) == 0) {
        if (!has_room_for_answers(session->account)) {
            session->totals_interval_ms = 0;
            say_error(session, "too many answers wait to be read");
            return;
        }
        (void)refresh(session);
        answer_totals(session);
    }
    session->totals_due_ns += interval_ns;
    if (session->totals_due_ns <= now_ns)
        session->totals_due_ns = now_ns + interval_ns;
}

bool ttm_native_work(struct ttm_session *session)
{
    struct ttm_server *server = session->server;

    if (session->lives.snap) {
        if (ttm_queue_length(&session->out) > 0 &&
            (server->now_ns - session->progress_ns > TTM_SLOW_NS ||
             server->now_ns - session->lives.began_ns > TTM_DUMP_NS)) {
            server->counter[TTM_COUNTER_CLOSED_SLOW]++;
            ttm_session_close(session);
            return false;
        }
        if (session->lives.chosen)
            continue_chosen(session);
        else
            continue_lives(session);
    }
    if (session->check)
        continue_check(session);
    if (session->totals_interval_ms > 0)
        continue_totals(session);
    if (session->has_requests && ttm_queue_length(&session->out) <= TTM_OUT_LOW &&
        ttm_native_input(session, NULL, 0) < 0) {
        server->counter[TTM_COUNTER_CLOSED_GARBAGE]++;
        ttm_session_close(session);
        return false;
    }
    ttm_session_drop_fds(session);
    ttm_session_flush(session);
    ttm_session_end(session);
    if (session->is_dead)
        return false;
    set_busy(session);
    /* Where the socket took all there was, no event will tell us to go on. */
    const bool has_room = ttm_queue_length(&session->out) <= TTM_OUT_LOW;
    return session->check || (has_room && (session->lives.snap || session->has_requests));
}

void ttm_native_done(struct ttm_session *session)
{
    forget_lives(session);
    end_check(session);
    session->totals_interval_ms = 0;
}

static const char *why_not_attached(int r)
{
    return r == -ENOMEM   ? "memory is short"
           : r == -EUSERS ? "your user has as many tracked processes as one may have"
           : r == -EDQUOT ? "the segments of your user take as much as those of one may"
                          : "the segment makes no sense";
}

static void take_attach(struct ttm_session *session, const struct ttm_frame *frame)
{
    const int segment_fd = session->fds[0], wake_fd = session->fds[1];

    if (segment_fd < 0 || wake_fd < 0 || (session->client && session->client->tracked)) {
        say_error(session,
                  "an attachment needs a segment, a socket that wakes, and to be the first");
        return;
    }
    session->fds[0] = session->fds[1] = -1;
    const uint64_t run = ttm_attach_decode(frame->payload, frame->length);
    const int r = ttm_tracked_attach(session, segment_fd, wake_fd, run);
    if (r == -EUSERS || r == -EDQUOT)
        session->server->counter[TTM_COUNTER_REFUSED_SHARE]++;
    if (r < 0)
        say_error(session, why_not_attached(r));
}

/* Whether it makes the server look at all that it knows, or take a snapshot of it. */
static bool is_costly(uint16_t type)
{
    switch (type) {
    case TTM_FRAME_GET_STATUS:
    case TTM_FRAME_GET_TOTALS:
    case TTM_FRAME_GET_LIVES:
    case TTM_FRAME_GET_LIVES_OF:
    case TTM_FRAME_GET_SITES:
    case TTM_FRAME_CHECK:
        return true;
    default:
        return false;
    }
}

/* Of these, whether its answer is made at once; the others are worked off in steps, one at a time. */
static bool is_answered_at_once(uint16_t type)
{
    return type == TTM_FRAME_GET_STATUS || type == TTM_FRAME_GET_TOTALS ||
           type == TTM_FRAME_GET_SITES;
}

/* Returns whether all of it was taken; else it is to be given again in the next turn. */
static bool take_request(struct ttm_session *session, const struct ttm_frame *frame)
{
    struct ttm_events_request events;
    struct ttm_lives_request lives;
    uint32_t number = 0;
    int r = 0;

    switch (frame->type) {
    case TTM_FRAME_GET_STATUS:
        answer_status(session);
        ttm_server_count_latency(session->server);
        break;
    case TTM_FRAME_GET_TOTALS:
        answer_totals(session);
        ttm_server_count_latency(session->server);
        break;
    case TTM_FRAME_GET_LIVES:
        if (ttm_number_request_decode(frame->payload, frame->length, &number) < 0)
            say_error(session, "a request is too short");
        else
            begin_lives(session, number);
        break;
    case TTM_FRAME_GET_LIVES_OF:
        if (ttm_lives_request_decode(frame->payload, frame->length, &lives) < 0)
            say_error(session, "a request is too short, or of no device or region");
        else
            begin_lives_of(session, &lives);
        break;
    case TTM_FRAME_GET_SITES:
        if (ttm_number_request_decode(frame->payload, frame->length, &number) < 0)
            say_error(session, "a request is too short");
        else
            answer_sites(session, number);
        ttm_server_count_latency(session->server);
        break;
    case TTM_FRAME_CHECK:
        begin_check(session);
        break;
    case TTM_FRAME_SUBSCRIBE_TOTALS:
        if (ttm_number_request_decode(frame->payload, frame->length, &number) < 0)
            say_error(session, "a request is too short");
        else
            subscribe_totals(session, number);
        break;
    case TTM_FRAME_SUBSCRIBE_EVENTS:
        if (ttm_events_request_decode(frame->payload, frame->length, &events) < 0)
            say_error(session, "a request is too short");
        else if (!ttm_tail_subscribe(session, &events))
            say_error(session, "too many are watching events already");
        break;
    case TTM_FRAME_ATTACH:
        take_attach(session, frame);
        break;
    case TTM_FRAME_TOLD:
        r = ttm_telling_take(session, frame->payload, frame->length);
        if (r < 0)
            say_error(session, "a telling makes no sense");
        break;
    case TTM_FRAME_TOLD_END:
        if (ttm_telling_take_end(session, frame->payload, frame->length) < 0)
            say_error(session, "a telling makes no sense");
        break;
    case TTM_FRAME_SWITCHED:
        if (ttm_tracked_switched(session, frame->payload, frame->length) < 0)
            say_error(session, "a switch makes no sense");
        break;
    default: /* of a newer version: skipped */
        session->server->counter[TTM_COUNTER_REFUSED_TYPE]++;
        break;
    }
    return r <= 0;
}

void ttm_native_go_on(struct ttm_session *session)
{
    session->has_requests = true;
    set_busy(session);
}

/* Frames that are whole are taken from 'bytes'. Returns the bytes used, or a negative errno. */
static long take_frames(struct ttm_session *session, const uint8_t *bytes, size_t length)
{
    size_t used = 0;

    while (!session->is_closing && !session->is_dead) {
        struct ttm_frame frame;
        const long n = ttm_frame_parse(bytes + used, length - used, TTM_FRAME_REQUEST_MAX, &frame);
        if (n < 0)
            return n;
        if (n == 0)
            return (long)used;
        if (frame.type == TTM_FRAME_ATTACH && session->has_said_hello && !ttm_facts_ask(session)) {
            ttm_session_await_facts(session);
            return (long)used;
        }
        if (ttm_queue_length(&session->out) >= TTM_OUT_HIGH || session->had_answer ||
            ttm_tracked_is_switching(session)) {
            ttm_native_go_on(session);
            return (long)used;
        }
        if (is_costly(frame.type)) {
            if (!has_room_for_answers(session->account)) {
                say_error(session, "too many answers wait to be read");
                return (long)length;
            }
            if (session->has_said_hello && !is_prepared(session)) {
                ttm_native_go_on(session);
                return (long)used;
            }
            session->had_answer = is_answered_at_once(frame.type);
        }
        if (!session->has_said_hello) {
            take_hello(session, &frame);
        } else if (!take_request(session, &frame)) {
            ttm_native_go_on(session);
            return (long)used;
        }
        used += (size_t)n;
    }
    return (long)length;
}

/*
 * Goes on with what has waited, and with as much of 'bytes' as the frame at its end needs: the others
 * are taken where they lie. Returns the bytes used, or a negative errno.
 */
static long take_waiting(struct ttm_session *session, const uint8_t *bytes, size_t length)
{
    struct ttm_queue *in = &session->in;
    size_t used = 0;

    do {
        const size_t missing = ttm_frame_missing(ttm_queue_front(in), ttm_queue_length(in));
        const size_t left = length - used;
        const size_t n = missing > 0 && missing < left ? missing : left;
        if (n > 0 && ttm_queue_append(in, bytes + used, n) < 0)
            return -ENOMEM;
        used += n;
        const long taken = take_frames(session, ttm_queue_front(in), ttm_queue_length(in));
        if (taken < 0)
            return taken;
        ttm_queue_consume(in, (size_t)taken);
    } while (used < length && ttm_queue_length(in) > 0);
    return (long)used;
}

int ttm_native_input(struct ttm_session *session, const uint8_t *bytes, size_t length)
{
    long waited = 0;

    if (session->is_closing)
        return 0;
    session->has_requests = false;
    session->had_answer = false;
    session->told_cost = 0;
    if (ttm_queue_length(&session->in) > 0)
        waited = take_waiting(session, bytes, length);
    if (waited < 0 || (size_t)waited == length)
        return (int)(waited < 0 ? waited : 0);
    bytes += waited;
    length -= (size_t)waited;
    const long n = take_frames(session, bytes, length);
    if (n < 0)
        return (int)n;
    return (size_t)n < length ? ttm_queue_append(&session->in, bytes + n, length - (size_t)n) : 0;
}
