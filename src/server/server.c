/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop. Watched things stand in two rows: busy producers in the second
 * (bulk_fd), everything else in the first. The first row wakes the loop; the
 * second is read at short intervals, many messages at a time, which is half the
 * work of being woken for each. After each slice read from a producer the first
 * row is asked again, so a query waits for one slice at most, however many
 * producers there are.
 */
#include "server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/older_headers.h"
#include "base/seed.h"
#include "server/record.h"
#include "server/state.h"
#include "server/telling.h"
#include "server/tracked.h"

#define EVENTS_PER_POLL 64
#define ACCEPTS_PER_TURN 64
#define ACCEPT_PAUSE_NS (10 * TTM_NS_PER_MS) /* at most; closing connections may end it */
#define CHECKED_PER_TURN 4096                /* sums, over all who have asked for a check */
#define SETTLE_TURNS 4096 /* for one that never stops reporting; a turn takes what is there */
#define OWN_FDS 160ull /* kept for the server itself, the commands it prints with, and spare ones */
#define FDS_PER_SESSION 3 /* itself, a pidfd, a socket that wakes us */

int ttm_server_watch(struct ttm_server *server, int epoll_fd, int fd, uint32_t events,
                     struct ttm_watch *watch)
{
    struct epoll_event ev = {.events = events, .data.ptr = watch};

    (void)server;
    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

size_t ttm_server_slice_size(const struct ttm_server *server)
{
    const bool is_asked = server->now_ns - server->asked_ns < TTM_ASKED_NS;

    /* While a snapshot shares lives, each change may have to copy 64 KiB first. */
    return is_asked || server->reg->snapshots > 0 ? TTM_SLICE_SMALL : TTM_SLICE_SIZE;
}

void ttm_server_count_latency(struct ttm_server *server)
{
    server->asked_ns = server->now_ns;
    server->counter[TTM_COUNTER_QUERIES]++;
    ttm_latency_add(&server->latency, ttm_clock_monotonic_ns() - server->arrived_ns);
}

/*
 * Out of fds. The connection that waits is taken with the reserve and closed, so
 * that its client knows; the queue behind it is left alone for a moment instead
 * of being turned over as fast as the processor can.
 */
static void turn_away(struct ttm_server *server, int listen_fd)
{
    if (server->reserve_fd >= 0)
        (void)close(server->reserve_fd);
    /* cppcheck-suppress nullPointer ; no address is asked for */
    const int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0)
        ttm_session_refuse(server, fd);
    server->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void set_accepting(struct ttm_server *server, bool is_accepting)
{
    const uint32_t events = is_accepting ? EPOLLIN : 0;
    struct epoll_event native = {.events = events, .data.ptr = &server->native_watch};
    struct epoll_event legacy = {.events = events, .data.ptr = &server->legacy_watch};

    server->is_accepting = is_accepting;
    (void)epoll_ctl(server->epoll_fd, EPOLL_CTL_MOD, server->native.fd, &native);
    if (server->legacy.fd >= 0)
        (void)epoll_ctl(server->epoll_fd, EPOLL_CTL_MOD, server->legacy.fd, &legacy);
}

static void pause_accepting(struct ttm_server *server)
{
    set_accepting(server, false);
    server->accept_again_ns = server->now_ns + ACCEPT_PAUSE_NS;
}

/* No more for now: the caller is told, and the queue behind it waits. */
static void refuse_more(struct ttm_server *server, int listen_fd)
{
    turn_away(server, listen_fd);
    if (!server->is_full)
        ttm_log("file descriptors have run out, new connections are refused for now");
    server->is_full = true;
    pause_accepting(server);
}

static void accept_waiting(struct ttm_server *server, int listen_fd, bool is_original)
{
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        /* Those that are to be closed have their file still: they first, whoever comes can wait. */
        if (ttm_server_closing(server) >= TTM_CLOSING_MAX) {
            pause_accepting(server);
            return;
        }
        /* cppcheck-suppress nullPointer ; no address is asked for */
        const int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            ttm_session_new(server, fd, is_original);
            server->is_full = false;
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            refuse_more(server, listen_fd);
            return;
        }
        if (errno != EINTR && errno != ECONNABORTED)
            return;
    }
}

