/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attacks by file descriptors that are sent along with messages: as many as the kernel lets through,
 * those whose last close() takes long or never returns, and those that are no segment and no socket.
 */
#include "hostile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "wire/frame.h"
#include "wire/original.h"

#define FDS_PER_MESSAGE 253 /* SCM_MAX_FD of the kernel */
#define CONNECTIONS 200     /* of one process */
#define LINGER_S 3600
#define LINGERING 64 /* connections of one process whose close() waits */
#define BIG_FILE_BYTES (1ll << 30)
#define AHEAD_BYTES (64u << 10)
#define UNKNOWN_FRAME 0x7000 /* a type that the server passes over */

/* A message that says nothing: a frame of an unknown type, or the free of nothing. Returns its size. */
static size_t make_empty(enum hostile_socket which, uint8_t buf[TTM_ORIGINAL_SIZE_MAX])
{
    const struct ttm_original_message message = {.type = TTM_ORIGINAL_FREE};

    if (which == HOSTILE_NATIVE) {
        ttm_frame_header_encode(UNKNOWN_FRAME, 0, buf);
        return TTM_FRAME_HEADER_SIZE;
    }
    ttm_original_encode(&message, TTM_ORIGINAL_V144, buf);
    return TTM_ORIGINAL_V144;
}

/* A message that nothing claims the fds of. Returns as hostile_send(). */
static bool send_unclaimed(int fd, enum hostile_socket which, const int *fds, size_t count)
{
    uint8_t bytes[TTM_ORIGINAL_SIZE_MAX] = {0};
    const size_t length = make_empty(which, bytes);

    return hostile_send(fd, bytes, length, fds, count);
}

/* So much to read that we have closed our fds before the server comes to those that follow. */
static void keep_busy(int fd, enum hostile_socket which)
{
    uint8_t bytes[AHEAD_BYTES + TTM_ORIGINAL_SIZE_MAX];
    size_t length = 0;

    while (length < AHEAD_BYTES)
        length += make_empty(which, bytes + length);
    (void)hostile_send(fd, bytes, length, NULL, 0);
}

static int connect_to(enum hostile_socket which)
{
    return which == HOSTILE_NATIVE ? hostile_greet() : hostile_connect(which);
}

static void send_many(unsigned number)
{
    int connections[CONNECTIONS], fds[FDS_PER_MESSAGE];
    const int pipe_end = eventfd(0, EFD_CLOEXEC);

    for (int i = 0; i < FDS_PER_MESSAGE; i++)
        fds[i] = pipe_end;
    (void)hostile_raise_fd_limit();
    for (unsigned i = 0; i < CONNECTIONS; i++)
        connections[i] = -1;
    for (uint64_t round = 0;; round++) {
        const unsigned i = (unsigned)(round % CONNECTIONS);
        const enum hostile_socket which = (i + number) % 2 ? HOSTILE_LEGACY : HOSTILE_NATIVE;
        if (connections[i] < 0)
            connections[i] = connect_to(which);
        if (send_unclaimed(connections[i], which, fds, FDS_PER_MESSAGE)) {
            hostile_count();
        } else if (errno == ETOOMANYREFS) { /* so many are on their way already */
            hostile_sleep_ms(1);
        } else {
            (void)close(connections[i]);
            connections[i] = -1;
        }
    }
}

/* ---- a TCP connection whose close() waits for an hour ---- */

/* With data that its other end, 'ret_other', never takes. Returns -1 where there is no TCP. */
static int open_lingering(int *ret_other)
{
    const struct linger linger = {.l_onoff = 1, .l_linger = LINGER_S};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    static char bytes[1 << 16];
    socklen_t size = sizeof(address);
    const int little = 4096;

    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof(little));
    if (bind(listener, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(listener, 1) < 0 || getsockname(listener, (struct sockaddr *)&address, &size) < 0 ||
        connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) < 0) {
        (void)close(fd);
        (void)close(listener);
        return -1;
    }
    *ret_other = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    (void)close(listener);
    while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        ;
    return fd;
}

