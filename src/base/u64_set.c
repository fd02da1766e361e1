/* SPDX-License-Identifier: Apache-2.0 */
#include "base/u64_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static void empty_ranges(struct ttm_u64_set *set)
{
    for (size_t i = 0; i < TTM_U64_RANGES; i++)
        set->ranges[i] = (struct ttm_u64_range){.least = UINT64_MAX};
}

void ttm_u64_set_init(struct ttm_u64_set *set, uint64_t seed)
{
    *set = (struct ttm_u64_set){.seed = seed};
    empty_ranges(set);
}

void ttm_u64_set_done(struct ttm_u64_set *set)
{
    free(set->places);
    ttm_u64_set_init(set, set->seed);
}

/* A set that was filled to less than this share of its size is larger than needed. */
#define SMALL_SHARE 16

void ttm_u64_set_clear(struct ttm_u64_set *set)
{
    if (set->count == 0)
        return;
    if (set->count < set->size / SMALL_SHARE) {
        ttm_u64_set_done(set);
        return;
    }
    memset(set->places, 0, set->size * sizeof(set->places[0]));
    set->count = 0;
    empty_ranges(set);
}

/*
 * Where a search for the number begins. Numbers that follow each other, as serials
 * do, lie side by side by the eight, in one cache line; the eights are scattered.
 */
static size_t home_of(uint64_t seed, uint64_t number, size_t size)
{
    return ((size_t)ttm_hash_u64(number >> 3 ^ seed) << 3 | (number & 7)) & (size - 1);
}

/* Where 'number' is, or the empty place where it would go. */
static size_t find(uint64_t seed, const uint64_t *places, size_t size, uint64_t number)
{
    size_t at = home_of(seed, number, size);

    while (places[at] != 0 && places[at] != number)
        at = (at + 1) & (size - 1);
    return at;
}

static int grow(struct ttm_u64_set *set)
{
    const size_t size = set->size ? set->size * 2 : 64;
    uint64_t *places = calloc(size, sizeof(places[0]));

    if (!places)
        return -ENOMEM;
    for (size_t i = 0; i < set->size; i++) {
        if (set->places[i] != 0)
            places[find(set->seed, places, size, set->places[i])] = set->places[i];
    }
    free(set->places);
    set->places = places;
    set->size = size;
    return 0;
}

int ttm_u64_set_add(struct ttm_u64_set *set, uint64_t number)
{
    if (number == 0)
        return -EINVAL;
    if (set->count * 2 >= set->size && grow(set) < 0)
        return -ENOMEM;
    const size_t at = find(set->seed, set->places, set->size, number);
    set->count += set->places[at] == 0;
    set->places[at] = number;
    struct ttm_u64_range *range = &set->ranges[ttm_u64_range_of(number)];
    if (number < range->least)
        range->least = number;
    if (number > range->most)
        range->most = number;
    return 0;
}

bool ttm_u64_set_holds(const struct ttm_u64_set *set, uint64_t number)
{
    return set->places[find(set->seed, set->places, set->size, number)] == number;
}

void ttm_u64_set_prefetch(const struct ttm_u64_set *set, uint64_t number)
{
    __builtin_prefetch(&set->places[home_of(set->seed, number, set->size)]);
}

bool ttm_u64_set_remove(struct ttm_u64_set *set, uint64_t number)
{
    if (!ttm_u64_set_has(set, number))
        return false;
    size_t hole = find(set->seed, set->places, set->size, number);
    const size_t mask = set->size - 1;

    /* What follows in the run moves up where it may, so that no search stops at the hole. */
    for (size_t at = (hole + 1) & mask; set->places[at] != 0; at = (at + 1) & mask) {
        const size_t home = home_of(set->seed, set->places[at], set->size);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            set->places[hole] = set->places[at];
            hole = at;
        }
    }
    set->places[hole] = 0;
    set->count--;
    return true;
}
