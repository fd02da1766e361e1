/* SPDX-License-Identifier: Apache-2.0 */
#include "server/latency.h"

/* Durations below 8 have a bucket each; above, three bits behind the leading one choose it. */
static unsigned bucket_of(uint64_t v)
{
    if (v < 8)
        return (unsigned)v;
    const unsigned log2 = 63u - (unsigned)__builtin_clzll(v);
    return (log2 - 2) * 8 + (unsigned)(v >> (log2 - 3) & 7);
}

static uint64_t upper_bound(unsigned bucket)
{
    if (bucket < 8)
        return bucket;
    const unsigned log2 = bucket / 8 + 2;
    return ((uint64_t)(8 + bucket % 8 + 1) << (log2 - 3)) - 1;
}

void ttm_latency_add(struct ttm_latency *latency, uint64_t duration_ns)
{
    latency->count++;
    latency->buckets[bucket_of(duration_ns)]++;
    if (duration_ns > latency->max_ns)
        latency->max_ns = duration_ns;
}

uint64_t ttm_latency_percentile(const struct ttm_latency *latency, unsigned percent)
{
    const uint64_t rank = (latency->count * percent + 99) / 100;
    uint64_t seen = 0;

    for (unsigned i = 0; i < TTM_LATENCY_BUCKETS; i++) {
        seen += latency->buckets[i];
        if (rank > 0 && seen >= rank)
            return upper_bound(i) < latency->max_ns ? upper_bound(i) : latency->max_ns;
    }
    return 0;
}
