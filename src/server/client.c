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

/* All that its program has said is taken in, whoever wants to know is told, and it is gone. */
static void end_program(struct ttm_client *client)
{
    struct ttm_server *server = client->server;
    const uint64_t run = client->process->info.run;
    struct ttm_departure departure;

    if (client->tracked) {
        ttm_tracked_drain(client->tracked);
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
    ttm_list_remove(&client->link);
    ttm_list_append(&server->dead_clients, &client->link);
}

int ttm_client_renew(struct ttm_client *client)
{
    struct ttm_process_info info = client->process->info;
    struct ttm_process *process;

    ttm_peer_command(client->pid, info.command);
    if (ttm_registry_add_process(client->server->reg, &info, &process) < 0)
        return -ENOMEM;
    process->has_serials = client->process->has_serials;
    process->counters.connections = client->process->counters.connections;
    end_program(client);
    client->process = process;
    ttm_record_process(client);
    return 0;
}

void ttm_client_end(struct ttm_client *client)
{
    if (client->session_count == 0 && !client->is_leaving)
        end_client(client);
}

void ttm_client_free(struct ttm_client *client)
{
    ttm_u64_set_done(&client->recorded_notes);
    ttm_list_remove(&client->link);
    ttm_tracked_free(client->tracked);
    if (client->pidfd >= 0)
        (void)close(client->pidfd);
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
        end_client(client);
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
        end_client(client);
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

/*
 * The process with that number, whoever its user was when it connected. Two clients of one process
 * differ in their user: it has changed its user, and what it said as one must not be seen or freed
 * as the other.
 */
static struct ttm_client *find_client(struct ttm_server *server, pid_t pid, enum ttm_source source,
                                      uid_t uid, bool is_user)
{
    TTM_LIST_FOR_EACH(pos, &server->clients) {
        struct ttm_client *client = TTM_CONTAINER_OF(pos, struct ttm_client, link);
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
        end_client(client);
}

static int new_client(struct ttm_session *session, enum ttm_source source, int pidfd,
                      struct ttm_client **ret)
{
    struct ttm_server *server = session->server;
    struct ttm_process_info info = {
        .pid = session->pid,
        .uid = session->uid,
        .source = (uint8_t)source,
    };
    struct ttm_client *client = calloc(1, sizeof(*client));

    if (!client)
        return -ENOMEM;
    if (session->pid > 0) {
        const uint64_t boot_ns = ttm_clock_wall_offset_ns(CLOCK_BOOTTIME);
        ttm_peer_command(session->pid, info.command);
        const uint64_t start_ns = ttm_peer_start_ns(session->pid);
        info.start_ns = start_ns > 0 ? boot_ns + start_ns : 0;
    }
    if (ttm_registry_add_process(server->reg, &info, &client->process) < 0) {
        free(client);
        return -ENOMEM;
    }
    client->process->has_serials = source == TTM_SOURCE_TRACKED;
    client->watch.handle = handle_pidfd;
    client->server = server;
    client->pid = session->pid;
    client->uid = session->uid;
    client->pidfd = pidfd;
    ttm_u64_set_init(&client->recorded_notes, server->reg->seed);
    ttm_record_process(client);
    ttm_list_init(&client->sessions);
    ttm_list_append(&server->clients, &client->link);
    if (pidfd >= 0 &&
        ttm_server_watch(server, server->epoll_fd, pidfd, EPOLLIN, &client->watch) < 0) {
        (void)close(pidfd);
        client->pidfd = -1;
    }
    *ret = client;
    return 0;
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
        const int pidfd = ttm_peer_open_pidfd(session->fd, session->pid, session->accepted_ns);
        const int r = new_client(session, source, pidfd, &client);
        if (r < 0) {
            if (pidfd >= 0)
                (void)close(pidfd);
            return r;
        }
    }
    session->client = client;
    client->session_count++;
    client->process->counters.connections++;
    ttm_list_append(&client->sessions, &session->client_link);
    *ret = client;
    return 0;
}
