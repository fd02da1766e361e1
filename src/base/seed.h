/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seed - a number that others do not know, for tables whose keys they choose.
 *
 * Whoever makes such a table passes it a seed; so a test can pass its own and see
 * the same each time.
 */
#ifndef TTM_BASE_SEED_H
#define TTM_BASE_SEED_H

#include <stdint.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"

/* Never waits: early in the life of a machine it is the clock, which is better than nothing. */
static inline uint64_t ttm_seed_random(void)
{
    uint64_t seed = 0;

    if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed))
        seed = ttm_clock_monotonic_ns() ^ (uint64_t)getpid() << 32;
    return seed;
}

#endif /* TTM_BASE_SEED_H */
