/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_fd - a file descriptor in a program that is not ours.
 *
 * Such a program may close descriptors that it takes for its own, and open others
 * under the same numbers. So the file is remembered with the number, and looked
 * at before anything is done to it. Not for anonymous files (eventfds): they all look
 * the same.
 */
#ifndef TTM_BASE_OWN_FD_H
#define TTM_BASE_OWN_FD_H

#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

struct ttm_own_fd {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
};

#define TTM_OWN_FD_NONE ((struct ttm_own_fd){.fd = -1})

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
