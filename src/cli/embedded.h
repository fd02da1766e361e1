/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embedded - a server of a command's own, in a second thread.
 *
 * It listens beside the user's server, where the live commands find it, and not on
 * the socket of the original protocol. What it learns of processes that end is kept
 * for the command, which may look at it once the server has stopped. Allocations that
 * fail are told of at once, through the log, which the command has started.
 */
#ifndef TTM_CLI_EMBEDDED_H
#define TTM_CLI_EMBEDDED_H

#include <pthread.h>
#include <stdbool.h>

#include "cli/failure_report.h"
#include "model/departed.h"
#include "query/locate.h"
#include "server/listener.h"

struct ttm_server;

struct ttm_embedded {
    char socket_path[TTM_SOCKET_PATH_SIZE];
    struct ttm_departed departed;         /* the thread's while it runs */
    struct ttm_failure_reporter reporter; /* likewise */
    struct ttm_server *server;            /* NULL: there is none */
    pthread_t thread;
    bool is_running;
};

/*
 * Listens, so that programs can connect; nobody answers them yet. Returns 0, or a
 * negative errno with one sentence in 'why'. Release it in any case.
 */
int ttm_embedded_open(struct ttm_embedded *embedded, char why[TTM_LISTENER_WHY_SIZE]);

/* Starts the thread, which takes no signals. Returns 0 or a negative errno. */
int ttm_embedded_start(struct ttm_embedded *embedded);

/*
 * Takes in what is there of processes that have ended, stops, and adds those that
 * are still running to 'departed', which is whole then.
 */
void ttm_embedded_finish(struct ttm_embedded *embedded);

/* Removes the socket. */
void ttm_embedded_done(struct ttm_embedded *embedded);

#endif /* TTM_CLI_EMBEDDED_H */
