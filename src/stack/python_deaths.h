/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_deaths - notices when code objects die.
 *
 * What is known under the address of a code object holds until that object dies: an
 * address is used again only after that. One per process. Any thread, at any time;
 * nothing here waits or allocates.
 */
#ifndef TTM_STACK_PYTHON_DEATHS_H
#define TTM_STACK_PYTHON_DEATHS_H

#include <stdatomic.h>
#include <stdint.h>

#include "stack/hot.h"

/* Looks at PyCode_Type, which is there from the start; asks the loader, so outside of any event. */
void ttm_python_deaths_find(uintptr_t code_type);

/* Begins to watch, if it can, once it is proven that objects are laid out as expected. */
void ttm_python_deaths_watch(void);

/* The death of 'code', which the calling thread keeps alive meanwhile, is to be counted. */
void ttm_python_deaths_mark(uintptr_t code);

/* As if every code object had died: what was concluded from them holds no longer. */
void ttm_python_deaths_presume(void);

/*
 * Grows with each death of a marked code object, at least. 0: nobody watches, and it says nothing.
 * Whoever has marked a code object in one of its frames and finds the same number
 * again knows that it is still there: the memory of a dead object comes to this
 * thread as another object by way of the GIL, and the count came before that.
 */
static inline uint64_t ttm_python_deaths(void)
{
    /* acquire: pairs with the release in ttm_python_deaths_watch(). */
    return atomic_load_explicit(&ttm_stack_hot.deaths, memory_order_acquire);
}

#endif /* TTM_STACK_PYTHON_DEATHS_H */