static void accept_some(struct ttm_server *server, int listen_fd, bool is_original)
{
    accept_waiting(server, listen_fd, is_original);
    ttm_session_close_refused(server);
}

static void handle_native_listener(struct ttm_watch *watch, uint32_t events)
{
    struct ttm_server *server = TTM_CONTAINER_OF(watch, struct ttm_server, native_watch);

    (void)events;
    accept_some(server, server->native.fd, false);
}

static void handle_legacy_listener(struct ttm_watch *watch, uint32_t events)
{
    struct ttm_server *server = TTM_CONTAINER_OF(watch, struct ttm_server, legacy_watch);

    (void)events;
    accept_some(server, server->legacy.fd, true);
}

static void handle_workers(struct ttm_watch *watch, uint32_t events)
{
    (void)events;
    ttm_workers_finish(TTM_CONTAINER_OF(watch, struct ttm_server, workers_watch)->workers);
}

static void handle_signal(struct ttm_watch *watch, uint32_t events)
{
    struct ttm_server *server = TTM_CONTAINER_OF(watch, struct ttm_server, signal_watch);
    struct signalfd_siginfo info;

    (void)events;
    if (read(server->signal_fd, &info, sizeof(info)) > 0)
        server->is_stopping = true;
}

static void handle_stop(struct ttm_watch *watch, uint32_t events)
{
    (void)events;
    TTM_CONTAINER_OF(watch, struct ttm_server, stop_watch)->is_stopping = true;
}

static int watch_all(struct ttm_server *server)
{
    int r = ttm_server_watch(server, server->epoll_fd, server->native.fd, EPOLLIN,
                             &server->native_watch);

    if (r == 0 && server->legacy.fd >= 0)
        r = ttm_server_watch(server, server->epoll_fd, server->legacy.fd, EPOLLIN,
                             &server->legacy_watch);
    if (r == 0)
        r = ttm_server_watch(server, server->epoll_fd, server->stop_fd, EPOLLIN,
                             &server->stop_watch);
    if (r == 0)
        r = ttm_server_watch(server, server->epoll_fd, ttm_workers_fd(server->workers), EPOLLIN,
                             &server->workers_watch);
    if (r == 0 && server->signal_fd >= 0)
        r = ttm_server_watch(server, server->epoll_fd, server->signal_fd, EPOLLIN,
                             &server->signal_watch);
    return r;
}

