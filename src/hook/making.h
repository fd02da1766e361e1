/* SPDX-License-Identifier: Apache-2.0 */
/*
 * making - whether this thread makes a program that ttnn will keep in its program cache.
 *
 * An operation of ttnn allocates its result, looks for its program in the cache, and makes one if
 * there is none. What it allocates to make it (the map of a reshape, the indices of a convolution, the
 * semaphores of a collective) stays with the program until the cache is cleared, and no Python object
 * holds it. TT-Metal does not say which these are. But the function that makes a program, and that
 * does not return before it is made, first puts together the devices it is for, by a function that
 * we stand in for. While that very call is on the stack, what the thread allocates is the program's.
 *
 * The stack is walked by the unwinder that C++ comes with, for allocations between such a call and the
 * next workload that is sent: never in an operation that finds its program.
 */
#ifndef TTM_HOOK_MAKING_H
#define TTM_HOOK_MAKING_H

#include <stdbool.h>

#include "hook/own.h"
#include "hook/runtime.h"

/* A function of ttnn, to which 'caller' is a return address, begins to make a program. Keeps errno. */
void ttm_making_begin(const struct ttm_runtime *runtime, const void *caller);

/* As ttm_making_is_under_way(), where something was begun. Keeps errno. */
__attribute__((cold, noinline)) bool ttm_making_goes_on(const struct ttm_runtime *runtime);

/* True if it does so still. */
static inline bool ttm_making_is_under_way(const struct ttm_runtime *runtime)
{
    return __builtin_expect(ttm_own.is_making, 0) && ttm_making_goes_on(runtime);
}

/* A workload is sent to run: what was to be made is made. */
static inline void ttm_making_end(void)
{
    ttm_own.is_making = false;
}

#endif /* TTM_HOOK_MAKING_H */
