/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failure - the owners of the memory when an allocation failed.
 *
 * Finding them takes a pass over the sites of the process, and a program may try
 * again as fast as it can. So the answer is used again while nothing can have changed,
 * and a second has a limit; failures beyond it name no owner. The loop thread's.
 */
#ifndef TTM_SERVER_FAILURE_H
#define TTM_SERVER_FAILURE_H

#include <stdint.h>

#include "wire/origin_row.h"

struct ttm_process;
struct ttm_registry;

/* Of one process. All zero at first. */
struct ttm_failure_watch {
    uint64_t window_ns; /* the second that is being counted began then */
    uint64_t visited;   /* sites visited in it */
    uint64_t events;    /* of the process, when its owners were last found */
    uint32_t lives;     /* live allocations, likewise */
    struct ttm_failure_row last;
};

/* Fills in the owners. 'now_ns' is monotonic. */
void ttm_failure_find_owners(struct ttm_failure_watch *watch, const struct ttm_registry *reg,
                             const struct ttm_process *process, uint64_t now_ns,
                             struct ttm_failure_row *failure);

#endif /* TTM_SERVER_FAILURE_H */