static int open_signals(void)
{
    struct sigaction before;
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    /* Who has started us with nohup wants none of it; blocked, it would reach us all the same. */
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaddset(&set, SIGHUP);
    const int r = pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (r != 0)
        return -r;
    const int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

static int open_fds(struct ttm_server *server)
{
    server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    server->bulk_fd = epoll_create1(EPOLL_CLOEXEC);
    server->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    server->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (server->epoll_fd < 0 || server->bulk_fd < 0 || server->stop_fd < 0 ||
        server->reserve_fd < 0)
        return -errno;
    if (server->options.takes_signals) {
        server->signal_fd = open_signals();
        if (server->signal_fd < 0)
            return server->signal_fd;
    }
    return watch_all(server);
}

/* A machine full of programs needs more than the usual 1024. */
static uint64_t raise_fd_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 1024;
    if (limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    return limit.rlim_cur;
}

static int listen_at_paths(struct ttm_server *server, char *why)
{
    const struct ttm_server_options *options = &server->options;

    int r = ttm_listener_open(&server->native, options->socket_path, options->is_public, why);
    if (r < 0 || !options->legacy_path)
        return r;
    r = ttm_listener_open(&server->legacy, options->legacy_path, options->is_public, why);
    if (r < 0 && options->is_legacy_optional) {
        ttm_log("%s; going on without the original protocol", why);
        return 0;
    }
    return r;
}

static void init_lists(struct ttm_server *server)
{
    ttm_list_init(&server->sessions);
    ttm_list_init(&server->dead);
    ttm_list_init(&server->clients);
    for (size_t i = 0; i < TTM_PID_BUCKETS; i++)
        ttm_list_init(&server->clients_by_pid[i]);
    ttm_list_init(&server->accounts);
    ttm_list_init(&server->questions);
    ttm_list_init(&server->dead_clients);
    ttm_list_init(&server->quiet);
    ttm_list_init(&server->dirty);
    ttm_list_init(&server->busy);
    ttm_list_init(&server->bulk);
    ttm_list_init(&server->rings);
    ttm_list_init(&server->dead_rings);
    ttm_list_init(&server->alone);
    ttm_list_init(&server->tails);
}

int ttm_server_new(const struct ttm_server_options *options, struct ttm_server **ret,
                   char why[TTM_LISTENER_WHY_SIZE])
{
    struct ttm_server *server = calloc(1, sizeof(*server));
    int r;

    (void)snprintf(why, TTM_LISTENER_WHY_SIZE, "memory is short");
    if (!server)
        return -ENOMEM;
    init_lists(server);
    server->options = *options;
    server->native = (struct ttm_listener){.fd = -1, .lock_fd = -1};
    server->legacy = server->native;
    server->epoll_fd = server->bulk_fd = server->stop_fd = server->signal_fd = -1;
    server->reserve_fd = -1;
    server->native_watch.handle = handle_native_listener;
    server->legacy_watch.handle = handle_legacy_listener;
    server->workers_watch.handle = handle_workers;
    server->signal_watch.handle = handle_signal;
    server->stop_watch.handle = handle_stop;
    server->is_accepting = true;
    server->uid = geteuid();
    server->start_ns = ttm_clock_monotonic_ns();
    const uint64_t fds = raise_fd_limit();
    server->session_max = fds > 2 * OWN_FDS ? (fds - OWN_FDS) / FDS_PER_SESSION : OWN_FDS / 8;
    server->reg = ttm_registry_new(ttm_seed_random());
    if (options->subuid_path)
        ttm_id_ranges_read(&server->id_ranges, options->subuid_path);
    if (!server->reg || ttm_workers_new(&server->workers) < 0 ||
        !(server->closer = ttm_worker_new(server->workers))) {
        r = -ENOMEM;
        goto fail;
    }
    ttm_registry_set_owner(server->reg, server->uid);
    ttm_registry_set_id_ranges(server->reg, &server->id_ranges);
    r = listen_at_paths(server, why);
    if (r < 0)
        goto fail;
    r = open_fds(server);
    if (r < 0) {
        (void)snprintf(why, TTM_LISTENER_WHY_SIZE, "cannot start: %s", strerror(-r));
        goto fail;
    }
    *ret = server;
    return 0;

fail:
    ttm_server_free(server);
    return r;
}

static void free_dead(struct ttm_server *server)
{
    TTM_LIST_FOR_EACH_SAFE(pos, &server->dead)
        ttm_session_free(TTM_CONTAINER_OF(pos, struct ttm_session, link));
    TTM_LIST_FOR_EACH_SAFE(pos, &server->dead_clients)
        ttm_client_free(TTM_CONTAINER_OF(pos, struct ttm_client, link));
    TTM_LIST_FOR_EACH_SAFE(pos, &server->dead_rings)
        ttm_tracked_close(TTM_CONTAINER_OF(pos, struct ttm_tracked, active_link));
}

/* Where a word is left for the next server, -1: nowhere. */
static int word_fd(const struct ttm_server *server)
{
    return server->options.is_followed ? server->native.lock_fd : -1;
}

/* How many lives the next server will be told anew: those of programs with libttmem. */
static uint32_t lives_to_be_told(const struct ttm_server *server)
{
    uint32_t lives = 0;

    if (!server->reg || !ttm_heritage_is_crowd(server->reg->lives)) /* nothing to be left */
        return 0;
    TTM_LIST_FOR_EACH(pos, &server->clients) {
        const struct ttm_client *client = TTM_CONTAINER_OF(pos, struct ttm_client, link);
        if (client->tracked)
            lives += client->process->lives.store.live;
    }
    return lives;
}

void ttm_server_free(struct ttm_server *server)
{
    if (!server)
        return;
    server->native.leaves_lock =
        ttm_heritage_end(&server->heritage, word_fd(server), lives_to_be_told(server));
    TTM_LIST_FOR_EACH_SAFE(pos, &server->sessions)
        ttm_session_close(TTM_CONTAINER_OF(pos, struct ttm_session, link));
    free_dead(server);
    TTM_LIST_FOR_EACH_SAFE(pos, &server->clients)
        ttm_client_free(TTM_CONTAINER_OF(pos, struct ttm_client, link));
    free_dead(server);
    ttm_ticket_expire(server, UINT64_MAX);
    ttm_worker_release(server->closer);
    ttm_workers_free(server->workers); /* frees what was being closed, and with it the accounts */
    ttm_registry_free(server->reg);
    ttm_id_ranges_done(&server->id_ranges);
    ttm_listener_close(&server->native);
    ttm_listener_close(&server->legacy);
    const int fds[] = {server->epoll_fd, server->bulk_fd, server->stop_fd, server->signal_fd,
                       server->reserve_fd};
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
        if (fds[i] >= 0)
            (void)close(fds[i]);
    }
    free(server);
}

