/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/devices.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "hook/allocators.h"
#include "hook/keepers.h"
#include "hook/origins.h"
#include "hook/programs.h"
#include "hook/ptr_map.h"
#include "hook/tracking.h"

#define CHIP_IDS 1024u
#define MAP_BITS 11 /* a Device each */
#define MESHES_BITS 9

/* From the Device of a chip to its id plus one, as a value of 0 would be none, and this bit. */
TTM_PTR_MAP(open_chips, MAP_BITS);
#define CLOSED_EARLY ((uintptr_t)1 << 16) /* by the runtime, for a mesh that does not have it */

static uint16_t id_in(uintptr_t value)
{
    return (uint16_t)((value & ~CLOSED_EARLY) - 1);
}

/* From the MeshDeviceImpl of a mesh to its chips; the runtime cannot be asked when it is closed again. */
TTM_PTR_MAP(open_meshes, MESHES_BITS);

/*
 * Meshes that are being closed, and how many of them have each chip. With one of two boards of a
 * pair the runtime closes the chips of both, while a mesh of the other goes on as if it were open:
 * its allocator has its buffers and gives out more. They end when that mesh is closed.
 */
static _Atomic uint32_t closings;
static _Atomic uint16_t closing[CHIP_IDS];

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

    if (chips && runtime->metal->chips_of_mesh_impl(runtime, impl, chips)) {
        meet(runtime, chips);
        free(ttm_ptr_map_remove(&open_meshes, impl)); /* one that went without being closed */
        if (ttm_ptr_map_add(&open_meshes, impl, chips) == 0)
            chips = NULL;
    }
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
    ret->ids[0] = id_in(value);
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

static void close_chip(const void *device)
{
    const uintptr_t value = (uintptr_t)ttm_ptr_map_remove(&open_chips, device);

    if (value == 0)
        return;
    ttm_programs_close_chip(id_in(value));
    if (ttm_tracking_is_on())
        ttmem_device_close(id_in(value));
}

/* Is it one that no mesh has that is being closed, while others are? */
static bool is_foreign(uint16_t id)
{
    /* relaxed: the thread that closes meshes calls this, or is waited for by it. */
    return atomic_load_explicit(&closings, memory_order_relaxed) > 0 && id < CHIP_IDS &&
           atomic_load_explicit(&closing[id], memory_order_relaxed) == 0;
}

static void closed(const struct ttm_runtime *runtime, void *device, void *unused)
{
    const int saved_errno = ttm_event_begin();
    const uintptr_t value = (uintptr_t)ttm_ptr_map_find(&open_chips, device);

    (void)runtime, (void)unused;
    if (value != 0 && is_foreign(id_in(value))) {
        (void)ttm_ptr_map_remove(&open_chips, device);
        // NOLINTNEXTLINE(performance-no-int-to-ptr): it is a number
        (void)ttm_ptr_map_add(&open_chips, device, (void *)(value | CLOSED_EARLY));
    } else {
        close_chip(device);
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
        tell(runtime, device, id_in((uintptr_t)value));
}

/* One more mesh with these chips is being closed, or one less. */
static void count_closing(const struct ttm_chips *chips, int by)
{
    /* relaxed: see is_foreign(). */
    for (uint32_t i = 0; i < chips->count; i++) {
        if (chips->ids[i] < CHIP_IDS)
            atomic_fetch_add_explicit(&closing[chips->ids[i]], (uint16_t)by, memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&closings, (uint32_t)by, memory_order_relaxed);
}

static void mesh_closing(const struct ttm_runtime *runtime, void *impl, void *unused)
{
    (void)runtime, (void)unused;
    ttm_keepers_before_close();
    const int saved_errno = ttm_event_begin();
    const struct ttm_chips *chips = ttm_ptr_map_find(&open_meshes, impl);

    if (chips)
        count_closing(chips, 1);
    ttm_event_end(saved_errno);
}

static void mesh_closed(const struct ttm_runtime *runtime, void *impl, void *unused)
{
    const int saved_errno = ttm_event_begin();
    struct ttm_chips *chips = ttm_ptr_map_remove(&open_meshes, impl);

    (void)runtime, (void)unused;
    for (uint32_t i = 0; chips && i < chips->count; i++) {
        const uintptr_t value = (uintptr_t)ttm_ptr_map_find(&open_chips, chips->devices[i]);

        if ((value & CLOSED_EARLY) != 0)
            close_chip(chips->devices[i]);
    }
    if (chips)
        count_closing(chips, -1);
    free(chips);
    ttm_event_end(saved_errno);
}

static void mesh_not_closed(const struct ttm_runtime *runtime, void *impl, void *unused)
{
    const int saved_errno = ttm_event_begin();
    const struct ttm_chips *chips = ttm_ptr_map_find(&open_meshes, impl);

    (void)runtime, (void)unused;
    if (chips)
        count_closing(chips, -1);
    ttm_event_end(saved_errno);
}

const struct ttm_guard ttm_mesh_closing = {mesh_closing, mesh_closed, mesh_not_closed};

void ttm_devices_after_fork(void)
{
    ttm_ptr_map_after_fork(&open_chips);
    ttm_ptr_map_after_fork(&open_meshes);
    atomic_store_explicit(&closings, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < CHIP_IDS; i++)
        atomic_store_explicit(&closing[i], 0, memory_order_relaxed);
}
