/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection. Reads are bounded per turn; what is read is parsed where it lies
 * and only the rest of a message is kept, so an idle connection costs less than
 * a kilobyte. Writes never block: what does not fit waits in 'out', and a peer
 * that does not read is no longer read itself.
 */
#include "server/state.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/tracked.h"

/*
 * A busy producer is one that fills its reads, or brings this many in so short a
 * time: waking up for each of its messages costs more than the messages do.
 */
#define BULK_READ 4096
#define BURST_READS 16
#define BURST_NS (2 * TTM_NS_PER_MS)

/* Of sessions that wait for their user's next turn, so many go on in it. */
#define GO_ON_PER_TURN 32

static void handle_session(struct ttm_watch *watch, uint32_t events);
static void drop_fds(struct ttm_session *session);

static void ignore_event(struct ttm_watch *watch, uint32_t events)
{
    (void)watch;
    (void)events;
}

static int epoll_of(const struct ttm_session *session)
{
    return session->is_bulk ? session->server->bulk_fd : session->server->epoll_fd;
}

static uint32_t wanted_events(const struct ttm_session *session)
{
    const uint32_t in = session->is_paused || session->is_closing ? 0 : EPOLLIN;
    const uint32_t out = session->wants_out ? EPOLLOUT : 0;

    return in | out;
}

static void update_watch(struct ttm_session *session)
{
    struct epoll_event ev = {.events = wanted_events(session), .data.ptr = &session->watch};

    if (session->is_watched)
        (void)epoll_ctl(epoll_of(session), EPOLL_CTL_MOD, session->fd, &ev);
}

static void end_watch(struct ttm_session *session)
{
    if (session->is_watched)
        (void)epoll_ctl(epoll_of(session), EPOLL_CTL_DEL, session->fd, NULL);
    session->is_watched = false;
}

/* Unless it waits for something else than its peer. Returns whether it could be. */
static bool begin_watch(struct ttm_session *session)
{
    if (session->is_dead || session->is_watched || session->awaits_facts || session->is_at_end ||
        session->has_hung_up || !ttm_list_is_empty(&session->wait_link))
        return true;
    session->is_watched = ttm_server_watch(session->server, epoll_of(session), session->fd,
                                           wanted_events(session), &session->watch) == 0;
    return session->is_watched;
}

static void set_bulk(struct ttm_session *session, bool is_bulk)
{
    if (session->is_bulk == is_bulk)
        return;
    end_watch(session);
    session->is_bulk = is_bulk;
    session->burst_reads = 0;
    session->last_pass = session->server->pass;
    ttm_list_remove(&session->bulk_link);
    if (is_bulk)
        ttm_list_append(&session->server->bulk, &session->bulk_link);
    if (!begin_watch(session))
        ttm_session_close(session);
}

/*
 * All connections are taken. Whoever has the most gives one up for a user who has fewer, so that
 * each user always gets in. Returns whether that was possible.
 */
static bool make_room(struct ttm_server *server, const struct ttm_account *account)
{
    struct ttm_account *largest = NULL;

    TTM_LIST_FOR_EACH(pos, &server->accounts) {
        struct ttm_account *other = TTM_CONTAINER_OF(pos, struct ttm_account, link);
        if (!other->is_privileged && (!largest || other->connections > largest->connections))
            largest = other;
    }
    if (!largest || largest == account || ttm_list_is_empty(&largest->sessions))
        return false;
    if (!account->is_privileged && largest->connections <= account->connections + 1)
        return false;
    server->counter[TTM_COUNTER_CONNECTIONS_REFUSED]++;
    ttm_session_close(TTM_CONTAINER_OF(largest->sessions.prev, struct ttm_session, account_link));
    return true;
}

static bool may_connect(struct ttm_server *server, const struct ttm_account *account)
{
    const uint64_t most = server->session_max / 4 * 3;

    return ttm_account_has_room(account, account->connections, 1,
                                most < TTM_USER_CONNECTIONS ? most : TTM_USER_CONNECTIONS) &&
           ttm_account_has_room(account, account->files, 0, TTM_USER_FILES) &&
           (server->open_connections < server->session_max || make_room(server, account));
}

