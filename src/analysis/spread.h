/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spread - how things lie over a range that is not known before its end.
 *
 * A histogram of fixed size whose bars grow wider by powers of two as values come
 * in: adding is O(1) amortised, and two of them can be added up. One thread.
 */
#ifndef TTM_ANALYSIS_SPREAD_H
#define TTM_ANALYSIS_SPREAD_H

#include <stdint.h>

#define TTM_SPREAD_BARS 32

struct ttm_spread {
    uint32_t bars[TTM_SPREAD_BARS];
    uint8_t shift; /* a bar is 2^shift wide */
};

void ttm_spread_add(struct ttm_spread *spread, uint64_t value);

/* Adds all of 'from'. */
void ttm_spread_merge(struct ttm_spread *spread, const struct ttm_spread *from);

/* As 'count' bars over the range from 0 to 'end', what lies beyond in the last. */
void ttm_spread_bars(const struct ttm_spread *spread, uint64_t end, uint32_t count, uint64_t *ret);

#endif /* TTM_ANALYSIS_SPREAD_H */
