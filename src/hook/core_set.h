/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_set - arithmetic on sets of cores, which TT-Metal gives as rectangles that
 * may overlap. Pure functions.
 */
#ifndef TTM_HOOK_CORE_SET_H
#define TTM_HOOK_CORE_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "hook/metal.h"

/* How many cores there are in these rectangles, which do not overlap. */
uint32_t ttm_cores_count(const struct ttmem_core_range *ranges, uint32_t count);

bool ttm_cores_intersect(const struct ttmem_core_range *a, uint32_t a_count,
                         const struct ttmem_core_range *b, uint32_t b_count);

/* Adds a set to another; what comes out does not overlap. Cores beyond 64 x 64 are left out. */
void ttm_core_set_join(struct ttm_core_set *set, const struct ttm_core_set *more);

#endif /* TTM_HOOK_CORE_SET_H */
