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

#endif /* TTM_BASE_CLOCK_H */
