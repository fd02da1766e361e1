/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate - many threads pass at a time; now and then one closes it to be alone.
 *
 * A thread passes from before the runtime's allocator changes until that change
 * has been reported. Who reads the allocator's own live set closes the gate first,
 * so every change lies wholly before or wholly after the reading. To pass costs
 * two plain stores to a line that the thread has to itself.
 */
#ifndef TTM_HOOK_GATE_H
#define TTM_HOOK_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hook/hot.h"
#include "hook/own.h"

/*
 * The lower half of ttm_hot.state, which everybody looks at. Its bits change under the lock of who
 * closes the gate.
 */
#define TTM_GATE_CLOSED UINT64_C(1)
#define TTM_GATE_TRACKING UINT64_C(2) /* tracking.h's */
#define TTM_GATE_ALONE UINT64_C(4)    /* closed, and nobody was inside: see gate.c */

/* For a thread that finds the gate closed, or has no line. */
__attribute__((cold, noinline)) void ttm_gate_enter_slowly(void); /* keeps errno */
__attribute__((cold, noinline)) void ttm_gate_leave_slowly(void);

/*
 * Says that this thread, which has a line, is inside, and returns the state after that.
 *
 * Only this thread writes its line, and a signal handler leaves it as it was. relaxed, and in this
 * order for the compiler alone: see gate.c for the processor.
 */
static inline uint64_t ttm_gate_go_in(_Atomic uint32_t *line)
{
    atomic_store_explicit(line, atomic_load_explicit(line, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    /* acquire: pairs with the release in ttm_gate_open(). */
    return atomic_load_explicit(&ttm_hot.state, memory_order_acquire);
}

static inline void ttm_gate_go_out(_Atomic uint32_t *line)
{
    /* release: pairs with the acquire in is_empty(); what was done inside is done. */
    atomic_store_explicit(line, atomic_load_explicit(line, memory_order_relaxed) - 1,
                          memory_order_release);
}

/* May be nested. Waits while another thread has closed the gate. */
static inline void ttm_gate_enter(void)
{
    _Atomic uint32_t *line = ttm_own.gate.line;

    if (__builtin_expect(!line || (ttm_gate_go_in(line) & TTM_GATE_CLOSED) != 0, 0))
        ttm_gate_enter_slowly();
}

static inline void ttm_gate_leave(void)
{
    _Atomic uint32_t *line = ttm_own.gate.line;

    if (__builtin_expect(line != NULL, 1))
        ttm_gate_go_out(line);
    else
        ttm_gate_leave_slowly();
}

/*
 * Keeps others from entering and waits until nobody is inside but, perhaps, the
 * caller, who then opens it again. Returns false when somebody stayed inside for
 * seconds (a thread that was cancelled there): what follows may be inexact, and
 * the gate has to be opened all the same.
 */
bool ttm_gate_close(void);
void ttm_gate_open(void);

/*
 * Around a fork. Whoever has closed the gate may have locked something of the runtime's to read
 * it, and would not be there in the child to unlock it: the fork waits a second at most until the
 * gate is open, and keeps it so. It does not wait on a thread that is inside, for whom a closer
 * has to wait. Keeps errno.
 */
void ttm_gate_before_fork(void);
void ttm_gate_after_fork_in_parent(void);

/* In the child of a fork: nobody else is there. */
void ttm_gate_after_fork(void);

#endif /* TTM_HOOK_GATE_H */
