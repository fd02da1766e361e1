/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listener - a listening unix socket at a path, held by one server at a time.
 *
 * A lock file beside the socket tells servers apart: who holds it may take over
 * a socket that nobody answers on, and never one that somebody does.
 */
#ifndef TTM_SERVER_LISTENER_H
#define TTM_SERVER_LISTENER_H

#include <stdbool.h>
#include <stddef.h>

#include <sys/types.h>

struct ttm_listener {
    int fd;           /* -1: closed */
    int lock_fd;      /* -1: none */
    bool leaves_lock; /* it has a word for the next server, see heritage.h */
    char path[108];
};

#define TTM_LISTENER_WHY_SIZE 256

/*
 * Listens at 'path'. With 'is_public' anybody may connect (mode 0666), else the
 * user alone (0600). The last folder of the path is made if it is missing, 0755
 * or 0700, and refused when it could be changed by somebody else. Returns 0 or a
 * negative errno with one sentence in 'why'.
 */
int ttm_listener_open(struct ttm_listener *listener, const char *path, bool is_public,
                      char why[TTM_LISTENER_WHY_SIZE]);

/* Removes the socket, and the lock unless that is to stay. Fine on a listener that is closed. */
void ttm_listener_close(struct ttm_listener *listener);

/*
 * Removes sockets and locks that killed servers left behind, of all those that
 * the glob pattern names. One whose lock is held, or that has none, is left alone.
 */
void ttm_listener_remove_left_behind(const char *pattern);

#endif /* TTM_SERVER_LISTENER_H */
