/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child - the program that a command runs: its start, its signals, its end.
 *
 * The program gets everything as the command got it: files, signals, limits,
 * process group, terminal. It does not end with us. Signals that somebody sends to
 * the command are passed on; those of the terminal reach the program by themselves.
 *
 * For the thread that starts the program, before there are others.
 */
#ifndef TTM_CLI_CHILD_H
#define TTM_CLI_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct ttm_child {
    pid_t pid;
    sigset_t taken;       /* signals that are taken instead of acted upon */
    sigset_t mask;        /* as it was before; the program's */
    struct rlimit fds;    /* likewise */
    bool ignored_sigchld; /* likewise */
    bool is_stopped;
};

struct ttm_child_end {
    int exit_code; /* when 'signal' is 0 */
    int signal;
    bool has_dumped_core;
    uint64_t duration_ns;
};

/*
 * What would be too large for a file (ulimit -f) is an error to be told from here on and not the
 * end of us; the program gets the signal as it was. First of all.
 */
void ttm_child_ignore_limits(void);

/* Remembers what the program is to get, before the command changes any of it. */
void ttm_child_init(struct ttm_child *child);

/*
 * Starts the program, looked for on PATH as a shell does. Returns 0, or a negative
 * errno: -ENOENT when there is none, -EACCES and others when it cannot be run. From
 * here on the signals that ttm_child_wait() takes are blocked.
 */
int ttm_child_start(struct ttm_child *child, char *const argv[], char *const envp[]);

/* What a shell exits with when a program cannot be run because of that errno: 127 or 126. */
int ttm_child_cannot_run_status(int error);

/*
 * Passes signals on until the program has ended. Its number stays taken until
 * ttm_child_reap(), so that nobody can mistake another process for it.
 */
void ttm_child_wait(struct ttm_child *child, struct ttm_child_end *ret);
void ttm_child_reap(struct ttm_child *child);

/* What a shell says of such an end: the exit code, or 128 and the signal. */
int ttm_child_status(const struct ttm_child_end *end);

#endif /* TTM_CLI_CHILD_H */