void ttm_server_set_recorder(struct ttm_server *server, struct ttm_recorder *recorder)
{
    server->options.recorder = recorder;
}

int ttm_server_set_board(struct ttm_server *server, uint32_t id, const char *board)
{
    struct ttm_device *device = ttm_registry_device(server->reg, id);

    if (!device)
        return -ERANGE;
    ttm_device_set_board(device, board);
    return device->is_known ? 0 : -EINVAL;
}

bool ttm_server_has_legacy(const struct ttm_server *server)
{
    return server->legacy.fd >= 0;
}

void ttm_server_stop(struct ttm_server *server)
{
    const uint64_t one = 1;

    (void)!write(server->stop_fd, &one, sizeof(one));
}

void ttm_server_status(struct ttm_server *server, struct ttm_status *ret)
{
    const struct ttm_registry *reg = server->reg;
    struct ttm_process_counters sum = reg->ended;

    TTM_LIST_FOR_EACH(pos, &reg->processes) {
        const struct ttm_process *proc = TTM_CONTAINER_OF(pos, struct ttm_process, link);
        sum.unknown_frees += proc->counters.unknown_frees;
        sum.ambiguous_frees += proc->counters.ambiguous_frees;
        sum.replaced += proc->counters.replaced;
    }
    memcpy(ret->counter, server->counter, sizeof(ret->counter));
    ret->counter[TTM_COUNTER_PID] = (uint64_t)getpid();
    ret->counter[TTM_COUNTER_UPTIME_NS] = ttm_clock_monotonic_ns() - server->start_ns;
    ret->counter[TTM_COUNTER_BIRTHS] = reg->births;
    ret->counter[TTM_COUNTER_ENDS] = reg->ends;
    ret->counter[TTM_COUNTER_LIVES] = reg->lives;
    ret->counter[TTM_COUNTER_UNKNOWN_FREES] = sum.unknown_frees;
    ret->counter[TTM_COUNTER_AMBIGUOUS_FREES] = sum.ambiguous_frees;
    ret->counter[TTM_COUNTER_REPLACED] = sum.replaced;
    ret->counter[TTM_COUNTER_PROCESSES] = reg->process_count;
    ret->counter[TTM_COUNTER_PROCESSES_ENDED] = reg->processes_ended;
    ret->counter[TTM_COUNTER_LOST_LOG_LINES] = ttm_log_dropped();
    ret->counter[TTM_COUNTER_QUERY_P50_NS] = ttm_latency_percentile(&server->latency, 50);
    ret->counter[TTM_COUNTER_QUERY_P99_NS] = ttm_latency_percentile(&server->latency, 99);
    ret->counter[TTM_COUNTER_QUERY_MAX_NS] = server->latency.max_ns;
    ret->counter[TTM_COUNTER_LIFE_BYTES] = ttm_registry_life_bytes(reg);
    ret->counter[TTM_COUNTER_RECORDING_ERRNO] = (uint64_t)-ttm_record_error(server);
}

