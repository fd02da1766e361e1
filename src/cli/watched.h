/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watched - the processes of a command, as a server elsewhere tells of them.
 *
 * That server forgets a process with its end, and others report to it as well. So a
 * second thread listens: to totals, at intervals, to ends of processes, and to failures,
 * which it tells of. How much a process held when it ended is exact; its peaks are those
 * last seen before.
 *
 * Whose a process is goes by the run that it says to be part of, and, where the server
 * counts processes as we do, by descent. In a container with the server outside it
 * does not, and a pid of the server's is nobody's or a stranger's in here.
 */
#ifndef TTM_CLI_WATCHED_H
#define TTM_CLI_WATCHED_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "cli/heard_failures.h"
#include "model/departed.h"
#include "query/connection.h"

struct ttm_seen;

struct ttm_watched {
    struct ttm_connection totals; /* the thread's while it runs, as all below */
    struct ttm_connection ends;
    struct ttm_seen *seen; /* processes, ours and others */
    size_t seen_count;
    struct ttm_departed departed;
    struct ttm_heard_failures failures;
    bool is_server_gone;
    pid_t program;
    uint64_t run;     /* a number of our own, see wire/attach.h */
    bool shares_pids; /* the server's pids are ours */
    int stop_fd;
    pthread_t thread;
    bool is_running;
};

/* As none: it can be released. */
void ttm_watched_init(struct ttm_watched *watched);

/* Connects, and makes up 'run'. Returns TTM_EXIT_OK, or says why not and returns what to exit with. */
int ttm_watched_open(struct ttm_watched *watched, const char *socket_path);

/* Watches 'program', which has 'run' in its environment, and its descendants. Returns 0 or a negative errno. */
int ttm_watched_start(struct ttm_watched *watched, pid_t program);

/*
 * The program has ended and was not reaped: waits until the server has said so, for a
 * second at most. 'departed' is whole then: processes with what remained, devices
 * with peaks, and no kinds of remains.
 */
void ttm_watched_finish(struct ttm_watched *watched);

void ttm_watched_done(struct ttm_watched *watched);

#endif /* TTM_CLI_WATCHED_H */
