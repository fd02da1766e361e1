/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two passes over the lives: the first finds how far the map reaches, the second
 * adds to each cell what is held of it. Allocations that overlap, which should not
 * be, count once at most: a cell holds no more than its size.
 */
#include "model/bank_map.h"

#include <stdbool.h>
#include <string.h>

#include "model/registry.h"
#include "wire/life_row.h"

struct draft {
    const struct ttm_registry *reg;
    const struct ttm_process *proc;
    uint16_t device;
    uint8_t region;
    uint32_t bank_count;
    uint64_t cell_bytes;
    uint64_t held[TTM_BANK_CELLS_MAX];
    struct ttm_bank_map *map;
};

/* An address that no device has would be beyond every sum below. */
static bool is_there(const struct draft *draft, const struct ttm_life *life,
                     const struct ttm_site *site)
{
    const struct ttm_device_set set = ttm_device_sets_get(&draft->reg->sets, site->device_set);

    if (site->region != draft->region || site->flags & TTM_SITE_ALIAS ||
        life->address > TTM_LIFE_BYTES_MAX)
        return false;
    for (uint16_t i = 0; i < set.count; i++) {
        if (set.devices[i] == draft->device)
            return true;
    }
    return false;
}

static uint64_t end_of(const struct draft *draft, const struct ttm_life *life)
{
    return life->address + (life->footprint_bytes + draft->bank_count - 1) / draft->bank_count;
}

static void keep_lowest(struct ttm_bank_map *map, const struct ttm_life *life, uint32_t origin)
{
    uint32_t at = map->lowest_count;

    while (at > 0 && map->lowest[at - 1].address > life->address)
        at--;
    if (at == TTM_BANK_LOWEST_MAX)
        return;
    if (map->lowest_count < TTM_BANK_LOWEST_MAX)
        map->lowest_count++;
    memmove(&map->lowest[at + 1], &map->lowest[at],
            (map->lowest_count - at - 1) * sizeof(map->lowest[0]));
    map->lowest[at] = (struct ttm_bank_low){life->address, life->footprint_bytes, origin};
}

static void measure(struct draft *draft, const struct ttm_life *life, const struct ttm_site *site)
{
    struct ttm_bank_map *map = draft->map;

    if (draft->bank_count > 0) {
        const uint64_t end = end_of(draft, life);
        map->start =
            map->lowest_count == 0 || life->address < map->start ? life->address : map->start;
        map->end = end > map->end ? end : map->end;
    }
    keep_lowest(map, life, site->origin);
}

static void fill(struct draft *draft, const struct ttm_life *life, const struct ttm_site *site)
{
    const uint64_t from = life->address - draft->map->start;
    const uint64_t to = end_of(draft, life) - draft->map->start;

    (void)site;
    for (uint64_t cell = from / draft->cell_bytes; cell * draft->cell_bytes < to; cell++) {
        const uint64_t start = cell * draft->cell_bytes, end = start + draft->cell_bytes;
        draft->held[cell] += (to < end ? to : end) - (from > start ? from : start);
    }
}

/* Calls 'fn' for each life in that region of that device. Returns 0 or -ENOMEM. */
static int each_life(struct draft *draft,
                     void (*fn)(struct draft *, const struct ttm_life *, const struct ttm_site *))
{
    struct ttm_life_view view;
    const struct ttm_life *life;
    uint64_t at = 0;

    const int r = ttm_life_view_take(&draft->proc->lives.store, &view);
    if (r < 0)
        return r;
    while ((life = ttm_life_view_next(&view, &at)) != NULL) {
        const struct ttm_site *site = ttm_site_table_get(&draft->proc->sites, life->site);
        if (is_there(draft, life, site))
            fn(draft, life, site);
    }
    (void)ttm_life_view_release(&view, UINT32_MAX);
    return 0;
}

static void judge(struct draft *draft)
{
    struct ttm_bank_map *map = draft->map;

    for (uint32_t i = 0; i < map->cell_count; i++) {
        const uint64_t left = map->end - map->start - i * draft->cell_bytes;
        const uint64_t whole = left < draft->cell_bytes ? left : draft->cell_bytes;
        map->cells[i] = draft->held[i] == 0       ? TTM_CELL_FREE
                        : draft->held[i] >= whole ? TTM_CELL_HELD
                                                  : TTM_CELL_PART;
    }
}

int ttm_bank_map_draw(const struct ttm_registry *reg, const struct ttm_process *proc,
                      uint16_t device, uint8_t region, uint32_t bank_count, uint32_t cell_count,
                      struct ttm_bank_map *ret)
{
    struct draft draft = {
        .reg = reg,
        .proc = proc,
        .device = device,
        .region = region,
        .bank_count = bank_count,
        .map = ret,
    };

    *ret = (struct ttm_bank_map){0};
    int r = each_life(&draft, measure);
    const uint64_t bytes = ret->end - ret->start;
    if (r < 0 || bytes == 0 || cell_count == 0)
        return r;
    cell_count = cell_count < TTM_BANK_CELLS_MAX ? cell_count : TTM_BANK_CELLS_MAX;
    draft.cell_bytes = (bytes + cell_count - 1) / cell_count;
    ret->cell_count = (uint32_t)((bytes + draft.cell_bytes - 1) / draft.cell_bytes);
    r = each_life(&draft, fill);
    judge(&draft);
    return r;
}
