/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hook/core_set.h"

#define PARTS_MAX 65536u

void ttm_parts_done(struct ttm_parts *list)
{
    free(list->items);
    free(list->ranges);
    *list = (struct ttm_parts){0};
}

static int reserve(void **memory, uint32_t *capacity, uint32_t wanted, size_t size)
{
    if (wanted <= *capacity)
        return 0;
    uint32_t larger = *capacity ? *capacity : 8;
    while (larger < wanted)
        larger *= 2;
    void *grown = reallocarray(*memory, larger, size);
    if (!grown)
        return -ENOMEM;
    *memory = grown;
    *capacity = larger;
    return 0;
}

static int append(struct ttm_parts *list, const struct ttm_part *part,
                  const struct ttmem_core_range *ranges, uint32_t range_count)
{
    if (list->count >= PARTS_MAX)
        return -E2BIG;
    int r = reserve((void **)&list->items, &list->capacity, list->count + 1, sizeof(*list->items));
    if (r == 0)
        r = reserve((void **)&list->ranges, &list->range_capacity, list->range_count + range_count,
                    sizeof(*list->ranges));
    if (r < 0)
        return r;
    struct ttm_part *added = &list->items[list->count++];
    *added = *part;
    added->first_range = list->range_count;
    added->range_count = range_count;
    added->cores = ttm_cores_count(ranges, range_count);
    if (range_count)
        memcpy(&list->ranges[list->range_count], ranges, range_count * sizeof(*ranges));
    list->range_count += range_count;
    return 0;
}

/* The same part on more cores: its ranges are written anew at the end, the old ones stay unused. */
static int widen(struct ttm_parts *list, struct ttm_part *part, const struct ttm_core_set *more)
{
    struct ttm_core_set all = {.count = part->range_count};

    memcpy(all.ranges, &list->ranges[part->first_range], part->range_count * sizeof(*all.ranges));
    ttm_core_set_join(&all, more);
    const int r = reserve((void **)&list->ranges, &list->range_capacity,
                          list->range_count + all.count, sizeof(*list->ranges));
    if (r < 0)
        return r;
    memcpy(&list->ranges[list->range_count], all.ranges, all.count * sizeof(*all.ranges));
    part->first_range = list->range_count;
    part->range_count = all.count;
    part->cores = ttm_cores_count(all.ranges, all.count);
    list->range_count += all.count;
    return 0;
}

int ttm_parts_add(struct ttm_parts *list, const struct ttm_part *part,
                  const struct ttm_core_set *cores)
{
    for (uint32_t i = 0; i < list->count && part->source == TTM_PART_DFB; i++) {
        struct ttm_part *other = &list->items[i];

        if (other->address == part->address && other->core_bytes == part->core_bytes &&
            other->source == part->source)
            return widen(list, other, cores);
    }
    return append(list, part, cores->ranges, cores->count);
}

bool ttm_parts_remove(struct ttm_parts *list, enum ttm_part_source source)
{
    struct ttm_parts kept = {0};
    const uint32_t before = list->count;

    for (uint32_t i = 0; i < list->count; i++) {
        const struct ttm_part *part = &list->items[i];

        if (part->source != source)
            (void)append(&kept, part, &list->ranges[part->first_range], part->range_count);
    }
    const bool has_removed = kept.count != before;
    ttm_parts_done(list);
    *list = kept;
    return has_removed;
}

void ttm_parts_move(struct ttm_parts *list, struct ttm_parts *from)
{
    for (uint32_t i = 0; i < from->count; i++) {
        const struct ttm_part *part = &from->items[i];

        (void)append(list, part, &from->ranges[part->first_range], part->range_count);
    }
    ttm_parts_done(from);
}

uint8_t ttm_part_region(enum ttm_part_source source)
{
    return source == TTM_PART_KERNEL ? TTMEM_KERNEL : TTMEM_CB;
}

bool ttm_parts_have(const struct ttm_parts *list, uint8_t region)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (ttm_part_region(list->items[i].source) == region)
            return true;
    }
    return false;
}

uint64_t ttm_parts_end_on(const struct ttm_parts *list, const struct ttm_core_set *cores)
{
    uint64_t end = 0;

    for (uint32_t i = 0; i < list->count; i++) {
        const struct ttm_part *part = &list->items[i];

        if (part->source == TTM_PART_KERNEL ||
            !ttm_cores_intersect(&list->ranges[part->first_range], part->range_count, cores->ranges,
                                 cores->count))
            continue;
        if (part->address + part->core_bytes > end)
            end = part->address + part->core_bytes;
    }
    return end;
}
