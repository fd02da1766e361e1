/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_table - what a tracked process has allocated and not given back.
 *
 * The truth of the process itself: when a ring was full, or no server was there,
 * it is what the server is told afterwards. Any thread may add, and any thread
 * may remove what another added; nobody ever waits for anybody, so a thread may
 * be stopped, cancelled or killed at any instruction. Neither adding nor removing
 * makes a system call or allocates.
 */
#ifndef TTM_CLIENT_LIVE_TABLE_H
#define TTM_CLIENT_LIVE_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/live.h"
#include "client/live_place.h"
#include "client/nursery.h"

#define TTM_LIVE_GENERATIONS 9
#define TTM_LIVES_PER_PROCESS ((1u << 24) - 2)

/* Places that a thread has at hand, so that taking one is nobody else's business. */
#define TTM_LIVE_CACHE 128

struct ttm_live_cache {
    uint32_t count;
    uint32_t places[TTM_LIVE_CACHE];
};

struct ttm_live_bucket;

struct ttm_live_generation {
    struct ttm_live_bucket *buckets;
    uint32_t bucket_count;       /* a power of two; those of the overflow lie behind them */
    _Atomic uint64_t highest_id; /* of those that were ever here, or more; of the first: not kept */
};

struct ttm_live_table {
    struct ttm_nursery_line nursery[TTM_NURSERY_LINES];
    /* What every other event looks at, in one cache line; it hardly ever changes. */
    _Alignas(64) struct ttm_live_place *places; /* reserved whole, used from the start on */
    uint64_t seed;
    uint32_t place_count;
    _Atomic uint32_t generation_count; /* in use */
    /*
     * Each larger than the one before; new lives go to the newest. All are reserved from the start,
     * as address space costs nothing, so that coming to use one is a matter of a number. The first
     * is in that line too.
     */
    struct ttm_live_generation generations[TTM_LIVE_GENERATIONS];
    uint32_t generations_reserved;
    _Alignas(64) _Atomic uint32_t next_overflow[TTM_LIVE_GENERATIONS];
    _Alignas(64) _Atomic uint32_t next_place; /* places from here on were never used */
    _Alignas(
        64) _Atomic uint64_t spare; /* batches of places given back: place + 1 | version << 32 */
    _Alignas(64) _Atomic uint32_t moves; /* of lives out of the nursery */
};

/* Reserves address space. Returns 0 or -ENOMEM. */
int ttm_live_table_init(struct ttm_live_table *table, uint64_t seed);
void ttm_live_table_done(struct ttm_live_table *table);

/*
 * Adds a life. Returns 0; 1 when one of that key and id was live and has ended as
 * replaced (its serial: '*ret_replaced'); -ENOSPC when the table is full.
 */
int ttm_live_table_add(struct ttm_live_table *table, struct ttm_live_cache *cache,
                       const struct ttm_live *live, uint64_t *ret_replaced);

/*
 * The same for one of that key, without a kind or flags, whose id was never used before. Ids that
 * are counted upwards find room in the nursery.
 */
int ttm_live_table_add_plain(struct ttm_live_table *table, struct ttm_live_cache *cache,
                             const struct ttm_live *live, uint64_t key, uint64_t *ret_replaced);

/*
 * Removes the life of that key and id, and only if it has that serial when one is given.
 * Returns the serial that it had, 0 when there was none.
 */
uint64_t ttm_live_table_remove(struct ttm_live_table *table, struct ttm_live_cache *cache,
                               uint64_t key, uint64_t id, uint64_t serial);

/* The same for one that was added as plain, and most likely is in the nursery. */
uint64_t ttm_live_table_remove_plain(struct ttm_live_table *table, struct ttm_live_cache *cache,
                                     uint64_t key, uint64_t id);

/* Reads the life of that key. Returns 0 or -ENOENT. */
int ttm_live_table_get(struct ttm_live_table *table, const struct ttm_live *key,
                       struct ttm_live *ret);

/* Gives the life of that key and serial another origin. Returns 0 or -ENOENT. */
int ttm_live_table_set_origin(struct ttm_live_table *table, const struct ttm_live *key,
                              uint32_t origin);

/* Gives back the places a thread had at hand, when it ends. */
void ttm_live_table_flush(struct ttm_live_table *table, struct ttm_live_cache *cache);

/* All zero at first. */
struct ttm_live_walk {
    uint32_t at;
    uint32_t moves; /* of the table, when it began */
    uint32_t count; /* of those that it met in the nursery */
    uint64_t serials[TTM_NURSERY_LINES];
};

/*
 * Visits what is live, while others go on: a life that is there from before the
 * walk began until after it ended is visited once; one that comes or goes
 * meanwhile may or may not be. Returns whether there was one.
 */
bool ttm_live_table_next(struct ttm_live_table *table, struct ttm_live_walk *walk,
                         struct ttm_live *ret);

/* About how many are live. Looks at a share of the places, of small tables at all. */
uint32_t ttm_live_table_estimate(const struct ttm_live_table *table);

/* Memory in use, of places and buckets. */
size_t ttm_live_table_bytes(const struct ttm_live_table *table);

#endif /* TTM_CLIENT_LIVE_TABLE_H */
