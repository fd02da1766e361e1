/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_slot - where in its descriptor a thread has its Python state.
 *
 * PyGILState_GetThisThreadState() is two calls into libpython and one into the C library, for one
 * word that the latter keeps in the thread's descriptor. Code that the program has driven out of
 * the caches costs far more than what it does, so the word is read where it lies. python_slot.c has
 * the argument why that is the same.
 *
 * One per process; any thread, at any time, inside the door (python_door.h).
 */
#ifndef TTM_STACK_PYTHON_SLOT_H
#define TTM_STACK_PYTHON_SLOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "stack/hot.h"
#include "stack/probe.h"

/* A slot: how far into the descriptor it lies, and above that the number of its key. 0: not known. */
#define TTM_SLOT_OFFSET_BITS 16

/*
 * Finds out for everybody, by a thread whose pthread_self() is 'self' and for whom 'ask' has just
 * said 'state', not NULL. Tried a few times only. Takes no lock and allocates nothing.
 */
void ttm_python_slot_learn(uint64_t self, void *(*ask)(void), uintptr_t state);

/*
 * The interpreter is about to go, and its keys with it; or this is a forked child. Who is inside goes
 * on with what it has read.
 */
void ttm_python_slot_forget(void);

/*
 * Reads the state of the thread whose pthread_self() is 'self', 0 for none. Returns false when Python
 * has to be asked.
 */
TTM_READS_FOREIGN static inline bool ttm_python_slot_read(uint64_t self, uintptr_t *ret)
{
    /* relaxed: it is a number and leads to nothing but this thread's own words. */
    const uint64_t slot = atomic_load_explicit(&ttm_stack_hot.slot, memory_order_relaxed);
    const uint64_t *words = (const uint64_t *)(self + (slot & ((1u << TTM_SLOT_OFFSET_BITS) - 1)));

    if (__builtin_expect(slot == 0 || words[0] != slot >> TTM_SLOT_OFFSET_BITS, 0))
        return false;
    *ret = words[1];
    return true;
}

#endif /* TTM_STACK_PYTHON_SLOT_H */
