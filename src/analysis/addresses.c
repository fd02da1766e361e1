/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/addresses.h"

#include <stdlib.h>

#include "wire/life_row.h"

struct ttm_memory {
    uint32_t allocator;
    uint32_t devices;
    uint8_t region;
    struct ttm_extents extents;
};

void ttm_addresses_init(struct ttm_addresses *addresses, uint64_t seed)
{
    *addresses = (struct ttm_addresses){0};
    ttm_u64_map_init(&addresses->reused_places, seed);
}

void ttm_addresses_done(struct ttm_addresses *addresses)
{
    for (uint32_t i = 0; i < addresses->memory_count; i++)
        ttm_extents_done(&addresses->memories[i].extents);
    free(addresses->memories);
    free(addresses->reused);
    ttm_u64_map_done(&addresses->reused_places);
    *addresses = (struct ttm_addresses){0};
}

#define MEMORIES_MAX 256

static struct ttm_memory *memory_of(struct ttm_addresses *addresses,
                                    const struct ttm_recorded_life *life)
{
    for (uint32_t i = 0; i < addresses->memory_count; i++) {
        struct ttm_memory *memory = &addresses->memories[i];
        if (memory->allocator == life->allocator && memory->devices == life->devices &&
            memory->region == life->region)
            return memory;
    }
    if (addresses->memory_count == MEMORIES_MAX)
        return NULL;
    struct ttm_memory *grown =
        realloc(addresses->memories, (addresses->memory_count + 1) * sizeof(grown[0]));
    if (!grown)
        return NULL;
    addresses->memories = grown;
    struct ttm_memory *memory = &grown[addresses->memory_count++];
    *memory = (struct ttm_memory){
        .allocator = life->allocator, .devices = life->devices, .region = life->region};
    ttm_extents_init(&memory->extents);
    return memory;
}

bool ttm_addresses_put(struct ttm_addresses *addresses, const struct ttm_recorded_life *life,
                       uint64_t bank_bytes)
{
    const uint64_t end = life->address + bank_bytes;
    struct ttm_memory *memory =
        bank_bytes > 0 && end > life->address ? memory_of(addresses, life) : NULL;
    struct ttm_extent other;

    if (!memory)
        return false;
    const int r = ttm_extents_add(&memory->extents, life->address, end, &other);
    if (r == 1 && addresses->overlaps++ == 0) {
        addresses->overlap[0] = (struct ttm_extent){life->address, end};
        addresses->overlap[1] = other;
        addresses->overlap_region = life->region;
    }
    return r == 0;
}

void ttm_addresses_take(struct ttm_addresses *addresses, const struct ttm_recorded_life *life,
                        uint64_t bank_bytes)
{
    struct ttm_memory *memory = memory_of(addresses, life);

    if (memory)
        (void)ttm_extents_remove(&memory->extents, life->address, life->address + bank_bytes);
}

/* The place of an address that is watched + 1, else 0. */
/* Room for one more address; it doubles, as there may be one of these for each of many processes. */
static bool make_reused_room(struct ttm_addresses *addresses)
{
    const uint32_t count = addresses->reused_count;

    if (addresses->reused && (count & (count - 1)) != 0) /* room is made at powers of two */
        return true;
    const uint32_t room = count > 0 ? count * 2 : 1;
    struct ttm_reused *grown = realloc(addresses->reused, room * sizeof(grown[0]));
    if (!grown)
        return false;
    addresses->reused = grown;
    return true;
}

static uint32_t watch_address(struct ttm_addresses *addresses, const struct ttm_recorded_life *life)
{
    const uint64_t key =
        life->address ^ (uint64_t)life->region << 60 ^ (uint64_t)life->devices << 40;
    uint32_t place;

    if (ttm_u64_map_find(&addresses->reused_places, key, &place))
        return place + 1;
    if (addresses->reused_count == TTM_REUSED_ADDRESSES)
        return 0;
    if (!make_reused_room(addresses) ||
        ttm_u64_map_add(&addresses->reused_places, key, addresses->reused_count) < 0)
        return 0;
    addresses->reused[addresses->reused_count] = (struct ttm_reused){.address = life->address,
                                                                     .devices = life->devices,
                                                                     .region = life->region,
                                                                     .smallest_bytes = UINT64_MAX};
    return ++addresses->reused_count;
}

uint32_t ttm_addresses_count(struct ttm_addresses *addresses, const struct ttm_recorded_life *life)
{
    const uint32_t place = life->region < TTM_REGION_CB ? watch_address(addresses, life) : 0;

    if (place == 0)
        return 0;
    struct ttm_reused *reused = &addresses->reused[place - 1];
    reused->births++;
    if (life->bytes > reused->largest_bytes)
        reused->largest_bytes = life->bytes;
    if (life->bytes < reused->smallest_bytes)
        reused->smallest_bytes = life->bytes;
    return place;
}
