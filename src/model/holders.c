/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sums of each site are there already, so this visits sites, not allocations. Several sites
 * may be of one place in the code (two meshes, say, or the threads of a pool): a hash table adds
 * them up by place.
 */
#include "model/holders.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "model/registry.h"
#include "wire/life_row.h"

struct place {
    struct ttm_owner owner; /* its origin is the lowest of the place; no count: an empty place */
    uint64_t hash;
};

/* The places that were met, by open addressing: at most half full. */
struct places {
    struct place *places;
    uint32_t size; /* a power of two */
    uint64_t seed;
};

static bool is_on(const struct ttm_device_sets *sets, uint32_t number, uint16_t device)
{
    const struct ttm_device_set set = ttm_device_sets_get(sets, number);

    return ttm_device_set_has(&set, device);
}

/* Whether the site has anything live there that is no view of other memory. */
static bool is_wanted(const struct ttm_registry *reg, const struct ttm_process *proc, uint32_t i,
                      uint16_t device, uint8_t region)
{
    const struct ttm_site *site = ttm_site_table_get(&proc->sites, i);

    return site->region == region && !(site->flags & TTM_SITE_ALIAS) &&
           proc->sites.counts[i].live > 0 && is_on(&reg->sets, site->device_set, device);
}

static void add(struct ttm_owner *sum, const struct ttm_owner *part)
{
    sum->count += part->count;
    sum->bytes += part->bytes;
    sum->footprint_bytes += part->footprint_bytes;
}

static uint64_t hash_of(const struct ttm_process *proc, uint32_t number)
{
    const struct ttm_origin *origin =
        number != 0 ? ttm_origin_table_find(&proc->origins, number) : NULL;

    return origin ? origin->place : number;
}

/* Returns whether the place is new. */
static bool add_to_place(struct places *places, uint64_t hash, const struct ttm_owner *part)
{
    uint32_t at = (uint32_t)ttm_hash_u64(hash ^ places->seed) & (places->size - 1);

    while (places->places[at].owner.count != 0 && places->places[at].hash != hash)
        at = (at + 1) & (places->size - 1);
    struct place *place = &places->places[at];
    const bool is_new = place->owner.count == 0;
    if (is_new || part->origin < place->owner.origin)
        place->owner.origin = part->origin;
    place->hash = hash;
    add(&place->owner, part);
    return is_new;
}

static bool is_larger(const struct ttm_owner *a, const struct ttm_owner *b)
{
    if (a->footprint_bytes != b->footprint_bytes)
        return a->footprint_bytes > b->footprint_bytes;
    return a->origin < b->origin;
}

/* Keeps it in order if it is one of the largest. */
static void keep(struct ttm_holders *ret, const struct ttm_owner *owner)
{
    uint32_t at = ret->count;

    while (at > 0 && is_larger(owner, &ret->largest[at - 1]))
        at--;
    if (at == TTM_OWNERS_MAX)
        return;
    const uint32_t behind = ret->count - at - (ret->count == TTM_OWNERS_MAX);
    memmove(&ret->largest[at + 1], &ret->largest[at], behind * sizeof(ret->largest[0]));
    ret->largest[at] = *owner;
    ret->count += ret->count < TTM_OWNERS_MAX;
}

int ttm_holders_find(const struct ttm_registry *reg, const struct ttm_process *proc,
                     uint16_t device, uint8_t region, struct ttm_holders *ret)
{
    struct places places = {.size = 16, .seed = reg->seed};
    uint32_t wanted = 0;

    *ret = (struct ttm_holders){0};
    for (uint32_t i = 0; i < proc->sites.count; i++)
        wanted += is_wanted(reg, proc, i, device, region);
    if (wanted == 0)
        return 0;
    while (places.size < 2 * wanted)
        places.size *= 2;
    places.places = calloc(places.size, sizeof(places.places[0]));
    if (!places.places)
        return -ENOMEM;
    for (uint32_t i = 0; i < proc->sites.count; i++) {
        const struct ttm_site_counts *counts = &proc->sites.counts[i];
        if (!is_wanted(reg, proc, i, device, region))
            continue;
        const struct ttm_owner part = {
            .origin = ttm_site_table_get(&proc->sites, i)->origin,
            .count = counts->live,
            .bytes = counts->bytes,
            .footprint_bytes = counts->footprint_bytes,
        };
        ret->origins += add_to_place(&places, hash_of(proc, part.origin), &part);
        add(&ret->all, &part);
    }
    for (uint32_t i = 0; i < places.size; i++) {
        if (places.places[i].owner.count != 0)
            keep(ret, &places.places[i].owner);
    }
    free(places.places);
    return 0;
}