static void flush_dirty(struct ttm_server *server)
{
    while (!ttm_list_is_empty(&server->dirty))
        ttm_session_flush(TTM_CONTAINER_OF(server->dirty.next, struct ttm_session, dirty_link));
}

/* A wait that was longer than this was one: nothing had been there when it began. */
#define WAITED_NS 5000

/* Between two passes over the second row, when it had no backlog. */
#define PACE_NS 50000

/* Of one segment, when there is more. */
#define SLICES_PER_TURN 4

/* A producer that brings nothing for so many passes goes back to the first row. */
#define CALM_PASSES 8

/* What the scheduler is asked for; the shortest it grants. */
#define TURN_NS 100000

#define FOR_EVER UINT64_MAX

/* Returns the number of events, also when interrupted, or a negative errno. */
static int wait_for(int epoll_fd, struct epoll_event events[EVENTS_PER_POLL], uint64_t timeout_ns)
{
    const struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / TTM_NS_PER_S),
                                     .tv_nsec = (long)(timeout_ns % TTM_NS_PER_S)};
    int n;

    if (timeout_ns == 0 || timeout_ns == FOR_EVER)
        n = epoll_wait(epoll_fd, events, EVENTS_PER_POLL, timeout_ns == 0 ? 0 : -1);
    else
        n = epoll_pwait2(epoll_fd, events, EVENTS_PER_POLL, &timeout, NULL);
    if (n < 0 && errno == ENOSYS) /* before Linux 5.11 */
        n = epoll_wait(epoll_fd, events, EVENTS_PER_POLL, (int)(timeout_ns / TTM_NS_PER_MS) + 1);
    return n >= 0 ? n : errno == EINTR ? 0 : -errno;
}

static void begin_turn(struct ttm_server *server)
{
    server->turn_ns = ttm_clock_monotonic_ns();
    server->turn_cpu_ns = ttm_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    server->now_ns = server->turn_ns;
}

/*
 * A turn has ended at 'end_ns'. Its wall time has whatever else ran on the processor in it; its
 * processor time is the server's own, and is read only where the wall time leaves room for a new
 * longest one: that clock costs a system call.
 */
static void count_turn(struct ttm_server *server, uint64_t end_ns)
{
    const uint64_t wall_ns = end_ns - server->turn_ns;
    uint64_t *longest_ns = &server->counter[TTM_COUNTER_LONGEST_TURN_NS];
    uint64_t *longest_cpu_ns = &server->counter[TTM_COUNTER_LONGEST_TURN_CPU_NS];

    if (wall_ns > *longest_ns)
        *longest_ns = wall_ns;
    if (wall_ns <= *longest_cpu_ns)
        return;
    const uint64_t cpu_ns = ttm_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - server->turn_cpu_ns;
    if (cpu_ns > *longest_cpu_ns)
        *longest_cpu_ns = cpu_ns;
}

/*
 * Asks the first row, waiting for at most 'timeout_ns', and handles what it has.
 * What is there at once has arrived since the row was last asked, which is how
 * long a query can have waited; the longest such time is the longest that anybody
 * was held up. Returns the number of events, or a negative errno.
 */
static int poll_first_row(struct ttm_server *server, uint64_t timeout_ns)
{
    struct epoll_event events[EVENTS_PER_POLL];
    const uint64_t last_ns = server->turn_ns;
    const uint64_t before_ns = ttm_clock_monotonic_ns();

    count_turn(server, before_ns);
    const int n = wait_for(server->epoll_fd, events, timeout_ns);

    if (n < 0)
        return n;
    begin_turn(server);
    const bool has_waited = timeout_ns != 0 && server->now_ns - before_ns > WAITED_NS;
    server->arrived_ns = has_waited ? server->now_ns : last_ns;
    for (int i = 0; i < n; i++) {
        struct ttm_watch *watch = events[i].data.ptr;
        watch->handle(watch, events[i].events);
    }
    flush_dirty(server);
    return n;
}

