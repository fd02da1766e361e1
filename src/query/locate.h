/* SPDX-License-Identifier: Apache-2.0 */
/*
 * locate - where servers listen, and which one to ask.
 *
 * In this order: $TTMEM_SOCKET, $XDG_RUNTIME_DIR/tt-mem.sock,
 * /run/tt-mem/tt-mem.sock, /tmp/tt-mem-<uid>/tt-mem.sock; beside the user's also
 * tt-mem.run.<pid>.sock of servers inside other commands.
 */
#ifndef TTM_QUERY_LOCATE_H
#define TTM_QUERY_LOCATE_H

#include <stdbool.h>
#include <stddef.h>

#define TTM_SOCKET_PATH_SIZE 108

struct ttm_places {
    char (*paths)[TTM_SOCKET_PATH_SIZE];
    size_t count;
};

/* Every socket on which somebody answers. Returns 0 or -ENOMEM. */
int ttm_locate_servers(struct ttm_places *ret);
void ttm_places_done(struct ttm_places *places);

/*
 * Where a new server of this user listens when nothing else is said. Returns 0
 * or -ENAMETOOLONG. '*ret_public': it is the machine's server, open to all.
 */
int ttm_locate_default(char ret[TTM_SOCKET_PATH_SIZE], bool *ret_public);

/*
 * Where the server inside a command listens: "tt-mem.run.<pid>.sock" beside the
 * server of this user, whatever TTMEM_SOCKET says. There may be a second place,
 * for where the first cannot be had ('choice' 0 and 1). Returns 0; -ENOENT when
 * there is no such choice; -ENAMETOOLONG.
 */
int ttm_locate_run(unsigned choice, int pid, char ret[TTM_SOCKET_PATH_SIZE]);

#endif /* TTM_QUERY_LOCATE_H */
