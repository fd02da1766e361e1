/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock - the two clocks we use, in nanoseconds.
 *
 * Ages and durations come from the monotonic clock, so a jump of the wall clock
 * never changes them; the wall clock only labels what people and JSON see.
 */
#ifndef TTM_BASE_CLOCK_H
#define TTM_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define TTM_NS_PER_MS 1000000ull
#define TTM_NS_PER_S 1000000000ull

static inline uint64_t ttm_clock_read_ns(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * TTM_NS_PER_S + (uint64_t)ts.tv_nsec;
}

static inline uint64_t ttm_clock_monotonic_ns(void)
{
    return ttm_clock_read_ns(CLOCK_MONOTONIC);
}

static inline uint64_t ttm_clock_wall_ns(void)
{
    return ttm_clock_read_ns(CLOCK_REALTIME);
}

/*
 * What has to be added to a time of the clock 'id' to get the wall clock's. The clocks are read one
 * after the other; a pause in between, as when the process is stopped, would count as a difference,
 * so they are read again where that took long.
 */
static inline uint64_t ttm_clock_wall_offset_ns(clockid_t id)
{
    uint64_t best_ns = UINT64_MAX, offset_ns = 0;

    for (int i = 0; i < 4 && best_ns > TTM_NS_PER_MS / 10; i++) {
        const uint64_t before_ns = ttm_clock_read_ns(id);
        const uint64_t wall_ns = ttm_clock_wall_ns();
        const uint64_t took_ns = ttm_clock_read_ns(id) - before_ns;
        if (took_ns < best_ns) {
            best_ns = took_ns;
            offset_ns = wall_ns - before_ns;
        }
    }
    return offset_ns;
}

#endif /* TTM_BASE_CLOCK_H */
