/* SPDX-License-Identifier: Apache-2.0 */
/*
 * addresses - where the lives of a process lie: overlaps, and how often an address was
 * used again.
 *
 * One thread, no I/O, no clock. Memory follows what is live, and is bounded for the
 * addresses that are watched.
 */
#ifndef TTM_ANALYSIS_ADDRESSES_H
#define TTM_ANALYSIS_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/extents.h"
#include "base/u64_map.h"
#include "recording/recorded.h"

/* An address, and how often it was used. */
struct ttm_reused {
    uint64_t address;
    uint32_t devices;
    uint8_t region;
    uint64_t births;
    uint64_t frees;
    uint64_t largest_bytes;
    uint64_t smallest_bytes;
};

#define TTM_REUSED_ADDRESSES 8192 /* that are watched: the first ones */

struct ttm_memory; /* the region of one allocator */

struct ttm_addresses {
    struct ttm_memory *memories;
    uint32_t memory_count;
    uint64_t overlaps;
    struct ttm_extent overlap[2]; /* the first: what was put, and where something lay */
    uint8_t overlap_region;
    struct ttm_reused *reused;
    uint32_t reused_count;
    struct ttm_u64_map reused_places;
};

void ttm_addresses_init(struct ttm_addresses *addresses, uint64_t seed);
void ttm_addresses_done(struct ttm_addresses *addresses);

/*
 * A life takes so many bytes of each bank, 0 when that is not known. Returns whether it
 * lies there alone now; else it is to be forgotten, and an overlap was counted.
 */
bool ttm_addresses_put(struct ttm_addresses *addresses, const struct ttm_recorded_life *life,
                       uint64_t bank_bytes);

/* One that lay alone is gone. */
void ttm_addresses_take(struct ttm_addresses *addresses, const struct ttm_recorded_life *life,
                        uint64_t bank_bytes);

/* Counts a birth. Returns the place of its address in 'reused' + 1, 0 when it is not watched. */
uint32_t ttm_addresses_count(struct ttm_addresses *addresses, const struct ttm_recorded_life *life);

#endif /* TTM_ANALYSIS_ADDRESSES_H */
