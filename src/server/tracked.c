/* SPDX-License-Identifier: Apache-2.0 */
#include "server/tracked.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/intake.h"
#include "server/peer.h"
#include "server/record.h"
#include "server/resident.h"
#include "server/telling.h"
#include "wire/attach.h"

#define RECORDS_PER_SLICE 1024
#define SHARE_LEAST 16 /* records of one ring that are read at a time */
#define CALM_READS 3   /* empty ones in a row, each after twice the time, before we sleep */
#define PACE_NS UINT64_C(50000)
/* From the announcement that we sleep until a record that crossed it is seen by all. */
#define SETTLE_NS UINT64_C(5000000)
#define DRAIN_MAX (1u << 18)
#define FORGET_PER_SLICE 4096
#define RATE_NS UINT64_C(1000000000)
#define SUM_CBS_NS UINT64_C(100000000) /* at most so often while events come in */
#define ALONE_CHECK 10                 /* visits until it is looked at whether it is still there */
#define ALONE_NS UINT64_C(50000000)    /* between two looks at who may be unable to wake us */
#define OFF_NS UINT64_C(500000000)     /* the same where tracking is off in all of these */
#define WAKES_MAX 512                  /* taken at once; a socket has room for some 250 */
#define WAKES_KEPT 8                   /* in the socket */
#define LOOK_SHARE 20                  /* a look into /proc for one part of so many of the time */
#define DRAIN_NS UINT64_C(10000000000) /* for the rings of a process that has ended */

void ttm_tracked_activate(struct ttm_tracked *tracked)
{
    struct ttm_server *server = tracked->client->server;

    tracked->empty_reads = 0;
    tracked->announced_ns = 0;
    if (ttm_list_is_empty(&tracked->active_link))
        ttm_list_append(&server->rings, &tracked->active_link);
    server->rings_pause_ns = 0;
}

/* From now on we look by ourselves. */
static void look_after(struct ttm_tracked *tracked)
{
    struct ttm_server *server = tracked->client->server;

    if (!ttm_list_is_empty(&tracked->alone_link))
        return;
    const uint64_t due_ns = server->now_ns + (tracked->is_off ? OFF_NS : ALONE_NS);
    if (ttm_list_is_empty(&server->alone) || due_ns < server->visit_alone_ns)
        server->visit_alone_ns = due_ns;
    ttm_list_append(&server->alone, &tracked->alone_link);
}

/* ---- what a worker does ---- */

/*
 * The process has the same socket, and can hold the lock that reading takes; so the loop never
 * reads from it. It need not be empty: it is watched for edges.
 */
static void empty_socket(struct ttm_tracked *tracked)
{
    char bytes[64];

    /* The end of the socket reads as one empty message after the other. */
    for (int i = 0; i < WAKES_MAX; i++) {
        if (recv(tracked->wake_fd, bytes, sizeof(bytes), MSG_DONTWAIT) < 0)
            return;
    }
}

static void run_job(struct ttm_job *job)
{
    struct ttm_tracked *tracked = TTM_CONTAINER_OF(job, struct ttm_tracked, job);

    if (tracked->doing == TTM_JOB_EMPTY_SOCKET) {
        empty_socket(tracked);
    } else if (tracked->doing == TTM_JOB_FIND_MAPPING) {
        const uint64_t began_ns = ttm_clock_monotonic_ns();
        tracked->is_unmapped =
            ttm_peer_has_unmapped(tracked->pid, (uint64_t)tracked->segment_inode);
        tracked->job_ns = ttm_clock_monotonic_ns() - began_ns;
    } else {
        ttm_pages_ahead_end(&tracked->ahead);
        (void)close(tracked->wake_fd);
        ttm_ring_reader_close(&tracked->reader);
    }
}

static void finish_job(struct ttm_job *job);

static void begin_job(struct ttm_tracked *tracked, enum ttm_tracked_job what)
{
    tracked->doing = what;
    tracked->job = (struct ttm_job){.run = run_job, .finish = finish_job};
    ttm_worker_add(tracked->account->worker, &tracked->job);
}

