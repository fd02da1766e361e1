/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history - every life of one address, in order, from a recording.
 *
 * An address is reused as soon as it is free, and DRAM and L1 have the same numbers, so
 * one address has many lives. Memory follows those, not the recording. One thread.
 */
#ifndef TTM_ANALYSIS_HISTORY_H
#define TTM_ANALYSIS_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/arena.h"
#include "analysis/origin_words.h"
#include "recording/recording.h"
#include "wire/request.h"

struct ttm_history_life {
    struct ttm_recorded_life life;
    int32_t pid;
    uint64_t birth_ns;
    bool has_ended;
    uint8_t how; /* enum ttm_recorded_how */
    uint64_t end_ns;
    bool is_inside;          /* it begins before the address and reaches over it */
    bool is_overlap;         /* another of the same memory was live there when it was born */
    const uint16_t *devices; /* ascending as they were said */
    uint16_t device_count;
    struct ttm_origin_words words;
};

struct ttm_history {
    struct ttm_history_life *lives; /* in order of birth */
    uint64_t count;
    uint64_t left_out; /* beyond TTM_HISTORY_LIVES */
    uint64_t first_ns; /* of the recording */
    bool is_untimed;   /* it comes from a log without times: those here tell the order */
    bool has_device[TTM_DEVICE_COUNT]; /* in the recording; not kept where all were chosen */
    struct ttm_recording_info info;
    struct ttm_arena arena;
};

#define TTM_HISTORY_LIVES (1u << 22)

struct ttm_history_options {
    uint64_t address;
    struct ttm_device_filter devices;
    int region; /* -1: all */
    struct ttm_frame_namer namer;
    uint64_t seed;
};

/* Returns 0; -ENOMEM or an error of the disk, and then there is no history. */
int ttm_history_read(struct ttm_recording *recording, const struct ttm_history_options *options,
                     struct ttm_history *ret);

void ttm_history_done(struct ttm_history *history);

/* "freed", "replaced", "device_closed". */
const char *ttm_history_end_name(unsigned how);

#endif /* TTM_ANALYSIS_HISTORY_H */
