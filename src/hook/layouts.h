/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layouts - listening while the runtime lays out a program in L1.
 *
 * The runtime does so within three of its functions and tells of each part in turn
 * from inside them, on the same thread and without saying which program it means;
 * so the surrounding call does.
 */
#ifndef TTM_HOOK_LAYOUTS_H
#define TTM_HOOK_LAYOUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "hook/metal.h"

/* Around ProgramImpl's allocate_circular_buffers(), allocate_dataflow_buffers(), allocate_scratchpads(). */
extern const struct ttm_guard ttm_layout_of_cbs;
extern const struct ttm_guard ttm_layout_of_dfbs;
extern const struct ttm_guard ttm_layout_of_scratchpads;

/* Around validate_circular_buffer_region() and validate_dataflow_buffer_region(), which throw. */
extern const struct ttm_guard ttm_layout_check;

/* A circular buffer of a chip; one in memory that a buffer owns adds nothing. */
void ttm_layouts_cb(const struct ttm_runtime *runtime, const void *core_ranges, uint64_t address,
                    uint64_t bytes, bool is_global, const void *device);

/* A dataflow buffer; 'allocator' is the runtime's CircularBufferAllocator. */
void ttm_layouts_dfb(const void *allocator, uint64_t address, uint64_t bytes);

/* The kernels of a program are compiled. */
void ttm_layouts_kernels(const struct ttm_runtime *runtime, const void *program, const void *device,
                         uint64_t build_key);

#endif /* TTM_HOOK_LAYOUTS_H */
