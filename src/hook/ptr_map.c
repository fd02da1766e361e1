/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open addressing within a window of PROBES slots behind a key's home. A removed
 * key leaves the mark FREED, as keys behind it were put there because of it; where
 * the next slot was never used nothing lies behind, and the slot is as new.
 */
#include "hook/ptr_map.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#define PROBES 64u
#define UNUSED ((uintptr_t)0)
#define FREED ((uintptr_t)1)

static struct ttm_ptr_slot *slot_at(const struct ttm_ptr_map *map, uint64_t home, uint32_t step)
{
    return &map->slots[(home + step) & (((uint64_t)1 << map->bits) - 1)];
}

/* The slot of a key, NULL when it is not there. */
static __attribute__((hot)) struct ttm_ptr_slot *slot_of(const struct ttm_ptr_map *map,
                                                         uintptr_t key)
{
    const uint64_t home = ttm_ptr_map_home(map, (const void *)key);

    for (uint32_t i = 0; i < PROBES; i++) {
        struct ttm_ptr_slot *slot = slot_at(map, home, i);
        /* acquire: pairs with the release in ttm_ptr_map_add(); the value is there. */
        const uintptr_t found = atomic_load_explicit(&slot->key, memory_order_acquire);

        if (__builtin_expect(found == key, 1))
            return slot;
        if (found == UNUSED)
            return NULL;
    }
    return NULL;
}

__attribute__((hot)) void *ttm_ptr_map_find(const struct ttm_ptr_map *map, const void *key)
{
    struct ttm_ptr_slot *slot = slot_of(map, (uintptr_t)key);

    /* relaxed: the acquire of the key covers it. */
    return slot ? atomic_load_explicit(&slot->value, memory_order_relaxed) : NULL;
}

static int add_within(const struct ttm_ptr_map *map, uintptr_t key, void *value, uint32_t probes)
{
    const uint64_t home = ttm_ptr_map_home(map, (const void *)key);

    for (uint32_t i = 0; i < probes; i++) {
        struct ttm_ptr_slot *slot = slot_at(map, home, i);

        /* relaxed: keys change under the lock alone. */
        if (atomic_load_explicit(&slot->key, memory_order_relaxed) > FREED)
            continue;
        atomic_store_explicit(&slot->value, value, memory_order_relaxed);
        /* release: pairs with the acquire in slot_of(). */
        atomic_store_explicit(&slot->key, key, memory_order_release);
        return 0;
    }
    return -ENOSPC;
}

int ttm_ptr_map_add(const struct ttm_ptr_map *map, const void *key, void *value)
{
    pthread_mutex_lock(map->lock);
    const int r =
        slot_of(map, (uintptr_t)key) ? -EEXIST : add_within(map, (uintptr_t)key, value, PROBES);
    pthread_mutex_unlock(map->lock);
    return r;
}

int ttm_ptr_map_add_first(const struct ttm_ptr_map *map, const void *key, void *value)
{
    pthread_mutex_lock(map->lock);
    const int r = add_within(map, (uintptr_t)key, value, 1);
    pthread_mutex_unlock(map->lock);
    return r;
}

static void *remove_locked(const struct ttm_ptr_map *map, uintptr_t key)
{
    struct ttm_ptr_slot *slot = slot_of(map, key);

    if (!slot)
        return NULL;
    void *value = atomic_load_explicit(&slot->value, memory_order_relaxed);
    struct ttm_ptr_slot *next = slot_at(map, (uint64_t)(slot - map->slots), 1);
    const bool is_last = atomic_load_explicit(&next->key, memory_order_relaxed) == UNUSED;
    /* release: nobody who still sees the key may see a later value. */
    atomic_store_explicit(&slot->key, is_last ? UNUSED : FREED, memory_order_release);
    return value;
}

void *ttm_ptr_map_remove(const struct ttm_ptr_map *map, const void *key)
{
    pthread_mutex_lock(map->lock);
    void *value = remove_locked(map, (uintptr_t)key);
    pthread_mutex_unlock(map->lock);
    return value;
}

void *ttm_ptr_map_next(const struct ttm_ptr_map *map, uint32_t *cursor, const void **ret_key)
{
    while (*cursor < (uint32_t)1 << map->bits) {
        struct ttm_ptr_slot *slot = &map->slots[(*cursor)++];
        /* acquire: as in slot_of(). */
        const uintptr_t key = atomic_load_explicit(&slot->key, memory_order_acquire);

        if (key > FREED) {
            *ret_key = (const void *)key; // NOLINT(performance-no-int-to-ptr): it was a pointer
            return atomic_load_explicit(&slot->value, memory_order_relaxed);
        }
    }
    return NULL;
}

void ttm_ptr_map_after_fork(const struct ttm_ptr_map *map)
{
    pthread_mutex_init(map->lock, NULL);
}