static void init_session(struct ttm_session *session)
{
    session->watch.handle = handle_session;
    session->fds[0] = session->fds[1] = -1;
    session->pidfd = -1;
    session->accepted_ns = ttm_clock_read_ns(CLOCK_BOOTTIME);
    session->opened_ns = ttm_clock_monotonic_ns();
    ttm_list_init(&session->link);
    ttm_list_init(&session->quiet_link);
    ttm_list_init(&session->client_link);
    ttm_list_init(&session->dirty_link);
    ttm_list_init(&session->busy_link);
    ttm_list_init(&session->bulk_link);
    ttm_list_init(&session->account_link);
    ttm_list_init(&session->wait_link);
    ttm_list_init(&session->tail_link);
    ttm_queue_init(&session->in);
    ttm_queue_init(&session->out);
    ttm_original_reader_init(&session->reader);
}

/* It is one of the server's, and of its user's. */
static void enter(struct ttm_session *session)
{
    struct ttm_server *server = session->server;

    ttm_list_append(&server->sessions, &session->link);
    ttm_list_append(&session->account->sessions, &session->account_link);
    session->account->connections++;
    server->open_connections++;
    server->counter[TTM_COUNTER_CONNECTIONS]++;
}

/* ---- connections that are refused ---- */

struct refusal {
    struct ttm_job job;
    struct ttm_server *server;
    uint32_t count;
    int fds[TTM_REFUSED_MAX];
};

static void close_refused(struct ttm_job *job)
{
    const struct refusal *refusal = TTM_CONTAINER_OF(job, struct refusal, job);

    for (uint32_t i = 0; i < refusal->count; i++)
        (void)close(refusal->fds[i]);
}

/* Others may be accepted again when few are left to be closed. */
static void accept_again(struct ttm_server *server)
{
    if (!server->is_accepting && ttm_server_closing(server) < TTM_CLOSING_MAX / 2)
        server->accept_again_ns = server->now_ns;
}

static void finish_refusal(struct ttm_job *job)
{
    struct refusal *refusal = TTM_CONTAINER_OF(job, struct refusal, job);

    refusal->server->refused_open -= refusal->count;
    accept_again(refusal->server);
    free(refusal);
}

void ttm_session_refuse(struct ttm_server *server, int fd)
{
    server->counter[TTM_COUNTER_CONNECTIONS_REFUSED]++;
    server->refused[server->refused_count++] = fd;
    if (server->refused_count == TTM_REFUSED_MAX)
        ttm_session_close_refused(server);
}

void ttm_session_close_refused(struct ttm_server *server)
{
    const uint32_t count = server->refused_count;
    struct refusal *refusal = count > 0 ? malloc(sizeof(*refusal)) : NULL;

    server->refused_count = 0;
    if (!refusal) {
        for (uint32_t i = 0; i < count; i++) /* memory is short */
            (void)close(server->refused[i]);
        return;
    }
    refusal->job = (struct ttm_job){.run = close_refused, .finish = finish_refusal};
    refusal->server = server;
    refusal->count = count;
    memcpy(refusal->fds, server->refused, count * sizeof(refusal->fds[0]));
    server->refused_open += count;
    ttm_worker_add(server->closer, &refusal->job);
}

/* Who has connected, by the kernel's word: the pid is translated into our namespace. */
static int ask_peer(int fd, struct ucred *ret)
{
    socklen_t size = sizeof(*ret);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret, &size) < 0 ? -errno : 0;
}

void ttm_session_new(struct ttm_server *server, int fd, bool is_original)
{
    struct ttm_account *account = NULL;
    struct ttm_session *session = NULL;
    struct ucred cred;

    /* Those that are refused, which can be very many, cost as little as possible. */
    if (ask_peer(fd, &cred) == 0)
        account = ttm_account_of(server, cred.uid);
    if (account && may_connect(server, account))
        session = calloc(1, sizeof(*session));
    if (!session) {
        if (account)
            ttm_account_unref(account);
        ttm_session_refuse(server, fd);
        return;
    }
    session->server = server;
    session->account = account;
    session->pid = cred.pid;
    session->uid = cred.uid;
    session->fd = fd;
    session->is_original = is_original;
    init_session(session);
    enter(session);
    if (!begin_watch(session)) {
        server->counter[TTM_COUNTER_CONNECTIONS_REFUSED]++;
        ttm_session_close(session);
        return;
    }
    server->counter[TTM_COUNTER_CONNECTIONS_TOTAL]++;
}

