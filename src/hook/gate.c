/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who enters says so in its line and then looks whether the gate is closed; who closes
 * it says so and then looks at the lines. At least one of two who meet has to see the
 * other, so between its store and its load each needs a barrier. Entering is frequent
 * and closing is not: the closer has the kernel put the barrier into every thread
 * (base/membarrier.h), and who enters pays nothing. Who entered too late leaves its line
 * and waits.
 *
 * A signal handler may interrupt a thread between its store and its load and find it
 * inside already. If it is, the handler has to pass, as whoever closes the gate waits for
 * that thread. If its store came too late to be seen, the handler has to wait. Neither
 * can tell, so the closer does: having found all lines empty it says that it is alone,
 * looks again, and takes that back if anybody has come. A handler that finds this said
 * waits until it is taken back or the gate is open. Of two that meet one comes second in
 * changing the word: the closer, who then sees the line, or the handler, who sees the bit.
 * A thread that has found the gate open stays in sight, so nobody is alone meanwhile.
 *
 * Threads beyond LINES share a count, with real barriers.
 */
#include "hook/gate.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "base/membarrier.h"

#define LINES 256u
#define PAUSE_NS 20000
#define PATIENCE 20000 /* pauses, with what a sleep takes besides: a second or two */
#define PATIENCE_OF_FORK (PATIENCE / 2)

static struct {
    _Alignas(64) _Atomic uint32_t inside;
    _Atomic bool is_taken;
} lines[LINES];

static _Atomic int32_t sharers_inside;
/* One closes at a time. Recursive: who closes may fork, and a signal handler amid a fork may close. */
static pthread_mutex_t closers = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t line_key;
static bool has_key;

static void pause_a_little(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};

    (void)nanosleep(&pause, NULL);
}

/* The thread ends. One that was cancelled inside is inside no more. */
static void give_line_back(void *line)
{
    const size_t number = (size_t)((char *)line - (char *)lines) / sizeof(lines[0]);

    atomic_store_explicit(&lines[number].inside, 0, memory_order_release);
    /* release: pairs with the acquire in take_line(). */
    atomic_store_explicit(&lines[number].is_taken, false, memory_order_release);
    ttm_own.gate.line = NULL;
    ttm_own.gate.depth = 0;
    ttm_own.gate.is_sharing = true;                /* what ends after us may still allocate */
    ttm_own.last = (struct ttm_last_allocator){0}; /* without a line there are no lanes */
}

static void prepare(void)
{
    has_key = pthread_key_create(&line_key, give_line_back) == 0;
}

static _Atomic uint32_t *take_line(void)
{
    (void)pthread_once(&once, prepare);
    for (uint32_t i = 0; has_key && i < LINES; i++) {
        bool is_taken = false;

        /* acquire: pairs with the release of the one who had it. */
        if (!atomic_compare_exchange_strong_explicit(&lines[i].is_taken, &is_taken, true,
                                                     memory_order_acquire, memory_order_relaxed))
            continue;
        if (pthread_setspecific(line_key, &lines[i]) == 0)
            return &lines[i].inside;
        atomic_store_explicit(&lines[i].is_taken, false, memory_order_release);
        break;
    }
    return NULL;
}

/* How deep this thread is inside. */
static uint32_t depth(void)
{
    return ttm_own.gate.line ? atomic_load_explicit(ttm_own.gate.line, memory_order_relaxed)
                             : ttm_own.gate.depth;
}

/* Says that this thread is inside, so deep, and returns whether the gate was open then. */
static bool try_to_enter(uint32_t how_deep)
{
    if (ttm_own.gate.line)
        atomic_store_explicit(ttm_own.gate.line, how_deep, memory_order_seq_cst);
    else
        atomic_fetch_add_explicit(&sharers_inside, 1, memory_order_seq_cst);
    return (atomic_load_explicit(&ttm_hot.state, memory_order_seq_cst) & TTM_GATE_CLOSED) == 0;
}

static void say_outside(void)
{
    if (ttm_own.gate.line)
        atomic_store_explicit(ttm_own.gate.line, 0, memory_order_seq_cst);
    else
        atomic_fetch_sub_explicit(&sharers_inside, 1, memory_order_seq_cst);
}

static void wait_and_enter(void)
{
    if (!ttm_own.gate.line && !ttm_own.gate.is_sharing) {
        ttm_own.gate.line = take_line();
        ttm_own.gate.is_sharing = !ttm_own.gate.line;
    }
    while (!try_to_enter(1)) {
        say_outside();
        /* relaxed: looked at again above. */
        while (atomic_load_explicit(&ttm_hot.state, memory_order_relaxed) & TTM_GATE_CLOSED)
            pause_a_little();
    }
}

