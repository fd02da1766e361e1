/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sum goes over the cores of a device. Cores that the same core sets cover have
 * the same circular buffers, so each combination of sets is worked out once and
 * remembered by a hash of its members.
 */
#include "model/cb_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

void ttm_cb_map_init(struct ttm_cb_map *map)
{
    *map = (struct ttm_cb_map){0};
}

void ttm_cb_map_done(struct ttm_cb_map *map)
{
    free(map->cbs);
    free(map->core_sets);
    ttm_cb_map_init(map);
}

int ttm_cb_map_find_cores(const struct ttm_cb_map *map, uint32_t note)
{
    for (uint32_t i = map->core_set_count; i-- > 0;) {
        if (map->core_sets[i].note == note)
            return (int)i;
    }
    return -ENOENT;
}

int ttm_cb_map_add_cores(struct ttm_cb_map *map, uint32_t note, const struct ttm_core_range *ranges,
                         uint32_t count)
{
    struct ttm_core_set set = {.note = note};

    for (uint32_t i = 0; i < count; i++) {
        if (ranges[i].end_x >= TTM_CORE_GRID || ranges[i].end_y >= TTM_CORE_GRID)
            return -EINVAL;
        for (uint32_t y = ranges[i].start_y; y <= ranges[i].end_y; y++)
            for (uint32_t x = ranges[i].start_x; x <= ranges[i].end_x; x++)
                set.rows[y] |= 1u << x;
    }
    for (uint32_t y = 0; y < TTM_CORE_GRID; y++)
        set.count += (uint32_t)__builtin_popcount(set.rows[y]);
    if (map->core_set_count == TTM_CORE_SETS_MAX)
        return -ENOSPC;
    struct ttm_core_set *grown =
        realloc(map->core_sets, (map->core_set_count + 1) * sizeof(grown[0]));
    if (!grown)
        return -ENOMEM;
    map->core_sets = grown;
    map->core_sets[map->core_set_count] = set;
    return (int)map->core_set_count++;
}

int ttm_cb_map_add(struct ttm_cb_map *map, const struct ttm_cb *cb)
{
    if (map->count == TTM_CBS_MAX)
        return -ENOSPC;
    if (map->count == map->room) {
        const uint32_t room = map->room ? map->room * 2 : 64;
        struct ttm_cb *grown = realloc(map->cbs, room * sizeof(grown[0]));
        if (!grown)
            return -ENOMEM;
        map->cbs = grown;
        map->room = room;
    }
    map->cbs[map->count++] = *cb;
    map->is_changed = true;
    return 0;
}

void ttm_cb_map_remove(struct ttm_cb_map *map, uint64_t serial)
{
    for (uint32_t i = map->count; i-- > 0;) { /* the newest go first more often than not */
        if (map->cbs[i].serial != serial)
            continue;
        map->cbs[i] = map->cbs[--map->count];
        map->is_changed = true;
        return;
    }
}

void ttm_cb_map_clear(struct ttm_cb_map *map)
{
    map->is_changed = map->is_changed || map->count > 0;
    map->count = 0;
}

/* ---- sums ---- */

struct interval {
    uint64_t start, end;
};

static int compare_intervals(const void *a, const void *b)
{
    const struct interval *x = a;
    const struct interval *y = b;

    return x->start < y->start ? -1 : x->start > y->start;
}

static uint64_t union_of(struct interval *intervals, uint32_t count)
{
    uint64_t sum = 0, end = 0;

    qsort(intervals, count, sizeof(intervals[0]), compare_intervals);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t start = intervals[i].start > end ? intervals[i].start : end;
        if (intervals[i].end > start) {
            sum += intervals[i].end - start;
            end = intervals[i].end;
        }
    }
    return sum;
}

/* What one sum works with. */
struct work {
    const struct ttm_cb_map *map;
    uint32_t *cbs; /* those on the device: places in the map */
    uint32_t count;
    uint8_t *is_set_used; /* by one of them */
    struct interval *intervals;
    const uint64_t *programs;
    uint32_t program_count;
};

