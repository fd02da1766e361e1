/* SPDX-License-Identifier: Apache-2.0 */
/*
 * by_process - one object for each process of a recording, found by the process's number.
 *
 * The objects belong to the caller. One thread.
 */
#ifndef TTM_ANALYSIS_BY_PROCESS_H
#define TTM_ANALYSIS_BY_PROCESS_H

#include <stdint.h>

#include "base/u64_map.h"

struct ttm_by_process {
    void **objects; /* in the order in which they were added */
    uint32_t count;
    uint32_t room;
    uint32_t last; /* found last: records of one process come one after the other */
    uint32_t last_process;
    struct ttm_u64_map places;
};

void ttm_by_process_init(struct ttm_by_process *list, uint64_t seed);

/* Gives back the list, not the objects. */
void ttm_by_process_done(struct ttm_by_process *list);

/* NULL when there is none. */
void *ttm_by_process_find(struct ttm_by_process *list, uint32_t process);

/* Returns 0; -EEXIST when the process has one; -ENOMEM. On an error nothing has changed. */
int ttm_by_process_add(struct ttm_by_process *list, uint32_t process, void *object);

#endif /* TTM_ANALYSIS_BY_PROCESS_H */
