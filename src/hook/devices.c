/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/devices.h"

#include <stdlib.h>

#include "hook/allocators.h"
#include "hook/origins.h"
#include "hook/programs.h"
#include "hook/ptr_map.h"
#include "hook/tracking.h"

#define MAP_BITS 11 /* a Device each; there are at most 1024 ids */

/* From the Device of a chip to its id plus one, as a value of 0 would be none. */
TTM_PTR_MAP(open_chips, MAP_BITS);

static void tell(const struct ttm_runtime *runtime, const void *device, uint16_t id)
{
    struct ttmem_device facts = {.id = id};

    if (ttm_tracking_is_on() && runtime->metal->chip_describe(runtime, device, &facts))
        ttmem_device_open(&facts);
}

static void meet(const struct ttm_runtime *runtime, const struct ttm_chips *chips)
{
    for (uint32_t i = 0; i < chips->count; i++) {
        void *value = (void *)((uintptr_t)chips->ids[i] + 1); // NOLINT(performance-no-int-to-ptr)

        if (ttm_ptr_map_add(&open_chips, chips->devices[i], value) == 0)
            tell(runtime, chips->devices[i], chips->ids[i]);
    }
}

void ttm_devices_open(const struct ttm_runtime *runtime, const void *impl)
{
    ttm_tracking_look_at_environment();
    const int saved_errno = ttm_event_begin();
    struct ttm_chips *chips = malloc(sizeof(*chips)); /* large for somebody else's stack */

    if (chips && runtime->metal->chips_of_mesh_impl(runtime, impl, chips))
        meet(runtime, chips);
    free(chips);
    ttm_event_end(saved_errno);
    ttm_origins_use_gil();
}

bool ttm_devices_behind(const struct ttm_runtime *runtime, const void *device,
                        struct ttm_chips *ret)
{
    if (runtime->metal->chips_of(runtime, device, ret)) {
        meet(runtime, ret);
        return true;
    }
    const uintptr_t value = (uintptr_t)ttm_ptr_map_find(&open_chips, device);
    if (value == 0)
        return false;
    ret->count = 1;
    ret->ids[0] = (uint16_t)(value - 1);
    ret->devices[0] = device;
    return true;
}

static void discover(const void *mesh, void *context)
{
    const struct ttm_runtime *runtime = context;
    const void *allocator;
    struct ttm_chips *chips = malloc(sizeof(*chips)); /* large for somebody else's stack */

    if (runtime->metal->allocator_of(runtime, mesh, &allocator))
        (void)ttm_allocators_meet(allocator);
    if (chips && runtime->metal->chips_of(runtime, mesh, chips)) {
        meet(runtime, chips);
        for (uint32_t i = 0; i < chips->count; i++) { /* for what lies in single cores */
            if (runtime->metal->allocator_of(runtime, chips->devices[i], &allocator))
                (void)ttm_allocators_meet(allocator);
        }
    }
    free(chips);
}

void ttm_devices_discover(const struct ttm_runtime *runtime)
{
    const int saved_errno = ttm_event_begin();
    /* The visitor takes it back as what it is; nothing of it is changed. */
    void *context = (void *)(uintptr_t)runtime; // NOLINT(performance-no-int-to-ptr)

    (void)runtime->metal->each_mesh(runtime, discover, context);
    ttm_event_end(saved_errno);
}

static void nothing(const struct ttm_runtime *runtime, void *device, void *unused)
{
    (void)runtime, (void)device, (void)unused; /* a close that fails leaves it open */
}

static void closed(const struct ttm_runtime *runtime, void *device, void *unused)
{
    const int saved_errno = ttm_event_begin();
    const uintptr_t value = (uintptr_t)ttm_ptr_map_remove(&open_chips, device);

    (void)runtime, (void)unused;
    if (value != 0) {
        const uint16_t id = (uint16_t)(value - 1);

        ttm_programs_close_chip(id);
        if (ttm_tracking_is_on())
            ttmem_device_close(id);
    }
    ttm_event_end(saved_errno);
}

const struct ttm_guard ttm_device_closing = {nothing, closed, nothing};

void ttm_devices_tell_all(const struct ttm_runtime *runtime)
{
    uint32_t cursor = 0;
    const void *device;
    void *value;

    while ((value = ttm_ptr_map_next(&open_chips, &cursor, &device)))
        tell(runtime, device, (uint16_t)((uintptr_t)value - 1));
}

void ttm_devices_after_fork(void)
{
    ttm_ptr_map_after_fork(&open_chips);
}
