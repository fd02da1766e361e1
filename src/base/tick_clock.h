/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tick_clock - the monotonic clock, for those who look at it all the time.
 *
 * Takes the processor's ticks for nanoseconds, with numbers that lie where its owner wants them. So
 * it costs no call, and no memory that the caches have forgotten: half of what clock_gettime()
 * takes, where that is warm, and less than that where it is not. It follows CLOCK_MONOTONIC to
 * within a millisecond, mostly a microsecond, and does not step back. Any thread, in a signal
 * handler too; keeps errno.
 */
#ifndef TTM_BASE_TICK_CLOCK_H
#define TTM_BASE_TICK_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Zeroed, it is clock_gettime() and nothing else. Up to 'ns' it is what every look takes. */
struct ttm_tick_clock {
    _Atomic uint32_t version; /* odd: the next three belong together and can be used */
    _Atomic uint32_t scale;   /* nanoseconds for 2^32 ticks */
    _Atomic uint64_t ticks;   /* at this count of ticks */
    _Atomic uint64_t ns;      /* it was this time */
    uint64_t measured_ns;     /* and CLOCK_MONOTONIC this; 0: never */
    _Atomic bool is_trusted;  /* ticks are as good as the kernel's clock */
    _Atomic bool is_busy;     /* somebody sets the above */
};

/* For so many ticks, the better part of a second, the numbers are good; then they are set again. */
#define TTM_TICKS_MAX (1u << 31)

/* Starts to use ticks, if the kernel does so itself. Makes three system calls. */
void ttm_tick_clock_begin(struct ttm_tick_clock *clock);

/* For a clock that cannot be used, or has to be set. */
__attribute__((cold, noinline)) uint64_t ttm_tick_clock_ask(struct ttm_tick_clock *clock);

/*
 * At this count of ticks CLOCK_MONOTONIC was 'ns': sets a clock that is trusted. Returns the time
 * that the clock says it was. One thread at a time.
 */
uint64_t ttm_tick_clock_set(struct ttm_tick_clock *clock, uint64_t ticks, uint64_t ns);

/* The time at that count of ticks; 0 when the clock has to be asked. */
static inline uint64_t ttm_tick_clock_at(const struct ttm_tick_clock *clock, uint64_t ticks)
{
    /* acquire, all: in this order, so that the version is of what was read in between. */
    const uint32_t version = atomic_load_explicit(&clock->version, memory_order_acquire);
    const uint64_t passed = ticks - atomic_load_explicit(&clock->ticks, memory_order_acquire);
    const uint64_t scale = atomic_load_explicit(&clock->scale, memory_order_acquire);
    const uint64_t ns = atomic_load_explicit(&clock->ns, memory_order_acquire);
    const uint32_t changed = version ^ atomic_load_explicit(&clock->version, memory_order_relaxed);

    /* One branch for all that is usual. */
    if (__builtin_expect((passed / TTM_TICKS_MAX | changed | (~version & 1)) != 0, 0))
        return 0;
    return ns + (passed * scale >> 32);
}

static inline uint64_t ttm_tick_clock_ns(struct ttm_tick_clock *clock)
{
#ifdef __x86_64__
    const uint64_t ns = ttm_tick_clock_at(clock, __builtin_ia32_rdtsc());

    if (__builtin_expect(ns != 0, 1))
        return ns;
#endif
    return ttm_tick_clock_ask(clock);
}

#endif /* TTM_BASE_TICK_CLOCK_H */