void ttm_session_close(struct ttm_session *session)
{
    struct ttm_server *server = session->server;

    if (session->is_dead)
        return;
    /*
     * Closing alone does not end the watch while a process that was forked from ours, and has not
     * come to exec() yet, has the same socket open.
     */
    end_watch(session);
    session->is_dead = true;
    session->watch.handle = ignore_event;
    server->counter[TTM_COUNTER_CONNECTIONS]--;
    ttm_list_remove(&session->quiet_link);
    ttm_list_remove(&session->dirty_link);
    ttm_list_remove(&session->busy_link);
    ttm_list_remove(&session->bulk_link);
    ttm_list_remove(&session->account_link);
    ttm_list_remove(&session->wait_link);
    ttm_facts_forget(session);
    ttm_tail_leave(session);
    ttm_native_done(session);
    drop_fds(session);
    ttm_tracked_detach(session);
    if (session->client)
        ttm_client_drop_session(session);
    ttm_list_remove(&session->link);
    ttm_list_append(&server->dead, &session->link);
}

/* Closes files that are on their way to us, too, which can last. */
static void close_connection(struct ttm_job *job)
{
    (void)close(TTM_CONTAINER_OF(job, struct ttm_session, closing)->fd);
}

static void finish_closing(struct ttm_job *job)
{
    struct ttm_session *session = TTM_CONTAINER_OF(job, struct ttm_session, closing);

    struct ttm_server *server = session->server;

    session->account->connections--;
    server->open_connections--;
    accept_again(server);
    ttm_account_unref(session->account);
    free(session);
}

void ttm_session_free(struct ttm_session *session)
{
    ttm_list_remove(&session->link);
    ttm_queue_done(&session->in);
    ttm_queue_done(&session->out);
    free(session->facts);
    session->facts = NULL;
    if (session->pidfd >= 0)
        (void)close(session->pidfd);
    session->closing = (struct ttm_job){.run = close_connection, .finish = finish_closing};
    ttm_worker_add(session->server->closer, &session->closing);
}

bool ttm_session_may_see(const struct ttm_session *session, uid_t uid)
{
    return session->uid == 0 || session->uid == session->server->uid || session->uid == uid;
}

void ttm_session_dirty(struct ttm_session *session)
{
    if (!session->is_dead && ttm_list_is_empty(&session->dirty_link))
        ttm_list_append(&session->server->dirty, &session->dirty_link);
}

/*
 * Stops and starts reading from a peer as it falls behind with its answers and catches up. Those of
 * the original protocol are small and never refused: all connections of a user stay within its share.
 */
static void adjust_watch(struct ttm_session *session)
{
    const size_t high =
        session->is_original ? TTM_USER_ANSWER_BYTES / TTM_USER_CONNECTIONS : TTM_OUT_HIGH;
    const size_t low = session->is_original ? high / 4 : TTM_OUT_LOW;
    const size_t waiting = ttm_queue_length(&session->out);
    const bool wants_out = waiting > 0;
    bool is_paused = session->is_paused;

    if (waiting >= high || session->has_requests)
        is_paused = true;
    else if (waiting <= low)
        is_paused = false;
    if (wants_out == session->wants_out && is_paused == session->is_paused)
        return;
    session->wants_out = wants_out;
    session->is_paused = is_paused;
    update_watch(session);
}

static void drop_output(struct ttm_session *session)
{
    ttm_queue_done(&session->out);
    session->wants_out = false;
    session->is_paused = false;
    update_watch(session);
}

/* Whether something that it has said waits to be acted on. */
static bool has_more_to_say(const struct ttm_session *session)
{
    return !session->is_original && (session->has_requests || session->awaits_facts);
}

/* Nobody is left to read the answers, but what such a peer has sent still counts. */
static void give_up_output(struct ttm_session *session)
{
    if (has_more_to_say(session)) {
        session->has_hung_up = true;
        ttm_queue_done(&session->out);
        end_watch(session); /* what is still in its socket is read after that */
    } else if (session->is_original)
        drop_output(session);
    else
        ttm_session_close(session);
}

void ttm_session_flush(struct ttm_session *session)
{
    ttm_list_remove(&session->dirty_link);
    /* Of a peer that is gone by now an attachment may wait, which counts all the same. */
    if (session->is_at_end || session->has_hung_up)
        ttm_queue_done(&session->out);
    if (session->is_dead || session->awaits_facts || session->is_at_end || session->has_hung_up)
        return;
    while (ttm_queue_length(&session->out) > 0) {
        const ssize_t n = send(session->fd, ttm_queue_front(&session->out),
                               ttm_queue_length(&session->out), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0) {
            give_up_output(session);
            return;
        }
        ttm_queue_consume(&session->out, (size_t)n);
        session->progress_ns = session->server->now_ns;
    }
    if (session->is_closing && ttm_queue_length(&session->out) == 0) {
        ttm_session_close(session);
        return;
    }
    /* Now, as there may never be another event to tell it with. */
    if (session->tail_lost > 0 && ttm_tail_report_loss(session))
        ttm_session_dirty(session);
    adjust_watch(session);
}

