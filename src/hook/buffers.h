/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffers - births and ends of the runtime's buffers.
 *
 * A birth goes through two calls of the runtime: its allocator finds a place, and
 * the buffer is announced with its address. The gate is held from the one to the
 * other; between them the buffer is in the allocator's live set, but not complete.
 */
#ifndef TTM_HOOK_BUFFERS_H
#define TTM_HOOK_BUFFERS_H

#include "hook/metal.h"

void ttm_buffers_allocating(const struct ttm_runtime *runtime, void *self, void *buffer);
void ttm_buffers_not_allocated(const struct ttm_runtime *runtime, void *self, void *buffer);
void ttm_buffers_releasing(const struct ttm_runtime *runtime, void *self, void *buffer);
void ttm_buffers_released(const struct ttm_runtime *runtime, void *self, void *buffer);

/*
 * Around AllocatorImpl::allocate_buffer() and AllocatorImpl::deallocate_buffer(). What follows a
 * successful allocation is the announcement. Here, so that they can be a part of who uses them.
 */
static const struct ttm_guard ttm_buffer_allocation = {
    .before = ttm_buffers_allocating,
    .failed = ttm_buffers_not_allocated,
};
static const struct ttm_guard ttm_buffer_release = {
    .before = ttm_buffers_releasing,
    .after = ttm_buffers_released,
    .failed = ttm_buffers_released,
};

/* Around AllocatorImpl::deallocate_buffers(), which frees all at once. */
extern const struct ttm_guard ttm_buffer_release_of_all;

/* A buffer has its address. */
void ttm_buffers_announced(const struct ttm_runtime *runtime, const void *buffer);

/* Tells of every buffer that any allocator holds. Gate closed. */
void ttm_buffers_tell_all(const struct ttm_runtime *runtime);

/* In the child of a fork: what there is belongs to the parent, and its end is not told here. */
void ttm_buffers_after_fork(void);

#endif /* TTM_HOOK_BUFFERS_H */
