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

/* How deep the thread is inside the gate, where it has a line; else as if it could not pass. */
static inline uint32_t ttm_lanes_depth(void)
{
    const _Atomic uint32_t *line = ttm_own.gate.line;

    /* relaxed: only this thread writes it. A handler that has interrupted an event finds it inside. */
    return __builtin_expect(line != NULL, 1) ? atomic_load_explicit(line, memory_order_relaxed)
                                             : UINT32_MAX;
}

/* Says that the thread, which was outside, is inside, and returns the state after that. */
static inline uint64_t ttm_lanes_go_in(void)
{
    atomic_store_explicit(ttm_own.gate.line, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    /* acquire: as in ttm_gate_go_in(). */
    return atomic_load_explicit(&ttm_hot.state, memory_order_acquire);
}

/* From its first depth. release: as in ttm_gate_go_out(). */
static inline void ttm_lanes_leave(void)
{
    atomic_store_explicit(ttm_own.gate.line, 0, memory_order_release);
}

/*
 * The allocator 'self' is about to give a place to a buffer, or to take one back. False: nothing was
 * done. What the thread had to do with last is looked at inside, as a handler may come before that.
 */
static inline __attribute__((always_inline)) bool ttm_lanes_enter(const void *self)
{
    if (__builtin_expect(ttm_lanes_depth() != 0, 0))
        return false;
    if (__builtin_expect(ttm_lanes_go_in() == ttm_own.last.state, 1) &&
        __builtin_expect(ttm_own.last.impl == self, 1))
        return true;
    ttm_lanes_leave();
    return false;
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
        __builtin_expect(ttm_lanes_depth() != 1, 0) || __builtin_expect(!slot, 0) ||
        __builtin_expect(ttm_own.is_making, 0) ||
        __builtin_expect(
            atomic_load_explicit(&ttm_hot.state, memory_order_acquire) != ttm_own.last.state, 0))
        return false;
    const char *body = ttm_buffer_body(&ttm_hot.fields, buffer);
    const struct ttm_bank_size *size = ttm_lanes_size(ttm_own.last.allocator, body);
    if (__builtin_expect(!size, 0))
        return false;
    const uint32_t epoch = atomic_load_explicit(&tracker->epoch, memory_order_acquire);
    const uint32_t origin = ttm_lanes_origin(slot, epoch);
    const uint32_t address = ttm_buffer_u32(body, ttm_hot.fields.address);
    if (__builtin_expect(origin == 0, 0) || __builtin_expect(address == 0, 0) ||
        !ttm_lane_begin(tracker, slot, &size->size, ttm_buffer_u64(body, ttm_hot.fields.id),
                        address, origin, epoch))
        return false;
    ttm_own.newborn = NULL;
    ttm_lanes_leave();
    return true;
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
    if (__builtin_expect(ttm_lanes_depth() != 0, 0) || __builtin_expect(ttm_own.is_making, 0))
        return false;
    struct ttm_dispatch *dispatch = NULL;
    if (__builtin_expect((uint32_t)ttm_lanes_go_in() == TTM_GATE_TRACKING, 1))
        dispatch = ttm_workloads_dispatch_of(impl);
    const bool is_noted = __builtin_expect(dispatch != NULL, 1) && ttm_dispatch_note(dispatch);
    ttm_lanes_leave();
    return is_noted;
}

#endif /* TTM_HOOK_LANES_H */
