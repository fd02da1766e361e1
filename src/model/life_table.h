/* SPDX-License-Identifier: Apache-2.0 */
/*
 * life_table - finds the lives of one process by their hash.
 *
 * A linear hash table: it grows by one bucket at a time and shrinks by two, so
 * no event ever pays for a rehash of all the others. Lives with the same hash come
 * out newest first. One thread, no I/O, no clock.
 */
#ifndef TTM_MODEL_LIFE_TABLE_H
#define TTM_MODEL_LIFE_TABLE_H

#include "model/life_store.h"

/* Must give the same hash for a life as the caller passed when adding it. */
typedef uint64_t (*ttm_life_hash)(const void *context, const struct ttm_life *life);

struct ttm_life_table {
    struct ttm_life_store store;
    ttm_life_hash hash;
    const void *context;
    uint32_t **segments; /* of the bucket array */
    uint32_t segment_count;
    uint32_t segment_room;
    uint32_t buckets;
    uint32_t half; /* the power of two at or below 'buckets' */
};

void ttm_life_table_init(struct ttm_life_table *table, ttm_life_hash hash, const void *context);
void ttm_life_table_done(struct ttm_life_table *table);

/* Returns 0 or -ENOMEM; on an error nothing has changed. */
int ttm_life_table_add(struct ttm_life_table *table, uint64_t hash, const struct ttm_life *life);

/*
 * The first life in the bucket of 'hash', and the one after 'ref':
 * TTM_LIFE_NONE at the end. Others may share the bucket, so compare.
 */
uint32_t ttm_life_table_first(const struct ttm_life_table *table, uint64_t hash);

static inline uint32_t ttm_life_table_next(const struct ttm_life_table *table, uint32_t ref)
{
    return ttm_life_store_get(&table->store, ref)->next;
}

static inline const struct ttm_life *ttm_life_table_get(const struct ttm_life_table *table,
                                                        uint32_t ref)
{
    return ttm_life_store_get(&table->store, ref);
}

/* Its hash must not depend on its site. */
static inline void ttm_life_table_set_site(struct ttm_life_table *table, uint32_t ref,
                                           uint32_t site)
{
    ttm_life_store_edit(&table->store, ref)->site = site;
}

/* 'ref' is in the bucket of 'hash'. */
void ttm_life_table_remove(struct ttm_life_table *table, uint64_t hash, uint32_t ref);

/* Drops the index at once and hands the lives out, to be let go in slices. The table is empty then. */
void ttm_life_table_take_over(struct ttm_life_table *table, struct ttm_life_view *ret);

/* Memory taken from the kernel. */
size_t ttm_life_table_bytes(const struct ttm_life_table *table);

#endif /* TTM_MODEL_LIFE_TABLE_H */
