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

/*
 * One live allocation, as others see it. Laid out as a record of it is (ring/segment.h), which is
 * then a copy.
 */
struct ttm_live {
    uint64_t birth_ns; /* kept to 64 ns */
    uint64_t serial;   /* never 0, never used twice */
    uint64_t id;
    uint64_t address;
    uint64_t bytes;
    uint64_t footprint_bytes;
    uint16_t allocator;
    uint16_t banks; /* 0: not known */
    uint32_t devices;
    uint32_t origin;
    uint8_t unused; /* of a record: what it tells */
    uint8_t region;
    uint8_t kind;
    uint8_t flags;
};

/* What is kept of a life is packed; whoever adds one sees to it that it fits. */
#define TTM_LIVE_NUMBER_MAX ((1ull << 40) - 1) /* addresses and sizes: a terabyte */
#define TTM_LIVE_NOTE_MAX ((1u << 24) - 1)     /* devices, origin: 128 MiB of notes */
#define TTM_LIVE_BANKS_MAX 1023
#define TTM_LIVE_REGION_MAX 7
#define TTM_LIVE_KIND_MAX 3
#define TTM_LIVE_FLAGS_MAX 7

/* enum ttm_record_flags; this one belongs to the key: 'id' is a program, 'allocator' its part. */
#define TTM_LIVE_PROGRAM 4

/*
 * What tells lives of the same id apart: allocator, region and that flag, in the bits that they
 * have in the table.
 */
static inline uint64_t ttm_live_key(uint16_t allocator, uint8_t region, uint8_t flags)
{
    return (uint64_t)allocator << 40 | (uint64_t)region << 56 |
           (uint64_t)(flags & TTM_LIVE_PROGRAM) << 61;
}

static inline uint64_t ttm_live_key_of(const struct ttm_live *live)
{
    return ttm_live_key(live->allocator, live->region, live->flags);
}

#define TTM_LIVE_GENERATIONS 9
#define TTM_LIVES_PER_PROCESS ((1u << 24) - 2)

/* Places that a thread has at hand, so that taking one is nobody else's business. */
#define TTM_LIVE_CACHE 128

struct ttm_live_cache {
    uint32_t count;
    uint32_t places[TTM_LIVE_CACHE];
};

struct ttm_live_place;
struct ttm_live_bucket;

struct ttm_live_generation {
    struct ttm_live_bucket *buckets;
    uint32_t bucket_count; /* a power of two; those of the overflow lie behind them */
};

struct ttm_live_table {
    /* What every event looks at, in one cache line; it hardly ever changes. */
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

/* The same for one of that key, without a kind or flags. */
int ttm_live_table_add_plain(struct ttm_live_table *table, struct ttm_live_cache *cache,
                             const struct ttm_live *live, uint64_t key, uint64_t *ret_replaced);

/*
 * Removes the life of that key and id, and only if it has that serial when one is given.
 * Returns the serial that it had, 0 when there was none.
 */
uint64_t ttm_live_table_remove(struct ttm_live_table *table, struct ttm_live_cache *cache,
                               uint64_t key, uint64_t id, uint64_t serial);

/* Reads the life of that key. Returns 0 or -ENOENT. */
int ttm_live_table_get(const struct ttm_live_table *table, const struct ttm_live *key,
                       struct ttm_live *ret);

/* Gives the life of that key and serial another origin. Returns 0 or -ENOENT. */
int ttm_live_table_set_origin(struct ttm_live_table *table, const struct ttm_live *key,
                              uint32_t origin);

/* Gives back the places a thread had at hand, when it ends. */
void ttm_live_table_flush(struct ttm_live_table *table, struct ttm_live_cache *cache);

/*
 * Visits what is live, while others go on: a life that is there from before the
 * walk began until after it ended is visited once; one that comes or goes
 * meanwhile may or may not be. Start with '*at' 0. Returns whether there was one.
 */
bool ttm_live_table_next(const struct ttm_live_table *table, uint32_t *at, struct ttm_live *ret);

/* About how many are live. Looks at a share of the places, of small tables at all. */
uint32_t ttm_live_table_estimate(const struct ttm_live_table *table);

/* Memory in use, of places and buckets. */
size_t ttm_live_table_bytes(const struct ttm_live_table *table);

#endif /* TTM_CLIENT_LIVE_TABLE_H */
