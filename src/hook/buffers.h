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

#include <stdint.h>
#include <unwind.h>

#include "hook/metal.h"

/* Before AllocatorImpl::allocate_buffer(). What follows a successful one is the announcement. */
void ttm_buffers_allocating(const struct ttm_runtime *runtime, void *self, void *buffer);

/* Before and after AllocatorImpl::deallocate_buffer(). */
void ttm_buffers_releasing(const struct ttm_runtime *runtime, void *self, void *buffer);
void ttm_buffers_released(void);

/* A buffer of that allocator ends, inside the gate and while tracking is on. */
void ttm_buffers_end(const struct ttm_runtime *runtime, const void *impl, const void *buffer);

/*
 * Called by the unwinder for an exception, or the end of a thread that is cancelled, that passes
 * the frame of one who has called these; as a "personality routine" of the Itanium C++ ABI. It
 * does what is left to do, and has the exception go on.
 */
_Unwind_Reason_Code ttm_buffers_allocation_unwound(int version, _Unwind_Action actions,
                                                   uint64_t exception_class,
                                                   struct _Unwind_Exception *exception,
                                                   struct _Unwind_Context *context);
_Unwind_Reason_Code ttm_buffers_release_unwound(int version, _Unwind_Action actions,
                                                uint64_t exception_class,
                                                struct _Unwind_Exception *exception,
                                                struct _Unwind_Context *context);
_Unwind_Reason_Code ttm_buffers_lane_unwound(int version, _Unwind_Action actions,
                                             uint64_t exception_class,
                                             struct _Unwind_Exception *exception,
                                             struct _Unwind_Context *context);

/* Around AllocatorImpl::deallocate_buffers(), which frees all at once. */
extern const struct ttm_guard ttm_buffer_release_of_all;

/* An allocator ends, and all that it holds. Inside the gate. */
void ttm_buffers_close_allocator(const void *impl);

/* A buffer has its address. */
void ttm_buffers_announced(const struct ttm_runtime *runtime, const void *buffer);

/* Tells of every buffer that any allocator holds. Gate closed. */
void ttm_buffers_tell_all(const struct ttm_runtime *runtime);

/* In the child of a fork: what there is belongs to the parent, and its end is not told here. */
void ttm_buffers_after_fork(void);

#endif /* TTM_HOOK_BUFFERS_H */
