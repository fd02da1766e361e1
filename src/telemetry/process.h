/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process - what /proc tells of a process, and which processes hold a device.
 *
 * Everything lies under one root prefix. Of a process that we may not look into,
 * what anybody may see is told.
 */
#ifndef TTM_TELEMETRY_PROCESS_H
#define TTM_TELEMETRY_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TTM_PROCESS_COMMAND_SIZE 256

/* Whether libttmem is loaded into it. */
enum ttm_library {
    TTM_LIBRARY_UNKNOWN, /* we may not look */
    TTM_LIBRARY_NONE,
    TTM_LIBRARY_LOADED,
};

struct ttm_process {
    int32_t pid;
    bool has_uid;
    uint32_t uid;      /* the effective one */
    uint64_t start_ns; /* after boot; 0: not known */
    enum ttm_library library;
    /* As it was started, with spaces between its words, cut to fit; else its bare name. */
    char command[TTM_PROCESS_COMMAND_SIZE];
};

/*
 * Returns 0; -ESRCH when it has ended; -EACCES when it runs and is hidden from us,
 * with 'pid' alone filled in.
 */
int ttm_process_read(const char *root, int32_t pid, struct ttm_process *ret);

/* When it started, after boot; 0 where that is not known. Returns 0, -ESRCH or -EACCES. */
int ttm_process_start_ns(const char *root, int32_t pid, uint64_t *ret);

/* How long the machine is up, by /proc; 0 when that cannot be read. */
uint64_t ttm_process_uptime_ns(const char *root);

/* A process has /dev/tenstorrent/<number> open. */
typedef void (*ttm_holder_fn)(void *context, int32_t pid, unsigned number);

/*
 * Looks through the open files of all processes and calls 'fn' for each device file,
 * so several times for one that is open several times. Returns how many processes
 * could not be looked into.
 */
size_t ttm_process_scan(const char *root, ttm_holder_fn fn, void *context);

#endif /* TTM_TELEMETRY_PROCESS_H */
