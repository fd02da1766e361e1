/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/devices.h"

#include <pthread.h>
#include <stdlib.h>

#include "hook/allocators.h"
#include "hook/buffers.h"
#include "hook/keepers.h"
#include "hook/opening.h"
#include "hook/origins.h"
#include "hook/programs.h"
#include "hook/ptr_map.h"
#include "hook/tracking.h"

#define MAP_BITS 11 /* a Device each */
#define MESHES_BITS 9

/*
 * When a chip is closed. A mesh and its submeshes have chips in common, and an allocator each that
 * ends with its mesh. The runtime closes the Devices of all of them with the last, which need not
 * have those chips itself. With one of two boards of a pair, or one of two meshes over the same
 * chips, it closes Devices that an open mesh has: that mesh goes on as if they were open, its
 * allocator has its buffers and gives out more.
 *
 * So a chip is closed once both are true: the runtime has closed its Device, and no open mesh has
 * it. Until then its buffers end with their allocators, one by one. A mesh whose Devices were closed
 * before it does nothing when it is closed, and its allocator stays as it is until the mesh object
 * goes; for its user it is closed, so we end that allocator.
 */

/* Guards the changes of both maps. Nothing else of the hook is called under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* From the Device of a chip to its id plus one, as a value of 0 would be none, and this bit. */
TTM_PTR_MAP(open_chips, MAP_BITS);
#define CLOSED_BY_RUNTIME ((uintptr_t)1 << 16)

/* The runtime cannot be asked when the mesh is closed again. */
struct open_mesh {
    struct ttm_chips chips;
    const void *allocator; /* set while the runtime closes the mesh; NULL: not known */
    uint16_t allocator_number;
};

/* By MeshDeviceImpl, or by MeshDevice where the mesh was open before us. */
TTM_PTR_MAP(open_meshes, MESHES_BITS);

static uint16_t id_in(uintptr_t value)
{
    return (uint16_t)((value & ~CLOSED_BY_RUNTIME) - 1);
}

static void tell(const struct ttm_runtime *runtime, const void *device, uint16_t id)
{
    struct ttmem_device facts = {.id = id};

    if (ttm_tracking_is_on() && runtime->metal->chip_describe(runtime, device, &facts))
        ttmem_device_open(&facts);
}

static uintptr_t chip_find(const void *device)
{
    return (uintptr_t)ttm_ptr_map_find(&open_chips, device);
}

static int chip_add(const void *device, uintptr_t value)
{
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it is a number
    return ttm_ptr_map_add(&open_chips, device, (void *)value);
}

/* Under the lock. For a chip that is there. */
static void chip_set(const void *device, uintptr_t value)
{
    (void)ttm_ptr_map_remove(&open_chips, device);
    (void)chip_add(device, value);
}

static void meet(const struct ttm_runtime *runtime, const struct ttm_chips *chips)
{
    ttm_opening_done();
    for (uint32_t i = 0; i < chips->count; i++) {
        pthread_mutex_lock(&lock);
        const bool is_new = chip_add(chips->devices[i], (uintptr_t)chips->ids[i] + 1) == 0;
        pthread_mutex_unlock(&lock);
        if (is_new)
            tell(runtime, chips->devices[i], chips->ids[i]);
    }
}

/* Under the lock. */
static bool is_in_open_mesh(const void *device)
{
    uint32_t cursor = 0;
    const void *mesh;
    const struct open_mesh *open;

    while ((open = ttm_ptr_map_next(&open_meshes, &cursor, &mesh))) {
        for (uint32_t i = 0; i < open->chips.count; i++) {
            if (open->chips.devices[i] == device)
                return true;
        }
    }
    return false;
}

/* Under the lock. Forgets the chip if it is closed. */
static bool forget_if_closed(const void *device)
{
    if ((chip_find(device) & CLOSED_BY_RUNTIME) == 0 || is_in_open_mesh(device))
        return false;
    (void)ttm_ptr_map_remove(&open_chips, device);
    return true;
}

static void end_chip(uint16_t id)
{
    ttm_programs_close_chip(id);
    if (ttm_tracking_is_on())
        ttmem_device_close(id);
}

/* Not where the runtime has ended it, even if another has its place now. */
static void end_allocator(const void *impl, uint16_t number)
{
    const struct ttm_allocator *allocator = impl ? ttm_allocators_find(impl) : NULL;

    if (allocator && ttm_allocator_number(allocator) == number)
        ttm_buffers_close_allocator(impl);
}

/* A mesh is no longer open, if it was. */
static void forget_mesh(const void *mesh)
{
    uint32_t ended = 0;

    pthread_mutex_lock(&lock);
    struct open_mesh *open = ttm_ptr_map_remove(&open_meshes, mesh);
    for (uint32_t i = 0; open && i < open->chips.count; i++) {
        if (forget_if_closed(open->chips.devices[i]))
            open->chips.ids[ended++] = open->chips.ids[i];
    }
    pthread_mutex_unlock(&lock);
    if (!open)
        return;
    end_allocator(open->allocator, open->allocator_number);
    for (uint32_t i = 0; i < ended; i++)
        end_chip(open->chips.ids[i]);
    free(open);
}