static void read_second_row(struct ttm_server *server)
{
    struct epoll_event events[EVENTS_PER_POLL];
    const int n = wait_for(server->bulk_fd, events, 0);

    server->has_backlog = n == EVENTS_PER_POLL;
    server->pass++;
    for (int i = 0; i < n; i++) {
        struct ttm_watch *watch = events[i].data.ptr;
        watch->handle(watch, events[i].events);
        (void)poll_first_row(server, 0);
    }
    if (server->pass % CALM_PASSES != 0)
        return;
    TTM_LIST_FOR_EACH_SAFE(pos, &server->bulk) {
        struct ttm_session *session = TTM_CONTAINER_OF(pos, struct ttm_session, bulk_link);
        if (server->pass - session->last_pass >= CALM_PASSES)
            ttm_session_calm_down(session);
    }
}

/* Puts the links of 'list' in front of those of 'head'. */
static void put_in_front(struct ttm_list *list, struct ttm_list *head)
{
    while (!ttm_list_is_empty(list)) {
        struct ttm_list *last = list->prev;
        ttm_list_remove(last);
        ttm_list_append(head->next, last); /* before the first */
    }
}

/* One slice, in its user's time. Returns as ttm_tracked_read(). */
static uint64_t read_slice(struct ttm_tracked *tracked)
{
    const uint64_t began_ns = ttm_clock_monotonic_ns();
    const uint64_t pause_ns = ttm_tracked_read(tracked);

    ttm_account_spend(tracked->account, TTM_TIME_RINGS, began_ns);
    return pause_ns;
}

/*
 * A few slices of one segment: its rings fill up while a resync or the second row is read. After
 * each the first row is asked again. Returns as ttm_tracked_read().
 */
static uint64_t read_segment(struct ttm_server *server, struct ttm_tracked *tracked)
{
    uint64_t pause_ns = read_slice(tracked);

    for (int i = 1; i < SLICES_PER_TURN && pause_ns == 0; i++) {
        (void)poll_first_row(server, 0);
        if (ttm_tracked_is_gone(tracked))
            return UINT64_MAX;
        pause_ns = read_slice(tracked);
    }
    return pause_ns;
}

/* The same, and the end of a process of which all was read. */
static uint64_t visit_segment(struct ttm_server *server, struct ttm_tracked *tracked)
{
    const uint64_t pause_ns =
        ttm_telling_comes_first(tracked) ? PACE_NS : read_segment(server, tracked);

    if (ttm_tracked_is_gone(tracked) || tracked->drain_until_ns == 0)
        return pause_ns;
    if (ttm_tracked_is_drained(tracked))
        ttm_client_drained(tracked->client);
    return 0;
}

/*
 * Each segment that has something, once; any of them may go meanwhile, and others come. Those whose
 * user has had its time keep their place at the front.
 */
static void read_rings(struct ttm_server *server)
{
    struct ttm_list waiting;

    ttm_list_init(&waiting);
    server->rings_pause_ns = UINT64_MAX;
    server->rings_pass++;
    while (!ttm_list_is_empty(&server->rings)) {
        struct ttm_tracked *tracked =
            TTM_CONTAINER_OF(server->rings.next, struct ttm_tracked, active_link);
        if (tracked->rings_pass == server->rings_pass)
            break;
        ttm_list_remove(&tracked->active_link);
        if (!ttm_account_has_time(tracked->account, TTM_TIME_RINGS)) {
            server->has_waiting = true;
            ttm_list_append(&waiting, &tracked->active_link);
            continue;
        }
        tracked->rings_pass = server->rings_pass;
        ttm_list_append(&server->rings, &tracked->active_link);
        const uint64_t pause_ns = visit_segment(server, tracked);
        if (pause_ns < server->rings_pause_ns)
            server->rings_pause_ns = pause_ns;
    }
    put_in_front(&waiting, &server->rings);
    if (server->rings_pause_ns == 0)
        server->has_backlog = true;
    flush_dirty(server);
}

static void end_silences(struct ttm_server *server)
{
    while (!ttm_list_is_empty(&server->quiet)) {
        struct ttm_session *session =
            TTM_CONTAINER_OF(server->quiet.next, struct ttm_session, quiet_link);
        if (session->deadline_ns > server->now_ns)
            return;
        ttm_session_silence(session);
    }
}

