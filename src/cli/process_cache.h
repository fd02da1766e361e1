/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_cache - what /proc told of processes, for who asks again and again.
 *
 * A process that was read is believed for five seconds at most, then it is looked at
 * whether it is still the same; a look through all open files is believed for ten. Of
 * many, some are looked at in each turn, never all at once. NULL for a cache reads anew.
 */
#ifndef TTM_CLI_PROCESS_CACHE_H
#define TTM_CLI_PROCESS_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "telemetry/process.h"

struct ttm_cached_process {
    struct ttm_process process;
    int result;         /* of ttm_process_read() */
    uint64_t due_ns;    /* when to look whether it is still the same */
    uint64_t wanted_ns; /* when it was last asked for */
};

struct ttm_cached_holder {
    int32_t pid;
    unsigned number;
};

/* Zero-initialised. */
struct ttm_process_cache {
    struct ttm_cached_process *processes;
    size_t count, room;
    size_t next;    /* the place behind the one that was asked for last */
    uint64_t added; /* processes, so far */
    struct ttm_cached_holder *holders;
    size_t holder_count, holder_room;
    size_t hidden_count;
    uint64_t scan_ns; /* 0: never */
    uint64_t now_ns;  /* the owner's time; who was not asked for since the last turn is forgotten */
};

/* A new turn at that time, by a clock that never goes back and is never 0. */
void ttm_process_cache_turn(struct ttm_process_cache *cache, uint64_t now_ns);
void ttm_process_cache_done(struct ttm_process_cache *cache);

/* As ttm_process_read(). */
int ttm_process_cache_read(struct ttm_process_cache *cache, const char *root, int32_t pid,
                           struct ttm_process *ret);

/* As ttm_process_scan(). */
size_t ttm_process_cache_scan(struct ttm_process_cache *cache, const char *root, ttm_holder_fn fn,
                              void *context);

#endif /* TTM_CLI_PROCESS_CACHE_H */