/* For a signal handler that finds its thread inside, or about to be: see the top. */
static void wait_until_seen(void)
{
    /* release: pairs with the acquire in claim(). It changes nothing, but has its place among the changes. */
    while (atomic_fetch_or_explicit(&ttm_hot.state, 0, memory_order_acq_rel) & TTM_GATE_ALONE)
        pause_a_little();
}

void ttm_gate_enter_slowly(void)
{
    /* One that has a line has said so there: once if it was outside. */
    const bool was_inside = depth() > (ttm_own.gate.line ? 1 : 0);

    if (!ttm_own.gate.has_closed) {
        const int saved_errno = errno;

        if (was_inside)
            wait_until_seen();
        else
            wait_and_enter();
        errno = saved_errno;
    }
    if (!ttm_own.gate.line)
        ttm_own.gate.depth++;
}

void ttm_gate_leave_slowly(void)
{
    if (--ttm_own.gate.depth == 0 && !ttm_own.gate.has_closed)
        atomic_fetch_sub_explicit(&sharers_inside, 1, memory_order_release); /* as in the header */
}

static bool is_empty(void)
{
    /* acquire: pairs with the release of those who left. */
    for (uint32_t i = 0; i < LINES; i++) {
        if (atomic_load_explicit(&lines[i].inside, memory_order_acquire) != 0)
            return false;
    }
    return atomic_load_explicit(&sharers_inside, memory_order_acquire) == 0;
}

/* All were outside. Returns whether they are still, which then lasts until the gate is open. */
static bool claim(void)
{
    /* acquire: pairs with the release in wait_until_seen(): who has not seen the bit is seen here. */
    atomic_fetch_or_explicit(&ttm_hot.state, TTM_GATE_ALONE, memory_order_acq_rel);
    if (is_empty())
        return true;
    atomic_fetch_and_explicit(&ttm_hot.state, ~TTM_GATE_ALONE, memory_order_release);
    return false;
}

bool ttm_gate_close(void)
{
    /* A closer inside would wait for itself, and the one who closes for it. */
    ttm_own.gate.depth = depth();
    if (ttm_own.gate.depth > 0)
        say_outside();
    pthread_mutex_lock(&closers);
    ttm_own.gate.has_closed = true;
    atomic_signal_fence(memory_order_seq_cst);
    atomic_fetch_or_explicit(&ttm_hot.state, TTM_GATE_CLOSED, memory_order_seq_cst);
    ttm_membarrier();
    for (uint32_t i = 0; i < PATIENCE; i++) {
        if (is_empty() && claim())
            return true;
        pause_a_little();
    }
    return false;
}

void ttm_gate_open(void)
{
    if (ttm_own.gate.depth > 0) /* nobody else closes it: that is locked */
        (void)try_to_enter(ttm_own.gate.depth);
    atomic_fetch_and_explicit(&ttm_hot.state, ~(TTM_GATE_CLOSED | TTM_GATE_ALONE),
                              memory_order_seq_cst);
    /* After that, or a signal handler on this thread would wait for it. */
    atomic_signal_fence(memory_order_seq_cst);
    ttm_own.gate.has_closed = false;
    pthread_mutex_unlock(&closers);
}

void ttm_gate_before_fork(void)
{
    const int saved_errno = errno;

    for (uint32_t i = 0; i < PATIENCE_OF_FORK && depth() == 0; i++) {
        if (pthread_mutex_trylock(&closers) == 0) {
            ttm_own.gate.forks++;
            break;
        }
        pause_a_little();
    }
    errno = saved_errno;
}

void ttm_gate_after_fork_in_parent(void)
{
    if (ttm_own.gate.forks == 0)
        return;
    ttm_own.gate.forks--;
    pthread_mutex_unlock(&closers);
}

static void renew_closers(void)
{
    pthread_mutexattr_t attr;

    (void)pthread_mutexattr_init(&attr);
    (void)pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    (void)pthread_mutex_init(&closers, &attr);
    (void)pthread_mutexattr_destroy(&attr);
}

void ttm_gate_after_fork(void)
{
    const size_t own = ttm_own.gate.line
                           ? (size_t)((char *)ttm_own.gate.line - (char *)lines) / sizeof(lines[0])
                           : LINES;

    /* relaxed, all: one thread, which is inside if it was. */
    for (size_t i = 0; i < LINES; i++) {
        if (i != own)
            atomic_store_explicit(&lines[i].inside, 0, memory_order_relaxed);
        atomic_store_explicit(&lines[i].is_taken, i == own, memory_order_relaxed);
    }
    const bool is_sharer_inside = !ttm_own.gate.line && ttm_own.gate.depth > 0;
    atomic_store_explicit(&sharers_inside, is_sharer_inside ? 1 : 0, memory_order_relaxed);
    renew_closers();
    ttm_own.gate.forks = 0;
    atomic_fetch_and_explicit(&ttm_hot.state, ~(TTM_GATE_CLOSED | TTM_GATE_ALONE),
                              memory_order_seq_cst);
    ttm_own.gate.has_closed = false;
}
