/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bank_sizes - what buffers of some size take of each bank, as the runtime has said.
 *
 * The runtime works it out anew each time it is asked, which is most of what it
 * costs to read a buffer. Of an allocator; any thread looks and adds without a lock.
 * An entry stays as it is once it is there: a program whose buffers have more sizes
 * than there are places asks the runtime for the others.
 */
#ifndef TTM_HOOK_BANK_SIZES_H
#define TTM_HOOK_BANK_SIZES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hook/metal.h"

#define TTM_BANK_SIZES_BITS 8

enum ttm_bank_size_state {
    TTM_BANK_SIZE_EMPTY,
    TTM_BANK_SIZE_TAKEN, /* somebody is filling it */
    TTM_BANK_SIZE_THERE,
};

struct ttm_bank_size {
    _Atomic uint32_t state;
    uint32_t region;
    uint64_t bytes, page_bytes;
    uint64_t bank_bytes;
};

/* All zero: empty. */
struct ttm_bank_sizes {
    struct ttm_bank_size items[1u << TTM_BANK_SIZES_BITS];
};

/* The place of a size; the multiplier is odd and has its bits well spread. */
static inline uint32_t ttm_bank_size_place(const struct ttm_buffer_facts *facts)
{
    const uint64_t mixed = (facts->bytes ^ facts->page_bytes << 20) + facts->region;

    return (uint32_t)(mixed * 0x9e3779b97f4a7c15ull >> (64 - TTM_BANK_SIZES_BITS));
}

/* Returns false where it is not known. */
static inline bool ttm_bank_sizes_find(const struct ttm_bank_sizes *sizes,
                                       const struct ttm_buffer_facts *facts, uint64_t *ret)
{
    const struct ttm_bank_size *item = &sizes->items[ttm_bank_size_place(facts)];

    /* acquire: pairs with the release in ttm_bank_sizes_add(). */
    if (atomic_load_explicit(&item->state, memory_order_acquire) != TTM_BANK_SIZE_THERE ||
        item->bytes != facts->bytes || item->page_bytes != facts->page_bytes ||
        item->region != facts->region)
        return false;
    *ret = item->bank_bytes;
    return true;
}

/* Remembers it if there is a place, of a buffer with page_bytes. */
void ttm_bank_sizes_add(struct ttm_bank_sizes *sizes, const struct ttm_buffer_facts *facts,
                        uint64_t bank_bytes);

#endif /* TTM_HOOK_BANK_SIZES_H */
