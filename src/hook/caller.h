/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caller - which runtime is meant by whoever calls a function that we stand in for.
 *
 * The module that called a function last is nearly always the one that calls it
 * again, so to find its runtime takes a comparison.
 */
#ifndef TTM_HOOK_CALLER_H
#define TTM_HOOK_CALLER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "hook/runtime.h"

/* A loaded file that calls us, and whom it means. Never changes once it is known. */
struct ttm_caller {
    uintptr_t start, length;
    const struct ttm_runtime *runtime;
};

/* For each function that we stand in for, its last caller; NULL at first. runtime.c writes it. */
extern const struct ttm_caller *_Atomic ttm_last_callers[TTM_HOOK_COUNT];

/* For one that was not the last. */
const struct ttm_runtime *ttm_caller_look_up(uintptr_t address, enum ttm_hook_point point);

/*
 * The runtime that belongs to the caller with that return address, who called the
 * function of that number. Never NULL; where none can be found its pointers are.
 */
static inline const struct ttm_runtime *ttm_runtime_of(const void *caller,
                                                       enum ttm_hook_point point)
{
    const uintptr_t address = (uintptr_t)caller;
    /* acquire: pairs with the release in ttm_caller_look_up(). */
    const struct ttm_caller *last =
        atomic_load_explicit(&ttm_last_callers[point], memory_order_acquire);

    if (__builtin_expect(last && address - last->start < last->length, 1))
        return last->runtime;
    return ttm_caller_look_up(address, point);
}

#endif /* TTM_HOOK_CALLER_H */