/*
 * Answers under way, each once; those whose user has had its time come first in the next turn.
 * Returns whether there is more.
 */
static bool work_on_answers(struct ttm_server *server)
{
    struct ttm_list waiting;
    bool has_more = false;

    ttm_list_init(&waiting);
    while (!ttm_list_is_empty(&server->busy)) {
        struct ttm_session *session =
            TTM_CONTAINER_OF(server->busy.next, struct ttm_session, busy_link);
        if (session->worked_turn == server->turn)
            break;
        ttm_list_remove(&session->busy_link);
        if (!ttm_account_has_time(session->account, TTM_TIME_ANSWERS)) {
            server->has_waiting = true;
            ttm_list_append(&waiting, &session->busy_link);
            continue;
        }
        session->worked_turn = server->turn;
        ttm_list_append(&server->busy, &session->busy_link);
        const uint64_t began_ns = ttm_clock_monotonic_ns();
        has_more |= ttm_native_work(session);
        ttm_account_spend(session->account, TTM_TIME_ANSWERS, began_ns);
    }
    put_in_front(&waiting, &server->busy);
    return has_more;
}

/* A new turn: each user has its time again. */
static void begin_shares(struct ttm_server *server)
{
    const bool has_waiting = server->has_waiting;

    server->turn++;
    server->has_waiting = false;
    if (!has_waiting)
        return;
    TTM_LIST_FOR_EACH_SAFE(pos, &server->accounts)
        ttm_account_end_wait(TTM_CONTAINER_OF(pos, struct ttm_account, link));
}

/* What is due without anybody having asked just now. Returns whether more waits to be done. */
static bool do_chores(struct ttm_server *server)
{
    bool has_more = false;

    begin_shares(server);
    server->wall_offset_ns = ttm_clock_wall_offset_ns(CLOCK_MONOTONIC);
    server->check_budget = CHECKED_PER_TURN;
    end_silences(server);
    server->are_workers_starved = ttm_workers_retry(server->workers);
    ttm_facts_expire(server);
    has_more |= work_on_answers(server);
    has_more |= ttm_registry_reclaim(server->reg);
    ttm_ticket_expire(server, server->now_ns);
    ttm_ticket_print_late(server);
    ttm_record_tick(server);
    server->to_be_told = lives_to_be_told(server);
    ttm_heritage_tick(&server->heritage, word_fd(server), server->to_be_told, server->now_ns);
    if (!ttm_list_is_empty(&server->alone) && server->now_ns >= server->visit_alone_ns)
        ttm_tracked_visit_alone(server);
    if (!server->is_accepting && server->now_ns >= server->accept_again_ns)
        set_accepting(server, true);
    flush_dirty(server);
    free_dead(server);
    return has_more;
}

