/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/allocators.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "hook/devices.h"
#include "hook/ptr_map.h"

#define MAP_BITS 10
#define BUFFER_REGIONS (TTMEM_TRACE + 1)

struct ttm_allocator {
    uint16_t number;
    _Atomic bool is_described; /* the fields below are set */
    uint32_t devices;
    uint32_t granule; /* a power of two */
    uint32_t banks[BUFFER_REGIONS];
    struct ttm_bank_sizes sizes; /* empty until it is described */
};

TTM_PTR_MAP(known, MAP_BITS);

/* Guards the giving of numbers and descriptions. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint16_t last_number; /* 0 is left to programs that call libttmem themselves */

static bool is_taken(uint16_t number)
{
    uint32_t cursor = 0;
    const void *impl;
    const struct ttm_allocator *allocator;

    while ((allocator = ttm_ptr_map_next(&known, &cursor, &impl))) {
        if (allocator->number == number)
            return true;
    }
    return number == 0;
}

static struct ttm_allocator *meet_locked(const void *impl)
{
    struct ttm_allocator *allocator = ttm_ptr_map_find(&known, impl);

    if (allocator) /* another thread was faster */
        return allocator;
    allocator = aligned_alloc(_Alignof(struct ttm_allocator), sizeof(*allocator));
    if (!allocator)
        return NULL;
    memset(allocator, 0, sizeof(*allocator));
    do
        last_number++;
    while (is_taken(last_number)); /* the map has fewer places than there are numbers */
    allocator->number = last_number;
    if (ttm_ptr_map_add(&known, impl, allocator) < 0) {
        free(allocator);
        return NULL;
    }
    return allocator;
}

struct ttm_allocator *ttm_allocators_meet(const void *impl)
{
    struct ttm_allocator *allocator = ttm_ptr_map_find(&known, impl);

    if (__builtin_expect(allocator != NULL, 1))
        return allocator;
    pthread_mutex_lock(&lock);
    allocator = meet_locked(impl);
    pthread_mutex_unlock(&lock);
    return allocator;
}

struct ttm_allocator *ttm_allocators_find(const void *impl)
{
    return ttm_ptr_map_find(&known, impl);
}

void ttm_allocators_end(const void *impl)
{
    /* relaxed: see ttm_allocators_ends(). */
    atomic_fetch_add_explicit(&ttm_hot.state, TTM_ALLOCATORS_END, memory_order_relaxed);
    free(ttm_ptr_map_remove(&known, impl));
}

struct ttm_allocator *ttm_allocators_next(uint32_t *cursor, const void **ret_impl)
{
    return ttm_ptr_map_next(&known, cursor, ret_impl);
}

__attribute__((hot)) uint16_t ttm_allocator_number(const struct ttm_allocator *allocator)
{
    return allocator->number;
}

static bool describe_locked(struct ttm_allocator *allocator, const struct ttm_runtime *runtime,
                            const void *impl, const void *device)
{
    static struct ttm_chips chips; /* under the lock: large for somebody else's stack */
    uint64_t bytes;

    if (!runtime->metal->alignment(runtime, impl, &allocator->granule) ||
        (allocator->granule & (allocator->granule - 1)) != 0)
        allocator->granule = 1;
    if (!ttm_devices_behind(runtime, device, &chips))
        return false;
    for (uint32_t region = 0; region < BUFFER_REGIONS; region++) {
        if (!runtime->metal->banks(runtime, impl, (uint8_t)region, &allocator->banks[region],
                                   &bytes))
            allocator->banks[region] = 0;
    }
    allocator->devices = ttmem_devices(chips.ids, chips.count);
    /* release: pairs with the acquire in ttm_allocator_describe(). */
    atomic_store_explicit(&allocator->is_described, true, memory_order_release);
    return true;
}

bool ttm_allocator_describe(struct ttm_allocator *allocator, const struct ttm_runtime *runtime,
                            const void *impl, const void *device)
{
    pthread_mutex_lock(&lock);
    const bool is_known = atomic_load_explicit(&allocator->is_described, memory_order_relaxed) ||
                          describe_locked(allocator, runtime, impl, device);
    pthread_mutex_unlock(&lock);
    return is_known;
}

uint32_t ttm_allocator_devices(const struct ttm_allocator *allocator)
{
    return allocator->devices;
}

__attribute__((hot)) const struct ttm_bank_size *ttm_allocator_size(
    const struct ttm_allocator *allocator, uint32_t region, uint64_t bytes, uint64_t page_bytes)
{
    return ttm_bank_sizes_find(&allocator->sizes, region, bytes, page_bytes);
}

/*
 * Whatever the alignment of a region, its allocator hands out multiples of that of
 * DRAM: L1 buffers are aligned to 16 bytes and take 32 on Wormhole, 64 on Blackhole.
 */
bool ttm_allocator_place(struct ttm_allocator *allocator, const struct ttm_runtime *runtime,
                         const void *buffer, const struct ttm_buffer_facts *facts,
                         struct ttm_live *ret)
{
    uint64_t bytes;

    /* acquire: pairs with the release in describe_locked(). */
    if (!atomic_load_explicit(&allocator->is_described, memory_order_acquire))
        return false;
    ret->allocator = allocator->number;
    ret->devices = allocator->devices;
    ret->footprint_bytes = facts->bytes;
    if (allocator->banks[facts->region] == 0) /* system memory has none */
        return true;
    if (!runtime->metal->buffer_bank_bytes(runtime, buffer, &bytes))
        bytes = 0;
    const uint64_t rest = (uint64_t)allocator->granule - 1;
    const uint32_t banks = facts->banks > 0 ? facts->banks : allocator->banks[facts->region];
    ret->banks = (uint16_t)(banks <= TTM_LIVE_BANKS_MAX ? banks : 0);
    ret->footprint_bytes = ((bytes + rest) & ~rest) * banks;
    if (bytes > 0)
        ttm_bank_sizes_add(&allocator->sizes, facts, ret);
    return true;
}

void ttm_allocators_forget_notes(void)
{
    uint32_t cursor = 0;
    const void *impl;
    struct ttm_allocator *allocator;

    while ((allocator = ttm_ptr_map_next(&known, &cursor, &impl))) {
        atomic_store_explicit(&allocator->is_described, false, memory_order_relaxed); /* alone */
        ttm_bank_sizes_forget(&allocator->sizes);
    }
}

void ttm_allocators_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    ttm_ptr_map_after_fork(&known);
}
