/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pairs - births and ends that were read together.
 *
 * A loop frees what it allocates a moment later, so that most ends are in the same
 * slice as their births. Who knows the pairs need not look such a life up. A pair
 * that is not found costs time and nothing else. Pure, one thread.
 */
#ifndef TTM_SERVER_PAIRS_H
#define TTM_SERVER_PAIRS_H

#include <stdint.h>

#define TTM_PAIRS_MAX 1024 /* records at a time */
#define TTM_PAIR_NONE UINT16_MAX

struct ttm_record;

struct ttm_pairs {
    uint16_t mate[TTM_PAIRS_MAX];   /* of each record: the other one of its pair */
    uint16_t births[TTM_PAIRS_MAX]; /* by serial, the latest that none has ended so far */
};

/*
 * Finds pairs of a birth and the end by its owner that follows it, where no record in
 * between is about the same life or looks at lives. 'order' has the places of 'n'
 * records, at most TTM_PAIRS_MAX, as they are to be taken.
 */
void ttm_pairs_find(struct ttm_pairs *pairs, const struct ttm_record *records,
                    const uint16_t *order, uint32_t n);

#endif /* TTM_SERVER_PAIRS_H */
