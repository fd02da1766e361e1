/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/ending.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

typedef int (*is_finalizing_fn)(void);

static _Atomic(is_finalizing_fn) is_finalizing;

void ttm_ending_look(void)
{
    /* The public name is that of 3.13. Both read one word and need no lock. */
    void *found = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
    is_finalizing_fn function;

    if (!found)
        found = dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
    __builtin_memcpy(&function, &found, sizeof(function));
    atomic_store_explicit(&is_finalizing, function, memory_order_relaxed); /* always the same */
}

__attribute__((hot)) bool ttm_ending_has_begun(void)
{
    const is_finalizing_fn ask = atomic_load_explicit(&is_finalizing, memory_order_relaxed);

    return __builtin_expect(ask != NULL, 1) && ask() != 0;
}
