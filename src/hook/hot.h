/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hot - words of several modules that every event reads and hardly anybody writes:
 * put side by side, they are one cache line and not one each. Each belongs to the
 * module that is named, which says what it means.
 */
#ifndef TTM_HOOK_HOT_H
#define TTM_HOOK_HOT_H

#include <stdatomic.h>
#include <stdint.h>

/* The functions that every operation calls: the first ones of names.h. */
#define TTM_HOT_POINTS 4

struct ttm_hot {
    _Alignas(64) uintptr_t caller_starts[TTM_HOT_POINTS]; /* caller.h */
    _Atomic uint32_t caller_lengths[TTM_HOT_POINTS];
    _Atomic uint32_t gate_state;      /* gate.h */
    _Atomic uint32_t allocators_ends; /* allocators.h */
    _Atomic uint64_t first_own_id;    /* buffers.c */
};

_Static_assert(sizeof(struct ttm_hot) == 64, "one cache line");

extern struct ttm_hot ttm_hot;

#define TTM_HOT_PAGE 4096

/*
 * Once, at first. From then on the kernel empties it in the child of any fork, so that one that
 * nobody was told of, of _Fork() or a bare clone(), does not track what is its parent's.
 */
void ttm_hot_begin(void);

#endif /* TTM_HOOK_HOT_H */
