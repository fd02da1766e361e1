/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bank_sizes - what buffers of some size take of an allocator, as the runtime has said.
 *
 * The runtime works it out anew each time it is asked, which is most of what it
 * costs to read a buffer. Of an allocator; any thread looks and adds without a lock.
 * An entry stays as it is once it is there: a program whose buffers have more sizes
 * than there are places asks the runtime for the others. It has all that a life has
 * of its allocator, in a cache line.
 */
#ifndef TTM_HOOK_BANK_SIZES_H
#define TTM_HOOK_BANK_SIZES_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "client/lane.h"
#include "hook/metal.h"

#define TTM_BANK_SIZES_BITS 8

enum ttm_bank_size_state {
    TTM_BANK_SIZE_EMPTY,
    TTM_BANK_SIZE_TAKEN, /* somebody is filling it */
    TTM_BANK_SIZE_THERE, /* of region 0, and so on */
};

struct ttm_bank_size {
    _Alignas(64) _Atomic uint32_t state;
    uint64_t page_bytes;
    struct ttm_lane_size size;
};

_Static_assert(sizeof(struct ttm_bank_size) == 64, "one cache line");

/* All zero: empty. */
struct ttm_bank_sizes {
    struct ttm_bank_size items[1u << TTM_BANK_SIZES_BITS];
};

/* The place of a size; the multiplier is odd and has its bits well spread. */
static inline uint32_t ttm_bank_size_place(uint32_t region, uint64_t bytes, uint64_t page_bytes)
{
    const uint64_t mixed = (bytes ^ page_bytes << 20) + region;

    return (uint32_t)(mixed * 0x9e3779b97f4a7c15ull >> (64 - TTM_BANK_SIZES_BITS));
}

/* NULL where it is not known. */
static inline const struct ttm_bank_size *ttm_bank_sizes_find(const struct ttm_bank_sizes *sizes,
                                                              uint32_t region, uint64_t bytes,
                                                              uint64_t page_bytes)
{
    const struct ttm_bank_size *item =
        &sizes->items[ttm_bank_size_place(region, bytes, page_bytes)];

    /* acquire: pairs with the release in ttm_bank_sizes_add(). */
    if (__builtin_expect(atomic_load_explicit(&item->state, memory_order_acquire) !=
                                 TTM_BANK_SIZE_THERE + region ||
                             item->size.bytes != bytes || item->page_bytes != page_bytes,
                         0))
        return NULL;
    return item;
}

/*
 * Remembers what a buffer is that was placed, if there is room: one that is spread page by page
 * over all banks.
 */
void ttm_bank_sizes_add(struct ttm_bank_sizes *sizes, const struct ttm_buffer_facts *facts,
                        const struct ttm_live *placed);

/* Nobody else is there. */
void ttm_bank_sizes_forget(struct ttm_bank_sizes *sizes);

#endif /* TTM_HOOK_BANK_SIZES_H */
