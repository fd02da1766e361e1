/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_fd - a file descriptor in a program that is not ours.
 *
 * Such a program may close descriptors that it takes for its own, and open others
 * under the same numbers. So the file is remembered with the number, and looked
 * at before anything is done to it. Not for anonymous files (eventfds): they all look
 * the same.
 *
 * Such a program may also count on the numbers that it gets: its first open() is to return 3, and one
 * that has no standard output is not to write into what is ours. So ours have high numbers.
 */
#ifndef TTM_BASE_OWN_FD_H
#define TTM_BASE_OWN_FD_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Below this limit (ulimit -n) nothing is opened: a tracked process takes seven for as long as it runs
 * and two more now and then, and the program is to have most of them.
 */
#define TTM_OWN_FD_LIMIT_MIN 32

/* A higher number would have the kernel keep a large table, and copy it with each fork(). */
#define TTM_OWN_FD_TOP 1024
#define TTM_OWN_FD_ROOM 64 /* of the numbers below the limit, so many are ours if they are free */

struct ttm_own_fd {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
};

#define TTM_OWN_FD_NONE ((struct ttm_own_fd){.fd = -1})

/* True if the program may have enough files open for both of us. */
static inline bool ttm_own_fd_is_allowed(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= TTM_OWN_FD_LIMIT_MIN;
}

/* The lowest number that is to be ours. */
static inline int ttm_own_fd_lowest(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return STDERR_FILENO + 1;
    const int top = limit.rlim_cur < TTM_OWN_FD_TOP ? (int)limit.rlim_cur : TTM_OWN_FD_TOP;
    const int lowest = top >= 2 * TTM_OWN_FD_ROOM ? top - TTM_OWN_FD_ROOM : top / 2;
    return lowest > STDERR_FILENO ? lowest : STDERR_FILENO + 1;
}

/*
 * For a descriptor that was just made, with close-on-exec: the same file under a high number, or
 * where all of those are in use, under one that is not that of a standard stream. Returns it or a
 * negative errno, and then it is closed. A negative one is returned as it is.
 */
static inline int ttm_own_fd_move_up(int fd)
{
    const int lowest = fd < 0 ? 0 : ttm_own_fd_lowest();

    if (fd < 0 || fd >= lowest)
        return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, lowest);
    if (moved < 0 && fd > STDERR_FILENO)
        return fd;
    if (moved < 0)
        moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int r = moved < 0 ? -errno : moved;
    (void)close(fd);
    return r;
}

/* Both ends of a pipe or a pair of sockets, likewise. Returns 0 or a negative errno. */
static inline int ttm_own_fd_pair_move_up(int fds[2])
{
    fds[0] = ttm_own_fd_move_up(fds[0]);
    fds[1] = ttm_own_fd_move_up(fds[1]);
    if (fds[0] >= 0 && fds[1] >= 0)
        return 0;
    const int r = fds[0] < 0 ? fds[0] : fds[1];
    for (int i = 0; i < 2; i++) {
        if (fds[i] >= 0)
            (void)close(fds[i]);
        fds[i] = -1;
    }
    return r;
}

static inline struct ttm_own_fd ttm_own_fd_of(int fd)
{
    struct stat st = {0};

    if (fd < 0 || fstat(fd, &st) < 0)
        return TTM_OWN_FD_NONE;
    return (struct ttm_own_fd){.fd = fd, .device = st.st_dev, .inode = st.st_ino};
}

/* Whether the number still stands for the file. */
static inline bool ttm_own_fd_is_ours(const struct ttm_own_fd *own)
{
    struct stat st;

    return own->fd >= 0 && fstat(own->fd, &st) == 0 && st.st_dev == own->device &&
           st.st_ino == own->inode;
}

static inline void ttm_own_fd_close(struct ttm_own_fd *own)
{
    if (ttm_own_fd_is_ours(own))
        (void)close(own->fd);
    own->fd = -1;
}

#endif /* TTM_BASE_OWN_FD_H */
