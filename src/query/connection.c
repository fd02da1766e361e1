/* SPDX-License-Identifier: Apache-2.0 */
#include "query/connection.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

#define HELLO_TIMEOUT_MS 5000
#define READ_SIZE 65536

static int connect_to(const char *path, int flags)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof(addr.sun_path))
        return -ENAMETOOLONG;
    memcpy(addr.sun_path, path, strlen(path) + 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0) {
        const int r = -errno;
        (void)close(fd);
        return r;
    }
    return fd;
}

/* A server speaks ASCII to people; whoever else may listen at that path is kept off the terminal. */
static void make_harmless(char *text)
{
    for (; *text; text++) {
        if (*text < 0x20 || *text >= 0x7f)
            *text = '?';
    }
}

static int say_hello(struct ttm_connection *conn)
{
    const struct ttm_hello own = ttm_hello_own(getpid());
    uint8_t buf[TTM_HELLO_SIZE];

    ttm_hello_encode(&own, buf);
    return ttm_connection_send(conn, TTM_FRAME_HELLO, buf, sizeof(buf));
}

/* Returns 1, 0 when the time is up, or a negative errno. */
static int hear_hello(struct ttm_connection *conn, int timeout_ms)
{
    struct ttm_frame frame;
    int r = ttm_connection_receive(conn, timeout_ms, &frame);

    if (r <= 0)
        return r;
    if (frame.type != TTM_FRAME_HELLO ||
        ttm_hello_decode(frame.payload, frame.length, &conn->server) < 0)
        return -EPROTO;
    make_harmless(conn->server.software);
    r = ttm_hello_check(&conn->server);
    return r < 0 ? r : 1;
}

static int begin(struct ttm_connection *conn, const char *path, int flags)
{
    *conn = (struct ttm_connection){.fd = -1};
    ttm_queue_init(&conn->in);
    const int fd = connect_to(path, flags);
    if (fd < 0)
        return fd;
    conn->fd = fd;
    memcpy(conn->path, path, strlen(path) + 1);
    return say_hello(conn);
}

int ttm_connection_open(struct ttm_connection *conn, const char *path)
{
    int r = begin(conn, path, 0);

    if (r < 0)
        return r;
    r = hear_hello(conn, HELLO_TIMEOUT_MS);
    return r < 0 ? r : r == 0 ? -ETIMEDOUT : 0;
}

int ttm_connection_begin(struct ttm_connection *conn, const char *path)
{
    return begin(conn, path, SOCK_NONBLOCK);
}

int ttm_connection_greeted(struct ttm_connection *conn)
{
    return hear_hello(conn, 0);
}

void ttm_connection_close(struct ttm_connection *conn)
{
    if (conn->fd >= 0)
        (void)close(conn->fd);
    conn->fd = -1;
    ttm_queue_done(&conn->in);
}

int ttm_connection_send(struct ttm_connection *conn, uint16_t type, const void *payload,
                        uint32_t length)
{
    struct ttm_queue out;
    int r;

    ttm_queue_init(&out);
    r = ttm_frame_append(&out, type, payload, length);
    while (r == 0 && ttm_queue_length(&out) > 0) {
        const ssize_t n =
            send(conn->fd, ttm_queue_front(&out), ttm_queue_length(&out), MSG_NOSIGNAL);
        if (n >= 0)
            ttm_queue_consume(&out, (size_t)n);
        else if (errno != EINTR)
            r = -errno;
    }
    ttm_queue_done(&out);
    return r;
}

/* Waits for more bytes. Returns 1, 0 when the time is up, or a negative errno. */
static int read_more(struct ttm_connection *conn, int timeout_ms)
{
    struct pollfd p = {.fd = conn->fd, .events = POLLIN};
    const int ready = poll(&p, 1, timeout_ms);

    if (ready <= 0)
        return ready < 0 ? -errno : 0;
    uint8_t *room = ttm_queue_reserve(&conn->in, READ_SIZE);
    if (!room)
        return -ENOMEM;
    const ssize_t n = recv(conn->fd, room, READ_SIZE, 0);
    if (n < 0)
        return errno == EINTR || errno == EAGAIN ? 1 : errno == ECONNRESET ? -EPIPE : -errno;
    if (n == 0)
        return -EPIPE;
    ttm_queue_commit(&conn->in, (size_t)n);
    return 1;
}

static int take_error(struct ttm_connection *conn, const struct ttm_frame *frame)
{
    size_t n = frame->length;

    if (n >= sizeof(conn->why))
        n = sizeof(conn->why) - 1;
    memcpy(conn->why, frame->payload, n);
    conn->why[n] = '\0';
    make_harmless(conn->why);
    return -EREMOTEIO;
}

int ttm_connection_receive(struct ttm_connection *conn, int timeout_ms, struct ttm_frame *ret)
{
    const uint64_t start_ns = ttm_clock_monotonic_ns();

    ttm_queue_consume(&conn->in, conn->taken);
    conn->taken = 0;
    while (true) {
        if (ttm_queue_length(&conn->in) > 0) {
            const long n = ttm_frame_parse(ttm_queue_front(&conn->in), ttm_queue_length(&conn->in),
                                           TTM_FRAME_ANSWER_MAX, ret);
            if (n < 0)
                return (int)n;
            conn->taken = (size_t)n;
            if (n > 0)
                return ret->type == TTM_FRAME_ERROR ? take_error(conn, ret) : 1;
        }
        int left_ms = timeout_ms;
        if (timeout_ms >= 0) {
            const uint64_t spent_ms = (ttm_clock_monotonic_ns() - start_ns) / TTM_NS_PER_MS;
            left_ms = spent_ms < (uint64_t)timeout_ms ? timeout_ms - (int)spent_ms : 0;
        }
        const int r = read_more(conn, left_ms);
        if (r <= 0)
            return r;
    }
}
