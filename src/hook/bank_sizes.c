/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/bank_sizes.h"

void ttm_bank_sizes_add(struct ttm_bank_sizes *sizes, const struct ttm_buffer_facts *facts,
                        uint64_t bank_bytes)
{
    struct ttm_bank_size *item = &sizes->items[ttm_bank_size_place(facts)];
    uint32_t state = TTM_BANK_SIZE_EMPTY;

    if (facts->page_bytes == 0)
        return;
    /* relaxed: the place is ours by the swap alone. */
    if (!atomic_compare_exchange_strong_explicit(&item->state, &state, TTM_BANK_SIZE_TAKEN,
                                                 memory_order_relaxed, memory_order_relaxed))
        return;
    item->region = facts->region;
    item->bytes = facts->bytes;
    item->page_bytes = facts->page_bytes;
    item->bank_bytes = bank_bytes;
    /* release: pairs with the acquire in ttm_bank_sizes_find(). */
    atomic_store_explicit(&item->state, TTM_BANK_SIZE_THERE, memory_order_release);
}
