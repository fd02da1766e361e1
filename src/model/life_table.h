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
    uint32_t expected;
};

#define TTM_SEGMENT_BUCKETS 4096u

/*
 * A bucket: the first life of its chain, reference + 1 in the low bits, and a bit for each eighth
 * of all hashes that has a life in the chain. So most lives that are not there are known not to
 * be without a look at those that are. 0 is empty.
 */
#define TTM_BUCKET_REF ((1u << 24) - 1)

static inline uint32_t ttm_life_table_bit(uint64_t hash)
{
    return 1u << (24 + (hash >> 61));
}

/* For the functions below: the bucket that a hash belongs to, of a table that has any. */
static inline uint32_t ttm_life_table_number(const struct ttm_life_table *table, uint64_t hash)
{
    const uint32_t number = (uint32_t)hash & (2 * table->half - 1);

    return number < table->buckets ? number : number & (table->half - 1);
}

static inline uint32_t *ttm_life_table_bucket(const struct ttm_life_table *table, uint64_t hash)
{
    const uint32_t number = ttm_life_table_number(table, hash);

    return &table->segments[number / TTM_SEGMENT_BUCKETS][number % TTM_SEGMENT_BUCKETS];
}

void ttm_life_table_init(struct ttm_life_table *table, ttm_life_hash hash, const void *context);
void ttm_life_table_done(struct ttm_life_table *table);

/* Returns 0 or -ENOMEM; on an error nothing has changed. */
int ttm_life_table_add(struct ttm_life_table *table, uint64_t hash, const struct ttm_life *life);

/* The same for several. Returns how many were added: less than all when memory is short. */
uint32_t ttm_life_table_add_many(struct ttm_life_table *table, const uint64_t *hashes,
                                 const struct ttm_life *lives, uint32_t count);

/*
 * About so many lives are about to be there; 0: no longer. Until then the index has grown for
 * them by the time they come: at once where few are there, else in steps as small as ever. A hint.
 */
void ttm_life_table_expect(struct ttm_life_table *table, uint32_t lives);

/*
 * Lives of these hashes are about to be looked for or added: has the memory of all their buckets
 * fetched at the same time; and then that of those who are there. Hints.
 */
void ttm_life_table_fetch(const struct ttm_life_table *table, const uint64_t *hashes,
                          uint32_t count);
void ttm_life_table_fetch_lives(const struct ttm_life_table *table, const uint64_t *hashes,
                                uint32_t count);

/*
 * The first life in the bucket of 'hash', and the one after 'ref':
 * TTM_LIFE_NONE at the end, or when none there has that hash. Others may share the bucket,
 * so compare.
 */
static inline uint32_t ttm_life_table_first(const struct ttm_life_table *table, uint64_t hash)
{
    if (table->buckets == 0)
        return TTM_LIFE_NONE;
    const uint32_t bucket = *ttm_life_table_bucket(table, hash);
    return (bucket & ttm_life_table_bit(hash)) != 0 ? (bucket & TTM_BUCKET_REF) - 1 : TTM_LIFE_NONE;
}

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
