/* SPDX-License-Identifier: Apache-2.0 */
#include "base/u64_map.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

#define SIZE_MIN 64

void ttm_u64_map_init(struct ttm_u64_map *map, uint64_t seed)
{
    *map = (struct ttm_u64_map){.seed = seed};
}

void ttm_u64_map_done(struct ttm_u64_map *map)
{
    free(map->places);
    ttm_u64_map_init(map, map->seed);
}

static size_t home_of(const struct ttm_u64_map *map, size_t size, uint64_t key)
{
    return (size_t)ttm_hash_u64(key ^ map->seed) & (size - 1);
}

/* Where 'key' is, or the empty place where it would go. There is always an empty one. */
static struct ttm_u64_map_place *place_of(const struct ttm_u64_map *map,
                                          struct ttm_u64_map_place *places, size_t size,
                                          uint64_t key)
{
    size_t at = home_of(map, size, key);

    while (places[at].is_used && places[at].key != key)
        at = (at + 1) & (size - 1);
    return &places[at];
}

static int resize(struct ttm_u64_map *map, size_t size)
{
    struct ttm_u64_map_place *places = calloc(size, sizeof(places[0]));

    if (!places)
        return -ENOMEM;
    for (size_t i = 0; i < map->size; i++) {
        if (map->places[i].is_used)
            *place_of(map, places, size, map->places[i].key) = map->places[i];
    }
    free(map->places);
    map->places = places;
    map->size = size;
    return 0;
}

int ttm_u64_map_add(struct ttm_u64_map *map, uint64_t key, uint32_t value)
{
    if (map->count * 4 >= map->size * 3 && resize(map, map->size ? map->size * 2 : SIZE_MIN) < 0)
        return -ENOMEM;
    struct ttm_u64_map_place *place = place_of(map, map->places, map->size, key);
    if (place->is_used)
        return -EEXIST;
    *place = (struct ttm_u64_map_place){.key = key, .value = value, .is_used = 1};
    map->count++;
    return 0;
}

bool ttm_u64_map_find(const struct ttm_u64_map *map, uint64_t key, uint32_t *ret)
{
    if (map->count == 0)
        return false;
    const struct ttm_u64_map_place *place = place_of(map, map->places, map->size, key);
    if (!place->is_used)
        return false;
    *ret = place->value;
    return true;
}

bool ttm_u64_map_take(struct ttm_u64_map *map, uint64_t key, uint32_t *ret)
{
    if (map->count == 0)
        return false;
    struct ttm_u64_map_place *places = map->places;
    const size_t mask = map->size - 1;
    size_t hole = (size_t)(place_of(map, places, map->size, key) - places);

    if (!places[hole].is_used)
        return false;
    *ret = places[hole].value;
    /* What follows in the run moves up where it may, so that no search stops at the hole. */
    for (size_t at = (hole + 1) & mask; places[at].is_used; at = (at + 1) & mask) {
        const size_t home = home_of(map, map->size, places[at].key);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            places[hole] = places[at];
            hole = at;
        }
    }
    places[hole].is_used = 0;
    map->count--;
    /* Without memory for a smaller one it stays as large as it is. */
    if (map->size > SIZE_MIN && map->count * 8 < map->size)
        (void)resize(map, map->size / 2);
    return true;
}
