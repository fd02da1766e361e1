/* SPDX-License-Identifier: Apache-2.0 */
#include "client/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/queue.h"
#include "base/quiet_thread.h"
#include "wire/attach.h"
#include "wire/frame.h"
#include "wire/hello.h"

#define LOOK_SOON_MS 10      /* at a wish, while somebody is switching */
#define LOOK_AGAIN_MS 200    /* a server that starts is found within 500 ms */
#define SEND_TIMEOUT_MS 2000 /* a server that hangs is left alone */
#define TELL_AT_ONCE 65536   /* bytes: half of what a server reads at once */
#define SEND_BUFFER (1 << 20)
#define ALONE_MS 100 /* how often it looks whether it is the last thread */
#define STACK_BYTES ((size_t)128 * 1024)
#define TOLD_FRAME_MAX                                                                             \
    (TTM_FRAME_HEADER_SIZE + TTM_TOLD_HEAD_SIZE + TTM_TOLD_PER_FRAME * TTM_TOLD_SIZE)

struct talk {
    struct ttm_helper *helper;
    int fd;
    uint32_t epoch_told; /* the server knows of the switch up to here */
    bool has_looked;     /* at the last wish; at first a command may have found no way to nudge */
    struct ttm_queue in;
};

/* Whether the program has left us our connection, and not put a file of its own in its place. */
static bool has_connection(const struct talk *talk)
{
    return ttm_own_fd_is_ours(&talk->helper->connection);
}

/*
 * Waits for 'events' on the connection, or to be woken. Returns revents, 0 when the time is up;
 * POLLHUP when the program has closed the connection.
 */
static int wait_for(struct talk *talk, short events, int timeout_ms)
{
    struct pollfd fds[] = {
        {.fd = talk->fd, .events = events},
        {.fd = talk->helper->nudge_read.fd, .events = POLLIN},
    };
    char bytes[64];

    if (talk->fd >= 0 && !has_connection(talk))
        return POLLHUP;
    if (!ttm_own_fd_is_ours(&talk->helper->nudge_read)) {
        /* The program closes fds, and the connection may be next: it lives on in a poll() of it. */
        fds[1].fd = -1;
        if (timeout_ms < 0 || timeout_ms > LOOK_AGAIN_MS)
            timeout_ms = LOOK_AGAIN_MS;
    }
    /* relaxed: the nudge that comes with it orders what matters. */
    if (atomic_load_explicit(&talk->helper->is_watching_end, memory_order_relaxed) &&
        (timeout_ms < 0 || timeout_ms > ALONE_MS))
        timeout_ms = ALONE_MS;
    if (!talk->has_looked && (timeout_ms < 0 || timeout_ms > LOOK_SOON_MS))
        timeout_ms = LOOK_SOON_MS;
    const int n = poll(fds, 2, timeout_ms);
    if (n > 0 && (fds[1].revents & POLLIN) && ttm_own_fd_is_ours(&talk->helper->nudge_read))
        (void)!read(fds[1].fd, bytes, sizeof(bytes));
    return n > 0 ? fds[0].revents : 0;
}

/*
 * Whether no thread of the program is left. A main thread that has left stays as a zombie until
 * the last thread ends, and is counted: then there are two, it and us.
 */
static bool is_alone(const struct ttm_helper *helper)
{
    char text[1024];

    if (!atomic_load_explicit(&helper->is_watching_end, memory_order_relaxed))
        return false;
    const int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC); /* the main thread's */
    if (fd < 0)
        return false;
    const ssize_t n = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    /* Behind the name in brackets, the first field is the state, the 18th the number of threads. */
    const char *at = strrchr(text, ')');
    const bool has_main_left = at && at[1] == ' ' && at[2] == 'Z';
    for (int field = 2; at && field < 20; field++)
        at = strchr(at + 1, ' ');
    return has_main_left && at && strtol(at, NULL, 10) == 2;
}

static bool is_stopping(const struct talk *talk)
{
    /* relaxed: the nudge that comes with it orders what matters. */
    return atomic_load_explicit(&talk->helper->is_stopping, memory_order_relaxed);
}

