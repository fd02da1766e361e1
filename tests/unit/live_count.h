/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TTM_TESTS_UNIT_LIVE_COUNT_H
#define TTM_TESTS_UNIT_LIVE_COUNT_H

#include <stdint.h>

#include "client/live_table.h"

/* How many a walk meets. */
static inline uint64_t live_count(struct ttm_live_table *table)
{
    struct ttm_live_walk walk = {0};
    struct ttm_live live;
    uint64_t count = 0;

    while (ttm_live_table_next(table, &walk, &live))
        count++;
    return count;
}

#endif /* TTM_TESTS_UNIT_LIVE_COUNT_H */
