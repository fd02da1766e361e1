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
    _Atomic uint64_t ticks;  /* at this count of ticks, or TTM_TICKS_NONE: it cannot be used */
    _Atomic uint64_t ns;     /* it was this time */
    _Atomic uint32_t scale;  /* nanoseconds for 2^32 ticks */
    _Atomic bool is_trusted; /* ticks are as good as the kernel's clock */
    _Atomic bool is_busy;    /* somebody sets the others */
    uint64_t measured_ticks; /* at this count */
    uint64_t measured_ns;    /* CLOCK_MONOTONIC was this; 0: never */
};

/* For so many ticks, the better part of a second, the numbers are good; then they are set again. */
#define TTM_TICKS_MAX (1u << 31)
/* No processor has counted so far, or does so soon after. */
#define TTM_TICKS_NONE (UINT64_C(1) << 63)

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
    /*
     * acquire, all: in this order. While the others are being set there are no 'ticks', and no
     * count comes twice; so what was read between two looks that are alike belongs to it.
     */
    const uint64_t base = atomic_load_explicit(&clock->ticks, memory_order_acquire);
    const uint64_t scale = atomic_load_explicit(&clock->scale, memory_order_acquire);
    const uint64_t ns = atomic_load_explicit(&clock->ns, memory_order_acquire);
    const uint64_t passed = ticks - base;

    if (__builtin_expect(passed >= TTM_TICKS_MAX, 0) ||
        __builtin_expect(atomic_load_explicit(&clock->ticks, memory_order_relaxed) != base, 0))
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
