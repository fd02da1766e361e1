/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extents - which addresses of one memory are taken, in order.
 *
 * Tells when something is put where something else still lies. Two levels of
 * sorted arrays: finding is a binary search in each, inserting moves a kilobyte at
 * most. One thread; memory follows what is in it.
 */
#ifndef TTM_ANALYSIS_EXTENTS_H
#define TTM_ANALYSIS_EXTENTS_H

#include <stdbool.h>
#include <stdint.h>

#define TTM_EXTENTS_LEAF 64

struct ttm_extent {
    uint64_t start;
    uint64_t end;
};

struct ttm_extents_leaf {
    uint32_t count;
    struct ttm_extent extents[TTM_EXTENTS_LEAF];
};

struct ttm_extents {
    struct ttm_extents_leaf **leaves; /* none is empty */
    uint64_t *firsts;                 /* start of the first extent of each leaf */
    uint32_t count;
    uint32_t room;
};

void ttm_extents_init(struct ttm_extents *extents);
void ttm_extents_done(struct ttm_extents *extents);

/*
 * Returns 0; 1 when it lies on one that is there ('ret_other'), and then it is not
 * put in; -ENOMEM. The end lies behind the last byte and after the start.
 */
int ttm_extents_add(struct ttm_extents *extents, uint64_t start, uint64_t end,
                    struct ttm_extent *ret_other);

/* Returns whether exactly this one was there. */
bool ttm_extents_remove(struct ttm_extents *extents, uint64_t start, uint64_t end);

#endif /* TTM_ANALYSIS_EXTENTS_H */
