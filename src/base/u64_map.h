/* SPDX-License-Identifier: Apache-2.0 */
/*
 * u64_map - from any 64-bit number to a 32-bit one. One thread.
 *
 * Open addressing; shrinks as it empties, so that its memory follows what it
 * holds. Growing moves everything at once.
 */
#ifndef TTM_BASE_U64_MAP_H
#define TTM_BASE_U64_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ttm_u64_map_place {
    uint64_t key;
    uint32_t value;
    uint32_t is_used;
};

struct ttm_u64_map {
    struct ttm_u64_map_place *places;
    size_t size; /* a power of two, or 0 */
    size_t count;
    uint64_t seed;
};

/* 'seed': any number that whoever chooses the keys does not know. */
void ttm_u64_map_init(struct ttm_u64_map *map, uint64_t seed);

/* Empties it and gives its memory back; it can be used again. */
void ttm_u64_map_done(struct ttm_u64_map *map);

/* Returns 0; -EEXIST when the key is in it, which changes nothing; -ENOMEM. */
int ttm_u64_map_add(struct ttm_u64_map *map, uint64_t key, uint32_t value);

/* Returns whether the key is in it. */
bool ttm_u64_map_find(const struct ttm_u64_map *map, uint64_t key, uint32_t *ret);

/* The same, and the key is not in it afterwards. */
bool ttm_u64_map_take(struct ttm_u64_map *map, uint64_t key, uint32_t *ret);

#endif /* TTM_BASE_U64_MAP_H */
