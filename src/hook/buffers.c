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
#include "hook/tracking.h"

/*
 * In the child of a fork, buffers with a smaller id are the parent's; the runtime
 * counts ids upwards. Until the first birth in the child all of them are.
 */
TTM_HOT_DATA static _Atomic uint64_t first_own_id;

/* The first time that a buffer of this allocator is told of. */
static __attribute__((noinline)) bool describe(const struct ttm_runtime *runtime,
                                               struct ttm_allocator *allocator, const void *impl,
                                               const void *buffer)
{
    const void *device;

    return runtime->metal->buffer_device(runtime, buffer, &device) &&
           ttm_allocator_describe(allocator, runtime, impl, device);
}

/* Returns false where the methods have to be called. */
static inline bool read_fields(const struct ttm_runtime *runtime, const void *buffer,
                               struct ttm_buffer_facts *ret)
{
    const struct ttm_buffer_fields *fields = &runtime->fields;

    if (fields->body == 0)
        return false;
    const char *body = ttm_buffer_body(fields, buffer);
    const uint32_t region = ttm_buffer_u32(body, fields->type);
    /* One in L1 may have a place of its own in each core. */
    if (region == TTMEM_L1 || region > TTMEM_TRACE || body[fields->has_address] == 0)
        return false;
    ret->region = (uint8_t)region;
    ret->id = ttm_buffer_u64(body, fields->id);
    ret->bytes = ttm_buffer_u64(body, fields->size);
    ret->page_bytes = ttm_buffer_u32(body, fields->layout) == TTM_LAYOUT_INTERLEAVED
                          ? ttm_buffer_u64(body, fields->page_size)
                          : 0;
    ret->address = ttm_buffer_u32(body, fields->address);
    ret->banks = 0;
    return true;
}

