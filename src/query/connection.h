/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connection - one talk with a server: connect, hello, requests, frames.
 *
 * Blocking, for commands; what never waits says so. Single-threaded.
 */
#ifndef TTM_QUERY_CONNECTION_H
#define TTM_QUERY_CONNECTION_H

#include <stdint.h>

#include "base/queue.h"
#include "wire/frame.h"
#include "wire/hello.h"

struct ttm_connection {
    int fd;
    char path[108];
    struct ttm_queue in;
    size_t taken; /* bytes of 'in' that the last frame takes */
    struct ttm_hello server;
    char why[256]; /* the server's own words, after -EREMOTEIO */
};

/*
 * Connects and exchanges hellos. Returns 0, or a negative errno: -EREMOTEIO when
 * the server has refused, with its words in 'why'. Close it in any case.
 */
int ttm_connection_open(struct ttm_connection *conn, const char *path);
void ttm_connection_close(struct ttm_connection *conn);

/*
 * The same in two steps that never wait, for who has other things to do: connect and
 * say hello, then look whether the server's hello has come. ttm_connection_begin()
 * returns 0 or a negative errno, -EAGAIN when the server has no room for callers.
 * ttm_connection_greeted() returns 1, 0 when it has not come yet, or a negative errno
 * as ttm_connection_open().
 */
int ttm_connection_begin(struct ttm_connection *conn, const char *path);
int ttm_connection_greeted(struct ttm_connection *conn);

int ttm_connection_send(struct ttm_connection *conn, uint16_t type, const void *payload,
                        uint32_t length);

/*
 * The next frame, borrowed until the next call. Waits at most 'timeout_ms' (-1:
 * for ever). Returns 1; 0 when the time is up; -EPIPE when the server has gone;
 * -EREMOTEIO when it said why in 'why'; another negative errno.
 */
int ttm_connection_receive(struct ttm_connection *conn, int timeout_ms, struct ttm_frame *ret);

#endif /* TTM_QUERY_CONNECTION_H */
