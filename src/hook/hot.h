/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hot - words of several modules that every event reads and hardly anybody writes:
 * put side by side, they are two cache lines and not one each. Each belongs to the
 * module that is named, which says what it means.
 */
#ifndef TTM_HOOK_HOT_H
#define TTM_HOOK_HOT_H

#include <stdatomic.h>
#include <stdint.h>

#include "hook/buffer_fields.h"

struct ttm_tracker;

/* The functions that every operation calls: the first ones of names.h. */
#define TTM_HOT_POINTS 4

struct ttm_hot {
    _Alignas(64) _Atomic uint64_t state; /* gate.h, and above its bits allocators.h */
    /* What lanes.h needs besides; written before a thread meets an allocator, and in a child. */
    struct ttm_tracker *tracker;                          /* of libttmem */
    void *originals[TTM_HOT_POINTS];                      /* of the runtime that is tracked */
    const volatile uint64_t *ending;                      /* ending.h */
    _Atomic uint64_t first_own_id;                        /* buffers.c */
    struct ttm_buffer_fields fields;                      /* of the runtime that is tracked */
    _Alignas(64) uintptr_t caller_starts[TTM_HOT_POINTS]; /* caller.h */
    _Atomic uint32_t caller_lengths[TTM_HOT_POINTS];
};

extern struct ttm_hot ttm_hot;

#define TTM_HOT_PAGE 4096

/*
 * Once, at first. From then on the kernel empties it in the child of any fork, so that one that
 * nobody was told of, of _Fork() or a bare clone(), does not track what is its parent's.
 */
void ttm_hot_begin(void);

#endif /* TTM_HOOK_HOT_H */