/* The layout is in doubt: unless more arrives, silence will decide. */
static void await_silence(struct ttm_session *session)
{
    ttm_list_remove(&session->quiet_link);
    if (session->is_dead || !ttm_original_reader_is_waiting(&session->reader))
        return;
    session->deadline_ns = session->server->now_ns + TTM_SILENCE_NS;
    ttm_list_append(&session->server->quiet, &session->quiet_link);
}

void ttm_session_silence(struct ttm_session *session)
{
    ttm_list_remove(&session->quiet_link);
    if (ttm_original_silence(session) < 0)
        ttm_session_close(session);
}

/* Half a message: whatever it was to say is lost. */
static void count_torn(struct ttm_session *session)
{
    session->server->counter[TTM_COUNTER_TORN_MESSAGES]++;
    if (session->client)
        session->client->process->counters.lost_events++;
}

/* The peer has said all it will say. */
static void end_of_input(struct ttm_session *session)
{
    if (has_more_to_say(session)) {
        session->is_at_end = true;
        end_watch(session);
        return;
    }
    if (session->is_original) {
        (void)ttm_original_silence(session);
        if (!session->is_dead && ttm_original_reader_leftover(&session->reader) > 0)
            count_torn(session);
        /* A tool may shut its sending side and wait for the answer. */
        if (!session->is_dead && ttm_queue_length(&session->out) > 0)
            ttm_session_flush(session);
    }
    ttm_session_close(session);
}

/* How much is read at once. What is told is soon over, and taken in a few dozen microseconds. */
static size_t slice_size(const struct ttm_session *session)
{
    const bool is_telling =
        session->client && session->client->tracked && session->client->tracked->is_telling;

    return is_telling ? TTM_SLICE_TOLD : ttm_server_slice_size(session->server);
}

static void watch_rate(struct ttm_session *session, size_t length)
{
    struct ttm_server *server = session->server;

    if (session->is_bulk) {
        session->last_pass = server->pass;
        if (length == slice_size(session))
            server->has_backlog = true;
        return;
    }
    if (server->now_ns - session->burst_ns > BURST_NS) {
        session->burst_ns = server->now_ns;
        session->burst_reads = 0;
    }
    if (length >= BULK_READ || ++session->burst_reads >= BURST_READS)
        set_bulk(session, true);
}

void ttm_session_calm_down(struct ttm_session *session)
{
    set_bulk(session, false);
}

static void take_input(struct ttm_session *session, size_t length)
{
    struct ttm_server *server = session->server;

    session->read_bytes += length;
    const int r = session->is_original ? ttm_original_input(session, server->slice, length)
                                       : ttm_native_input(session, server->slice, length);

    if (r < 0) {
        server->counter[TTM_COUNTER_CLOSED_GARBAGE]++;
        if (session->client) /* what it would have said is not known: not complete any more */
            session->client->process->counters.refused++;
        ttm_session_close(session);
        return;
    }
    if (session->is_dead)
        return;
    ttm_session_drop_fds(session);
    await_silence(session);
    watch_rate(session, length);
}

static void drop_fds(struct ttm_session *session)
{
    int fds[2];
    size_t count = 0;

    for (size_t i = 0; i < 2; i++) {
        if (session->fds[i] >= 0)
            fds[count++] = session->fds[i];
        session->fds[i] = -1;
    }
    ttm_account_close_files(session->account, fds, count);
}

void ttm_session_drop_fds(struct ttm_session *session)
{
    if (!session->awaits_facts && !session->has_requests)
        drop_fds(session);
}

void ttm_session_end(struct ttm_session *session)
{
    if (session->is_dead || has_more_to_say(session))
        return;
    if (session->has_hung_up) {
        session->has_hung_up = false;
        session->is_paused = false;
        if (!begin_watch(session))
            session->is_at_end = true;
    }
    if (session->is_at_end)
        ttm_session_close(session);
}

/* Two files may be a segment and what belongs to it; any others are not wanted. */
static void receive_fds(struct ttm_session *session, const struct cmsghdr *c)
{
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    int fds[TTM_RECEIVED_FDS];
    size_t kept = 0;

    if (count > TTM_RECEIVED_FDS)
        return; /* the kernel sends no more */
    memcpy(fds, CMSG_DATA(c), count * sizeof(fds[0]));
    if (count >= 2 && !session->is_original) {
        drop_fds(session);
        memcpy(session->fds, fds, sizeof(session->fds));
        kept = 2;
    }
    ttm_account_close_files(session->account, fds + kept, count - kept);
}

