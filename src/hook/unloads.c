/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that is unloaded takes the addresses with it that remembered stacks are
 * made of. So dlclose() passes through here, and nothing else about it changes.
 */
#include <dlfcn.h>
#include <stdatomic.h>

#include "stack/stack.h"

typedef int (*dlclose_fn)(void *handle);

__attribute__((visibility("default"))) int dlclose(void *handle)
{
    static _Atomic(dlclose_fn) original;
    dlclose_fn call = atomic_load_explicit(&original, memory_order_relaxed); /* all find the same */

    if (!call) {
        void *found = dlsym(RTLD_NEXT, "dlclose");
        __builtin_memcpy(&call, &found, sizeof(call));
        atomic_store_explicit(&original, call, memory_order_relaxed);
    }
    if (!call)
        return -1;
    const int r = call(handle);
    ttm_stack_unloaded();
    return r;
}
