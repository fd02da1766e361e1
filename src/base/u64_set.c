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
    if (set->groups < set->size / SMALL_SHARE) {
        ttm_u64_set_done(set);
        return;
    }
    memset(set->places, 0, set->size * sizeof(set->places[0]));
    set->count = set->groups = 0;
    empty_ranges(set);
}

static uint64_t group_of(uint64_t number)
{
    return number / 64;
}

static uint64_t bit_of(uint64_t number)
{
    return UINT64_C(1) << number % 64;
}

/* Where a search for the group begins. */
static size_t home_of(uint64_t seed, uint64_t group, size_t size)
{
    return (size_t)ttm_hash_u64(group ^ seed) & (size - 1);
}

/* Where the group is, or the empty place where it would go. */
static size_t find(uint64_t seed, const struct ttm_u64_group *places, size_t size, uint64_t group)
{
    size_t at = home_of(seed, group, size);

    while (places[at].members != 0 && places[at].group != group)
        at = (at + 1) & (size - 1);
    return at;
}

static int grow(struct ttm_u64_set *set)
{
    const size_t size = set->size ? set->size * 2 : 16;
    struct ttm_u64_group *places = calloc(size, sizeof(places[0]));

    if (!places)
        return -ENOMEM;
    for (size_t i = 0; i < set->size; i++) {
        if (set->places[i].members != 0)
            places[find(set->seed, places, size, set->places[i].group)] = set->places[i];
    }
    free(set->places);
    set->places = places;
    set->size = size;
    return 0;
}

int ttm_u64_set_add(struct ttm_u64_set *set, uint64_t number)
{
    const uint64_t group = group_of(number), bit = bit_of(number);

    if (number == 0)
        return -EINVAL;
    if (set->groups * 2 >= set->size && grow(set) < 0)
        return -ENOMEM;
    struct ttm_u64_group *place = &set->places[find(set->seed, set->places, set->size, group)];
    set->groups += place->members == 0;
    set->count += (place->members & bit) == 0;
    place->group = group;
    place->members |= bit;
    struct ttm_u64_range *range = &set->ranges[ttm_u64_range_of(number)];
    if (number < range->least)
        range->least = number;
    if (number > range->most)
        range->most = number;
    return 0;
}

bool ttm_u64_set_holds(const struct ttm_u64_set *set, uint64_t number)
{
    const size_t at = find(set->seed, set->places, set->size, group_of(number));

    return (set->places[at].members & bit_of(number)) != 0;
}

void ttm_u64_set_prefetch(const struct ttm_u64_set *set, uint64_t number)
{
    __builtin_prefetch(&set->places[home_of(set->seed, group_of(number), set->size)]);
}

/* What follows in the run moves up where it may, so that no search stops at the hole. */
static void fill_hole(struct ttm_u64_set *set, size_t hole)
{
    const size_t mask = set->size - 1;

    for (size_t at = (hole + 1) & mask; set->places[at].members != 0; at = (at + 1) & mask) {
        const size_t home = home_of(set->seed, set->places[at].group, set->size);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            set->places[hole] = set->places[at];
            hole = at;
        }
    }
    set->places[hole].members = 0;
    set->groups--;
}

bool ttm_u64_set_remove(struct ttm_u64_set *set, uint64_t number)
{
    if (!ttm_u64_set_has(set, number))
        return false;
    const size_t at = find(set->seed, set->places, set->size, group_of(number));
    set->places[at].members &= ~bit_of(number);
    if (set->places[at].members == 0)
        fill_hole(set, at);
    set->count--;
    return true;
}
