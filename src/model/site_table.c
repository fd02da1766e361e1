/* SPDX-License-Identifier: Apache-2.0 */
#include "model/site_table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/hash.h"

void ttm_site_table_init(struct ttm_site_table *table, uint64_t seed)
{
    *table = (struct ttm_site_table){.seed = seed};
}

void ttm_site_table_done(struct ttm_site_table *table)
{
    ttm_quota_subtract(table->quota, table->count);
    free(table->sites);
    free(table->counts);
    free(table->index);
    ttm_site_table_init(table, table->seed);
}

static bool is_same(const struct ttm_site *a, const struct ttm_site *b)
{
    return a->allocator == b->allocator && a->device_set == b->device_set &&
           a->origin == b->origin && a->region == b->region && a->kind == b->kind &&
           a->flags == b->flags && a->banks == b->banks;
}

static uint64_t site_hash(uint64_t seed, const struct ttm_site *site)
{
    const uint64_t low = (uint64_t)site->allocator << 32 | site->device_set;
    const uint64_t high = (uint64_t)site->origin << 32 | (uint64_t)site->banks << 16 |
                          (uint64_t)site->region << 12 | (uint64_t)site->kind << 8 | site->flags;

    return ttm_hash_u64(ttm_hash_u64(low ^ seed) + high);
}

/* The place in the index where 'site' is, or where it would go. */
static uint32_t *find_place(const struct ttm_site_table *table, const struct ttm_site *site)
{
    uint32_t at = (uint32_t)site_hash(table->seed, site) & (table->index_size - 1);

    while (table->index[at] != 0 && !is_same(&table->sites[table->index[at] - 1], site))
        at = (at + 1) & (table->index_size - 1);
    return &table->index[at];
}

static int grow(struct ttm_site_table *table)
{
    const uint32_t room = table->room ? table->room * 2 : 16;
    struct ttm_site *sites = realloc(table->sites, room * sizeof(sites[0]));
    if (!sites)
        return -ENOMEM;
    table->sites = sites;
    struct ttm_site_counts *counts = realloc(table->counts, room * sizeof(counts[0]));
    if (!counts)
        return -ENOMEM;
    table->counts = counts;

    uint32_t *index = calloc((size_t)room * 2, sizeof(index[0]));
    if (!index)
        return -ENOMEM;
    free(table->index);
    table->index = index;
    table->index_size = room * 2;
    table->room = room;
    for (uint32_t i = 0; i < table->count; i++)
        *find_place(table, &table->sites[i]) = i + 1;
    return 0;
}

int ttm_site_table_intern(struct ttm_site_table *table, const struct ttm_site *site,
                          uint32_t *ret_number)
{
    if (table->count > 0) {
        if (is_same(&table->sites[table->last], site)) {
            *ret_number = table->last;
            return 0;
        }
        const uint32_t found = *find_place(table, site);
        if (found != 0) {
            table->last = found - 1;
            *ret_number = found - 1;
            return 0;
        }
    }
    if (table->count == TTM_SITES_MAX || !ttm_quota_allows(table->quota, 1))
        return -ENOSPC;
    if (table->count == table->room) {
        const int r = grow(table);
        if (r < 0)
            return r;
    }
    *find_place(table, site) = table->count + 1;
    table->sites[table->count] = *site;
    table->counts[table->count] = (struct ttm_site_counts){0};
    table->last = table->count;
    ttm_quota_add(table->quota, 1);
    *ret_number = table->count++;
    return 0;
}

void ttm_site_table_forget_lives(struct ttm_site_table *table)
{
    for (uint32_t i = 0; i < table->count; i++) {
        table->counts[i].live = 0;
        table->counts[i].bytes = 0;
        table->counts[i].footprint_bytes = 0;
    }
}
