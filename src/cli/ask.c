/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "cli/command.h"
#include "query/locate.h"

static int connect_to(const char *path, struct ttm_connection *ret)
{
    const int r = ttm_connection_open(ret, path);

    if (r == 0)
        return TTM_EXIT_OK;
    if (r == -ENOENT || r == -ECONNREFUSED)
        return TTM_ASK_NONE;
    if (r == -EREMOTEIO)
        ttm_log("cannot talk to the server at '%s': %s", path, ret->why);
    else if (r == -EPROTO || r == -EMSGSIZE)
        ttm_log("cannot talk to '%s': it is not a tt-mem server", path);
    else if (r == -EPROTONOSUPPORT)
        ttm_log("cannot talk to the server at '%s': it is tt-mem %s (protocol %u.%u), this is %s "
                "(protocol %u.%u)",
                path, ret->server.software, ret->server.major, ret->server.minor, TTM_VERSION,
                TTM_HELLO_MAJOR, TTM_HELLO_MINOR);
    else
        ttm_log("cannot reach a server at '%s': %s", path, strerror(-r));
    return TTM_EXIT_FAILED;
}

static int connect_to_only(const struct ttm_places *places, struct ttm_connection *ret)
{
    if (places->count == 0)
        return TTM_ASK_NONE;
    if (places->count == 1)
        return connect_to(places->paths[0], ret);
    ttm_log("several servers are running; choose one with --socket or TTMEM_SOCKET:");
    for (size_t i = 0; i < places->count; i++) {
        char path[4 * TTM_SOCKET_PATH_SIZE];
        (void)ttm_text_copy_safe(path, sizeof(path), places->paths[i]);
        (void)fprintf(stderr, "  %s\n", path);
    }
    return TTM_EXIT_USAGE;
}

/* The place that was chosen, by option or environment, or NULL. */
static const char *chosen_path(const char *path)
{
    if (!path)
        path = getenv("TTMEM_SOCKET");
    return path && path[0] ? path : NULL;
}

int ttm_ask_find(const char *path, struct ttm_connection *ret)
{
    struct ttm_places places;

    *ret = (struct ttm_connection){.fd = -1};
    path = chosen_path(path);
    if (path)
        return connect_to(path, ret);
    if (ttm_locate_servers(&places) < 0) {
        ttm_log("cannot look for a server: memory is short");
        return TTM_EXIT_FAILED;
    }
    const int status = connect_to_only(&places, ret);
    ttm_places_done(&places);
    return status;
}

int ttm_ask_none(const char *path)
{
    path = chosen_path(path);
    if (path)
        ttm_log("cannot reach a server at '%s': none is running there", path);
    else
        ttm_log("cannot reach a server: none is running (start one with 'tt-mem serve')");
    return TTM_EXIT_FAILED;
}

int ttm_ask_connect(const char *path, struct ttm_connection *ret)
{
    const int status = ttm_ask_find(path, ret);

    return status == TTM_ASK_NONE ? ttm_ask_none(path) : status;
}

int ttm_ask_failed(const struct ttm_connection *conn, int r)
{
    if (r == -EREMOTEIO)
        ttm_log("the server refused: %s", conn->why);
    else if (r == -EPIPE)
        ttm_log("the server has gone");
    else if (r == -EBADMSG || r == -EPROTO || r == -EMSGSIZE)
        ttm_log("the server's answer makes no sense to tt-mem %s", TTM_VERSION);
    else
        ttm_log("cannot get an answer: %s", strerror(-r));
    return TTM_EXIT_FAILED;
}

int ttm_ask_unwritten(int r)
{
    if (r == -EINTR) /* the user has stopped it */
        return TTM_EXIT_OK;
    if (r != -EPIPE)
        ttm_log("cannot write the output: %s", strerror(-r));
    return TTM_EXIT_FAILED;
}
