/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel watches the ticks: where they stop, run unevenly or differ between processors, it
 * takes another clock for itself. Where it takes them, so do we.
 *
 * The first look notes how many ticks there were at what time. One some time later knows how long a
 * tick is, and from then on looks are cheap, until the numbers have become old. Then they are set
 * anew by who looks first, so that time goes on from where it was and is right at the end of the
 * next period: it bends and does not step. It steps forward after a long silence, if ticks and time
 * have parted meanwhile (a machine that slept, a clock that was slewed); where it would have to step
 * back, ticks are not what they seemed, and clock_gettime() it is for good.
 *
 * Who is interrupted while it sets the clock leaves it unusable for that while, and others ask the
 * kernel; in a child that was forked then, for good.
 */
#include "base/tick_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define FIRST_PERIOD_NS (50 * TTM_NS_PER_MS) /* a tick is known to a few millionths then */
#define APART_MAX_NS 1e6                     /* more is not made good by bending */
#define LOOK_TICKS_MAX 2000u                 /* one that took longer was interrupted */
#define TWO_TO_32 4294967296.0

#ifdef __x86_64__
static bool kernel_uses_ticks(void)
{
    static const char path[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    const int saved_errno = errno;
    char name[8] = "";
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd >= 0 ? read(fd, name, sizeof(name)) : -1;

    if (fd >= 0)
        (void)close(fd);
    errno = saved_errno;
    return length == 4 && memcmp(name, "tsc\n", 4) == 0;
}
#endif

void ttm_tick_clock_begin(struct ttm_tick_clock *clock)
{
#ifdef __x86_64__
    /* relaxed: nothing else depends on it. */
    atomic_store_explicit(&clock->is_trusted, kernel_uses_ticks(), memory_order_relaxed);
#else
    (void)clock;
#endif
}

/* One thread writes; others read with ttm_tick_clock_at(). */
static void store(struct ttm_tick_clock *clock, uint64_t ticks, uint64_t ns, double ns_per_tick)
{
    /* release, all: in this order for ttm_tick_clock_at(). */
    atomic_store_explicit(&clock->ticks, TTM_TICKS_NONE, memory_order_release);
    atomic_store_explicit(&clock->scale, (uint32_t)(ns_per_tick * TWO_TO_32), memory_order_release);
    atomic_store_explicit(&clock->ns, ns, memory_order_release);
    atomic_store_explicit(&clock->ticks, ticks, memory_order_release);
}

static uint64_t distrust(struct ttm_tick_clock *clock, uint64_t ns)
{
    /* relaxed, both: whoever reads them in another order asks the kernel a little later. */
    atomic_store_explicit(&clock->is_trusted, false, memory_order_relaxed);
    atomic_store_explicit(&clock->ticks, TTM_TICKS_NONE, memory_order_relaxed);
    return ns;
}

uint64_t ttm_tick_clock_set(struct ttm_tick_clock *clock, uint64_t ticks, uint64_t ns)
{
    /* relaxed, here and below: only one thread writes them at a time. */
    const uint64_t base_ticks = atomic_load_explicit(&clock->ticks, memory_order_relaxed);
    const bool is_usable = base_ticks != 0 && base_ticks != TTM_TICKS_NONE;
    const uint64_t base_ns = atomic_load_explicit(&clock->ns, memory_order_relaxed);

    if (clock->measured_ns == 0) {
        clock->measured_ns = ns;
        clock->measured_ticks = ticks;
        return ns;
    }
    if (ticks <= clock->measured_ticks || ns < clock->measured_ns)
        return distrust(clock, ns);
    if (ns - clock->measured_ns < FIRST_PERIOD_NS)
        return ns;

    const double passed = (double)(ticks - clock->measured_ticks);
    double ns_per_tick = (double)(ns - clock->measured_ns) / passed;
    double ahead = 0;
    if (is_usable) {
        const double scale = atomic_load_explicit(&clock->scale, memory_order_relaxed);
        ahead = passed * scale / TWO_TO_32 - (double)(ns - base_ns);
        if (ahead > APART_MAX_NS || ahead < -APART_MAX_NS) {
            if ((double)(ns - base_ns) < TTM_TICKS_MAX * scale / TWO_TO_32)
                return distrust(clock, ns); /* others may have been told a later time */
            ahead = 0;
        }
    }
    ns_per_tick -= ahead / TTM_TICKS_MAX;
    if (ns_per_tick >= 1)
        return distrust(clock, ns); /* too coarse for 32 bits of scale */
    clock->measured_ns = ns;
    clock->measured_ticks = ticks;
    ns += (uint64_t)(int64_t)ahead;
    store(clock, ticks, ns, ns_per_tick);
    return ns;
}

uint64_t ttm_tick_clock_ask(struct ttm_tick_clock *clock)
{
    /* relaxed: see ttm_tick_clock_begin(). */
    if (!atomic_load_explicit(&clock->is_trusted, memory_order_relaxed))
        return ttm_clock_monotonic_ns();
#ifdef __x86_64__
    const uint64_t before = __builtin_ia32_rdtsc();
    uint64_t ns = ttm_clock_monotonic_ns();
    const uint64_t took = __builtin_ia32_rdtsc() - before;
    /* acquire: pairs with the release below, for what ttm_tick_clock_set() reads. */
    if (took <= LOOK_TICKS_MAX &&
        !atomic_exchange_explicit(&clock->is_busy, true, memory_order_acquire)) {
        ns = ttm_tick_clock_set(clock, before + took / 2, ns);
        atomic_store_explicit(&clock->is_busy, false, memory_order_release);
    }
    return ns;
#else
    return ttm_clock_monotonic_ns();
#endif
}
