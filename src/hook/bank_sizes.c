/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/bank_sizes.h"

void ttm_bank_sizes_add(struct ttm_bank_sizes *sizes, const struct ttm_buffer_facts *facts,
                        const struct ttm_live *placed)
{
    struct ttm_bank_size *item =
        &sizes->items[ttm_bank_size_place(facts->region, facts->bytes, facts->page_bytes)];
    uint32_t state = TTM_BANK_SIZE_EMPTY;

    if (facts->page_bytes == 0 || facts->banks != 0 || !ttm_lane_takes(placed))
        return;
    /* relaxed: the place is ours by the swap alone. */
    if (!atomic_compare_exchange_strong_explicit(&item->state, &state, TTM_BANK_SIZE_TAKEN,
                                                 memory_order_relaxed, memory_order_relaxed))
        return;
    item->page_bytes = facts->page_bytes;
    item->size = ttm_lane_size_of(placed);
    /* release: pairs with the acquire in ttm_bank_sizes_find(). */
    atomic_store_explicit(&item->state, TTM_BANK_SIZE_THERE + facts->region, memory_order_release);
}

void ttm_bank_sizes_forget(struct ttm_bank_sizes *sizes)
{
    for (uint32_t i = 0; i < 1u << TTM_BANK_SIZES_BITS; i++) /* relaxed: alone */
        atomic_store_explicit(&sizes->items[i].state, TTM_BANK_SIZE_EMPTY, memory_order_relaxed);
}