static int connect_to(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof(addr.sun_path))
        return -ENAMETOOLONG;
    memcpy(addr.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    fd = ttm_own_fd_move_up(fd);
    if (fd < 0)
        return fd;
    if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0) {
        (void)close(fd);
        return -ENOENT;
    }
    /* As much as the system allows: the server is to have enough to read while we wake up. */
    const int bytes = SEND_BUFFER;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    return fd;
}

static void copy_variable(const char *name, char ret[TTM_HELPER_PATH_SIZE])
{
    const char *text = getenv(name);

    (void)snprintf(ret, TTM_HELPER_PATH_SIZE, "%s", text ? text : "");
}

void ttm_helper_look_at_environment(struct ttm_helper *helper)
{
    const char *run = getenv(TTM_RUN_VARIABLE);
    struct ttm_helper_places places = {.run = run ? strtoull(run, NULL, 16) : 0};

    copy_variable("TTMEM_SOCKET", places.chosen);
    copy_variable("XDG_RUNTIME_DIR", places.runtime);
    pthread_mutex_lock(&helper->places_lock);
    helper->places = places;
    pthread_mutex_unlock(&helper->places_lock);
}

static struct ttm_helper_places known_places(struct ttm_helper *helper)
{
    pthread_mutex_lock(&helper->places_lock);
    const struct ttm_helper_places places = helper->places;
    pthread_mutex_unlock(&helper->places_lock);
    return places;
}

/* The first server of those that commands look for, or a negative errno. */
static int find_server(const struct ttm_helper_places *places)
{
    char path[PATH_MAX], folder[64];
    int fd = -ENOENT;

    if (places->chosen[0])
        return connect_to(places->chosen);
    if (places->runtime[0] == '/') {
        (void)snprintf(path, sizeof(path), "%s/tt-mem.sock", places->runtime);
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

/* Whether the server takes more, within the time that it has; a nudge meanwhile is no answer. */
static bool wait_for_room(struct talk *talk)
{
    const uint64_t until_ns = ttm_clock_monotonic_ns() + SEND_TIMEOUT_MS * TTM_NS_PER_MS;
    int events = 0;

    while (events == 0 && !is_stopping(talk) && ttm_clock_monotonic_ns() < until_ns)
        events = wait_for(talk, POLLOUT, SEND_TIMEOUT_MS);
    return (events & POLLOUT) != 0;
}

static int send_all(struct talk *talk, const uint8_t *bytes, size_t length)
{
    while (length > 0) {
        if (!has_connection(talk))
            return -EBADF;
        const ssize_t n = send(talk->fd, bytes, length, MSG_NOSIGNAL);
        if (n >= 0) {
            bytes += n;
            length -= (size_t)n;
            continue;
        }
        if (errno != EAGAIN && errno != EINTR)
            return -errno;
        if (!wait_for_room(talk))
            return -ETIMEDOUT;
    }
    return 0;
}

/* Hello, and with it the segment and the end of the socket that wakes. What does not fit at once does not fit at all. */
static int introduce(int fd, const struct ttm_producer *producer, uint64_t run)
{
    const struct ttm_hello hello = ttm_hello_own(getpid());
    const int fds[2] = {producer->fd.fd, producer->sleep_fd.fd};
    uint8_t hello_payload[TTM_HELLO_SIZE], attach_payload[TTM_ATTACH_SIZE];
    uint8_t bytes[TTM_HELLO_SIZE + TTM_ATTACH_SIZE + 2 * TTM_FRAME_HEADER_SIZE];
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(fds))];
    } control = {0};
    struct ttm_queue out;

    if (!ttm_own_fd_is_ours(&producer->fd) || !ttm_own_fd_is_ours(&producer->sleep_fd))
        return -EBADF;
    ttm_queue_init(&out);
    ttm_hello_encode(&hello, hello_payload);
    ttm_attach_encode(run, attach_payload);
    int r = ttm_frame_append(&out, TTM_FRAME_HELLO, hello_payload, sizeof(hello_payload));
    if (r == 0)
        r = ttm_frame_append(&out, TTM_FRAME_ATTACH, attach_payload, sizeof(attach_payload));
    if (r == 0) {
        struct iovec iov = {.iov_base = bytes, .iov_len = ttm_queue_length(&out)};
        memcpy(bytes, ttm_queue_front(&out), iov.iov_len);
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
        r = sendmsg(fd, &msg, MSG_NOSIGNAL) == (ssize_t)iov.iov_len ? 0 : -EPIPE;
    }
    ttm_queue_done(&out);
    return r;
}

