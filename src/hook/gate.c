/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who enters counts itself in and then looks whether the gate is closed; who closes
 * it says so and then looks at the counts. Both are sequentially consistent, so at
 * least one of two who meet sees the other. Who entered too late counts itself out
 * again and waits.
 */
#include "hook/gate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define LINES 64u
#define PAUSE_NS 20000
#define PATIENCE 20000 /* pauses, with what a sleep takes besides: a second or two */

static struct {
    _Alignas(64) _Atomic int32_t inside;
} lines[LINES];

static _Atomic bool is_closed;
static pthread_mutex_t closers = PTHREAD_MUTEX_INITIALIZER; /* one closes at a time */

static _Atomic uint32_t threads_seen;

static __thread struct {
    uint32_t depth;
    uint32_t line; /* plus 1; 0: none yet */
    bool has_closed;
} own __attribute__((tls_model("initial-exec")));

static _Atomic int32_t *own_line(void)
{
    if (own.line == 0) /* relaxed: any number will do */
        own.line = atomic_fetch_add_explicit(&threads_seen, 1, memory_order_relaxed) % LINES + 1;
    return &lines[own.line - 1].inside;
}

static void pause_shortly(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};

    (void)nanosleep(&pause, NULL);
}

void ttm_gate_enter(void)
{
    if (own.depth++ > 0 || own.has_closed)
        return;
    for (;;) {
        atomic_fetch_add_explicit(own_line(), 1, memory_order_seq_cst);
        if (!atomic_load_explicit(&is_closed, memory_order_seq_cst))
            return;
        atomic_fetch_sub_explicit(own_line(), 1, memory_order_seq_cst);
        while (atomic_load_explicit(&is_closed, memory_order_relaxed)) /* looked at again above */
            pause_shortly();
    }
}

void ttm_gate_leave(void)
{
    if (--own.depth > 0 || own.has_closed)
        return;
    /* release: pairs with the acquire in is_empty(); what was done inside is done. */
    atomic_fetch_sub_explicit(own_line(), 1, memory_order_release);
}

static bool is_empty(void)
{
    for (uint32_t i = 0; i < LINES; i++) {
        /* seq_cst: see above; it is an acquire as well. */
        if (atomic_load_explicit(&lines[i].inside, memory_order_seq_cst) != 0)
            return false;
    }
    return true;
}

bool ttm_gate_close(void)
{
    /* A closer inside would wait for itself, and the one who closes for it. */
    if (own.depth > 0)
        atomic_fetch_sub_explicit(own_line(), 1, memory_order_seq_cst);
    pthread_mutex_lock(&closers);
    own.has_closed = true;
    atomic_store_explicit(&is_closed, true, memory_order_seq_cst);
    for (uint32_t i = 0; i < PATIENCE; i++) {
        if (is_empty())
            return true;
        pause_shortly();
    }
    return false;
}

void ttm_gate_open(void)
{
    if (own.depth > 0)
        atomic_fetch_add_explicit(own_line(), 1, memory_order_seq_cst);
    own.has_closed = false;
    atomic_store_explicit(&is_closed, false, memory_order_seq_cst);
    pthread_mutex_unlock(&closers);
}

void ttm_gate_after_fork(void)
{
    memset(lines, 0, sizeof(lines));
    pthread_mutex_init(&closers, NULL);
    atomic_store_explicit(&is_closed, false, memory_order_seq_cst);
    own.depth = 0;
    own.has_closed = false;
}
