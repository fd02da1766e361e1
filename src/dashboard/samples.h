/* SPDX-License-Identifier: Apache-2.0 */
/*
 * samples - how much was used over the last hour, a value for each second.
 *
 * One thread. Times come from the caller and never go back.
 */
#ifndef TTM_DASHBOARD_SAMPLES_H
#define TTM_DASHBOARD_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TTM_SAMPLES_SECONDS 3600

enum ttm_track { TTM_TRACK_DRAM, TTM_TRACK_L1, TTM_TRACK_COUNT };

struct ttm_samples_device {
    unsigned id;
    uint64_t last_s; /* the second of the newest value */
    uint64_t first_s;
    uint64_t *values; /* by second, modulo the length, of all tracks; UINT64_MAX: not known */
};

/* Zero-initialised. */
struct ttm_samples {
    struct ttm_samples_device *devices;
    size_t count;
    unsigned bridge_s; /* a gap of at most so many seconds has the value before it */
};

void ttm_samples_done(struct ttm_samples *history);

/*
 * Takes what is used now; of several values in a second the largest stays. A second
 * of which nothing was told has none, or the one before, see 'bridge_s'. Returns 0 or -ENOMEM.
 */
int ttm_samples_add(struct ttm_samples *history, unsigned device, uint64_t time_ns,
                    const uint64_t bytes[TTM_TRACK_COUNT]);

#define TTM_SAMPLES_NONE UINT64_MAX

/*
 * The largest value in each of 'count' equal parts of the last 'window_s' seconds before
 * 'now_ns', oldest first, or TTM_SAMPLES_NONE. Returns the largest of all, 0 without any.
 */
uint64_t ttm_samples_read(const struct ttm_samples *history, unsigned device, enum ttm_track track,
                          uint64_t now_ns, unsigned window_s, uint64_t *ret, size_t count);

#endif /* TTM_DASHBOARD_SAMPLES_H */
