/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptr_map - from an object of TT-Metal to what the hook knows of it.
 *
 * Any thread looks up without a lock, in a few nanoseconds; changes take the
 * map's lock. Keys are addresses of live objects, so nobody looks up a key while
 * another thread removes it; lookups of other keys are not disturbed, as nothing
 * ever moves. The size is fixed; the map never allocates.
 */
#ifndef TTM_HOOK_PTR_MAP_H
#define TTM_HOOK_PTR_MAP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct ttm_ptr_slot {
    _Atomic(uintptr_t) key; /* 0: never used; 1: free again, others may lie behind it */
    _Atomic(void *) value;
};

struct ttm_ptr_map {
    pthread_mutex_t *lock; /* guards changes of the slots */
    uint32_t bits;
    struct ttm_ptr_slot *slots; /* 2^bits */
};

/*
 * A static map with room for up to 2^bits keys; a crowded neighbourhood may be full before. The map
 * itself never changes, so that a lookup need not read it.
 */
#define TTM_PTR_MAP(name, size_bits)                                                               \
    static struct ttm_ptr_slot name##_slots[(size_t)1 << (size_bits)];                             \
    static pthread_mutex_t name##_lock = PTHREAD_MUTEX_INITIALIZER;                                \
    static const struct ttm_ptr_map name = {                                                       \
        .lock = &name##_lock, .bits = (size_bits), .slots = name##_slots}

/* Where a key is looked for first: addresses differ in their middle bits, which this brings to the top. */
static inline uint64_t ttm_ptr_map_home(const struct ttm_ptr_map *map, const void *key)
{
    return (uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15ull >> (64 - map->bits);
}

/* NULL when the key is not there. */
void *ttm_ptr_map_find(const struct ttm_ptr_map *map, const void *key);

/* The same for a key that lies where it is looked for first, which most do; NULL too when it does not. */
static inline void *ttm_ptr_map_find_first(const struct ttm_ptr_map *map, const void *key)
{
    const struct ttm_ptr_slot *slot = &map->slots[ttm_ptr_map_home(map, key)];

    /* acquire: pairs with the release in ttm_ptr_map_add(); relaxed: that covers it. */
    return __builtin_expect(
               atomic_load_explicit(&slot->key, memory_order_acquire) == (uintptr_t)key, 1)
               ? atomic_load_explicit(&slot->value, memory_order_relaxed)
               : NULL;
}

/* 'value' is not NULL and stays the caller's. Returns 0; -EEXIST; -ENOSPC. */
int ttm_ptr_map_add(const struct ttm_ptr_map *map, const void *key, void *value);

/* The same, only where ttm_ptr_map_find_first() finds it; else -ENOSPC. For a key that is not there. */
int ttm_ptr_map_add_first(const struct ttm_ptr_map *map, const void *key, void *value);

/* Returns the value, NULL when the key is not there. */
void *ttm_ptr_map_remove(const struct ttm_ptr_map *map, const void *key);

/*
 * The next value from '*cursor' on (0 at first), and its key; NULL at the end. What
 * changes meanwhile may or may not be met.
 */
void *ttm_ptr_map_next(const struct ttm_ptr_map *map, uint32_t *cursor, const void **ret_key);

/* In the child of a fork, where the thread that held the lock may not exist. */
void ttm_ptr_map_after_fork(const struct ttm_ptr_map *map);

#endif /* TTM_HOOK_PTR_MAP_H */
