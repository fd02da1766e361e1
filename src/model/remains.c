/* SPDX-License-Identifier: Apache-2.0 */
#include "model/remains.h"

#include <stdlib.h>

#include "base/hash.h"
#include "model/device_sets.h"
#include "model/life_store.h"
#include "model/site_table.h"
#include "wire/life_row.h"

#define INDEX_SIZE (2 * TTM_REMAINS_MAX) /* a power of two */

_Static_assert((INDEX_SIZE & (INDEX_SIZE - 1)) == 0, "places are found by masking");

void ttm_remains_set_init(struct ttm_remains_set *set, uint64_t seed)
{
    *set = (struct ttm_remains_set){.seed = seed};
}

void ttm_remains_set_done(struct ttm_remains_set *set)
{
    free(set->list);
    free(set->index);
    ttm_remains_set_init(set, set->seed);
}

struct ttm_remains ttm_remains_of(const struct ttm_device_sets *sets, const struct ttm_site *site,
                                  const struct ttm_life *life)
{
    const struct ttm_device_set set = ttm_device_sets_get(sets, site->device_set);
    struct ttm_remains remains = {
        .bytes = life->bytes,
        .footprint_bytes = life->footprint_bytes,
        .count = 1,
        .origin = site->origin,
        .region = site->region,
        .kind = site->kind,
        .is_program_part = ttm_site_is_of_program(site),
        .device_count = set.count,
        .device_set = site->device_set,
    };

    for (uint16_t i = 0; i < set.count && i < TTM_REMAINS_DEVICES; i++)
        remains.devices[i] = set.devices[i];
    if (set.count > 0)
        remains.last_device = set.devices[set.count - 1];
    return remains;
}

static bool is_alike(const struct ttm_remains *a, const struct ttm_remains *b)
{
    return a->bytes == b->bytes && a->footprint_bytes == b->footprint_bytes &&
           a->origin == b->origin && a->device_set == b->device_set && a->region == b->region &&
           a->kind == b->kind;
}

static uint64_t hash_of(uint64_t seed, const struct ttm_remains *r)
{
    const uint64_t where = (uint64_t)r->device_set << 16 | (uint64_t)r->region << 8 | r->kind;

    return ttm_hash_u64(ttm_hash_u64(ttm_hash_u64(r->bytes ^ where ^ seed) ^ r->footprint_bytes) +
                        r->origin);
}

/* The place in the index that has it, or the empty one where it belongs. */
static uint32_t *find_place(const struct ttm_remains_set *set, const struct ttm_remains *wanted)
{
    uint32_t at = (uint32_t)hash_of(set->seed, wanted) & (INDEX_SIZE - 1);

    /* It ends: there are twice as many places as kinds. */
    while (set->index[at] != 0 && !is_alike(&set->list[set->index[at] - 1], wanted))
        at = (at + 1) & (INDEX_SIZE - 1);
    return &set->index[at];
}

/* Makes room for one more kind. Returns whether there is. */
static bool make_room(struct ttm_remains_set *set)
{
    if (set->count >= TTM_REMAINS_MAX)
        return false;
    if (set->count & (set->count - 1)) /* the list has a power of two of places, or none */
        return true;
    struct ttm_remains *grown =
        realloc(set->list, (set->count ? (size_t)set->count * 2 : 1) * sizeof(grown[0]));
    if (!grown)
        return false;
    set->list = grown;
    return true;
}

void ttm_remains_add(struct ttm_remains_set *set, const struct ttm_remains *remains)
{
    set->total += remains->count;
    set->total_bytes += remains->count * remains->bytes;
    if (remains->is_program_part) {
        set->program_parts += remains->count;
        if (ttm_is_buffer_of_program(remains->region, remains->kind))
            set->program_buffers += remains->count;
        set->program_bytes += remains->count * remains->bytes;
        set->program_footprint_bytes += ttm_remains_taken(remains);
        return;
    }
    if (!set->index)
        set->index = calloc((size_t)INDEX_SIZE, sizeof(set->index[0]));
    uint32_t *place = set->index ? find_place(set, remains) : NULL;
    if (place && *place != 0) {
        set->list[*place - 1].count += remains->count;
        return;
    }
    if (!place || !make_room(set)) {
        set->others += remains->count;
        set->others_footprint_bytes += ttm_remains_taken(remains);
        return;
    }
    set->list[set->count++] = *remains;
    *place = set->count;
}
