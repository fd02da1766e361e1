/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_fd - a file descriptor in a program that is not ours.
 *
 * Such a program may close descriptors that it takes for its own, and open others
 * under the same numbers. So the file is remembered with the number, and looked
 * at before anything is done to it. Not for anonymous files (eventfds): they all look
 * the same.
 *
 * Where such a program has no standard input, output or error, that number stays free:
 * it would read or overwrite what is ours.
 */
#ifndef TTM_BASE_OWN_FD_H
#define TTM_BASE_OWN_FD_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

struct ttm_own_fd {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
};

#define TTM_OWN_FD_NONE ((struct ttm_own_fd){.fd = -1})

/*
 * For a descriptor that was just made, with close-on-exec: the same file, under a number that is
 * not that of a standard stream. Returns it or a negative errno, and then it is closed. A negative
 * one is returned as it is.
 */
static inline int ttm_own_fd_beside_standard(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int r = moved < 0 ? -errno : moved;
    (void)close(fd);
    return r;
}

/* Both ends of a pipe or a pair of sockets, likewise. Returns 0 or a negative errno. */
static inline int ttm_own_fd_pair_beside_standard(int fds[2])
{
    fds[0] = ttm_own_fd_beside_standard(fds[0]);
    fds[1] = ttm_own_fd_beside_standard(fds[1]);
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
