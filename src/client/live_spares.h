/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_spares - places of the live table that hold no life.
 *
 * A thread has some at hand, so that to take one or to give one back is nobody else's business. Only
 * when it has none, or too many, does it turn to the table, for a batch at a time.
 */
#ifndef TTM_CLIENT_LIVE_SPARES_H
#define TTM_CLIENT_LIVE_SPARES_H

#include "client/live_table.h"

/* Fills an empty cache. Returns false when the table is full. */
__attribute__((cold, noinline)) bool ttm_live_spares_get(struct ttm_live_table *table,
                                                         struct ttm_live_cache *cache);

/* Makes room in a full one. */
__attribute__((cold, noinline)) void ttm_live_spares_give(struct ttm_live_table *table,
                                                          struct ttm_live_cache *cache);

static inline struct ttm_live_place *ttm_live_place_at(const struct ttm_live_table *table,
                                                       uint32_t number)
{
    return &table->places[number];
}

/* There is room in the cache. */
static inline void ttm_live_cache_place(struct ttm_live_cache *cache, uint32_t number)
{
    cache->places[cache->count] = number;
    /* The thread may be cancelled here, and what it has at hand is given back then. */
    atomic_signal_fence(memory_order_seq_cst);
    cache->count++;
}

/* Returns false when the table is full. */
static inline bool ttm_live_place_take(struct ttm_live_table *table, struct ttm_live_cache *cache,
                                       uint32_t *ret)
{
    if (cache->count == 0 && !ttm_live_spares_get(table, cache))
        return false;
    *ret = cache->places[--cache->count];
    return true;
}

static inline void ttm_live_place_give(struct ttm_live_table *table, struct ttm_live_cache *cache,
                                       uint32_t number)
{
    if (cache->count == TTM_LIVE_CACHE)
        ttm_live_spares_give(table, cache);
    ttm_live_cache_place(cache, number);
}

#endif /* TTM_CLIENT_LIVE_SPARES_H */
