/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracking - whether the hook reports, and how it begins to.
 *
 * libttmem can be switched on at any moment. Then the hook reads what the runtime's
 * allocators hold, with the gate closed, and tells it; from then on it reports.
 * Before that it reports nothing, so nothing is told twice. Inside the gate libttmem
 * is called only while the hook reports: another thread may be switching it, and
 * wait for the gate to be empty.
 */
#ifndef TTM_HOOK_TRACKING_H
#define TTM_HOOK_TRACKING_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "hook/gate.h"

static inline bool ttm_tracking_is_on(void)
{
    /* relaxed: it changes with the gate closed, and what counts is its value inside the gate. */
    return (atomic_load_explicit(&ttm_hot.state, memory_order_relaxed) & TTM_GATE_TRACKING) != 0;
}

/*
 * Begins when the program has set TT_ALLOC_TRACKING_ENABLED=1 itself, after it was
 * started. For moments when a device is opened, outside the gate.
 */
void ttm_tracking_look_at_environment(void);

/* Begins to report if libttmem is on or wants to be. Outside the gate, which it closes. Keeps errno. */
__attribute__((cold, noinline)) void ttm_tracking_begin_if_wanted(void);

/* As below, where the gate is closed, tracking is off or the thread has no line. */
__attribute__((cold, noinline)) bool ttm_event_enter_slowly(void);

/*
 * Enters the gate, having begun to report if that is wanted. Keeps errno. Returns whether tracking
 * is on, which stays so inside the gate.
 */
static inline bool ttm_event_enter(void)
{
    _Atomic uint32_t *line = ttm_own.gate.line;

    if (__builtin_expect(line != NULL, 1)) {
        if (__builtin_expect((uint32_t)ttm_gate_go_in(line) == TTM_GATE_TRACKING, 1))
            return true;
        ttm_gate_go_out(line);
    }
    return ttm_event_enter_slowly();
}

/*
 * Around a handler that may do anything: enters the gate, and keeps errno, which the
 * host may be about to read. May be nested.
 */
static inline int ttm_event_begin(void)
{
    const int saved_errno = errno;

    (void)ttm_event_enter();
    return saved_errno;
}

static inline void ttm_event_end(int saved_errno)
{
    ttm_gate_leave();
    errno = saved_errno;
}

#endif /* TTM_HOOK_TRACKING_H */
