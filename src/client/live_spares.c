/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places go from thread to thread in batches, chained through their own words: a stack of chains,
 * of which the table has the first. Its version keeps it from being mistaken for the same when it
 * only looks the same. A thread that ends in between takes its batch with it, which is all.
 */
#include "client/live_spares.h"

#define BATCH (TTM_LIVE_CACHE / 2)

/* A batch that some thread gave back becomes this thread's. */
static bool take_batch(struct ttm_live_table *table, struct ttm_live_cache *cache)
{
    uint64_t head = atomic_load_explicit(&table->spare, memory_order_acquire);

    while ((uint32_t)head != 0) {
        const uint32_t first = (uint32_t)head - 1;
        /* Others may take it meanwhile and write there: then the swap fails. */
        const uint32_t next_batch =
            (uint32_t)ttm_place_get(ttm_live_place_at(table, first), TTM_PLACE_BIRTH);
        const uint64_t want = ((head >> 32) + 1) << 32 | next_batch;
        /* acquire: pairs with the release in give_batch(); the chain is there. */
        if (!atomic_compare_exchange_weak_explicit(&table->spare, &head, want, memory_order_acquire,
                                                   memory_order_acquire))
            continue;
        for (uint32_t at = first + 1; at != 0;) {
            const uint32_t number = at - 1;
            at = (uint32_t)ttm_place_get(ttm_live_place_at(table, number), TTM_PLACE_ID);
            ttm_live_cache_place(cache, number);
        }
        return true;
    }
    return false;
}

/* Chains the last 'count' places of the cache and gives them to whoever needs some. */
static void give_batch(struct ttm_live_table *table, struct ttm_live_cache *cache, uint32_t count)
{
    uint32_t chain = 0;

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t number = cache->places[--cache->count];
        ttm_place_set(ttm_live_place_at(table, number), TTM_PLACE_ID, chain);
        chain = number + 1;
    }
    if (chain == 0)
        return;
    uint64_t head = atomic_load_explicit(&table->spare, memory_order_relaxed);
    uint64_t want;
    do {
        ttm_place_set(ttm_live_place_at(table, chain - 1), TTM_PLACE_BIRTH, (uint32_t)head);
        want = ((head >> 32) + 1) << 32 | chain;
        /* release: pairs with the acquire in take_batch(). */
    } while (!atomic_compare_exchange_weak_explicit(&table->spare, &head, want,
                                                    memory_order_release, memory_order_relaxed));
}

static bool take_fresh(struct ttm_live_table *table, struct ttm_live_cache *cache)
{
    /* relaxed: the numbers are ours by the addition alone. */
    if (atomic_load_explicit(&table->next_place, memory_order_relaxed) >= table->place_count)
        return false;
    const uint32_t first =
        atomic_fetch_add_explicit(&table->next_place, BATCH, memory_order_relaxed);
    /* The lowest comes out first: pages are filled in order. */
    for (uint32_t i = BATCH; i > 0; i--) {
        if (first < table->place_count && first + i - 1 < table->place_count)
            ttm_live_cache_place(cache, first + i - 1);
    }
    return cache->count > 0;
}

bool ttm_live_spares_get(struct ttm_live_table *table, struct ttm_live_cache *cache)
{
    return take_batch(table, cache) || take_fresh(table, cache);
}

void ttm_live_spares_give(struct ttm_live_table *table, struct ttm_live_cache *cache)
{
    give_batch(table, cache, BATCH);
}

void ttm_live_table_flush(struct ttm_live_table *table, struct ttm_live_cache *cache)
{
    while (cache->count > 0)
        give_batch(table, cache, cache->count < BATCH ? cache->count : BATCH);
}
