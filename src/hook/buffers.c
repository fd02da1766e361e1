/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/buffers.h"

#include <stdatomic.h>
#include <stddef.h>

#include "client/guest.h"
#include "hook/allocators.h"
#include "hook/ending.h"
#include "hook/gate.h"
#include "hook/hot.h"
#include "hook/keepers.h"
#include "hook/lanes.h"
#include "hook/making.h"
#include "hook/tracking.h"
#include "stack/stack.h"

/*
 * In the child of a fork, buffers with a smaller id than ttm_hot.first_own_id are the parent's; the
 * runtime counts ids upwards. Until the first birth in the child all of them are.
 */

/* The first time that a buffer of this allocator is told of. */
static bool describe(const struct ttm_runtime *runtime, struct ttm_allocator *allocator,
                     const void *impl, const void *buffer)
{
    const void *device;

    return runtime->metal->buffer_device(runtime, buffer, &device) &&
           ttm_allocator_describe(allocator, runtime, impl, device);
}

/* Whether a buffer in L1 has a place of its own in each core, or may have. */
static bool has_core_places(const struct ttm_buffer_fields *fields, const char *body)
{
    /* relaxed: see there. */
    const uint16_t count = __atomic_load_n(&fields->core_count, __ATOMIC_RELAXED);

    return count == 0 || ttm_buffer_u64(body, count) != 0;
}

/* Returns false where the methods have to be called. */
static bool read_fields(const struct ttm_runtime *runtime, const void *buffer,
                        struct ttm_buffer_facts *ret)
{
    const struct ttm_buffer_fields *fields = &runtime->fields;

    if (__builtin_expect(fields->body == 0, 0))
        return false;
    const char *body = ttm_buffer_body(fields, buffer);
    const uint32_t region = ttm_buffer_u32(body, fields->type);
    if (__builtin_expect(region > TTMEM_TRACE || body[fields->has_address] == 0, 0) ||
        (region == TTMEM_L1 && has_core_places(fields, body)))
        return false;
    ret->region = (uint8_t)region;
    ret->id = ttm_buffer_u64(body, fields->id);
    ret->bytes = ttm_buffer_u64(body, fields->size);
    ret->page_bytes = 0;
    if (__builtin_expect(ttm_buffer_u32(body, fields->layout) == TTM_LAYOUT_INTERLEAVED, 1))
        ret->page_bytes = ttm_buffer_u64(body, fields->page_size);
    ret->address = ttm_buffer_u32(body, fields->address);
    ret->banks = 0;
    return true;
}

static bool read_key(const struct ttm_runtime *runtime, const void *buffer, uint64_t *ret_id,
                     uint8_t *ret_region)
{
    const struct ttm_buffer_fields *fields = &runtime->fields;

    if (fields->body == 0)
        return runtime->metal->buffer_key(runtime, buffer, ret_id, ret_region);
    const char *body = ttm_buffer_body(fields, buffer);
    *ret_id = ttm_buffer_u64(body, fields->id);
    *ret_region = (uint8_t)ttm_buffer_u32(body, fields->type);
    return true;
}

static void take_size(struct ttm_live *live, const struct ttm_bank_size *size)
{
    live->footprint_bytes = size->size.footprint_bytes;
    live->allocator = size->size.spread.allocator;
    live->banks = size->size.spread.banks;
    live->devices = size->size.spread.devices;
}

/* What is told of a buffer; false when it is none that takes memory, or cannot be told of. */
static bool describe_birth(const struct ttm_runtime *runtime, struct ttm_allocator *allocator,
                           const void *impl, const void *buffer, struct ttm_live *ret)
{
    struct ttm_buffer_facts facts;

    if (!read_fields(runtime, buffer, &facts)) {
        if (!runtime->metal->buffer_read(runtime, buffer, true, &facts))
            return false;
        if (facts.core_map && runtime->fields.body != 0)
            ttm_runtime_see_core_map(runtime, ttm_buffer_body(&runtime->fields, buffer),
                                     facts.core_map);
    }
    /* Graph capture makes buffers without memory; their address is 0. */
    if (facts.address == 0 || facts.bytes == 0 || facts.region > TTMEM_TRACE)
        return false;
    *ret = (struct ttm_live){
        .id = facts.id,
        .address = facts.address,
        .bytes = facts.bytes,
        .region = facts.region,
    };
    const struct ttm_bank_size *size =
        facts.banks == 0
            ? ttm_allocator_size(allocator, facts.region, facts.bytes, facts.page_bytes)
            : NULL;
    if (size) {
        take_size(ret, size);
        return true;
    }
    return ttm_allocator_place(allocator, runtime, buffer, &facts, ret) ||
           (describe(runtime, allocator, impl, buffer) &&
            ttm_allocator_place(allocator, runtime, buffer, &facts, ret));
}

