/* SPDX-License-Identifier: Apache-2.0 */
#include "client/helper.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/queue.h"
#include "wire/attach.h"
#include "wire/frame.h"
#include "wire/hello.h"

#define LOOK_AGAIN_MS 200    /* a server that starts is found within 500 ms */
#define SEND_TIMEOUT_MS 2000 /* a server that hangs is left alone */
#define STACK_BYTES ((size_t)128 * 1024)

struct talk {
    struct ttm_helper *helper;
    int fd;
    struct ttm_queue in;
};

/* Waits for 'events' on the connection, or to be woken. Returns revents, 0 when the time is up. */
static int wait_for(struct talk *talk, short events, int timeout_ms)
{
    struct pollfd fds[] = {
        {.fd = talk->fd, .events = events},
        {.fd = talk->helper->tracker->helper_fd, .events = POLLIN},
    };
    uint64_t count;

    if (poll(fds, 2, timeout_ms) <= 0)
        return 0;
    if (fds[1].revents)
        (void)!read(fds[1].fd, &count, sizeof(count));
    return fds[0].revents;
}

static bool is_stopping(const struct talk *talk)
{
    /* relaxed: the eventfd that comes with it orders what matters. */
    return atomic_load_explicit(&talk->helper->is_stopping, memory_order_relaxed);
}

static int connect_to(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof(addr.sun_path))
        return -ENAMETOOLONG;
    memcpy(addr.sun_path, path, strlen(path) + 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0) {
        (void)close(fd);
        return -ENOENT;
    }
    return fd;
}

/* The first server of those that commands look for, or a negative errno. */
static int find_server(void)
{
    const char *chosen = getenv("TTMEM_SOCKET");
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char path[PATH_MAX], folder[64];
    int fd = -ENOENT;

    if (chosen && chosen[0])
        return connect_to(chosen);
    if (runtime && runtime[0] == '/') {
        (void)snprintf(path, sizeof(path), "%s/tt-mem.sock", runtime);
        fd = connect_to(path);
    }
    if (fd < 0)
        fd = connect_to("/run/tt-mem/tt-mem.sock");
    (void)snprintf(folder, sizeof(folder), "/tmp/tt-mem-%u", (unsigned)geteuid());
    struct stat st; /* anybody can make a folder in /tmp that has our name */
    if (fd < 0 && lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
        (st.st_mode & 022) == 0) {
        (void)snprintf(path, sizeof(path), "%s/tt-mem.sock", folder);
        fd = connect_to(path);
    }
    return fd;
}

static int send_all(struct talk *talk, struct ttm_queue *out)
{
    while (ttm_queue_length(out) > 0) {
        const ssize_t n = send(talk->fd, ttm_queue_front(out), ttm_queue_length(out), MSG_NOSIGNAL);
        if (n >= 0) {
            ttm_queue_consume(out, (size_t)n);
            continue;
        }
        if (errno != EAGAIN && errno != EINTR)
            return -errno;
        if (is_stopping(talk) || !(wait_for(talk, POLLOUT, SEND_TIMEOUT_MS) & POLLOUT))
            return -ETIMEDOUT;
    }
    return 0;
}

static int say_hello(struct talk *talk)
{
    const struct ttm_hello hello = ttm_hello_own(getpid());
    uint8_t buf[TTM_HELLO_SIZE];
    struct ttm_queue out;

    ttm_queue_init(&out);
    ttm_hello_encode(&hello, buf);
    int r = ttm_frame_append(&out, TTM_FRAME_HELLO, buf, sizeof(buf));
    if (r == 0)
        r = send_all(talk, &out);
    ttm_queue_done(&out);
    return r;
}

/* The segment and its eventfd go with the bytes of the frame. */
static int attach(struct talk *talk)
{
    const struct ttm_producer *producer = &talk->helper->tracker->producer;
    const int fds[2] = {producer->fd, producer->wake_fd};
    uint8_t frame[TTM_FRAME_HEADER_SIZE] = {TTM_FRAME_ATTACH};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(fds))];
    } control = {0};
    struct iovec iov = {.iov_base = frame, .iov_len = sizeof(frame)};
    struct msghdr msg = {
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes),
    };
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(fds));
    memcpy(CMSG_DATA(c), fds, sizeof(fds));
    return sendmsg(talk->fd, &msg, MSG_NOSIGNAL) == sizeof(frame) ? 0 : -EPIPE;
}

static void tell_one(uint8_t *at, const struct ttm_live *live)
{
    const struct ttm_told told = {
        .serial = live->serial,
        .id = live->id,
        .address = live->address,
        .bytes = live->bytes,
        .footprint_bytes = live->footprint_bytes,
        .birth_ns = live->birth_ns,
        .devices = live->devices,
        .origin = live->origin,
        .allocator = live->allocator,
        .region = live->region,
        .kind = live->kind,
        .flags = live->flags,
    };

    ttm_told_encode(&told, at);
}

