/* SPDX-License-Identifier: Apache-2.0 */
/*
 * devices - the chips that are open, and telling libttmem of them.
 *
 * A chip is met when a mesh with it is ready or when a buffer or program on it is
 * met. It is closed once the runtime has closed it and no open mesh has it.
 */
#ifndef TTM_HOOK_DEVICES_H
#define TTM_HOOK_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

#include "hook/metal.h"

/* A mesh is ready; 'impl' is the runtime's MeshDeviceImpl. Enters the gate. */
void ttm_devices_open(const struct ttm_runtime *runtime, const void *impl);

/* Meets every mesh that is open, its chips and its allocator. Enters the gate. */
void ttm_devices_discover(const struct ttm_runtime *runtime);

/* Around Device::close(), and MeshDeviceImpl::close_impl(). */
extern const struct ttm_guard ttm_device_closing;
extern const struct ttm_guard ttm_mesh_closing;

/* The chips of a device or mesh; inside the gate. Returns false when the runtime cannot tell. */
bool ttm_devices_behind(const struct ttm_runtime *runtime, const void *device,
                        struct ttm_chips *ret);

/* Tells all of them again: libttmem has begun anew. Gate closed. */
void ttm_devices_tell_all(const struct ttm_runtime *runtime);

void ttm_devices_after_fork(void);

#endif /* TTM_HOOK_DEVICES_H */
