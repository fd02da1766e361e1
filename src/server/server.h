/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server - holds the truth for every process and device.
 *
 * One thread runs it all: accepts, reads, applies, answers. Used by
 * 'tt-mem serve', and embedded by commands that bring a server of their own.
 */
#ifndef TTM_SERVER_SERVER_H
#define TTM_SERVER_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "server/listener.h"
#include "wire/status.h"

struct ttm_failure_row;
struct ttm_process;
struct ttm_registry;
struct ttm_recorder;
struct ttm_server;

/* What a client of the original protocol wants printed on the server's stdout. */
enum ttm_print { TTM_PRINT_REMAINING, TTM_PRINT_KERNELS };
#define TTM_PRINT_KINDS 2u

/*
 * Called in the server's thread; must not block. 'ticket' names the lives as
 * they were when the client asked: a TTM_FRAME_GET_LIVES with it returns them.
 */
typedef void (*ttm_print_fn)(void *context, enum ttm_print what, uint32_t ticket);

/*
 * A process that reported, with all that the registry has of it; borrowed until
 * the call returns. 'is_running' is false for one that has just ended.
 */
typedef void (*ttm_process_fn)(void *context, const struct ttm_registry *reg,
                               const struct ttm_process *process, bool is_running);

/*
 * A tracked process could not allocate; everything is borrowed until the call
 * returns. The failure's time is monotonic, and it names the owners already.
 */
typedef void (*ttm_failure_fn)(void *context, const struct ttm_registry *reg,
                               const struct ttm_process *process,
                               const struct ttm_failure_row *failure);

struct ttm_server_options {
    const char *socket_path;
    const char *legacy_path; /* NULL: no original protocol */
    bool is_legacy_optional; /* go on without it when its socket cannot be had */
    bool is_public;          /* others may connect; they see totals only */
    const char *subuid_path; /* where subordinate user ids are listed; NULL: nowhere */
    bool takes_signals;      /* SIGINT, SIGTERM and SIGHUP end it */
    bool is_followed;        /* others come after it at the same socket, see heritage.h */
    ttm_print_fn print;      /* NULL: such requests are ignored */
    void *print_context;
    /*
     * For who embeds the server: called in its thread as it goes, must not block. NULL:
     * nobody wants to know. When a process has ended, all it said was read and its lives
     * are still there.
     */
    ttm_process_fn process_ended;
    void *process_context;
    ttm_failure_fn allocation_failed;
    void *failure_context;
    struct ttm_recorder *recorder; /* borrowed, told what happens; NULL: nothing is recorded */
};

/* Returns 0, or a negative errno with one sentence in 'why'. On success it is listening. */
int ttm_server_new(const struct ttm_server_options *options, struct ttm_server **ret,
                   char why[TTM_LISTENER_WHY_SIZE]);

/* NULL is fine. Not while it runs. */
void ttm_server_free(struct ttm_server *server);

/* Say what board a device is, before it runs. Returns 0, -EINVAL for an unknown board, -ERANGE. */
int ttm_server_set_board(struct ttm_server *server, uint32_t device, const char *board);

/* Who is told what happens from now on, borrowed; NULL: nobody. Only while it does not run. */
void ttm_server_set_recorder(struct ttm_server *server, struct ttm_recorder *recorder);

/* Runs until a signal or ttm_server_stop(). Returns 0 or a negative errno. */
int ttm_server_run(struct ttm_server *server);

/* From any thread, or a signal handler. */
void ttm_server_stop(struct ttm_server *server);

/*
 * Takes in what is there already, without waiting for more: what processes that
 * have ended left in their connections and rings, and their ends. Only while it
 * does not run. A process that goes on reporting cannot hold it up: after some
 * turns it returns.
 */
void ttm_server_settle(struct ttm_server *server);

/* Calls 'fn' for every process that reports still. Only while it does not run. */
void ttm_server_each_process(struct ttm_server *server, ttm_process_fn fn, void *context);

/* The counters; only while it does not run. */
void ttm_server_status(struct ttm_server *server, struct ttm_status *ret);

/* Whether the original protocol's socket could be had. */
bool ttm_server_has_legacy(const struct ttm_server *server);

#endif /* TTM_SERVER_SERVER_H */
