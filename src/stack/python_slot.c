/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python keeps the state of each thread under a key of pthread_key_create(). The C library has the
 * values of a thread's first 32 keys in the thread's descriptor, which is where pthread_self() points:
 * for each a pair of words, the value and before it a number that says which key of all that had
 * this place it was stored under. pthread_getspecific() compares that number and returns the value.
 *
 * None of this is a promise, so it is tried out. A thread looks for its state among the words of
 * its descriptor; where it finds it, it puts another value there for a moment and asks Python. If
 * Python answers with that value, then this word is what Python reads. (Other libraries keep the same
 * state under keys of their own; theirs change nothing.) No other thread looks at the word, and the
 * signals of this one are blocked meanwhile. Where no word is found, as with another C library or
 * with a key beyond the first 32, Python is asked as before.
 *
 * The word lies at the same place in the descriptor of every thread. What a thread has there is
 * Python's answer if it was stored under the same key, which the number tells, and if that key is
 * still there. Python deletes it in two places. When an interpreter ends: then the door is shut and
 * nobody inside before, and the slot is forgotten. And in the child of a fork, where it makes another
 * one and stores the same state under it for the one thread that there is: so what is still there
 * under the old key is right. Threads that come later have the new one's number, and ask; and a child
 * that tracks forgets the slot first (ttm_stack_forget()).
 *
 * A thread that was kept from leaving (see shut_door()) may tell of a slot when it is forgotten already.
 * No new thread has its number then; an old one would read a state that is no more, whose memory
 * is kept for that very case.
 */
#include "stack/python_slot.h"

#include <signal.h>
#include <stddef.h>

#define DESCRIPTOR_BYTES 2048u /* of a descriptor; those of glibc are larger */
#define TRIES 8u
#define NUMBER_MAX (UINT64_MAX >> TTM_SLOT_OFFSET_BITS)

static _Atomic unsigned tries;

/* Does Python answer with what this word holds? */
TTM_READS_FOREIGN static bool is_answer(volatile uint64_t *word, void *(*ask)(void))
{
    static const char other;
    const uint64_t state = *word;

    *word = (uintptr_t)&other;
    const bool is_other = ask() == &other;
    *word = state;
    return is_other;
}

/* With signals blocked. Returns 0 when there is none. */
TTM_READS_FOREIGN static uint64_t find(uint64_t self, void *(*ask)(void), uintptr_t state)
{
    volatile uint64_t *words = (volatile uint64_t *)self; /* NOLINT(performance-no-int-to-ptr) */

    for (unsigned i = 1; i < DESCRIPTOR_BYTES / sizeof(*words); i++) {
        const uint64_t number = words[i - 1];
        if (words[i] == state && number != 0 && number <= NUMBER_MAX && is_answer(&words[i], ask))
            return number << TTM_SLOT_OFFSET_BITS | (i - 1) * sizeof(*words);
    }
    return 0;
}

void ttm_python_slot_learn(uint64_t self, void *(*ask)(void), uintptr_t state)
{
    sigset_t all, before;

    /* relaxed: a count. */
    if (atomic_load_explicit(&tries, memory_order_relaxed) >= TRIES ||
        atomic_fetch_add_explicit(&tries, 1, memory_order_relaxed) >= TRIES ||
        !ttm_probe(self, DESCRIPTOR_BYTES))
        return;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
        return;
    const uint64_t slot = find(self, ask, state);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    /* relaxed: see ttm_python_slot_read(). */
    if (slot != 0)
        atomic_store_explicit(&ttm_stack_hot.slot, slot, memory_order_relaxed);
}

void ttm_python_slot_forget(void)
{
    /* relaxed: who comes in again has seen the door opened after this. */
    atomic_store_explicit(&tries, 0, memory_order_relaxed);
    atomic_store_explicit(&ttm_stack_hot.slot, 0, memory_order_relaxed);
}
