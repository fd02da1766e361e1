/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that reports. Who it is comes from the kernel (SO_PEERCRED and a
 * pidfd), never from a message. It lives until its pidfd says that it has ended,
 * however often it connects; where no pidfd can be had (it is outside our pid
 * namespace, or had ended before we looked) until its last connection closes.
 */
#include "server/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/peer.h"
#include "server/record.h"
#include "server/tracked.h"

static void ignore_event(struct ttm_watch *watch, uint32_t events)
{
    (void)watch;
    (void)events;
}

/* What its program has left was read; whoever wants to know is told, and it is gone. */
static void end_program(struct ttm_client *client)
{
    struct ttm_server *server = client->server;
    const uint64_t run = client->process->info.run;
    struct ttm_departure departure;

    if (client->tracked) {
        client->process->counters.is_inexact = ttm_tracked_is_behind(client->tracked);
        ttm_tracked_refresh(client->tracked);
        ttm_tracked_free(client->tracked);
        client->tracked = NULL;
    }
    if (server->options.process_ended)
        server->options.process_ended(server->options.process_context, server->reg, client->process,
                                      false);
    ttm_record_process_end(client);
    ttm_tail_last_words(server, client);
    ttm_registry_end_process(server->reg, client->process, &departure);
    client->process = NULL;
    if (!ttm_list_is_empty(&server->tails))
        ttm_tail_process_end(server, client, run, &departure);
}

static void end_client(struct ttm_client *client)
{
    struct ttm_server *server = client->server;

    end_program(client);
    if (client->pidfd >= 0) {
        (void)epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, client->pidfd, NULL);
        (void)close(client->pidfd);
    }
    client->pidfd = -1;
    client->watch.handle = ignore_event; /* one for its pidfd may be under way */
    client->account->processes--;
    ttm_list_remove(&client->pid_link);
    ttm_list_remove(&client->link);
    ttm_list_append(&server->dead_clients, &client->link);
}

/* Nothing connects to it any more. What its rings have is read in the loop's own time. */
static void drain(struct ttm_client *client)
{
    if (client->is_draining)
        return;
    client->is_draining = true;
    client->is_leaving = true;
    if (client->pidfd >= 0)
        (void)epoll_ctl(client->server->epoll_fd, EPOLL_CTL_DEL, client->pidfd, NULL);
    if (client->tracked && ttm_tracked_begin_drain(client->tracked))
        return;
    end_client(client);
}

void ttm_client_drained(struct ttm_client *client)
{
    end_client(client);
}

void ttm_client_end(struct ttm_client *client)
{
    if (client->session_count == 0 && !client->is_leaving)
        drain(client);
}

void ttm_client_free(struct ttm_client *client)
{
    ttm_u64_set_done(&client->recorded_notes);
    ttm_list_remove(&client->link);
    ttm_list_remove(&client->pid_link);
    ttm_tracked_free(client->tracked);
    if (client->pidfd >= 0)
        (void)close(client->pidfd);
    ttm_account_unref(client->account);
    free(client);
}

/* The process has ended: its connections say what they still had to say, and with the last it goes. */
static void leave(struct ttm_client *client)
{
    if (client->is_leaving)
        return;
    client->is_leaving = true;
    (void)epoll_ctl(client->server->epoll_fd, EPOLL_CTL_DEL, client->pidfd, NULL);
    if (client->session_count == 0) {
        drain(client);
        return;
    }
    uint32_t left = client->session_count;
    TTM_LIST_FOR_EACH_SAFE(pos, &client->sessions) {
        ttm_session_leave(TTM_CONTAINER_OF(pos, struct ttm_session, client_link));
        if (--left == 0) /* the last one may have taken the client with it */
            break;
    }
}

static void handle_pidfd(struct ttm_watch *watch, uint32_t events)
{
    (void)events;
    leave((struct ttm_client *)watch);
}

void ttm_client_drop_session(struct ttm_session *session)
{
    struct ttm_client *client = session->client;

    session->client = NULL;
    ttm_list_remove(&session->client_link);
    client->session_count--;
    client->process->counters.connections--;
    if (client->session_count == 0 && (client->is_leaving || client->pidfd < 0))
        drain(client);
}

void ttm_client_lack_memory(struct ttm_client *client)
{
    struct ttm_server *server = client->server;

    client->process->counters.server_trouble =
        "the server has too little memory to know all that it holds";
    if (!server->is_short)
        ttm_log("memory is short: not all that process %d holds is known", (int)client->pid);
    server->is_short = true;
}

static struct ttm_list *bucket_of(struct ttm_server *server, pid_t pid)
{
    return &server->clients_by_pid[(uint32_t)pid & (TTM_PID_BUCKETS - 1)];
}

/*
 * The process with that number, whoever its user was when it connected. Two clients of one process
 * differ in their user: it has changed its user, and what it said as one must not be seen or freed
 * as the other.
 */
