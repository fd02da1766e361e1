/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_place - where a life is kept, packed into 48 bytes.
 */
#ifndef TTM_CLIENT_LIVE_PLACE_H
#define TTM_CLIENT_LIVE_PLACE_H

#include <stdatomic.h>
#include <stdint.h>

#include "client/live.h"

/*
 * The words of a place. All are atomic: a walk reads places that others fill. A
 * word is stored with release and loaded with acquire, so whoever has read a new
 * word also sees that the serial has changed; on x86 that costs nothing.
 */
enum ttm_place_word {
    TTM_PLACE_SERIAL, /* 0: free; and see live_table.c */
    TTM_PLACE_ID,     /* of a free place in a batch: the next place of the batch + 1 */
    /* birth / 64 ns | banks << 54; of the first place in a batch: that of the next batch + 1 */
    TTM_PLACE_BIRTH,
    TTM_PLACE_ADDRESS, /* address | allocator << 40 | region << 56 | kind << 59 | flags << 61 */
    TTM_PLACE_BYTES,   /* bytes | devices << 40 */
    TTM_PLACE_TAKEN,   /* footprint | origin << 40; of a copy on its way: see live_table.c */
    TTM_PLACE_WORDS
};

struct ttm_live_place {
    _Atomic uint64_t words[TTM_PLACE_WORDS];
};

/* 54 bits of 64 ns are 36 years since the machine was started. */
#define TTM_PLACE_BIRTH_SHIFT 6
#define TTM_PLACE_BANKS_AT 54
#define TTM_PLACE_BIRTH_MASK ((UINT64_C(1) << TTM_PLACE_BANKS_AT) - 1)

/* The part of the word of the address that belongs to the key. */
#define TTM_PLACE_KEY_MASK (UINT64_C(0x7ffff) << 40 | (uint64_t)TTM_LIVE_PROGRAM << 61)

static inline uint64_t ttm_place_get(const struct ttm_live_place *place, enum ttm_place_word word)
{
    return atomic_load_explicit(&place->words[word], memory_order_acquire);
}

static inline void ttm_place_set(struct ttm_live_place *place, enum ttm_place_word word,
                                 uint64_t value)
{
    atomic_store_explicit(&place->words[word], value, memory_order_release);
}

/* Swaps the serial; who succeeds of several owns what the change means. */
static inline bool ttm_place_swap_serial(struct ttm_live_place *place, uint64_t from, uint64_t to)
{
    /* acq_rel: whoever reads 0 or a later serial sees that this life is over. */
    return atomic_compare_exchange_strong_explicit(&place->words[TTM_PLACE_SERIAL], &from, to,
                                                   memory_order_acq_rel, memory_order_relaxed);
}

/* Whether the life in a place has that key and id. */
static inline bool ttm_place_has_key(const struct ttm_live_place *place, uint64_t key, uint64_t id)
{
    return ttm_place_get(place, TTM_PLACE_ID) == id &&
           (ttm_place_get(place, TTM_PLACE_ADDRESS) & TTM_PLACE_KEY_MASK) == key;
}

/* What the word of the address has besides it. */
static inline uint64_t ttm_place_top(const struct ttm_live *live)
{
    return ttm_live_key_of(live) | (uint64_t)live->kind << 59 | (uint64_t)live->flags << 61;
}

/* All but the serial, which is stored when the life can be found. */
static inline __attribute__((always_inline)) void ttm_place_fill(struct ttm_live_place *place,
                                                                 const struct ttm_live *live,
                                                                 uint64_t top)
{
    ttm_place_set(place, TTM_PLACE_ID, live->id);
    ttm_place_set(place, TTM_PLACE_BIRTH,
                  (live->birth_ns >> TTM_PLACE_BIRTH_SHIFT & TTM_PLACE_BIRTH_MASK) |
                      (uint64_t)live->banks << TTM_PLACE_BANKS_AT);
    ttm_place_set(place, TTM_PLACE_ADDRESS, live->address | top);
    ttm_place_set(place, TTM_PLACE_BYTES, live->bytes | (uint64_t)live->devices << 40);
    ttm_place_set(place, TTM_PLACE_TAKEN, live->footprint_bytes | (uint64_t)live->origin << 40);
}

/* All but the serial: who reads it looks at that before and after. */
static inline __attribute__((always_inline)) void ttm_place_read(const struct ttm_live_place *place,
                                                                 struct ttm_live *ret)
{
    const uint64_t birth = ttm_place_get(place, TTM_PLACE_BIRTH);
    const uint64_t address = ttm_place_get(place, TTM_PLACE_ADDRESS);
    const uint64_t bytes = ttm_place_get(place, TTM_PLACE_BYTES);
    const uint64_t taken = ttm_place_get(place, TTM_PLACE_TAKEN);

    ret->id = ttm_place_get(place, TTM_PLACE_ID);
    ret->birth_ns = (birth & TTM_PLACE_BIRTH_MASK) << TTM_PLACE_BIRTH_SHIFT;
    ret->banks = (uint16_t)(birth >> TTM_PLACE_BANKS_AT);
    ret->address = address & TTM_LIVE_NUMBER_MAX;
    ret->bytes = bytes & TTM_LIVE_NUMBER_MAX;
    ret->footprint_bytes = taken & TTM_LIVE_NUMBER_MAX;
    ret->devices = (uint32_t)(bytes >> 40);
    ret->origin = (uint32_t)(taken >> 40);
    ret->allocator = (uint16_t)(address >> 40);
    ret->region = (uint8_t)(address >> 56 & TTM_LIVE_REGION_MAX);
    ret->kind = (uint8_t)(address >> 59 & TTM_LIVE_KIND_MAX);
    ret->flags = (uint8_t)(address >> 61);
}

#endif /* TTM_CLIENT_LIVE_PLACE_H */