/*
 * In a process that ends: should the server be faster, the last close() is that of a process that
 * ends, and does not wait.
 */
static void send_one_lingering(unsigned round)
{
    const enum hostile_socket which = round % 3 == 2 ? HOSTILE_LEGACY : HOSTILE_NATIVE;
    const size_t before = round % 3 == 0 ? 0 : round % FDS_PER_MESSAGE;
    const int other_fd = eventfd(0, EFD_CLOEXEC);
    int fds[FDS_PER_MESSAGE], other;

    for (int i = 0; i < FDS_PER_MESSAGE; i++)
        fds[i] = other_fd;
    fds[before] = open_lingering(&other);
    if (fds[before] < 0)
        hostile_die("cannot make a TCP connection");
    /*
     * Its other end stays open in a process of its own, or there were nothing to wait for. That one
     * outlives its parent, and ends with the group.
     */
    if (fork() == 0) {
        (void)close(fds[before]);
        for (;;)
            pause();
    }
    const int connection = connect_to(which);
    keep_busy(connection, which);
    (void)send_unclaimed(connection, which, fds, before + 1);
    hostile_count();
}

static void send_lingering(unsigned number)
{
    for (unsigned round = number; round < LINGERING; round++) {
        if (hostile_fork() == 0) {
            send_one_lingering(round);
            _exit(0);
        }
        hostile_sleep_ms(100);
    }
    for (;;)
        pause();
}

/* ---- a file of 1 GiB whose memory is given back by the last close() ---- */

static void send_big_files(unsigned number)
{
    for (unsigned round = number;; round++) {
        const enum hostile_socket which = round % 3 == 2 ? HOSTILE_LEGACY : HOSTILE_NATIVE;
        const int fd = memfd_create("hostile", MFD_CLOEXEC);
        if (fd < 0 || fallocate(fd, 0, 0, BIG_FILE_BYTES) < 0)
            hostile_die("cannot make a large file");
        const int connection = connect_to(which);
        keep_busy(connection, which);
        (void)send_unclaimed(connection, which, &fd, 1);
        (void)close(fd);
        /* The next one is made when the server has taken this one: there is one at a time. */
        int waiting = 1;
        while (ioctl(connection, SIOCOUTQ, &waiting) == 0 && waiting > 0)
            hostile_sleep_ms(1);
        hostile_sleep_ms(200);
        (void)close(connection);
        hostile_count();
    }
}

/* ---- files that are no segment and no socket ---- */

#define ODD_FILES 10

/* Of each kind one; what cannot be had is an eventfd. */
static void open_odd_files(int fds[ODD_FILES])
{
    int pipe_fds[2] = {-1, -1}, pair[2] = {-1, -1};

    (void)!pipe2(pipe_fds, O_CLOEXEC);
    (void)socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
    fds[0] = pipe_fds[0];
    fds[1] = pipe_fds[1];
    fds[2] = epoll_create1(EPOLL_CLOEXEC);
    fds[3] = eventfd(0, EFD_CLOEXEC);
    fds[4] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fds[5] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)bind(fds[5], &(struct sockaddr){.sa_family = AF_UNIX}, sizeof(sa_family_t));
    (void)listen(fds[5], 1);
    fds[6] = pair[0];
    fds[7] = open("/dev/zero", O_RDWR | O_CLOEXEC);
    fds[8] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    fds[9] = open("/", O_PATH | O_CLOEXEC);
    for (int i = 0; i < ODD_FILES; i++) {
        if (fds[i] < 0)
            fds[i] = eventfd(0, EFD_CLOEXEC);
    }
    const struct itimerspec often = {.it_interval.tv_nsec = 1000, .it_value.tv_nsec = 1000};
    (void)timerfd_settime(fds[8], 0, &often, NULL);
    if (pair[1] >= 0)
        (void)close(pair[1]); /* the other one is readable for ever: it is at its end */
}

