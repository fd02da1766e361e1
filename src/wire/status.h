/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status - the server's own counters.
 *
 * A list of u64 in the order of the enum: 0 u32 count | 4 u32 reserved | 8 …
 * Counters are only ever appended; a receiver takes those it knows and reads 0
 * for those the sender did not have.
 */
#ifndef TTM_WIRE_STATUS_H
#define TTM_WIRE_STATUS_H

#include <stddef.h>
#include <stdint.h>

enum ttm_counter {
    TTM_COUNTER_PID,
    TTM_COUNTER_UPTIME_NS,
    TTM_COUNTER_EVENTS,
    TTM_COUNTER_BIRTHS,
    TTM_COUNTER_ENDS,
    TTM_COUNTER_LIVES,
    TTM_COUNTER_UNKNOWN_FREES,
    TTM_COUNTER_AMBIGUOUS_FREES,
    TTM_COUNTER_REPLACED,
    TTM_COUNTER_REFUSED_DEVICE,
    TTM_COUNTER_REFUSED_REGION,
    TTM_COUNTER_REFUSED_SIZE,
    TTM_COUNTER_REFUSED_TYPE,
    TTM_COUNTER_REFUSED_MEMORY,
    TTM_COUNTER_CONNECTIONS,
    TTM_COUNTER_CONNECTIONS_TOTAL,
    TTM_COUNTER_CONNECTIONS_REFUSED,
    TTM_COUNTER_CLOSED_GARBAGE,
    TTM_COUNTER_CLOSED_SLOW,
    TTM_COUNTER_TORN_MESSAGES,
    TTM_COUNTER_PROCESSES,
    TTM_COUNTER_PROCESSES_ENDED,
    TTM_COUNTER_LOST_TAIL_EVENTS,
    TTM_COUNTER_LOST_LOG_LINES,
    TTM_COUNTER_QUERIES,
    TTM_COUNTER_QUERY_P50_NS,
    TTM_COUNTER_QUERY_P99_NS,
    TTM_COUNTER_QUERY_MAX_NS,
    TTM_COUNTER_LIFE_BYTES, /* memory that lives and their index take */
    TTM_COUNTER_LONGEST_TURN_NS,
    TTM_COUNTER_RECORDING_ERRNO,     /* what has stopped the recording; 0: nothing has */
    TTM_COUNTER_LONGEST_TURN_CPU_NS, /* processor time of the longest turn; 0: not measured */
    TTM_COUNTER_REFUSED_SHARE,       /* over what one user may have */
    TTM_COUNTER_COUNT
};

struct ttm_status {
    uint64_t counter[TTM_COUNTER_COUNT];
};

#define TTM_STATUS_SIZE (8 + 8 * TTM_COUNTER_COUNT)

/* "unknown_frees": the counter's key in JSON and in this order. */
const char *ttm_counter_name(unsigned counter);

void ttm_status_encode(const struct ttm_status *status, uint8_t buf[TTM_STATUS_SIZE]);

/* Returns 0 or -EBADMSG. */
int ttm_status_decode(const uint8_t *buf, size_t len, struct ttm_status *ret);

/* The frame TTM_FRAME_CHECKED: the answer to TTM_FRAME_CHECK. */
struct ttm_checked {
    uint64_t lives; /* looked at */
    uint64_t processes;
    uint64_t mismatches; /* totals that did not equal the sum of their lives */
};

#define TTM_CHECKED_SIZE 24

void ttm_checked_encode(const struct ttm_checked *checked, uint8_t buf[TTM_CHECKED_SIZE]);
int ttm_checked_decode(const uint8_t *buf, size_t len, struct ttm_checked *ret);

#endif /* TTM_WIRE_STATUS_H */