static uint64_t sooner(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

/* When the next chore is due: the loop sleeps until then, and for ever when nothing is. */
static uint64_t next_chore_ns(const struct ttm_server *server)
{
    uint64_t due_ns = UINT64_MAX;

    if (!ttm_list_is_empty(&server->quiet))
        due_ns = TTM_CONTAINER_OF(server->quiet.next, struct ttm_session, quiet_link)->deadline_ns;
    TTM_LIST_FOR_EACH(pos, &server->busy) {
        const struct ttm_session *session = TTM_CONTAINER_OF(pos, struct ttm_session, busy_link);
        if (session->totals_interval_ms > 0)
            due_ns = sooner(due_ns, session->totals_due_ns);
        if (session->lives.snap)
            due_ns = sooner(due_ns, session->progress_ns + TTM_SLOW_NS + TTM_NS_PER_MS);
    }
    for (size_t i = 0; i < TTM_TICKETS; i++) {
        if (server->tickets[i].number != 0)
            due_ns = sooner(due_ns, server->tickets[i].deadline_ns);
    }
    if (!server->is_accepting)
        due_ns = sooner(due_ns, server->accept_again_ns);
    if (!ttm_list_is_empty(&server->alone))
        due_ns = sooner(due_ns, server->visit_alone_ns);
    due_ns = sooner(due_ns, ttm_facts_due_ns(server));
    if (server->are_workers_starved)
        due_ns = sooner(due_ns, server->now_ns + ACCEPT_PAUSE_NS);
    due_ns = sooner(due_ns, ttm_record_due_ns(server));
    return sooner(due_ns, ttm_heritage_due_ns(&server->heritage, server->to_be_told));
}

/* How long the loop may sleep. */
static uint64_t sleep_ns(const struct ttm_server *server)
{
    if (server->has_backlog || server->has_waiting)
        return 0;
    const uint64_t due_ns = next_chore_ns(server);
    uint64_t wait_ns = due_ns == UINT64_MAX      ? FOR_EVER
                       : due_ns > server->now_ns ? due_ns - server->now_ns
                                                 : 0;
    if (!ttm_list_is_empty(&server->bulk))
        wait_ns = sooner(wait_ns, PACE_NS);
    if (!ttm_list_is_empty(&server->rings))
        wait_ns = sooner(wait_ns, server->rings_pause_ns);
    return wait_ns;
}

/*
 * Asks the scheduler for short turns. Where programs take every processor, as
 * those that report at full speed do, the server then waits less between its
 * turns; its share stays the same. Linux before 6.12 takes no notice.
 */
static void ask_for_short_turns(void)
{
    struct { /* struct sched_attr of the kernel, which glibc 2.36 does not have */
        uint32_t size;
        uint32_t policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime_ns;
        uint64_t deadline_ns;
        uint64_t period_ns;
    } attr = {
        .size = sizeof(attr),
        .policy = SCHED_OTHER,
        .nice = getpriority(PRIO_PROCESS, 0),
        .runtime_ns = TURN_NS,
    };

    _Static_assert(sizeof(attr) == 48, "the first version of the struct");
    if (sched_getscheduler(0) == SCHED_OTHER)
        (void)syscall(SYS_sched_setattr, 0, &attr, 0);
}

/* The second row and the rings. */
static void read_rows(struct ttm_server *server)
{
    server->has_backlog = false;
    if (!ttm_list_is_empty(&server->bulk))
        read_second_row(server);
    if (!ttm_list_is_empty(&server->rings))
        read_rings(server);
}

int ttm_server_run(struct ttm_server *server)
{
    int r = 0;

    ask_for_short_turns();
    begin_turn(server);
    ttm_heritage_begin(&server->heritage, word_fd(server), server->now_ns);
    while (!server->is_stopping && r >= 0) {
        const bool has_more = do_chores(server);
        r = poll_first_row(server, has_more ? 0 : sleep_ns(server));
        read_rows(server);
    }
    return r < 0 ? r : 0;
}

/* Whether there is something to be read or to be waited for. */
static bool is_unsettled(const struct ttm_server *server)
{
    return server->has_backlog || server->has_waiting || !ttm_list_is_empty(&server->questions);
}

void ttm_server_settle(struct ttm_server *server)
{
    uint64_t count;
    bool has_more = false;
    int events = 1;

    (void)!read(server->stop_fd, &count, sizeof(count)); /* or it would be an event in each turn */
    begin_turn(server);
    for (int i = 0; i < SETTLE_TURNS && (events > 0 || has_more || is_unsettled(server)); i++) {
        has_more = do_chores(server);
        const bool is_idle =
            events == 0 && !has_more && !server->has_backlog && !server->has_waiting;
        events = poll_first_row(server, is_idle ? TTM_NS_PER_MS : 0);
        read_rows(server);
    }
    free_dead(server);
}

void ttm_server_each_process(struct ttm_server *server, ttm_process_fn fn, void *context)
{
    TTM_LIST_FOR_EACH(pos, &server->clients) {
        struct ttm_client *client = TTM_CONTAINER_OF(pos, struct ttm_client, link);
        if (client->tracked) {
            ttm_tracked_drain(client->tracked);
            ttm_tracked_refresh(client->tracked);
            ttm_record_counters(client);
        }
        fn(context, server->reg, client->process, true);
    }
}