/* As a segment, and with a segment that is good as what wakes. */
static void attach_odd_files(unsigned number)
{
    static struct hostile_segment segment;
    int fds[ODD_FILES];

    hostile_segment_new(&segment);
    open_odd_files(fds);
    for (uint64_t round = number;; round++) {
        const int fd = hostile_greet();
        const int odd = round % 11 == 10 ? fd : fds[round % 11]; /* or its own connection */
        if (round % 2)
            (void)hostile_attach(fd, odd, segment.producer.sleep_fd.fd);
        else
            (void)hostile_attach(fd, segment.producer.fd.fd, odd);
        /* A pair of fds whose frame never comes. */
        (void)hostile_send(fd, "\x40", 1, (const int[]){odd, odd}, 2);
        if (round % 16 == 0)
            hostile_sleep_ms(1);
        (void)close(fd);
        hostile_count();
    }
}

/* ---- files of a file system that does not answer ---- */

/* As each part of a message, the last reference being the message. One for each connection. */
static void send_stuck_file(unsigned number)
{
    static struct hostile_segment segment;
    char name[32];

    (void)snprintf(name, sizeof(name), "%s-%u", number % 2 ? "stat" : "flush", number);
    const int stuck = hostile_fuse_open(name, O_RDONLY);
    if (stuck < 0)
        hostile_die("cannot open a FUSE file");
    hostile_segment_new(&segment);
    const enum hostile_socket which = number % 5 == 4 ? HOSTILE_LEGACY : HOSTILE_NATIVE;
    const int fd = connect_to(which);
    if (number % 5 < 2)
        (void)hostile_attach(fd, stuck, segment.producer.sleep_fd.fd);
    else if (number % 5 == 2)
        (void)hostile_attach(fd, segment.producer.fd.fd, stuck);
    else
        (void)send_unclaimed(fd, which, &stuck, 1);
    hostile_count();
    /* To close it here would wait here: the file is handed over as it is when the process ends. */
    for (;;)
        pause();
}

static void *receive_into(void *argument)
{
    const int *fds = argument; /* a socket, and the file that is mapped */
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fds[1], 0);

    if (page == MAP_FAILED)
        hostile_die("cannot map a FUSE file");
    (void)recv(fds[0], page, 1, 0); /* holds the lock of the socket's reader for ever */
    return NULL;
}

/* What wakes is a socket whose lock for readers another thread holds. */
static void attach_locked_socket(unsigned number)
{
    static struct hostile_segment segment;
    pthread_t thread;
    char name[32];
    int pair[2], fds[2];

    hostile_segment_new(&segment);
    if (socketpair(AF_UNIX, (number % 2 ? SOCK_SEQPACKET : SOCK_STREAM) | SOCK_CLOEXEC, 0, pair) <
        0)
        hostile_die("no sockets");
    fds[0] = pair[0];
    (void)snprintf(name, sizeof(name), "page-%u", number);
    fds[1] = hostile_fuse_open(name, O_RDONLY);
    if (fds[1] < 0 || write(pair[1], "x", 1) != 1 ||
        pthread_create(&thread, NULL, receive_into, fds) != 0)
        hostile_die("cannot lock a socket");
    hostile_sleep_ms(100);
    const int fd = hostile_greet();
    (void)hostile_attach(fd, segment.producer.fd.fd, pair[0]);
    hostile_count();
    for (;; hostile_sleep_ms(50))
        (void)send(pair[1], "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL); /* each one wakes the server */
}

const struct hostile_attack hostile_fd_attacks[] = {
    {.name = "many_fds", .processes = 3, .run = send_many},
    {.name = "lingering_fds", .processes = 1, .run = send_lingering},
    {.name = "big_fds", .processes = 1, .run = send_big_files},
    {.name = "odd_fds", .processes = 1, .run = attach_odd_files},
    {.name = "stuck_fds", .processes = 10, .needs_fuse = true, .run = send_stuck_file},
    {.name = "locked_sockets", .processes = 2, .needs_fuse = true, .run = attach_locked_socket},
    {0},
};