/*
 * There is room for all files that a message can bring: what the kernel has no room for it closes
 * in our thread, which its owner can make last.
 */
static ssize_t receive(struct ttm_session *session, size_t size)
{
    struct ttm_server *server = session->server;
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(TTM_RECEIVED_FDS * sizeof(int))];
    } control;
    struct iovec iov = {.iov_base = server->slice, .iov_len = size};
    struct msghdr msg = {
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes),
    };
    const ssize_t n = recvmsg(session->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    for (struct cmsghdr *c = n >= 0 ? CMSG_FIRSTHDR(&msg) : NULL; c; c = CMSG_NXTHDR(&msg, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            receive_fds(session, c);
    }
    return n;
}

static void read_slice(struct ttm_session *session)
{
    struct ttm_server *server = session->server;

    if (!ttm_account_has_room(session->account, session->account->files, 0, TTM_USER_FILES)) {
        server->counter[TTM_COUNTER_CLOSED_GARBAGE]++;
        ttm_session_close(session); /* unread: it may bring even more files */
        return;
    }
    const ssize_t n = receive(session, slice_size(session));

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        if (session->client && session->client->is_leaving)
            end_of_input(session);
        return;
    }
    if (n <= 0) {
        end_of_input(session);
        return;
    }
    take_input(session, (size_t)n);
    if (session->is_dead || !session->client || !session->client->is_leaving)
        return;
    /* A child that inherited the connection may go on for ever: only what the dead one sent counts. */
    if (session->leave_bytes <= (uint64_t)n)
        end_of_input(session);
    else
        session->leave_bytes -= (uint64_t)n;
}

void ttm_session_await_facts(struct ttm_session *session)
{
    session->awaits_facts = true;
    end_watch(session);
}

void ttm_session_resume(struct ttm_session *session)
{
    if (!session->awaits_facts || session->is_dead)
        return;
    session->awaits_facts = false;
    if (!session->is_original)
        ttm_native_go_on(session); /* in its user's time */
    ttm_session_dirty(session);
    if (!begin_watch(session))
        ttm_session_close(session);
}

static void handle_events(struct ttm_session *session, uint32_t events)
{
    if (events & EPOLLOUT)
        ttm_session_flush(session);
    if (session->is_dead)
        return;
    /* What it says may make it a client. */
    if ((events & EPOLLIN) && session->is_original && !session->client && !ttm_facts_ask(session)) {
        ttm_session_await_facts(session);
        return;
    }
    if (events & EPOLLIN)
        read_slice(session);
    else if (events & (EPOLLHUP | EPOLLERR)) /* comes alone when input is not asked for */
        give_up_output(session);
}

/* Others come first; the second row asks again by itself. */
static void wait_for_turn(struct ttm_session *session)
{
    session->server->has_waiting = true;
    if (session->is_bulk)
        return;
    end_watch(session);
    ttm_list_append(&session->account->waiting, &session->wait_link);
}

static void handle_session(struct ttm_watch *watch, uint32_t events)
{
    struct ttm_session *session = (struct ttm_session *)watch;

    if (!ttm_account_has_time(session->account, TTM_TIME_ANSWERS)) {
        wait_for_turn(session);
        return;
    }
    const uint64_t began_ns = ttm_clock_monotonic_ns();
    handle_events(session, events);
    ttm_account_spend(session->account, TTM_TIME_ANSWERS, began_ns);
}

void ttm_account_end_wait(struct ttm_account *account)
{
    for (int i = 0; i < GO_ON_PER_TURN && !ttm_list_is_empty(&account->waiting); i++) {
        struct ttm_session *session =
            TTM_CONTAINER_OF(account->waiting.next, struct ttm_session, wait_link);
        ttm_list_remove(&session->wait_link);
        if (!begin_watch(session))
            ttm_session_close(session);
    }
    if (!ttm_list_is_empty(&account->waiting))
        account->server->has_waiting = true;
}

void ttm_session_leave(struct ttm_session *session)
{
    int waiting = 0;

    if (ioctl(session->fd, SIOCINQ, &waiting) < 0 || waiting <= 0) {
        end_of_input(session);
        return;
    }
    session->leave_bytes = (uint64_t)waiting;
    drop_output(session);
}