static inline bool read_key(const struct ttm_runtime *runtime, const void *buffer, uint64_t *ret_id,
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

static __attribute__((hot)) void tell(const struct ttm_runtime *runtime,
                                      struct ttm_allocator *allocator, const void *impl,
                                      const void *buffer)
{
    struct ttm_buffer_facts facts;

    if (!read_fields(runtime, buffer, &facts) &&
        !runtime->metal->buffer_read(runtime, buffer, true, &facts))
        return;
    /* Graph capture makes buffers without memory; their address is 0. */
    if (facts.address == 0 || facts.bytes == 0 || facts.region > TTMEM_TRACE)
        return;
    struct ttm_live born = {
        .id = facts.id,
        .address = facts.address,
        .bytes = facts.bytes,
        .region = facts.region,
    };
    if (!ttm_allocator_place(allocator, runtime, buffer, &facts, &born) &&
        (!describe(runtime, allocator, impl, buffer) ||
         !ttm_allocator_place(allocator, runtime, buffer, &facts, &born)))
        return;
    uint64_t none = UINT64_MAX;
    /* relaxed: threads that race for it have ids beside each other. */
    if (atomic_load_explicit(&first_own_id, memory_order_relaxed) == none)
        (void)atomic_compare_exchange_strong_explicit(&first_own_id, &none, facts.id,
                                                      memory_order_relaxed, memory_order_relaxed);
    ttmem_guest_born(&born, ttm_live_key_of(&born));
}

static bool is_last(const void *impl)
{
    return __builtin_expect(ttm_own.last.impl == impl && ttm_own.last.ends == ttm_allocators_ends(),
                            1);
}

static __attribute__((noinline, cold)) void turn_to(const void *impl)
{
    const int saved_errno = *ttm_errno();

    ttm_own.last.impl = impl;
    ttm_own.last.allocator = ttm_allocators_meet(impl);
    ttm_own.last.ends = ttm_allocators_ends();
    *ttm_errno() = saved_errno;
}

static void end_birth(void)
{
    ttm_own.newborn = NULL;
    ttm_gate_leave();
}

__attribute__((hot)) void ttm_buffers_allocating(const struct ttm_runtime *runtime, void *self,
                                                 void *buffer)
{
    (void)runtime;
    /* One that was never announced: it is not ours to wonder why. */
    if (__builtin_expect(ttm_own.newborn != NULL, 0))
        end_birth();
    ttm_event_enter();
    ttm_own.newborn = buffer;
    if (!is_last(self))
        turn_to(self); /* the event goes on */
}

static void tell_failure(const struct ttm_runtime *runtime, const void *impl, const void *buffer)
{
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
    ttmem_failure(&failure);
    ttm_keepers_after_failure();
}

void ttm_buffers_not_allocated(const struct ttm_runtime *runtime, void *self, void *buffer)
{
    const int saved_errno = *ttm_errno();

    if (ttm_tracking_is_on())
        tell_failure(runtime, self, buffer);
    end_birth();
    *ttm_errno() = saved_errno;
}

__attribute__((hot)) void ttm_buffers_announced(const struct ttm_runtime *runtime,
                                                const void *buffer)
{
    const int saved_errno = *ttm_errno();

    /* Without a place of its own before, it is one that takes no memory. */
    if (ttm_own.newborn == buffer && buffer) {
        if (ttm_own.last.allocator && ttm_tracking_is_on())
            tell(runtime, ttm_own.last.allocator, ttm_own.last.impl, buffer);
        end_birth();
    }
    *ttm_errno() = saved_errno;
}

static void end_life(uint16_t allocator, uint8_t region, uint64_t id)
{
    if (ttm_ending_has_begun())
        ttmem_guest_close(allocator, region, id);
    else
        ttmem_free(allocator, region, id);
}

__attribute__((hot)) void ttm_buffers_releasing(const struct ttm_runtime *runtime, void *self,
                                                void *buffer)
{
    const int saved_errno = ttm_event_begin();
    uint64_t id;
    uint8_t region;

    if (ttm_tracking_is_on()) {
        const struct ttm_allocator *allocator =
            is_last(self) ? ttm_own.last.allocator : ttm_allocators_find(self);

        if (allocator && read_key(runtime, buffer, &id, &region) &&
            id >= atomic_load_explicit(&first_own_id, memory_order_relaxed)) /* see there */
            end_life(ttm_allocator_number(allocator), region, id);
    }
    *ttm_errno() = saved_errno;
}

__attribute__((hot)) void ttm_buffers_released(const struct ttm_runtime *runtime, void *self,
                                               void *buffer)
{
    (void)runtime, (void)self, (void)buffer;
    ttm_gate_leave();
}

static void before_release_of_all(const struct ttm_runtime *runtime, void *self, void *unused)
{
    const int saved_errno = ttm_event_begin();

    (void)runtime, (void)unused;
    const struct ttm_allocator *allocator = ttm_allocators_find(self);
    if (allocator && ttm_tracking_is_on())
        ttmem_allocator_close(ttm_allocator_number(allocator));
    ttm_allocators_end(self);
    *ttm_errno() = saved_errno;
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

    tell(asked->runtime, asked->allocator, asked->impl, buffer);
}

void ttm_buffers_tell_all(const struct ttm_runtime *runtime)
{
    uint32_t cursor = 0;
    struct asked asked = {.runtime = runtime};

    atomic_store_explicit(&first_own_id, 0, memory_order_relaxed); /* all are told of */
    while ((asked.allocator = ttm_allocators_next(&cursor, &asked.impl)))
        (void)runtime->metal->each_buffer(runtime, asked.impl, tell_buffer, &asked);
}

void ttm_buffers_after_fork(void)
{
    ttm_own.newborn = NULL;
    atomic_store_explicit(&first_own_id, UINT64_MAX, memory_order_relaxed);
}

const struct ttm_guard ttm_buffer_release_of_all = {before_release_of_all, ttm_buffers_released,
                                                    ttm_buffers_released};
