/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latency - a histogram of durations, good to an eighth of each power of two.
 */
#ifndef TTM_SERVER_LATENCY_H
#define TTM_SERVER_LATENCY_H

#include <stdint.h>

#define TTM_LATENCY_BUCKETS (64 * 8)

struct ttm_latency {
    uint64_t count;
    uint64_t max_ns;
    uint32_t buckets[TTM_LATENCY_BUCKETS];
};

void ttm_latency_add(struct ttm_latency *latency, uint64_t duration_ns);

/* The duration that 'percent' of all did not exceed; 0 when there are none. */
uint64_t ttm_latency_percentile(const struct ttm_latency *latency, unsigned percent);

#endif /* TTM_SERVER_LATENCY_H */
