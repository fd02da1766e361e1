/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_sets - the sets of devices that lives are on, each stored once.
 *
 * Numbers below TTM_DEVICE_COUNT are the sets of that one device and take no
 * memory; a tensor on a mesh refers to a set of many. Sets stay until the end.
 * One thread, no I/O, no clock.
 */
#ifndef TTM_MODEL_DEVICE_SETS_H
#define TTM_MODEL_DEVICE_SETS_H

#include <stdint.h>

#include "wire/region.h"

/* More different meshes than this in the life of a server are refused. */
#define TTM_DEVICE_SETS_MAX 4096

struct ttm_device_set {
    const uint16_t *devices; /* ascending */
    uint16_t count;
};

struct ttm_device_sets {
    uint16_t single[TTM_DEVICE_COUNT];
    struct ttm_device_set *sets; /* number TTM_DEVICE_COUNT + i */
    uint32_t count;
};

void ttm_device_sets_init(struct ttm_device_sets *sets);
void ttm_device_sets_done(struct ttm_device_sets *sets);

/*
 * The number of the set of these devices, in any order, doubles ignored.
 * Returns 0; -EINVAL for no device or one out of range; -ENOSPC; -ENOMEM.
 */
int ttm_device_sets_intern(struct ttm_device_sets *sets, const uint16_t *devices, uint32_t count,
                           uint32_t *ret_number);

/* The set of that number; count 0 when there is none. */
struct ttm_device_set ttm_device_sets_get(const struct ttm_device_sets *sets, uint32_t number);

#endif /* TTM_MODEL_DEVICE_SETS_H */
