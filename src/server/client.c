/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that reports. Who it is comes from the kernel (SO_PEERCRED and a
 * pidfd), never from a message. It lives until its pidfd says that it has ended,
 * however often it connects; where no pidfd can be had (it is outside our pid
 * namespace, or had ended before we looked) until its last connection closes.
 */
#include "server/state.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5; older headers lack it */
#endif

/* A pidfd of the process behind the connection, or -1. */
static int open_pidfd(const struct ttm_session *session)
{
    int fd = -1;
    socklen_t size = sizeof(fd);

    if (session->pid <= 0)
        return -1;
    if (getsockopt(session->fd, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0)
        return fd;
    if (errno !=
        ENOPROTOOPT) /* the kernel knows the option, so it knows that the process is gone */
        return -1;
    return (int)syscall(SYS_pidfd_open, session->pid, 0);
}

static bool has_ended(int pidfd)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

static size_t read_proc(pid_t pid, const char *name, char *buf, size_t size)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    const ssize_t n = read(fd, buf, size - 1);
    (void)close(fd);
    buf[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

/* The command line with spaces between its words, cut to fit; the bare name when there is none. */
static void read_command(pid_t pid, char ret[TTM_STRING_MAX + 1])
{
    size_t n = read_proc(pid, "cmdline", ret, TTM_STRING_MAX + 1);

    while (n > 0 && ret[n - 1] == '\0')
        n--;
    for (size_t i = 0; i < n; i++) {
        if (ret[i] == '\0')
            ret[i] = ' ';
    }
    if (n == 0) {
        n = read_proc(pid, "comm", ret, TTM_STRING_MAX + 1);
        if (n > 0 && ret[n - 1] == '\n')
            ret[n - 1] = '\0';
    }
}

/* When the process started, by the wall clock; 0 when it cannot be known. */
static uint64_t read_start_ns(pid_t pid)
{
    char stat[1024];
    unsigned long long ticks;

    if (read_proc(pid, "stat", stat, sizeof(stat)) == 0)
        return 0;
    /* Field 22, counted after the name, which may itself hold spaces and brackets. */
    const char *p = strrchr(stat, ')');
    for (int field = 2; p && field < 22; field++)
        p = strchr(p + 1, ' ');
    if (!p || sscanf(p, " %llu", &ticks) != 1)
        return 0;
    const uint64_t since_boot = ticks * (TTM_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
    return ttm_clock_wall_ns() - ttm_clock_read_ns(CLOCK_BOOTTIME) + since_boot;
}

static void ignore_event(struct ttm_watch *watch, uint32_t events)
{
    (void)watch;
    (void)events;
}

static void end_client(struct ttm_client *client)
{
    struct ttm_server *server = client->server;
    struct ttm_departure departure;

    ttm_registry_end_process(server->reg, client->process, &departure);
    if (!ttm_list_is_empty(&server->tails))
        ttm_tail_process_end(server, client, &departure);
    if (client->pidfd >= 0)
        (void)close(client->pidfd);
    client->pidfd = -1;
    client->watch.handle = ignore_event; /* one for its pidfd may be under way */
    ttm_list_remove(&client->link);
    ttm_list_append(&server->dead_clients, &client->link);
}

void ttm_client_free(struct ttm_client *client)
{
    ttm_list_remove(&client->link);
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
    if (client->session_count == 0 && (client->is_leaving || client->pidfd < 0))
        end_client(client);
}

static struct ttm_client *find_client(struct ttm_server *server, pid_t pid)
{
    TTM_LIST_FOR_EACH(pos, &server->clients) {
        struct ttm_client *client = TTM_CONTAINER_OF(pos, struct ttm_client, link);
        if (client->pid == pid && client->pidfd >= 0 && !client->is_leaving)
            return client;
    }
    return NULL;
}

static int new_client(struct ttm_session *session, int pidfd, struct ttm_client **ret)
{
    struct ttm_server *server = session->server;
    struct ttm_process_info info = {
        .pid = session->pid,
        .uid = session->uid,
        .source = TTM_SOURCE_ORIGINAL,
    };
    struct ttm_client *client = calloc(1, sizeof(*client));

    if (!client)
        return -ENOMEM;
    if (session->pid > 0) {
        read_command(session->pid, info.command);
        info.start_ns = read_start_ns(session->pid);
    }
    if (ttm_registry_add_process(server->reg, &info, &client->process) < 0) {
        free(client);
        return -ENOMEM;
    }
    client->watch.handle = handle_pidfd;
    client->server = server;
    client->pid = session->pid;
    client->uid = session->uid;
    client->pidfd = pidfd;
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

int ttm_client_of(struct ttm_session *session, struct ttm_client **ret)
{
    if (session->client) {
        *ret = session->client;
        return 0;
    }
    struct ttm_client *client =
        session->pid > 0 ? find_client(session->server, session->pid) : NULL;
    if (client && has_ended(client->pidfd)) { /* its number may have been given to another */
        leave(client);
        client = NULL;
    }
    if (!client) {
        const int pidfd = open_pidfd(session);
        const int r = new_client(session, pidfd, &client);
        if (r < 0) {
            if (pidfd >= 0)
                (void)close(pidfd);
            return r;
        }
    }
    session->client = client;
    client->session_count++;
    ttm_list_append(&client->sessions, &session->client_link);
    *ret = client;
    return 0;
}
