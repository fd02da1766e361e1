/* SPDX-License-Identifier: Apache-2.0 */
/*
 * holders - the owners of a region of a device in a process, by origin, largest first.
 * Origins that differ in the thread alone are one, known by the first of them.
 *
 * The cost is linear in the sites of the process, however many allocations they have; the
 * answer is bounded. One thread, no I/O, no clock.
 */
#ifndef TTM_MODEL_HOLDERS_H
#define TTM_MODEL_HOLDERS_H

#include <stdint.h>

#include "wire/origin_row.h"

struct ttm_process;
struct ttm_registry;

struct ttm_holders {
    struct ttm_owner largest[TTM_OWNERS_MAX]; /* by footprint */
    uint32_t count;                           /* of these */
    uint32_t origins;                         /* in all */
    struct ttm_owner all;                     /* of all origins together; its origin is 0 */
};

/*
 * What the process holds in 'region' of 'device'; a view of memory adds nothing.
 * Returns 0 or -ENOMEM, and then nobody is named.
 */
int ttm_holders_find(const struct ttm_registry *reg, const struct ttm_process *proc,
                     uint16_t device, uint8_t region, struct ttm_holders *ret);

#endif /* TTM_MODEL_HOLDERS_H */