static struct ttm_client *find_client(struct ttm_server *server, pid_t pid, enum ttm_source source,
                                      uid_t uid, bool is_user)
{
    TTM_LIST_FOR_EACH(pos, bucket_of(server, pid)) {
        struct ttm_client *client = TTM_CONTAINER_OF(pos, struct ttm_client, pid_link);
        if (client->pid == pid && client->pidfd >= 0 && !client->is_leaving &&
            client->process->info.source == source && (client->uid == uid) == is_user)
            return client;
    }
    return NULL;
}

/*
 * A process that has changed its user and left its connections of before says all it holds again:
 * what it said as another user is over.
 */
static void end_as_other_user(struct ttm_session *session, enum ttm_source source)
{
    struct ttm_client *client =
        find_client(session->server, session->pid, source, session->uid, false);

    if (client && client->session_count == 0)
        drain(client);
}

/* A pidfd of the process behind the session, -1: there is none. The caller owns it. */
static int take_pidfd(struct ttm_session *session)
{
    const uint64_t start_ns = session->facts ? session->facts->start_ns : 0;
    int pidfd = session->pidfd;

    session->pidfd = -1;
    if (pidfd < 0) /* the one that came with the facts is another client's */
        pidfd = ttm_peer_open_pidfd(session->fd, session->pid, &session->is_pidfd_sure);
    if (pidfd < 0 || session->is_pidfd_sure || (start_ns > 0 && start_ns <= session->accepted_ns))
        return pidfd;
    (void)close(pidfd);
    return -1;
}

static struct ttm_process_info describe(const struct ttm_session *session, enum ttm_source source)
{
    const struct ttm_peer_facts *facts = session->facts;
    struct ttm_process_info info = {
        .pid = session->pid,
        .uid = session->uid,
        .source = (uint8_t)source,
    };

    if (!facts)
        return info;
    if (facts->start_ns > 0)
        info.start_ns = ttm_clock_wall_offset_ns(CLOCK_BOOTTIME) + facts->start_ns;
    memcpy(info.command, facts->command, sizeof(info.command));
    return info;
}

/* Whether its user may have one more process that reports, each of which has two files. */
static bool may_report(const struct ttm_account *account)
{
    const uint64_t most = account->server->session_max / 4;

    return ttm_account_has_room(account, account->processes, 1,
                                most < TTM_USER_PROCESSES ? most : TTM_USER_PROCESSES);
}

static int new_client(struct ttm_session *session, enum ttm_source source, struct ttm_client **ret)
{
    struct ttm_server *server = session->server;
    const struct ttm_process_info info = describe(session, source);

    if (!may_report(session->account))
        return -EUSERS;
    struct ttm_client *client = calloc(1, sizeof(*client));
    if (!client)
        return -ENOMEM;
    if (ttm_registry_add_process(server->reg, &info, &client->process) < 0) {
        free(client);
        return -ENOMEM;
    }
    client->process->has_serials = source == TTM_SOURCE_TRACKED;
    client->watch.handle = handle_pidfd;
    client->server = server;
    client->account = ttm_account_ref(session->account);
    client->account->processes++;
    client->pid = session->pid;
    client->uid = session->uid;
    client->pidfd = take_pidfd(session);
    ttm_u64_set_init(&client->recorded_notes, server->reg->seed);
    ttm_record_process(client);
    ttm_list_init(&client->sessions);
    ttm_list_append(&server->clients, &client->link);
    ttm_list_append(bucket_of(server, client->pid), &client->pid_link);
    if (client->pidfd >= 0 &&
        ttm_server_watch(server, server->epoll_fd, client->pidfd, EPOLLIN, &client->watch) < 0) {
        (void)close(client->pidfd);
        client->pidfd = -1;
    }
    *ret = client;
    return 0;
}

static void add_session(struct ttm_client *client, struct ttm_session *session)
{
    if (session->pidfd >= 0) /* the client has one */
        (void)close(session->pidfd);
    session->pidfd = -1;
    session->client = client;
    client->session_count++;
    client->process->counters.connections++;
    ttm_list_append(&client->sessions, &session->client_link);
}

int ttm_client_of(struct ttm_session *session, enum ttm_source source, struct ttm_client **ret)
{
    if (session->client) {
        *ret = session->client;
        return 0;
    }
    if (session->pid > 0)
        end_as_other_user(session, source);
    struct ttm_client *client =
        session->pid > 0 ? find_client(session->server, session->pid, source, session->uid, true)
                         : NULL;
    if (client &&
        ttm_peer_has_ended(client->pidfd)) { /* its number may have been given to another */
        leave(client);
        client = NULL;
    }
    if (!client) {
        const int r = new_client(session, source, &client);
        if (r < 0)
            return r;
    }
    add_session(client, session);
    *ret = client;
    return 0;
}

int ttm_client_replace(struct ttm_session *session, struct ttm_client **ret)
{
    struct ttm_client *before = session->client, *client;
    const int r = new_client(session, (enum ttm_source)before->process->info.source, &client);

    if (r < 0)
        return r;
    const bool ends_with_it =
        before->session_count == 1 && (before->is_leaving || before->pidfd < 0);
    ttm_client_drop_session(session);
    add_session(client, session);
    if (!ends_with_it)
        leave(before);
    *ret = client;
    return 0;
}