/* Finds a server and hands over the segment, without ever waiting. */
static void connect_and_introduce(struct ttm_helper *helper)
{
    const struct ttm_helper_places places = known_places(helper);
    const int fd = find_server(&places);

    if (fd < 0)
        return;
    helper->connection = ttm_own_fd_of(fd);
    /* relaxed: a switch that comes later is told of. */
    helper->epoch_introduced = atomic_load_explicit(&helper->tracker->epoch, memory_order_relaxed);
    if (introduce(fd, &helper->tracker->producer, places.run) < 0)
        ttm_own_fd_close(&helper->connection);
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
        .banks = live->banks,
        .region = live->region,
        .kind = live->kind,
        .flags = live->flags,
    };

    ttm_told_encode(&told, at);
}

/* Frames on their way to the server. */
struct telling {
    struct talk *talk;
    uint32_t epoch;
    size_t length;
    uint8_t bytes[TELL_AT_ONCE];
};

/* Sends what has gathered if there is no room for one more frame, or where there will be none. */
static int send_telling(struct telling *telling, bool is_over)
{
    const size_t length = telling->length;

    if (!is_over && sizeof(telling->bytes) - length >= TOLD_FRAME_MAX)
        return 0;
    telling->length = 0;
    return send_all(telling->talk, telling->bytes, length);
}

/* Room for the payload of a frame, which is filled at once. */
static uint8_t *begin_frame(struct telling *telling)
{
    return telling->bytes + telling->length + TTM_FRAME_HEADER_SIZE;
}

static void end_frame(struct telling *telling, uint16_t type, uint32_t length)
{
    ttm_frame_header_encode(type, length, telling->bytes + telling->length);
    telling->length += TTM_FRAME_HEADER_SIZE + length;
}

/* Says about how much there is to tell, so that the server is ready for it. */
static void announce(struct telling *telling, struct ttm_live_table *table)
{
    ttm_told_announce_encode(telling->epoch, ttm_live_table_estimate(table), begin_frame(telling));
    end_frame(telling, TTM_FRAME_TOLD, TTM_TOLD_ANNOUNCE_SIZE);
}

/*
 * Puts the next lives into a frame. Returns whether there may be more. All are read before the first
 * is written: a life that was stored by words a moment ago would be waited for, read by larger pieces.
 */
static bool tell_some(struct telling *telling, struct ttm_live_table *table,
                      struct ttm_live_walk *walk)
{
    uint8_t *payload = begin_frame(telling);
    uint32_t count = 0;
    struct ttm_live lives[TTM_TOLD_PER_FRAME];

    while (count < TTM_TOLD_PER_FRAME && ttm_live_table_next(table, walk, &lives[count]))
        count++;
    for (uint32_t i = 0; i < count; i++)
        tell_one(payload + TTM_TOLD_HEAD_SIZE + (size_t)TTM_TOLD_SIZE * i, &lives[i]);
    ttm_told_head_encode(telling->epoch, count, payload);
    end_frame(telling, TTM_FRAME_TOLD, TTM_TOLD_HEAD_SIZE + count * TTM_TOLD_SIZE);
    return count == TTM_TOLD_PER_FRAME;
}