static void finish_close(struct ttm_tracked *tracked)
{
    struct ttm_account *account = tracked->account;

    account->segment_bytes -= tracked->segment_bytes;
    account->rings -= tracked->ring_count;
    ttm_account_unref(account);
    free(tracked);
}

static void finish_job(struct ttm_job *job)
{
    struct ttm_tracked *tracked = TTM_CONTAINER_OF(job, struct ttm_tracked, job);
    const enum ttm_tracked_job done = tracked->doing;

    tracked->doing = TTM_JOB_NONE;
    if (done == TTM_JOB_CLOSE) {
        finish_close(tracked);
    } else if (tracked->is_over) {
        begin_job(tracked, TTM_JOB_CLOSE);
    } else if (done == TTM_JOB_EMPTY_SOCKET) {
        ttm_tracked_activate(tracked); /* one that found it full could not wake us */
    } else if (done == TTM_JOB_FIND_MAPPING) {
        tracked->account->next_look_ns = ttm_clock_monotonic_ns() + LOOK_SHARE * tracked->job_ns;
        if (tracked->is_unmapped && !ttm_tracked_is_gone(tracked))
            ttm_client_end(tracked->client);
    }
}

/* ---- waking ---- */

/* Each wake is an empty message. */
static void handle_wake(struct ttm_watch *watch, uint32_t events)
{
    struct ttm_tracked *tracked = (struct ttm_tracked *)watch;

    if (++tracked->wakes >= WAKES_KEPT && tracked->doing == TTM_JOB_NONE) {
        tracked->wakes = 0;
        begin_job(tracked, TTM_JOB_EMPTY_SOCKET);
    }
    if (events & (EPOLLHUP | EPOLLERR)) /* the program has closed its end */
        look_after(tracked);
    ttm_tracked_activate(tracked);
}

static void ignore_event(struct ttm_watch *watch, uint32_t events)
{
    (void)watch;
    (void)events;
}

static struct ttm_tracked *new_tracked(struct ttm_client *client, int wake_fd)
{
    struct ttm_tracked *tracked = calloc(1, sizeof(*tracked));

    if (!tracked)
        return NULL;
    tracked->wake_watch.handle = handle_wake;
    tracked->client = client;
    tracked->account = ttm_account_ref(client->account);
    tracked->pid = client->pid;
    tracked->wake_fd = wake_fd;
    tracked->lost_known = UINT64_MAX;
    ttm_list_init(&tracked->active_link);
    ttm_list_init(&tracked->alone_link);
    const uint64_t seed = client->server->reg->seed;
    ttm_u64_set_init(&tracked->ended, seed);
    ttm_u64_set_init(&tracked->ended_before, seed);
    ttm_early_ends_init(&tracked->early_ends, seed, &client->account->pending_frees);
    return tracked;
}

/*
 * The segment of a process cannot be read. It goes on, and tries again; until that succeeds nothing
 * is known of it, unless a segment that it handed over before is read still.
 */
static void leave_unread(struct ttm_client *client, int r)
{
    struct ttm_process_counters *counters = &client->process->counters;
    const bool is_news = !counters->server_trouble;

    if (client->tracked)
        return;
    counters->is_inexact = true;
    if (r == -ENOMEM)
        ttm_client_lack_memory(client);
    else if (r == -EDQUOT)
        counters->server_trouble = "its user's processes report as much as one user's may";
    else
        counters->server_trouble = "the server cannot read what it reports";
    if (is_news)
        ttm_record_counters(client);
}

/* It is read now; what was refused of it before stays refused. */
static void begin_to_read(struct ttm_client *client)
{
    struct ttm_process_counters *counters = &client->process->counters;

    if (!counters->is_inexact)
        return;
    counters->is_inexact = false;
    if (counters->refused == 0)
        counters->server_trouble = NULL;
    ttm_record_counters(client);
}

/*
 * Whether it can be watched without harm: another file may ask whoever serves it, and wait. What we
 * are given is such a socket, unless somebody wants to see what happens.
 */