/* A buffer of a kind: ttmem_guest_born() knows none. */
static void report_of_kind(const struct ttm_live *live, uint8_t kind)
{
    ttmem_alloc(&(struct ttmem_allocation){
        .id = live->id,
        .address = live->address,
        .bytes = live->bytes,
        .footprint_bytes = live->footprint_bytes,
        .devices = live->devices,
        .allocator = live->allocator,
        .region = live->region,
        .kind = kind,
        .flags = TTMEM_GUEST_ALLOCATION,
        .banks = live->banks,
    });
}

/*
 * One whose methods have to be called, that is the first of its size, or that a program keeps.
 * Keeps errno.
 */
static void tell(const struct ttm_runtime *runtime, struct ttm_allocator *allocator,
                 const void *impl, const void *buffer, uint8_t kind)
{
    const int saved_errno = errno;
    struct ttm_live born;
    uint64_t none = UINT64_MAX;

    if (describe_birth(runtime, allocator, impl, buffer, &born)) {
        /*
         * The first birth in a child comes here, as it knows no sizes. relaxed: threads that race
         * for it have ids beside each other.
         */
        if (atomic_load_explicit(&ttm_hot.first_own_id, memory_order_relaxed) == none)
            (void)atomic_compare_exchange_strong_explicit(
                &ttm_hot.first_own_id, &none, born.id, memory_order_relaxed, memory_order_relaxed);
        if (kind == TTMEM_BUFFER_OF_USER)
            ttmem_guest_born(ttm_own.slot, &born, ttm_live_key_of(&born));
        else
            report_of_kind(&born, kind);
    }
    errno = saved_errno;
}

static bool is_last(const void *impl)
{
    return ttm_own.last.impl == impl &&
           (ttm_own.last.state & ~(TTM_ALLOCATORS_END - 1)) == ttm_allocators_ends();
}

/* With what lanes.h needs, where it has all of it. */
static void turn_to(const struct ttm_runtime *runtime, const void *impl)
{
    const int saved_errno = errno;
    const bool has_lanes = runtime->fields.body != 0 && ttm_own.gate.line && ttm_hot.tracker;

    ttm_own.last.impl = impl;
    ttm_own.last.allocator = ttm_allocators_meet(impl);
    ttm_own.last.state = ttm_allocators_ends() |
                         (has_lanes && ttm_own.last.allocator ? TTM_GATE_TRACKING : TTM_LANES_NONE);
    errno = saved_errno;
}

static void end_birth(void)
{
    ttm_own.newborn = NULL;
    ttm_gate_leave();
}

void ttm_buffers_allocating(const struct ttm_runtime *runtime, void *self, void *buffer)
{
    /* One that was never announced: it is not ours to wonder why. */
    if (ttm_own.newborn)
        end_birth();
    (void)ttm_event_enter();
    ttm_own.newborn = buffer;
    if (!is_last(self))
        turn_to(runtime, self); /* the event goes on */
}

/* 'context' is the unwinder's, who has called us: its own frames and what is inside are not to be seen. */
static void tell_failure(const struct ttm_runtime *runtime, const void *impl, const void *buffer,
                         struct _Unwind_Context *context)
{
    struct ttm_registers frame;
    struct ttm_buffer_facts facts;
    struct ttmem_failed_allocation failure = {.kind = TTMEM_OUT_OF_MEMORY};
    struct ttm_allocator *allocator = ttm_allocators_find(impl);

    if (!allocator || !runtime->metal->buffer_read(runtime, buffer, false, &facts) ||
        !runtime->metal->room(runtime, impl, facts.region, &failure.bank_free_bytes,
                              &failure.bank_largest_bytes) ||
        !runtime->metal->buffer_bank_bytes(runtime, buffer, &failure.bank_wanted_bytes))
        return;
    if (failure.bank_wanted_bytes <= failure.bank_largest_bytes) /* it failed for another reason */
        return;
    if (!describe(runtime, allocator, impl, buffer))
        return;
    failure.wanted_bytes = facts.bytes;
    failure.region = facts.region;
    failure.devices = ttm_allocator_devices(allocator);
    failure.allocator = ttm_allocator_number(allocator);
    runtime->metal->unwound_frame(context, &frame);
    ttm_stack_set_frame(&frame);
    ttmem_failure(&failure);
    ttm_stack_set_frame(NULL);
    ttm_keepers_after_failure();
}

/* The runtime could not: the thread is inside the gate, with what it has noted of the buffer. */
static void fail_birth(struct _Unwind_Context *context)
{
    const int saved_errno = errno;

    if (ttm_tracking_is_on())
        tell_failure(ttm_runtime_tracked(), ttm_own.last.impl, ttm_own.newborn, context);
    end_birth();
    errno = saved_errno;
}

/* Named by the assembler alone. */
__attribute__((used)) _Unwind_Reason_Code ttm_buffers_allocation_unwound(
    int version, _Unwind_Action actions, uint64_t exception_class,
    struct _Unwind_Exception *exception, struct _Unwind_Context *context)
{
    (void)version, (void)exception_class, (void)exception;
    if ((actions & _UA_CLEANUP_PHASE) != 0 && ttm_own.newborn)
        fail_birth(context);
    return _URC_CONTINUE_UNWIND;
}