/* Walks the live table while the program goes on, and tells what it sees. */
static int tell_all(struct talk *talk, uint32_t epoch)
{
    const struct ttm_live_table *table = &talk->helper->tracker->table;
    struct ttm_queue out;
    uint32_t at = 0;
    bool has_more = true;
    int r = 0;

    ttm_queue_init(&out);
    while (r == 0 && has_more) {
        uint8_t buf[TTM_TOLD_HEAD_SIZE + TTM_TOLD_PER_FRAME * TTM_TOLD_SIZE];
        uint32_t count = 0;
        struct ttm_live live;

        while (count < TTM_TOLD_PER_FRAME && (has_more = ttm_live_table_next(table, &at, &live)))
            tell_one(buf + TTM_TOLD_HEAD_SIZE + (size_t)TTM_TOLD_SIZE * count++, &live);
        ttm_told_head_encode(epoch, count, buf);
        r = ttm_frame_append(&out, TTM_FRAME_TOLD, buf, TTM_TOLD_HEAD_SIZE + count * TTM_TOLD_SIZE);
        if (r == 0 && !has_more) {
            ttm_told_head_encode(epoch, 0, buf);
            r = ttm_frame_append(&out, TTM_FRAME_TOLD_END, buf, TTM_TOLD_HEAD_SIZE);
        }
        if (r == 0)
            r = send_all(talk, &out);
    }
    ttm_queue_done(&out);
    return r;
}

static int take_frame(struct talk *talk, const struct ttm_frame *frame)
{
    uint32_t epoch;

    if (frame->type == TTM_FRAME_ERROR)
        return -EPROTO;
    if (frame->type != TTM_FRAME_TELL)
        return 0;
    if (ttm_told_head_decode(frame->payload, frame->length, &epoch) < 0)
        return -EPROTO;
    return tell_all(talk, epoch);
}

static int take_input(struct talk *talk)
{
    uint8_t *room = ttm_queue_reserve(&talk->in, 4096);
    struct ttm_frame frame;
    long used = 1;

    if (!room)
        return -ENOMEM;
    const ssize_t n = recv(talk->fd, room, 4096, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (n == 0)
        return -EPIPE;
    ttm_queue_commit(&talk->in, (size_t)n);
    while (used > 0 && ttm_queue_length(&talk->in) > 0) {
        used = ttm_frame_parse(ttm_queue_front(&talk->in), ttm_queue_length(&talk->in),
                               TTM_FRAME_REQUEST_MAX, &frame);
        if (used < 0)
            return (int)used;
        const int r = used > 0 ? take_frame(talk, &frame) : 0;
        if (r < 0)
            return r;
        ttm_queue_consume(&talk->in, (size_t)used);
    }
    return 0;
}

/* One server, from hello to goodbye. */
static void talk_to_server(struct talk *talk)
{
    int r = say_hello(talk);

    if (r == 0)
        r = attach(talk);
    while (r == 0 && !is_stopping(talk)) {
        if (wait_for(talk, POLLIN, -1) & (POLLIN | POLLHUP | POLLERR))
            r = take_input(talk);
    }
}

static void *run(void *arg)
{
    struct talk talk = {.helper = arg, .fd = -1};

    ttm_queue_init(&talk.in);
    while (!is_stopping(&talk)) {
        talk.fd = find_server();
        if (talk.fd >= 0) {
            talk_to_server(&talk);
            (void)close(talk.fd);
            talk.fd = -1;
            ttm_queue_done(&talk.in);
        }
        if (!is_stopping(&talk))
            (void)wait_for(&talk, 0, LOOK_AGAIN_MS);
    }
    ttm_queue_done(&talk.in);
    return NULL;
}

int ttm_helper_start(struct ttm_helper *helper, struct ttm_tracker *tracker)
{
    pthread_attr_t attr;
    sigset_t all, before;

    helper->tracker = tracker;
    atomic_init(&helper->is_stopping, false);
    if (pthread_attr_init(&attr) != 0)
        return -ENOMEM;
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all); /* the program's signals are for the program's threads */
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int r = pthread_create(&helper->thread, &attr, run, helper);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    if (r == 0)
        (void)pthread_setname_np(helper->thread, "tt-mem");
    return -r;
}

void ttm_helper_stop(struct ttm_helper *helper)
{
    const uint64_t one = 1;

    atomic_store_explicit(&helper->is_stopping, true, memory_order_relaxed); /* see is_stopping() */
    (void)!write(helper->tracker->helper_fd, &one, sizeof(one));
    (void)pthread_join(helper->thread, NULL);
}
