/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_sets - the sets of devices that allocations are on, each stored once.
 *
 * Numbers below TTM_DEVICE_COUNT are the sets of that one device and take no
 * memory; a tensor on a mesh refers to a set of several. Such a set stays while
 * it has a reference; then its number is used again.
 *
 * Processes choose the sets, so each call has a bounded cost, however many there are.
 * One thread, no I/O, no clock.
 */
#ifndef TTM_MODEL_DEVICE_SETS_H
#define TTM_MODEL_DEVICE_SETS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/region.h"

/* More different meshes than this at a time are refused. */
#define TTM_DEVICE_SETS_MAX 16384

struct ttm_device_set {
    const uint16_t *devices; /* ascending */
    uint16_t count;
};

struct ttm_device_set_slot;

struct ttm_device_sets {
    uint16_t single[TTM_DEVICE_COUNT];
    struct ttm_device_set_slot *slots; /* number TTM_DEVICE_COUNT + i */
    uint32_t slot_count;               /* that were ever in use */
    uint32_t slot_room;
    uint32_t free_slot; /* the first of a list, + 1; 0: none */
    uint32_t count;     /* sets of several devices that are in use */
    uint32_t *index;    /* chains by hash; NULL before the first set */
    uint64_t seed;
};

/* The process that chooses the sets does not know 'seed'. */
void ttm_device_sets_init(struct ttm_device_sets *sets, uint64_t seed);
void ttm_device_sets_done(struct ttm_device_sets *sets);

/*
 * The number of the set of these devices, in any order, doubles ignored. The caller has one reference
 * more to it, for ttm_device_sets_unref(); a set of one device does not count them.
 * Returns 0; -EINVAL for no device or one out of range; -ENOSPC; -ENOMEM.
 */
int ttm_device_sets_intern(struct ttm_device_sets *sets, const uint16_t *devices, uint32_t count,
                           uint32_t *ret_number);

/* Releases one reference. With the last one the set is gone. */
void ttm_device_sets_unref(struct ttm_device_sets *sets, uint32_t number);

/* The set of that number, borrowed while it has a reference; count 0 when there is none. */
struct ttm_device_set ttm_device_sets_get(const struct ttm_device_sets *sets, uint32_t number);

/* Whether the device is one of the set. */
static inline bool ttm_device_set_has(const struct ttm_device_set *set, uint16_t device)
{
    uint32_t low = 0, high = set->count;

    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (set->devices[middle] < device)
            low = middle + 1;
        else
            high = middle;
    }
    return low < set->count && set->devices[low] == device;
}

#endif /* TTM_MODEL_DEVICE_SETS_H */
