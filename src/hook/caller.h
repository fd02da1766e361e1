/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caller - which runtime is meant by whoever calls a function that we stand in for.
 *
 * One function is nearly always called by one module, so to find its runtime takes a
 * comparison.
 */
#ifndef TTM_HOOK_CALLER_H
#define TTM_HOOK_CALLER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hook/hot.h"
#include "hook/runtime.h"

/*
 * The module that called a function of the first runtime first. Never changes once it has a
 * length. Those of the functions that every operation calls are in ttm_hot.
 */
struct ttm_first_caller {
    uintptr_t start;
    _Atomic uint32_t length; /* 0: none, or it is too long */
};

/* For each other function that we stand in for. runtime.c writes these. */
extern struct ttm_first_caller ttm_first_callers[TTM_HOOK_COUNT - TTM_HOT_POINTS];
extern struct ttm_runtime ttm_runtimes[TTM_RUNTIMES_MAX];

static inline uintptr_t *ttm_first_caller_start(enum ttm_hook_point point)
{
    return point < TTM_HOT_POINTS ? &ttm_hot.caller_starts[point]
                                  : &ttm_first_callers[point - TTM_HOT_POINTS].start;
}

static inline _Atomic uint32_t *ttm_first_caller_length(enum ttm_hook_point point)
{
    return point < TTM_HOT_POINTS ? &ttm_hot.caller_lengths[point]
                                  : &ttm_first_callers[point - TTM_HOT_POINTS].length;
}

/* For one that was not the first. */
__attribute__((noinline, cold)) const struct ttm_runtime *ttm_caller_look_up(
    uintptr_t address, enum ttm_hook_point point);

/*
 * The runtime that belongs to the caller with that return address, who called the
 * function of that number. Never NULL; where none can be found its pointers are.
 */
static inline const struct ttm_runtime *ttm_runtime_of(const void *caller,
                                                       enum ttm_hook_point point)
{
    const uintptr_t address = (uintptr_t)caller;
    /* acquire: pairs with the release in come_first(). */
    const uint32_t length =
        atomic_load_explicit(ttm_first_caller_length(point), memory_order_acquire);

    if (__builtin_expect(address - *ttm_first_caller_start(point) < length, 1))
        return ttm_runtimes;
    return ttm_caller_look_up(address, point);
}

/* True if ttnn itself has called; after ttm_runtime_of() with the same address. */
bool ttm_caller_is_ttnn(const void *caller);

#endif /* TTM_HOOK_CALLER_H */
