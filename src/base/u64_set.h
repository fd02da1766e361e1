/* SPDX-License-Identifier: Apache-2.0 */
/*
 * u64_set - a set of numbers that are not 0. One thread.
 */
#ifndef TTM_BASE_U64_SET_H
#define TTM_BASE_U64_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of those that were ever in a set since it was empty. */
struct ttm_u64_range {
    uint64_t least;
    uint64_t most;
};

/*
 * A look for a number beyond those that are there needs no memory. Numbers that differ in the upper
 * 16 bits, as the serials of threads do, have ranges of their own, by the last four of these.
 */
#define TTM_U64_RANGES 16

/* Numbers that differ in the last six bits alone: those that follow each other, as serials do. */
struct ttm_u64_group {
    uint64_t group;
    uint64_t members; /* a bit for each; 0: an empty place */
};

struct ttm_u64_set {
    struct ttm_u64_group *places; /* open addressing */
    size_t size;                  /* a power of two, or 0 */
    size_t groups;                /* in use */
    size_t count;                 /* of numbers */
    uint64_t seed;
    struct ttm_u64_range ranges[TTM_U64_RANGES];
};

/* Who chooses the numbers does not know 'seed'. */
void ttm_u64_set_init(struct ttm_u64_set *set, uint64_t seed);

/* Empties it and gives its memory back; it can be used again. */
void ttm_u64_set_done(struct ttm_u64_set *set);

/* Empties it and keeps its memory if it was in use: for who fills it again and again. */
void ttm_u64_set_clear(struct ttm_u64_set *set);

/* Returns 0; -EINVAL for 0; -ENOMEM. A number that is in it already is fine. */
int ttm_u64_set_add(struct ttm_u64_set *set, uint64_t number);

static inline size_t ttm_u64_range_of(uint64_t number)
{
    return number >> 48 & (TTM_U64_RANGES - 1);
}

/* For the two below: whether it lies among those that were in it. */
static inline bool ttm_u64_set_may_have(const struct ttm_u64_set *set, uint64_t number)
{
    const struct ttm_u64_range *range = &set->ranges[ttm_u64_range_of(number)];

    return set->count > 0 && number >= range->least && number <= range->most;
}

/* For the two below, of a number for which that is so. */
bool ttm_u64_set_holds(const struct ttm_u64_set *set, uint64_t number);
void ttm_u64_set_prefetch(const struct ttm_u64_set *set, uint64_t number);

static inline bool ttm_u64_set_has(const struct ttm_u64_set *set, uint64_t number)
{
    return ttm_u64_set_may_have(set, number) && ttm_u64_set_holds(set, number);
}

/* 'number' is about to be looked for: has its memory fetched. A hint. */
static inline void ttm_u64_set_fetch(const struct ttm_u64_set *set, uint64_t number)
{
    if (ttm_u64_set_may_have(set, number))
        ttm_u64_set_prefetch(set, number);
}

/* Returns whether it was in the set. */
bool ttm_u64_set_remove(struct ttm_u64_set *set, uint64_t number);

#endif /* TTM_BASE_U64_SET_H */