/*
 * Takes 'open' over. Where there is no room, or the close of a mesh cannot be observed, its chips
 * are closed when the runtime closes them.
 */
static void remember_mesh(const struct ttm_runtime *runtime, const void *mesh,
                          struct open_mesh *open)
{
    pthread_mutex_lock(&lock);
    const bool is_kept =
        runtime->originals[TTM_HOOK_MESH_CLOSE] && ttm_ptr_map_add(&open_meshes, mesh, open) == 0;
    pthread_mutex_unlock(&lock);
    if (!is_kept)
        free(open);
}

/* The runtime has opened their Devices again, for a mesh that is ready. */
static void reopen(const struct ttm_chips *chips)
{
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < chips->count; i++) {
        const uintptr_t value = chip_find(chips->devices[i]);

        if ((value & CLOSED_BY_RUNTIME) != 0)
            chip_set(chips->devices[i], value & ~CLOSED_BY_RUNTIME);
    }
    pthread_mutex_unlock(&lock);
}

void ttm_devices_open(const struct ttm_runtime *runtime, const void *impl)
{
    ttm_tracking_look_at_environment();
    const int saved_errno = ttm_event_begin();
    struct open_mesh *open = calloc(1, sizeof(*open));

    forget_mesh(impl); /* one that went without being closed */
    if (open && runtime->metal->chips_of_mesh_impl(runtime, impl, &open->chips)) {
        reopen(&open->chips);
        meet(runtime, &open->chips);
        remember_mesh(runtime, impl, open);
    } else {
        free(open);
    }
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
    pthread_mutex_lock(&lock);
    const uintptr_t value = chip_find(device);
    pthread_mutex_unlock(&lock);
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
    struct open_mesh *open = calloc(1, sizeof(*open));

    if (runtime->metal->allocator_of(runtime, mesh, &allocator))
        (void)ttm_allocators_meet(allocator);
    if (!open || !runtime->metal->chips_of(runtime, mesh, &open->chips)) {
        free(open);
        return;
    }
    meet(runtime, &open->chips);
    for (uint32_t i = 0; i < open->chips.count; i++) { /* for what lies in single cores */
        if (runtime->metal->allocator_of(runtime, open->chips.devices[i], &allocator))
            (void)ttm_allocators_meet(allocator);
    }
    remember_mesh(runtime, mesh, open);
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

    (void)runtime, (void)unused;
    pthread_mutex_lock(&lock);
    const uintptr_t value = chip_find(device);
    if (value != 0)
        chip_set(device, value | CLOSED_BY_RUNTIME);
    const bool has_ended = forget_if_closed(device);
    pthread_mutex_unlock(&lock);
    if (has_ended)
        end_chip(id_in(value));
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

/* A key of NULL would be any free place of the map. */
static struct open_mesh *find_mesh(const void *impl, const void *mesh)
{
    struct open_mesh *open = ttm_ptr_map_find(&open_meshes, impl);

    return open || !mesh ? open : ttm_ptr_map_find(&open_meshes, mesh);
}

/* Asked of an open mesh alone: one that is closed would complain to the user. */
static void note_allocator(const struct ttm_runtime *runtime, const void *impl, const void *mesh)
{
    const void *held;

    if (!mesh || !find_mesh(impl, mesh) || !runtime->metal->allocator_of(runtime, mesh, &held))
        return;
    const struct ttm_allocator *allocator = ttm_allocators_find(held);
    if (!allocator) /* it has handed out nothing */
        return;
    pthread_mutex_lock(&lock);
    struct open_mesh *open = find_mesh(impl, mesh);
    if (open) {
        open->allocator = held;
        open->allocator_number = ttm_allocator_number(allocator);
    }
    pthread_mutex_unlock(&lock);
}

static void mesh_closing(const struct ttm_runtime *runtime, void *impl, void *mesh)
{
    ttm_keepers_before_close();
    const int saved_errno = ttm_event_begin();

    note_allocator(runtime, impl, mesh);
    ttm_event_end(saved_errno);
}

static void mesh_closed(const struct ttm_runtime *runtime, void *impl, void *mesh)
{
    const int saved_errno = ttm_event_begin();

    (void)runtime;
    forget_mesh(impl);
    if (mesh)
        forget_mesh(mesh);
    ttm_event_end(saved_errno);
}

const struct ttm_guard ttm_mesh_closing = {mesh_closing, mesh_closed, nothing};

void ttm_devices_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    ttm_ptr_map_after_fork(&open_chips);
    ttm_ptr_map_after_fork(&open_meshes);
}
