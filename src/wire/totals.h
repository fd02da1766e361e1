/* SPDX-License-Identifier: Apache-2.0 */
/*
 * totals - sums of what is allocated, and the answer rows that carry them.
 *
 * Each row below is the payload of one frame. A row begins with the size of its
 * fixed part, so that fields can be appended; strings follow the fixed part.
 */
#ifndef TTM_WIRE_TOTALS_H
#define TTM_WIRE_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/region.h"

/* Of one region on one device, of one process or of all. */
struct ttm_totals {
    uint64_t count;
    uint64_t bytes;
    uint64_t footprint_bytes;
    uint64_t peak_bytes;
    uint64_t peak_footprint_bytes;
    uint64_t births;
    uint64_t ends;         /* freed by their owner */
    uint64_t closed_count; /* ended with their device */
    uint64_t closed_bytes;
    uint64_t closed_footprint_bytes;
    uint32_t peak_holds; /* not sent: while there are any, the peaks do not rise */
};

/*
 * Circular buffers by core. Cached programs share the same addresses, so what they
 * hold is the union, never the sum; resident is what the programs sent last hold.
 */
struct ttm_cb_totals {
    uint64_t coreless_bytes; /* of those whose cores are not known, a part of the two below */
    uint64_t registered_bytes;
    uint64_t resident_bytes;
    uint64_t peak_registered_bytes;
    uint64_t peak_resident_bytes;
};

struct ttm_device_totals {
    struct ttm_totals region[TTM_REGION_COUNT];
    uint64_t kernel_bytes[TTM_KERNEL_KIND_COUNT];
    struct ttm_cb_totals cb;
};

/* What is taken of a region now, as its capacity is meant. */
static inline uint64_t ttm_device_used(const struct ttm_device_totals *totals, unsigned region)
{
    return region == TTM_REGION_CB ? totals->cb.resident_bytes
                                   : totals->region[region].footprint_bytes;
}

#define TTM_STRING_MAX 255

/* The frame TTM_FRAME_TOTALS. */
struct ttm_moment {
    uint64_t time_ns;   /* wall clock */
    uint64_t uptime_ns; /* of the server */
    uint32_t device_count;
    uint32_t process_count;
};

/* The frame TTM_FRAME_DEVICE. A capacity or a number of banks of 0 is not known. */
struct ttm_device_row {
    uint16_t id;
    uint8_t arch;
    uint32_t core_count;
    uint64_t capacity_bytes[TTM_REGION_COUNT];
    uint32_t bank_count[TTM_REGION_COUNT];
    struct ttm_device_totals totals;
    char board[TTM_STRING_MAX + 1];
};

/* The frame TTM_FRAME_PROCESS. */
struct ttm_process_row {
    uint32_t index; /* what the rows after it refer to */
    int32_t pid;    /* 0: not visible from the server's namespace */
    uint32_t uid;
    uint8_t source; /* enum ttm_source */
    bool has_lives; /* the asker may see them */
    uint32_t connections;
    uint32_t lives;
    uint64_t start_ns; /* wall clock; 0: not known */
    uint64_t events;
    uint64_t unknown_frees;
    uint64_t ambiguous_frees;
    uint64_t replaced;
    uint64_t refused;
    uint64_t lost_events;
    uint64_t resyncs;
    uint64_t untracked;    /* events that the process had no room for */
    uint64_t unknown_ends; /* ends of what was not live, by the process's own count */
    uint32_t events_per_s;
    uint16_t ring_permille; /* how full its fullest ring is */
    bool is_disabled;       /* tracking is switched off in it */
    bool has_gap;           /* it was tracked before this server knew it, or off for a while */
    bool is_behind;         /* it has still to tell what it holds: its lives are not exact */
    uint32_t resync_us;     /* from the need for the last telling until it was exact; 0: none yet */
    uint64_t run;           /* wire/attach.h; 0: none, or the asker may not see it */
    uint64_t notes_left_out; /* names, contexts and stacks that the process had no room for */
    uint64_t failures;       /* allocations that could not be made */
    char command[TTM_STRING_MAX + 1];
    char runtime[TTM_STRING_MAX + 1]; /* "ttnn 0.81.1" */
    char trouble[TTM_STRING_MAX + 1]; /* why something in it is not tracked */
};

/* The frame TTM_FRAME_PROCESS_DEVICE. */
struct ttm_process_device_row {
    uint32_t process_index;
    uint16_t device_id;
    struct ttm_device_totals totals;
};

/* Every encoder needs at most this much room and returns what it used. */
#define TTM_ROW_SIZE_MAX 1536

size_t ttm_moment_encode(const struct ttm_moment *row, uint8_t *buf);
size_t ttm_device_row_encode(const struct ttm_device_row *row, uint8_t *buf);
size_t ttm_process_row_encode(const struct ttm_process_row *row, uint8_t *buf);
size_t ttm_process_device_row_encode(const struct ttm_process_device_row *row, uint8_t *buf);

/* Each returns 0 or -EBADMSG; longer rows of a newer sender are fine. */
int ttm_moment_decode(const uint8_t *buf, size_t len, struct ttm_moment *ret);
int ttm_device_row_decode(const uint8_t *buf, size_t len, struct ttm_device_row *ret);
int ttm_process_row_decode(const uint8_t *buf, size_t len, struct ttm_process_row *ret);
int ttm_process_device_row_decode(const uint8_t *buf, size_t len,
                                  struct ttm_process_device_row *ret);

#endif /* TTM_WIRE_TOTALS_H */
