/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes - what nearly every call of the four functions is that every operation calls, and no more.
 *
 * An allocator that the thread has had to do with before, tracking on, the gate open, a buffer of a
 * kind that was there before: then all that has to be done is here, inlined into the functions of
 * interpose.c. Where anything is not so, nothing is done, and buffers.c and workloads.c see to it. See
 * client/lane.h for why.
 *
 * No look at the caller is needed. An allocator or a workload that was met is of the runtime that
 * is tracked; one of another runtime was never met.
 */
#ifndef TTM_HOOK_LANES_H
#define TTM_HOOK_LANES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/lane.h"
#include "hook/allocators.h"
#include "hook/gate.h"
#include "hook/hot.h"
#include "hook/own.h"
#include "hook/workloads.h"
#include "stack/stack.h"

/* The lower half of ttm_own.last.state where there is no short way: the gate has no such bits. */
#define TTM_LANES_NONE UINT64_C(0xffffffff)

/* Enters the gate, from outside of it. False: nothing was done. */
static inline __attribute__((always_inline)) bool ttm_lanes_enter(uint64_t state, uint64_t mask)
{
    _Atomic uint32_t *line = ttm_own.gate.line;

    /* relaxed: only this thread writes it. A handler that has interrupted an event finds it inside. */
    if (__builtin_expect(!line, 0) ||
        __builtin_expect(atomic_load_explicit(line, memory_order_relaxed) != 0, 0))
        return false;
    atomic_store_explicit(line, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    /* acquire: as in ttm_gate_go_in(). */
    if (__builtin_expect(
            (atomic_load_explicit(&ttm_hot.state, memory_order_acquire) & mask) == state, 1))
        return true;
    atomic_store_explicit(line, 0, memory_order_release);
    return false;
}

/* From its first depth. release: as in ttm_gate_go_out(). */
static inline void ttm_lanes_leave(void)
{
    atomic_store_explicit(ttm_own.gate.line, 0, memory_order_release);
}

/* A buffer is about to get its place from the allocator 'self'. */
static inline __attribute__((always_inline)) bool ttm_lanes_allocating(const void *self,
                                                                       const void *buffer)
{
    if (__builtin_expect(ttm_own.last.impl != self, 0) ||
        !ttm_lanes_enter(ttm_own.last.state, UINT64_MAX))
        return false;
    ttm_own.newborn = buffer;
    return true;
}

/* The size of a buffer, NULL when it is not known. What the fields are is in buffer_fields.h. */
static inline __attribute__((always_inline)) const struct ttm_bank_size *ttm_lanes_size(
    const struct ttm_allocator *allocator, const char *body)
{
    const struct ttm_buffer_fields *fields = &ttm_hot.fields;
    const uint32_t region = ttm_buffer_u32(body, fields->type);

    if (__builtin_expect(ttm_buffer_u32(body, fields->layout) != TTM_LAYOUT_INTERLEAVED, 0) ||
        __builtin_expect(body[fields->has_address] == 0, 0))
        return NULL;
    if (region == TTMEM_L1) { /* it may have a place of its own in each core */
        /* relaxed: it is 0 or what it is. */
        const uint16_t count = __atomic_load_n(&fields->core_count, __ATOMIC_RELAXED);

        if (__builtin_expect(count == 0, 0) ||
            __builtin_expect(ttm_buffer_u64(body, count) != 0, 0))
            return NULL;
    }
    return ttm_allocator_size(allocator, region, ttm_buffer_u64(body, fields->size),
                              ttm_buffer_u64(body, fields->page_size));
}

/* Where the event comes from; 0: it is not known, or not in here. */
static inline __attribute__((always_inline)) uint32_t ttm_lanes_origin(const struct ttm_slot *slot,
                                                                       uint32_t epoch)
{
    if (__builtin_expect(slot->lasting_epoch == epoch, 1) &&
        __builtin_expect(slot->lasting_context == slot->context, 1))
        return slot->lasting_origin;
    if (__builtin_expect(slot->context != 0, 0) && slot->context_epoch != epoch)
        return 0;
    return ttm_stack_origin(slot->context);
}

/* The buffer that has got its place is announced. */
static inline __attribute__((always_inline)) bool ttm_lanes_announced(const void *buffer)
{
    struct ttm_slot *slot = ttm_own.slot;
    struct ttm_tracker *tracker = ttm_hot.tracker;

    /* acquire: as in ttm_gate_go_in(), inside of which the thread has been since then. */
    if (__builtin_expect(ttm_own.newborn != buffer, 0) || __builtin_expect(!buffer, 0) ||
        __builtin_expect(!slot, 0) ||
        __builtin_expect(
            atomic_load_explicit(&ttm_hot.state, memory_order_acquire) != ttm_own.last.state, 0))
        return false;
    const char *body = ttm_buffer_body(&ttm_hot.fields, buffer);
    const struct ttm_bank_size *size = ttm_lanes_size(ttm_own.last.allocator, body);
    if (__builtin_expect(!size, 0))
        return false;
    const uint32_t epoch = atomic_load_explicit(&tracker->epoch, memory_order_acquire);
    const uint32_t origin = ttm_lanes_origin(slot, epoch);
    if (__builtin_expect(origin == 0, 0) ||
        !ttm_lane_begin(tracker, slot, &size->size, ttm_buffer_u64(body, ttm_hot.fields.id),
                        ttm_buffer_u32(body, ttm_hot.fields.address), origin, epoch))
        return false;
    ttm_own.newborn = NULL;
    ttm_lanes_leave();
    return true;
}

/* The allocator 'self' is about to take a buffer back. */
static inline __attribute__((always_inline)) bool ttm_lanes_releasing(const void *self)
{
    return __builtin_expect(ttm_own.last.impl == self, 1) &&
           ttm_lanes_enter(ttm_own.last.state, UINT64_MAX);
}

/* Whether the end of a buffer, inside the gate, is told of. */
static inline __attribute__((always_inline)) bool ttm_lanes_end(const void *buffer)
{
    struct ttm_slot *slot = ttm_own.slot;

    if (__builtin_expect(!slot, 0) || __builtin_expect(*ttm_hot.ending != 0, 0))
        return false;
    const char *body = ttm_buffer_body(&ttm_hot.fields, buffer);
    return ttm_lane_end(ttm_hot.tracker, slot, ttm_buffer_u64(body, ttm_hot.fields.id));
}

/* A workload is sent to run; 'impl' is the runtime's. */
static inline __attribute__((always_inline)) bool ttm_lanes_dispatch(const void *impl)
{
    if (!ttm_lanes_enter(TTM_GATE_TRACKING, UINT32_MAX))
        return false;
    struct ttm_dispatch *dispatch = ttm_workloads_dispatch_of(impl);
    const bool is_noted = __builtin_expect(dispatch != NULL, 1) && ttm_dispatch_note(dispatch);
    ttm_lanes_leave();
    return is_noted;
}

#endif /* TTM_HOOK_LANES_H */
