/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allocators - every allocator of the runtime that has handed out memory.
 *
 * Each device, mesh and submesh has one, over the same memory; libttmem knows it by
 * a number that is ours. Allocators are met also while tracking is off, so that
 * switching it on knows whom to ask. All but ttm_allocators_forget_notes() is called
 * inside the gate.
 */
#ifndef TTM_HOOK_ALLOCATORS_H
#define TTM_HOOK_ALLOCATORS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/live_table.h"
#include "hook/bank_sizes.h"
#include "hook/hot.h"
#include "hook/metal.h"

struct ttm_allocator;

/* The allocator behind a pointer of the runtime; NULL when there are too many. */
struct ttm_allocator *ttm_allocators_meet(const void *impl);

/* NULL when it was never met. */
struct ttm_allocator *ttm_allocators_find(const void *impl);

/* The upper half of ttm_hot.state counts those that have ended. */
#define TTM_ALLOCATORS_END (UINT64_C(1) << 32)

/* That half: who has kept a pointer looks whether it is still the same. */
static inline uint64_t ttm_allocators_ends(void)
{
    /* relaxed: who calls an allocator knows that it has not ended, and so of those before it. */
    return atomic_load_explicit(&ttm_hot.state, memory_order_relaxed) & ~(TTM_ALLOCATORS_END - 1);
}

/* The runtime has closed it: what it held is gone, and the pointer means nothing any more. */
void ttm_allocators_end(const void *impl);

/* One after another, '*cursor' being 0 at first; NULL at the end. */
struct ttm_allocator *ttm_allocators_next(uint32_t *cursor, const void **ret_impl);

/* The number that libttmem knows it by. */
uint16_t ttm_allocator_number(const struct ttm_allocator *allocator);

/*
 * What buffers of that kind have of the allocator, NULL where it is not known. None is known
 * before the allocator was described.
 */
const struct ttm_bank_size *ttm_allocator_size(const struct ttm_allocator *allocator,
                                               uint32_t region, uint64_t bytes,
                                               uint64_t page_bytes);

/*
 * Fills in what an allocation has of its allocator: its number, devices and banks, and
 * its footprint. Returns false when the allocator has not been described yet.
 */
bool ttm_allocator_place(struct ttm_allocator *allocator, const struct ttm_runtime *runtime,
                         const void *buffer, const struct ttm_buffer_facts *facts,
                         struct ttm_live *ret);

/*
 * Reads from the runtime, once, what the functions around return; 'device' is the
 * device of any of its buffers. Returns false when the runtime cannot tell.
 */
bool ttm_allocator_describe(struct ttm_allocator *allocator, const struct ttm_runtime *runtime,
                            const void *impl, const void *device);

/* Which devices it is for, as libttmem numbers sets of them. */
uint32_t ttm_allocator_devices(const struct ttm_allocator *allocator);

/* libttmem has begun anew, so the numbers of device sets are no longer valid. Gate closed. */
void ttm_allocators_forget_notes(void);

void ttm_allocators_after_fork(void);

#endif /* TTM_HOOK_ALLOCATORS_H */