static bool has_core(const struct ttm_core_set *set, uint32_t x, uint32_t y)
{
    return (set->rows[y] >> x & 1) != 0;
}

/* The union of what lies on a core, of one program or of all (0). */
static uint64_t bytes_on_core(struct work *work, uint32_t x, uint32_t y, uint64_t program,
                              bool is_all)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < work->count; i++) {
        const struct ttm_cb *cb = &work->map->cbs[work->cbs[i]];
        if ((is_all || cb->program == program) &&
            has_core(&work->map->core_sets[cb->core_set], x, y))
            work->intervals[n++] = (struct interval){cb->address, cb->address + cb->core_bytes};
    }
    return n > 0 ? union_of(work->intervals, n) : 0;
}

/* A program without circular buffers leaves those of the one before as they were. */
static uint64_t resident_on_core(struct work *work, uint32_t x, uint32_t y)
{
    for (uint32_t i = 0; i < work->program_count; i++) {
        const uint64_t bytes = bytes_on_core(work, x, y, work->programs[i], false);
        if (bytes > 0)
            return bytes;
    }
    return 0;
}

/* Tells the combinations of core sets apart; 0 when none covers the core. */
static uint64_t signature(const struct work *work, uint32_t x, uint32_t y)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < work->map->core_set_count; i++) {
        if (work->is_set_used[i] && has_core(&work->map->core_sets[i], x, y))
            sum += ttm_hash_u64(i + 1);
    }
    return sum;
}

#define MEMO 64

static void sum_cores(struct work *work, struct ttm_cb_sums *ret)
{
    struct {
        uint64_t signature;
        struct ttm_cb_sums sums;
    } memo[MEMO] = {0};
    uint32_t known = 0;

    for (uint32_t y = 0; y < TTM_CORE_GRID; y++) {
        for (uint32_t x = 0; x < TTM_CORE_GRID; x++) {
            const uint64_t own = signature(work, x, y);
            struct ttm_cb_sums sums;
            uint32_t at = 0;
            if (own == 0)
                continue;
            while (at < known && memo[at].signature != own)
                at++;
            if (at < known) {
                sums = memo[at].sums;
            } else {
                sums.registered_bytes = bytes_on_core(work, x, y, 0, true);
                sums.resident_bytes = resident_on_core(work, x, y);
                if (known < MEMO) {
                    memo[known].signature = own;
                    memo[known++].sums = sums;
                }
            }
            ret->registered_bytes += sums.registered_bytes;
            ret->resident_bytes += sums.resident_bytes;
        }
    }
}

static bool is_on_device(const struct ttm_device_sets *sets, uint32_t set, uint16_t device)
{
    const struct ttm_device_set devices = ttm_device_sets_get(sets, set);

    for (uint16_t i = 0; i < devices.count; i++) {
        if (devices.devices[i] == device)
            return true;
    }
    return false;
}

int ttm_cb_map_sum(const struct ttm_cb_map *map, const struct ttm_device_sets *sets,
                   uint16_t device, const uint64_t *programs, uint32_t program_count,
                   struct ttm_cb_sums *ret)
{
    struct work work = {.map = map, .programs = programs, .program_count = program_count};

    *ret = (struct ttm_cb_sums){0};
    if (map->count == 0)
        return 0;
    work.cbs = malloc(map->count * sizeof(work.cbs[0]));
    work.intervals = malloc(map->count * sizeof(work.intervals[0]));
    work.is_set_used = calloc(map->core_set_count, 1);
    const int r = work.cbs && work.intervals && work.is_set_used ? 0 : -ENOMEM;
    for (uint32_t i = 0; r == 0 && i < map->count; i++) {
        if (!is_on_device(sets, map->cbs[i].device_set, device))
            continue;
        work.cbs[work.count++] = i;
        work.is_set_used[map->cbs[i].core_set] = 1;
    }
    if (r == 0)
        sum_cores(&work, ret);
    free(work.cbs);
    free(work.intervals);
    free(work.is_set_used);
    return r;
}
