/* SPDX-License-Identifier: Apache-2.0 */
/*
 * growth - how fast things grow: bytes per second over about the last ten seconds.
 *
 * One thread. Things are told by a number of their own; who is not told of any more
 * is forgotten.
 */
#ifndef TTM_DASHBOARD_GROWTH_H
#define TTM_DASHBOARD_GROWTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/u64_map.h"

#define TTM_GROWTH_SAMPLES 6
#define TTM_GROWTH_SPACING_NS 2000000000ull

struct ttm_growth_thing {
    uint64_t key;
    uint64_t told_ns; /* when it was last told of */
    uint64_t bytes;   /* at that time */
    struct {
        uint64_t time_ns, bytes;
    } samples[TTM_GROWTH_SAMPLES]; /* oldest first, TTM_GROWTH_SPACING_NS apart */
    unsigned sample_count;
};

/* Zero-initialised. */
struct ttm_growth {
    struct ttm_growth_thing *things;
    size_t count, room;
    struct ttm_u64_map index; /* key → place */
};

void ttm_growth_done(struct ttm_growth *growth);

/* A thing has so many bytes now. Returns 0 or -ENOMEM. */
int ttm_growth_tell(struct ttm_growth *growth, uint64_t key, uint64_t time_ns, uint64_t bytes);

/* Forgets what was not told at 'time_ns'. */
void ttm_growth_sweep(struct ttm_growth *growth, uint64_t time_ns);

/* Returns whether it is known: two tellings at least a second apart. */
bool ttm_growth_rate(const struct ttm_growth *growth, uint64_t key, int64_t *ret_bytes_per_s);

#endif /* TTM_DASHBOARD_GROWTH_H */
