/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lives are added up by site, of which there are few beside lives and which are
 * numbered from 0; then sites by where they are in the code, sorted. What several
 * sites of one place hold (two meshes, say, or the threads of a pool) becomes one.
 */
#include "model/holders.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "model/registry.h"
#include "wire/life_row.h"

/* A site, and afterwards a place. */
struct sum {
    struct ttm_owner owner;
    uint64_t place;
};

static bool is_on(const struct ttm_device_sets *sets, uint32_t number, uint16_t device)
{
    const struct ttm_device_set set = ttm_device_sets_get(sets, number);

    for (uint16_t i = 0; i < set.count; i++) {
        if (set.devices[i] == device)
            return true;
    }
    return false;
}

static void add(struct ttm_owner *sum, const struct ttm_owner *part)
{
    sum->count += part->count;
    sum->bytes += part->bytes;
    sum->footprint_bytes += part->footprint_bytes;
}

/* Adds every life to its site. Returns 0 or -ENOMEM. */
static int sum_sites(const struct ttm_process *proc, struct sum *sums)
{
    struct ttm_life_view view;
    const struct ttm_life *life;
    uint64_t at = 0;

    const int r = ttm_life_view_take(&proc->lives.store, &view);
    if (r < 0)
        return r;
    while ((life = ttm_life_view_next(&view, &at)) != NULL) {
        const struct ttm_owner one = {
            .count = 1, .bytes = life->bytes, .footprint_bytes = life->footprint_bytes};
        add(&sums[life->site].owner, &one);
    }
    (void)ttm_life_view_release(&view, UINT32_MAX);
    return 0;
}

static uint64_t place_of(const struct ttm_process *proc, uint32_t number)
{
    const struct ttm_origin *origin =
        number != 0 ? ttm_origin_table_find(&proc->origins, number) : NULL;

    return origin ? origin->place : number;
}

static int by_place(const void *a, const void *b)
{
    const struct sum *x = a, *y = b;

    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return x->owner.origin < y->owner.origin ? -1 : x->owner.origin > y->owner.origin;
}

static int by_footprint(const void *a, const void *b)
{
    const struct ttm_owner *x = &((const struct sum *)a)->owner;
    const struct ttm_owner *y = &((const struct sum *)b)->owner;

    if (x->footprint_bytes != y->footprint_bytes)
        return x->footprint_bytes < y->footprint_bytes ? 1 : -1;
    return x->origin < y->origin ? -1 : x->origin > y->origin;
}

/* Keeps what lies there, by place and in order of size. Returns how many there are. */
static uint32_t group(const struct ttm_registry *reg, const struct ttm_process *proc,
                      uint16_t device, uint8_t region, struct sum *sums)
{
    uint32_t kept = 0, count = 0;

    for (uint32_t i = 0; i < proc->sites.count; i++) {
        const struct ttm_site *site = ttm_site_table_get(&proc->sites, i);
        if (sums[i].owner.count == 0 || site->region != region || site->flags & TTM_SITE_ALIAS ||
            !is_on(&reg->sets, site->device_set, device))
            continue;
        sums[kept] = sums[i];
        sums[kept].owner.origin = site->origin;
        sums[kept++].place = place_of(proc, site->origin);
    }
    qsort(sums, kept, sizeof(sums[0]), by_place);
    for (uint32_t i = 0; i < kept; i++) {
        if (count > 0 && sums[count - 1].place == sums[i].place)
            add(&sums[count - 1].owner, &sums[i].owner);
        else
            sums[count++] = sums[i];
    }
    qsort(sums, count, sizeof(sums[0]), by_footprint);
    return count;
}

int ttm_holders_find(const struct ttm_registry *reg, const struct ttm_process *proc,
                     uint16_t device, uint8_t region, struct ttm_holders *ret)
{
    *ret = (struct ttm_holders){0};
    if (proc->sites.count == 0)
        return 0;
    struct sum *sums = calloc(proc->sites.count, sizeof(sums[0]));
    if (!sums || sum_sites(proc, sums) < 0) {
        free(sums);
        return -ENOMEM;
    }
    ret->origins = group(reg, proc, device, region, sums);
    for (uint32_t i = 0; i < ret->origins; i++) {
        add(&ret->all, &sums[i].owner);
        if (i < TTM_OWNERS_MAX)
            ret->largest[ret->count++] = sums[i].owner;
    }
    free(sums);
    return 0;
}