void ttm_buffers_announced(const struct ttm_runtime *runtime, const void *buffer)
{
    /* Without a place of its own before, it is one that takes no memory. */
    if (ttm_own.newborn != buffer || !buffer)
        return;
    if (ttm_own.last.allocator && ttm_tracking_is_on())
        tell(runtime, ttm_own.last.allocator, ttm_own.last.impl, buffer,
             ttm_making_is_under_way(runtime) ? TTMEM_BUFFER_OF_PROGRAM : TTMEM_BUFFER_OF_USER);
    end_birth();
}

static void end_life(uint16_t allocator, uint8_t region, uint64_t id)
{
    /* relaxed: see there. */
    if (id < atomic_load_explicit(&ttm_hot.first_own_id, memory_order_relaxed))
        return;
    if (!ttm_ending_has_begun())
        ttmem_guest_ended(ttm_own.slot, allocator, region, id);
    else
        ttmem_guest_close(allocator, region, id);
}

void ttm_buffers_end(const struct ttm_runtime *runtime, const void *impl, const void *buffer)
{
    const int saved_errno = errno;
    const struct ttm_allocator *allocator = ttm_allocators_find(impl);
    uint64_t id;
    uint8_t region;

    if (allocator && read_key(runtime, buffer, &id, &region) && region <= TTMEM_TRACE)
        end_life(ttm_allocator_number(allocator), region, id);
    errno = saved_errno;
}

void ttm_buffers_releasing(const struct ttm_runtime *runtime, void *self, void *buffer)
{
    const bool is_tracking = ttm_event_enter();

    ttm_own.releases++;
    if (is_tracking)
        ttm_buffers_end(runtime, self, buffer);
}

void ttm_buffers_released(void)
{
    ttm_own.releases--;
    ttm_gate_leave();
}

/* Of one whose end was told of in a lane, and whose thread is inside for it alone. */
__attribute__((used)) _Unwind_Reason_Code ttm_buffers_lane_unwound(
    int version, _Unwind_Action actions, uint64_t exception_class,
    struct _Unwind_Exception *exception, struct _Unwind_Context *context)
{
    (void)version, (void)exception_class, (void)exception, (void)context;
    if ((actions & _UA_CLEANUP_PHASE) != 0)
        ttm_gate_leave();
    return _URC_CONTINUE_UNWIND;
}

/* As above. */
__attribute__((used)) _Unwind_Reason_Code ttm_buffers_release_unwound(
    int version, _Unwind_Action actions, uint64_t exception_class,
    struct _Unwind_Exception *exception, struct _Unwind_Context *context)
{
    (void)version, (void)exception_class, (void)exception, (void)context;
    if ((actions & _UA_CLEANUP_PHASE) != 0 && ttm_own.releases > 0)
        ttm_buffers_released();
    return _URC_CONTINUE_UNWIND;
}

void ttm_buffers_close_allocator(const void *impl)
{
    const struct ttm_allocator *allocator = ttm_allocators_find(impl);

    if (allocator && ttm_tracking_is_on())
        ttmem_allocator_close(ttm_allocator_number(allocator));
    ttm_allocators_end(impl);
}

static void before_release_of_all(const struct ttm_runtime *runtime, void *self, void *unused)
{
    const int saved_errno = ttm_event_begin();

    (void)runtime, (void)unused;
    ttm_buffers_close_allocator(self);
    errno = saved_errno;
}

/* An allocator that is asked for what it holds. */
struct asked {
    const struct ttm_runtime *runtime;
    struct ttm_allocator *allocator;
    const void *impl;
};

static void tell_buffer(const void *buffer, void *context)
{
    const struct asked *asked = context;

    /* Which of them programs keep is not known any more. */
    tell(asked->runtime, asked->allocator, asked->impl, buffer, TTMEM_BUFFER_OF_USER);
}

void ttm_buffers_tell_all(const struct ttm_runtime *runtime)
{
    uint32_t cursor = 0;
    struct asked asked = {.runtime = runtime};

    atomic_store_explicit(&ttm_hot.first_own_id, 0, memory_order_relaxed); /* all are told of */
    while ((asked.allocator = ttm_allocators_next(&cursor, &asked.impl)))
        (void)runtime->metal->each_buffer(runtime, asked.impl, tell_buffer, &asked);
}

void ttm_buffers_after_fork(void)
{
    if (ttm_own.newborn)
        end_birth();
    ttm_own.slot = NULL; /* it was the parent's */
    ttm_own.last = (struct ttm_last_allocator){0};
    atomic_store_explicit(&ttm_hot.first_own_id, UINT64_MAX, memory_order_relaxed);
}

static void after_release_of_all(const struct ttm_runtime *runtime, void *self, void *unused)
{
    (void)runtime, (void)self, (void)unused;
    ttm_gate_leave();
}

const struct ttm_guard ttm_buffer_release_of_all = {before_release_of_all, after_release_of_all,
                                                    after_release_of_all};