static bool is_local_socket(int fd)
{
    int domain = -1;
    socklen_t size = sizeof(domain);

    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

/* Whether somebody could be woken by it at all. No file system is asked. */
static bool can_signal(int fd)
{
    char path[64], text[64];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(path, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    return strncmp(text, "socket:", 7) == 0 || strncmp(text, "pipe:", 5) == 0 ||
           strcmp(text, "anon_inode:[eventfd]") == 0;
}

/* What it takes of its user's shares. */
static int take_shares(struct ttm_tracked *tracked)
{
    struct ttm_account *account = tracked->account;

    if (!ttm_account_has_room(account, account->segment_bytes, tracked->reader.bytes,
                              TTM_USER_SEGMENT_BYTES) ||
        !ttm_account_has_room(account, account->rings, tracked->reader.ring_count, TTM_USER_RINGS))
        return -EDQUOT;
    tracked->segment_bytes = tracked->reader.bytes;
    tracked->ring_count = tracked->reader.ring_count;
    account->segment_bytes += tracked->segment_bytes;
    account->rings += tracked->ring_count;
    return 0;
}

/* Maps the segment and watches the socket, which the tracked process owns from now on. */
static int open_segment(struct ttm_tracked *tracked, int segment_fd, int64_t clock_ahead_ns)
{
    struct ttm_server *server = tracked->client->server;
    struct stat st = {0};

    int r =
        can_signal(tracked->wake_fd) ? ttm_ring_reader_open(segment_fd, &tracked->reader) : -EPERM;
    if (r < 0)
        return r;
    (void)fstat(segment_fd, &st); /* a memfd by now */
    tracked->segment_inode = st.st_ino;
    tracked->clock_ahead_ns = (uint64_t)clock_ahead_ns;
    r = take_shares(tracked);
    tracked->can_wake = is_local_socket(tracked->wake_fd);
    if (r == 0 && tracked->can_wake)
        r = ttm_server_watch(server, server->epoll_fd, tracked->wake_fd, EPOLLIN | EPOLLET,
                             &tracked->wake_watch);
    return r;
}

/* A tracked process of that segment. Returns 0 or a negative errno; the fds are taken anyhow. */
static int open_tracked(struct ttm_client *client, int segment_fd, int wake_fd,
                        int64_t clock_ahead_ns, struct ttm_tracked **ret)
{
    struct ttm_tracked *tracked = new_tracked(client, wake_fd);
    const int fds[] = {segment_fd, wake_fd};

    if (!tracked) {
        ttm_account_close_files(client->account, fds, 2);
        return -ENOMEM;
    }
    const int r = open_segment(tracked, segment_fd, clock_ahead_ns);
    ttm_account_close_files(client->account, &segment_fd, 1);
    if (r < 0) {
        ttm_tracked_free(tracked);
        return r;
    }
    *ret = tracked;
    return 0;
}

/* Another program in the same process, whose serials and notes begin anew, is another client. */
static int replace_program(struct ttm_session *session, struct ttm_tracked *tracked)
{
    struct ttm_client *client;
    const int r = ttm_client_replace(session, &client);

    if (r == 0)
        tracked->client = client;
    return r;
}

/* The same segment, by another connection: what was read of it and not applied yet is applied. */
static void hand_over(struct ttm_tracked *before, struct ttm_tracked *tracked)
{
    tracked->rest = before->rest;
    tracked->slice_count = before->slice_count;
    tracked->is_forgetting = before->is_forgetting;
    tracked->forgotten = before->forgotten;
    tracked->forget_at = before->forget_at;
    before->rest = NULL;
    before->is_forgetting = false;
    before->forgotten = (struct ttm_life_view){0};
}

/* The client reads this segment from now on; what is in its rings first, then all is asked for. */
static void begin(struct ttm_tracked *tracked, struct ttm_session *session, uint64_t run,
                  bool is_back)
{
    struct ttm_client *client = tracked->client;

    if (is_back)
        hand_over(client->tracked, tracked);
    ttm_tracked_free(client->tracked);
    client->tracked = tracked;
    tracked->session = session;
    session->segment_inode = tracked->segment_inode;
    tracked->needed_ns = session->opened_ns;
    tracked->rate_since_ns = client->server->now_ns;
    ttm_notes_init(&tracked->notes, &tracked->reader, client);
    client->process->info.run = run;
    client->process->counters.is_disabled = false;
    begin_to_read(client);
    if (!is_back && ttm_ring_reader_is_late(&tracked->reader)) {
        client->process->counters.has_gap = true;
        ttm_record_counters(client);
    }
    ttm_intake_devices(tracked);
    if (!tracked->can_wake)
        look_after(tracked);
    ttm_tracked_activate(tracked);
}

int ttm_tracked_attach(struct ttm_session *session, int segment_fd, int wake_fd, uint64_t run)
{
    const int64_t clock_ahead_ns = session->facts ? session->facts->clock_ahead_ns : 0;
    const int fds[] = {segment_fd, wake_fd};
    struct ttm_tracked *tracked = NULL;
    struct ttm_client *client;

    int r = ttm_client_of(session, TTM_SOURCE_TRACKED, &client);
    if (r < 0) {
        ttm_account_close_files(session->account, fds, 2);
        return r;
    }
    r = open_tracked(client, segment_fd, wake_fd, clock_ahead_ns, &tracked);
    if (r < 0) {
        leave_unread(client, r);
        return r;
    }
    /* It connected before: what that connection's rings said is in the new telling. */
    const bool is_back =
        client->tracked && client->tracked->segment_inode == tracked->segment_inode;
    if (client->tracked && !is_back)
        r = replace_program(session, tracked);
    if (r < 0) {
        ttm_tracked_free(tracked);
        return r;
    }
    begin(tracked, session, run, is_back);
    return 0;
}

void ttm_tracked_detach(struct ttm_session *session)
{
    struct ttm_tracked *tracked = session->client ? session->client->tracked : NULL;

    if (!tracked || tracked->session != session)
        return;
    tracked->session = NULL;
    if (!tracked->is_sweeping) /* else all was told, and that is seen to */
        ttm_telling_stop(tracked);
    /* A program that has closed all its fds goes on writing. */
    look_after(tracked);
}

/* An exec() puts another program in its place, which may have nothing to do with us: that is looked up. */
static void look_for_mapping(struct ttm_tracked *tracked)
{
    const struct ttm_client *client = tracked->client;

    if (++tracked->alone_visits % ALONE_CHECK != 0 || tracked->doing != TTM_JOB_NONE ||
        client->session_count > 0 || client->is_leaving ||
        client->server->now_ns < tracked->account->next_look_ns)
        return;
    tracked->account->next_look_ns = client->server->now_ns + LOOK_SHARE * TTM_NS_PER_MS;
    begin_job(tracked, TTM_JOB_FIND_MAPPING);
}

void ttm_tracked_visit_alone(struct ttm_server *server)
{
    bool is_any_on = false;

    TTM_LIST_FOR_EACH_SAFE(pos, &server->alone) {
        struct ttm_tracked *tracked = TTM_CONTAINER_OF(pos, struct ttm_tracked, alone_link);
        look_for_mapping(tracked);
        if (!tracked->is_off) {
            ttm_tracked_activate(tracked);
            is_any_on = true;
        }
    }
    server->visit_alone_ns = server->now_ns + (is_any_on ? ALONE_NS : OFF_NS);
}

bool ttm_tracked_is_gone(const struct ttm_tracked *tracked)
{
    return tracked->wake_watch.handle == ignore_event;
}

void ttm_tracked_free(struct ttm_tracked *tracked)
{
    if (!tracked)
        return;
    ttm_list_remove(&tracked->active_link);
    ttm_list_remove(&tracked->alone_link);
    /* The process has the same socket open, so closing ours does not end the watch. */
    if (tracked->can_wake)
        (void)epoll_ctl(tracked->account->server->epoll_fd, EPOLL_CTL_DEL, tracked->wake_fd, NULL);
    ttm_life_marks_done(&tracked->told);
    ttm_quota_subtract(&tracked->account->resync_threads, tracked->ahead.has_begun);
    ttm_telling_forget_frees(tracked);
    ttm_early_ends_done(&tracked->early_ends);
    free(tracked->rest);
    tracked->rest = NULL;
    free(tracked->cbs_recorded);
    ttm_registry_bury(tracked->account->server->reg, &tracked->before);
    ttm_registry_bury(tracked->account->server->reg, &tracked->forgotten);
    ttm_notes_done(&tracked->notes);
    free(tracked->late_names);
    tracked->late_names = NULL;
    tracked->late_name_count = 0;
    tracked->wake_watch.handle = ignore_event;
    ttm_list_append(&tracked->account->server->dead_rings, &tracked->active_link);
}

void ttm_tracked_close(struct ttm_tracked *tracked)
{
    ttm_list_remove(&tracked->active_link);
    tracked->is_over = true;
    if (tracked->doing == TTM_JOB_NONE)
        begin_job(tracked, TTM_JOB_CLOSE);
}

/* ---- what the process says of itself ---- */

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
    process->counters.unknown_frees = state.unknown_frees;
    process->counters.unknown_ends = state.unknown_ends;
    process->counters.senseless = state.senseless;
    process->counters.untracked =
        state.untracked > state.senseless ? state.untracked - state.senseless : 0;
    process->counters.notes_left_out = state.notes_left_out + tracked->notes.left_out;
    process->counters.is_behind = ttm_tracked_is_behind(tracked);
    process->counters.ring_permille = (uint16_t)ttm_ring_reader_fill(&tracked->reader);
    ttm_notes_text(&tracked->notes, state.runtime_note, process->runtime);
    ttm_notes_text(&tracked->notes, state.trouble_note, process->trouble);
    ttm_notes_text(&tracked->notes, state.opening_note, process->opening);
    process->trouble_note = process->trouble[0] != '\0' ? state.trouble_note : 0;
    count_rate(tracked, 0);
    ttm_resident_sum(tracked);
}

/* The recording is to end what is not known any more. */
static void begin_to_forget(struct ttm_tracked *tracked)
{
    struct ttm_client *client = tracked->client;

    tracked->forget_at = 0;
    tracked->is_forgetting =
        client->server->options.recorder &&
        ttm_life_view_take(&client->process->lives.store, &tracked->forgotten) == 0;
}

/* A slice of that. */
static void forget_some(struct ttm_tracked *tracked)
{
    const struct ttm_life *life;

    for (uint32_t i = 0; i < FORGET_PER_SLICE; i++) {
        life = ttm_life_view_next(&tracked->forgotten, &tracked->forget_at);
        if (!life) {
            ttm_registry_bury(tracked->client->server->reg, &tracked->forgotten);
            tracked->is_forgetting = false;
            return;
        }
        ttm_record_unheard(tracked->client, life->serial);
    }
}

/* All that was said before is read: nothing of it is known any more. */
static void go_off(struct ttm_tracked *tracked)
{
    struct ttm_process *process = tracked->client->process;

    tracked->is_going_off = false;
    ttm_telling_stop(tracked);
    begin_to_forget(tracked);
    ttm_registry_forget_lives(tracked->client->server->reg, process);
    tracked->cb_program = 0; /* it may be told of anew */
    process->counters.has_gap = true;
    process->counters.is_disabled = true;
    tracked->is_off = true;
    ttm_record_counters(tracked->client);
}

bool ttm_tracked_is_switching(const struct ttm_session *session)
{
    const struct ttm_tracked *tracked = session->client ? session->client->tracked : NULL;

    return tracked && (tracked->is_going_off || tracked->is_forgetting);
}

int ttm_tracked_switched(struct ttm_session *session, const uint8_t *payload, size_t length)
{
    struct ttm_tracked *tracked = session->client ? session->client->tracked : NULL;
    uint32_t is_on;

    if (ttm_told_head_decode(payload, length, &is_on) < 0)
        return -EBADMSG;
    if (!tracked || tracked->segment_inode != session->segment_inode)
        return 0;
    struct ttm_process *process = tracked->client->process;
    if (tracked->session != session) {
        /* It was switched on again by another connection, which was heard first. */
        process->counters.has_gap |= is_on == 0;
        ttm_record_counters(tracked->client);
        return 0;
    }
    if (is_on == 0 && !tracked->is_off) {
        tracked->is_going_off = true;
        ttm_ring_reader_aim(&tracked->reader);
        ttm_tracked_activate(tracked);
        return 0;
    }
    if (is_on != 0)
        ttm_telling_need(tracked);
    tracked->is_off = is_on == 0;
    process->counters.is_disabled = tracked->is_off;
    ttm_record_counters(tracked->client);
    return 0;
}

/* ---- reading ---- */

/* Counts a pass when all that was in the rings at its beginning has been read. */
static void count_pass(struct ttm_tracked *tracked)
{
    if (!ttm_ring_reader_is_past_mark(&tracked->reader))
        return;
    ttm_ring_reader_mark(&tracked->reader);
    tracked->passed++;
    if (tracked->is_telling)
        return;
    ttm_telling_pass(tracked);
    ttm_intake_pass(tracked);
}

/* Whether the rings can be left alone until the process wakes us. They are empty now. */
static bool may_sleep(struct ttm_tracked *tracked)
{
    const uint64_t now_ns = tracked->client->server->now_ns;

    if (tracked->empty_reads < CALM_READS)
        return false;
    if (tracked->announced_ns == 0) {
        if (!ttm_ring_reader_sleep(&tracked->reader))
            return false;
        tracked->announced_ns = now_ns;
    }
    if (tracked->session && !tracked->is_telling &&
        ttm_ring_reader_lost(&tracked->reader) != tracked->lost_known) {
        ttm_ring_reader_wake(&tracked->reader); /* there is something to ask first */
        tracked->announced_ns = 0;
        return false;
    }
    return now_ns - tracked->announced_ns >= SETTLE_NS;
}

/* When to look again at rings that have been read. */
static uint64_t pause_ns(struct ttm_tracked *tracked)
{
    const struct ttm_server *server = tracked->client->server;
    const uint64_t doze_ns =
        ttm_doze_next(&tracked->doze, server->now_ns, tracked->reader.ring_slots);

    /* A loss is asked about when every ring was looked at twice. */
    if (tracked->session && tracked->ask_at_pass != 0)
        return PACE_NS;
    /* Where nobody would look by himself, and after the sleep was announced, that is not so. */
    if (!ttm_list_is_empty(&tracked->active_link) && tracked->announced_ns == 0)
        ttm_ring_reader_doze(&tracked->reader);
    /* Who watches events wants to see them as they come. */
    return ttm_list_is_empty(&server->tails) ? doze_ns : TTM_DOZE_NS;
}

/* Records of several rings, each in the order it has them, and their order by time. */
struct ttm_slice {
    struct ttm_record records[RECORDS_PER_SLICE];
    uint16_t order[RECORDS_PER_SLICE];
    uint32_t count;
    uint32_t done; /* of these, in that order */
};

static uint64_t time_at(const struct ttm_slice *slice, uint32_t place)
{
    return slice->records[slice->order[place]].time_ns;
}

/* The next 'n' records are of another ring. They are merged into the order from its end on. */
static void merge(struct ttm_slice *slice, uint32_t n)
{
    uint32_t older = slice->count, newer = slice->count + n;
    const uint64_t last_ns = older > 0 ? time_at(slice, older - 1) : 0;

    /* Of one ring after the other nearly all are later than what was read before. */
    while (slice->count < newer && slice->records[slice->count].time_ns >= last_ns) {
        slice->order[slice->count] = (uint16_t)slice->count;
        slice->count++;
    }
    if (slice->count == newer)
        return;
    slice->count = newer;
    for (uint32_t at = slice->count; newer > slice->count - n && at-- > 0;) {
        const uint64_t time_ns = slice->records[newer - 1].time_ns;
        slice->order[at] = older > 0 && time_at(slice, older - 1) > time_ns ? slice->order[--older]
                                                                            : (uint16_t)--newer;
    }
}

/* Looks at each ring, again and again until the slice is full: none gets far ahead of the others. */
static void read_rings(struct ttm_tracked *tracked, struct ttm_slice *slice)
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

/*
 * Puts the times of records on our clock. The time is taken after the records were read: a turn may
 * have been interrupted for long since it began.
 */
static void check_times(struct ttm_tracked *tracked, struct ttm_slice *slice)
{
    const uint64_t now_ns = tracked->client->server->now_ns = ttm_clock_monotonic_ns();

    for (uint32_t i = 0; i < slice->count; i++)
        slice->records[i].time_ns = ttm_tracked_time(tracked, slice->records[i].time_ns, now_ns);
}

/* What is to be applied next: what was left over, or else what the rings have. */
static struct ttm_slice *next_slice(struct ttm_tracked *tracked)
{
    static struct ttm_slice slice; /* one loop thread; 66 KiB */

    if (tracked->rest)
        return tracked->rest;
    slice.done = 0;
    read_rings(tracked, &slice);
    if (slice.count > 0)
        check_times(tracked, &slice);
    ttm_telling_count_losses(tracked);
    tracked->slice_count = slice.count;
    return &slice;
}

/* What the turn has no time for is kept apart from the rings. Returns whether it could be. */
static bool keep_rest(struct ttm_tracked *tracked, const struct ttm_slice *slice)
{
    if (tracked->rest)
        return true;
    tracked->rest = malloc(sizeof(*slice));
    if (!tracked->rest)
        return false;
    *tracked->rest = *slice;
    return true;
}

/* Returns how many records were applied. Those that the turn has no time for are the rest. */
static uint32_t apply_slice(struct ttm_tracked *tracked)
{
    struct ttm_slice *slice = next_slice(tracked);
    uint32_t applied = 0;

    tracked->cost = 0;
    while (slice->done < slice->count) {
        const uint32_t n =
            ttm_intake_affordable(tracked, slice->records, slice->order + slice->done,
                                  slice->count - slice->done, &tracked->cost);
        ttm_intake_records(tracked, slice->records, slice->order + slice->done, n);
        slice->done += n;
        applied += n;
        if (slice->done < slice->count && keep_rest(tracked, slice))
            return applied; /* else there is no memory for the rest: all at once then */
    }
    free(tracked->rest);
    tracked->rest = NULL;
    return applied;
}

/* Counts what was applied, and sums up circular buffers now and then. */
static void count_applied(struct ttm_tracked *tracked, uint32_t n)
{
    struct ttm_server *server = tracked->client->server;

    server->counter[TTM_COUNTER_EVENTS] += n;
    tracked->doze.records += n;
    if (n == 0) {
        tracked->empty_reads++;
        return;
    }
    tracked->empty_reads = 0;
    tracked->announced_ns = 0;
    count_rate(tracked, n);
    if (server->now_ns - tracked->cbs_summed_ns > SUM_CBS_NS)
        ttm_resident_sum(tracked);
}

uint64_t ttm_tracked_read(struct ttm_tracked *tracked)
{
    /* What is in the rings may be of the next spell already: it stays there until that is told of. */
    if (tracked->is_forgetting)
        forget_some(tracked);
    if (tracked->is_forgetting)
        return 0;
    if (tracked->is_off) {
        tracked->empty_reads++;
        ttm_list_remove(&tracked->active_link);
        return UINT64_MAX;
    }
    const uint32_t n = apply_slice(tracked);
    count_applied(tracked, n);
    if (tracked->rest)
        return 0;
    if (tracked->is_going_off && ttm_ring_reader_is_past_aim(&tracked->reader)) {
        go_off(tracked);
        return 0;
    }
    if (n == 0 || tracked->looked != tracked->looked_counted)
        count_pass(tracked);
    tracked->looked_counted = tracked->looked;
    ttm_telling_go_on(tracked);
    ttm_telling_watch_losses(tracked);
    if (tracked->slice_count == RECORDS_PER_SLICE || tracked->is_sweeping || tracked->is_going_off)
        return 0;
    if (n == 0 && may_sleep(tracked)) {
        ttm_list_remove(&tracked->active_link);
        return UINT64_MAX;
    }
    return pause_ns(tracked);
}

void ttm_tracked_drain(struct ttm_tracked *tracked)
{
    for (uint32_t i = 0; i < DRAIN_MAX / RECORDS_PER_SLICE; i += !tracked->rest) {
        (void)ttm_tracked_read(tracked);
        if (tracked->empty_reads > 0)
            return;
    }
}

bool ttm_tracked_begin_drain(struct ttm_tracked *tracked)
{
    if (tracked->is_off && !tracked->is_forgetting)
        return false; /* what is in its rings is of another spell */
    tracked->drain_until_ns = tracked->client->server->now_ns + DRAIN_NS;
    ttm_ring_reader_aim(&tracked->reader);
    ttm_tracked_activate(tracked);
    return true;
}

bool ttm_tracked_is_drained(const struct ttm_tracked *tracked)
{
    const struct ttm_server *server = tracked->client->server;

    return tracked->drain_until_ns != 0 &&
           ((!tracked->rest && !tracked->is_sweeping && !tracked->is_forgetting &&
             (tracked->is_off || ttm_ring_reader_is_past_aim(&tracked->reader))) ||
            server->now_ns > tracked->drain_until_ns);
}

bool ttm_tracked_catch_up(struct ttm_tracked *tracked, uint32_t *budget)
{
    if (!tracked->rest && !ttm_ring_reader_has_more(&tracked->reader))
        return true;
    /* All that is there now; its threads may go on for ever. */
    ttm_ring_reader_aim(&tracked->reader);
    while (tracked->rest || !ttm_ring_reader_is_past_aim(&tracked->reader)) {
        if (*budget == 0)
            return false;
        (void)ttm_tracked_read(tracked);
        *budget -= tracked->cost < *budget ? tracked->cost : *budget;
        if (tracked->empty_reads > 0)
            break;
    }
    return true;
}

/* What is left of its user's share of this turn. */
static void renew_share(struct ttm_account *account)
{
    if (account->refresh == account->server->turn)
        return;
    account->refresh = account->server->turn;
    account->refresh_cost = TTM_USER_REFRESH_COST;
    account->refresh_steps = TTM_USER_REFRESH_STEPS;
}

bool ttm_tracked_prepare_answer(struct ttm_tracked *tracked)
{
    struct ttm_account *account = tracked->account;
    const struct ttm_cb_map *cbs = &tracked->client->process->cbs;
    /* To look at each ring costs something, too. */
    const uint32_t looks = ttm_ring_reader_used(&tracked->reader) / 4 + 1;

    renew_share(account);
    if (account->refresh_cost < looks || account->refresh_steps == 0)
        return false;
    account->refresh_cost -= looks;
    ttm_telling_count_losses(tracked);
    const bool is_read = ttm_tracked_catch_up(tracked, &account->refresh_cost);
    const uint64_t before = ttm_cb_map_steps(cbs);
    ttm_tracked_refresh(tracked);
    const uint64_t steps = ttm_cb_map_steps(cbs) - before;
    account->refresh_steps -= steps < account->refresh_steps ? steps : account->refresh_steps;
    return is_read && (tracked->cbs_unsummed == 0 || tracked->is_off);
}

bool ttm_tracked_is_behind(const struct ttm_tracked *tracked)
{
    const uint64_t lost = ttm_ring_reader_lost(&tracked->reader);

    if (tracked->is_off)
        return false; /* nothing is claimed */
    /* Of a process that we know from its start all was read, unless something was lost. */
    if (tracked->lost_known == UINT64_MAX)
        return lost > 0 || tracked->client->process->counters.has_gap;
    return lost != tracked->lost_known;
}