/* Walks the live table while the program goes on, and tells what it sees. */
static int tell_all(struct talk *talk, uint32_t epoch)
{
    struct ttm_live_table *table = &talk->helper->tracker->table;
    struct telling *telling = malloc(sizeof(*telling));
    struct ttm_live_walk walk = {0};
    int r = 0;

    if (!telling)
        return -ENOMEM;
    telling->talk = talk;
    telling->epoch = epoch;
    telling->length = 0;
    announce(telling, table);
    while (r == 0 && tell_some(telling, table, &walk))
        r = send_telling(telling, false);
    if (r == 0)
        r = send_telling(telling, false);
    if (r == 0) {
        /* An end that the walk has seen is in a ring by then: it is heard, and counts. */
        (void)ttm_tracker_settle(talk->helper->tracker);
        ttm_told_head_encode(epoch, 0, begin_frame(telling));
        end_frame(telling, TTM_FRAME_TOLD_END, TTM_TOLD_HEAD_SIZE);
        r = send_telling(telling, true);
    }
    free(telling);
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
    if (!has_connection(talk))
        return -EBADF;
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

/* Tells the server of a switch since the last time. */
static int tell_switch(struct talk *talk)
{
    const uint32_t epoch =
        atomic_load_explicit(&talk->helper->tracker->epoch, memory_order_acquire);
    struct ttm_queue out;
    uint8_t buf[TTM_TOLD_HEAD_SIZE];
    int r = 0;

    if (epoch == talk->epoch_told)
        return 0;
    ttm_queue_init(&out);
    if ((epoch - talk->epoch_told) % 2 == 0 && (epoch & 1) != 0) {
        ttm_told_head_encode(0, 0, buf); /* off and on again: what was before is not known now */
        r = ttm_frame_append(&out, TTM_FRAME_SWITCHED, buf, sizeof(buf));
    }
    ttm_told_head_encode(epoch & 1, 0, buf);
    if (r == 0)
        r = ttm_frame_append(&out, TTM_FRAME_SWITCHED, buf, sizeof(buf));
    if (r == 0)
        r = send_all(talk, ttm_queue_front(&out), ttm_queue_length(&out));
    ttm_queue_done(&out);
    talk->epoch_told = epoch;
    return r;
}

/* Whether the thread has to go. */
static bool is_over(struct talk *talk)
{
    return is_stopping(talk) || is_alone(talk->helper);
}

static bool is_off(const struct talk *talk)
{
    /* relaxed: who switches it on later takes the lock that may_leave() takes. */
    return (atomic_load_explicit(&talk->helper->tracker->epoch, memory_order_relaxed) & 1) == 0;
}

/* Leaves when tracking is off, and the server, if there is one, was told so. Returns whether it did. */
static bool has_left(struct talk *talk)
{
    const bool is_known = talk->fd < 0 || (talk->epoch_told & 1) == 0;

    return is_off(talk) && is_known && !is_stopping(talk) && talk->helper->may_leave();
}

/* One server, to which we have introduced ourselves, until goodbye. Returns whether we have left. */
static bool talk_to_server(struct talk *talk)
{
    /* A server takes those who attach for being on. What it held of an earlier spell ends with the telling. */
    talk->epoch_told = talk->helper->epoch_introduced | 1;
    int r = tell_switch(talk);
    while (r == 0 && !is_over(talk)) {
        if (has_left(talk))
            return true;
        /* Whoever kept us from leaving may not wake us. */
        if (wait_for(talk, POLLIN, is_off(talk) ? LOOK_AGAIN_MS : -1) &
            (POLLIN | POLLHUP | POLLERR))
            r = take_input(talk);
        if (!is_stopping(talk))
            talk->has_looked = talk->helper->on_wish();
        if (r == 0)
            r = tell_switch(talk);
    }
    return false;
}

/* One server after another. Returns whether we have left, and not been stopped. */
static bool talk_until_over(struct talk *talk)
{
    struct ttm_helper *helper = talk->helper;

    while (!is_over(talk)) {
        if (helper->connection.fd < 0)
            connect_and_introduce(helper);
        if (helper->connection.fd >= 0) {
            talk->fd = helper->connection.fd;
            if (talk_to_server(talk))
                return true;
            ttm_own_fd_close(&helper->connection);
            talk->fd = -1;
            ttm_queue_done(&talk->in);
        }
        if (!is_over(talk))
            (void)wait_for(talk, 0, LOOK_AGAIN_MS);
        if (!is_stopping(talk))
            talk->has_looked = helper->on_wish();
        if (has_left(talk))
            return true;
    }
    ttm_own_fd_close(&helper->connection);
    return false;
}

static void *run(void *arg)
{
    struct talk talk = {.helper = arg, .fd = -1};

    (void)unshare(CLONE_FS); /* the way to a server stays when the program goes into a chroot */
    ttm_queue_init(&talk.in);
    (void)talk_until_over(&talk);
    ttm_queue_done(&talk.in);
    return NULL;
}

static int make_pipe(struct ttm_helper *helper)
{
    int fds[2];

    helper->nudge_read = helper->nudge_write = helper->connection = TTM_OWN_FD_NONE;
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    const int r = ttm_own_fd_pair_move_up(fds);
    if (r < 0)
        return r;
    helper->nudge_read = ttm_own_fd_of(fds[0]);
    helper->nudge_write = ttm_own_fd_of(fds[1]);
    /* Published before is_wanted is looked at again: see ttm_control_switch(). */
    atomic_store_explicit(&helper->control->nudge_inode, helper->nudge_read.inode,
                          memory_order_relaxed);
    atomic_store_explicit(&helper->control->nudge_fd, fds[0], memory_order_seq_cst);
    return 0;
}

static void close_pipe(struct ttm_helper *helper)
{
    atomic_store_explicit(&helper->control->nudge_fd, -1, memory_order_seq_cst);
    ttm_own_fd_close(&helper->nudge_read);
    ttm_own_fd_close(&helper->nudge_write);
}

static int start_thread(struct ttm_helper *helper)
{
    pthread_attr_t attr;

    if (pthread_attr_init(&attr) != 0)
        return -ENOMEM;
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
    const int r = ttm_quiet_thread_start(&helper->thread, &attr, run, helper);
    (void)pthread_attr_destroy(&attr);
    if (r == 0)
        (void)pthread_setname_np(helper->thread, "tt-mem");
    return r;
}

int ttm_helper_start(struct ttm_helper *helper, struct ttm_tracker *tracker,
                     struct ttm_control *control, bool (*on_wish)(void), bool (*may_leave)(void))
{
    helper->tracker = tracker;
    helper->control = control;
    helper->on_wish = on_wish;
    helper->may_leave = may_leave;
    atomic_init(&helper->is_stopping, false);
    atomic_init(&helper->is_watching_end, false);
    (void)pthread_mutex_init(&helper->places_lock, NULL); /* anew: in a child it may be locked */
    ttm_helper_look_at_environment(helper);
    int r = make_pipe(helper);
    if (r < 0)
        return r;
    /* Here and not in the thread: a program that ends at once is heard to the end all the same. */
    connect_and_introduce(helper);
    r = start_thread(helper);
    if (r < 0) {
        ttm_own_fd_close(&helper->connection);
        close_pipe(helper);
    }
    return r;
}

void ttm_helper_introduce(struct ttm_helper *helper, struct ttm_tracker *tracker)
{
    helper->tracker = tracker;
    helper->nudge_read = helper->nudge_write = helper->connection = TTM_OWN_FD_NONE;
    (void)pthread_mutex_init(&helper->places_lock, NULL);
    ttm_helper_look_at_environment(helper);
    connect_and_introduce(helper);
}

void ttm_helper_nudge(const struct ttm_helper *helper)
{
    if (ttm_own_fd_is_ours(&helper->nudge_write))
        (void)!write(helper->nudge_write.fd, "", 1);
}

void ttm_helper_stop(struct ttm_helper *helper)
{
    atomic_store_explicit(&helper->is_stopping, true, memory_order_relaxed); /* see is_stopping() */
    ttm_helper_nudge(helper);
    (void)pthread_join(helper->thread, NULL);
    close_pipe(helper);
}

void ttm_helper_leave(struct ttm_helper *helper)
{
    (void)pthread_detach(helper->thread);
    ttm_own_fd_close(&helper->connection);
    close_pipe(helper);
}

void ttm_helper_forget(struct ttm_helper *helper)
{
    ttm_own_fd_close(&helper->nudge_read);
    ttm_own_fd_close(&helper->nudge_write);
    ttm_own_fd_close(&helper->connection);
}

void ttm_helper_watch_end(struct ttm_helper *helper)
{
    atomic_store_explicit(&helper->is_watching_end, true,
                          memory_order_relaxed); /* see wait_for() */
    ttm_helper_nudge(helper);
}
