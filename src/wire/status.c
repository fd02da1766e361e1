/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/status.h"

#include <errno.h>

#include "base/bytes.h"

static const char *const names[TTM_COUNTER_COUNT] = {
    [TTM_COUNTER_PID] = "pid",
    [TTM_COUNTER_UPTIME_NS] = "uptime_ns",
    [TTM_COUNTER_EVENTS] = "events",
    [TTM_COUNTER_BIRTHS] = "allocs",
    [TTM_COUNTER_ENDS] = "frees",
    [TTM_COUNTER_LIVES] = "lives",
    [TTM_COUNTER_UNKNOWN_FREES] = "unknown_frees",
    [TTM_COUNTER_AMBIGUOUS_FREES] = "ambiguous_frees",
    [TTM_COUNTER_REPLACED] = "replaced",
    [TTM_COUNTER_REFUSED_DEVICE] = "refused_device",
    [TTM_COUNTER_REFUSED_REGION] = "refused_region",
    [TTM_COUNTER_REFUSED_SIZE] = "refused_size",
    [TTM_COUNTER_REFUSED_TYPE] = "refused_type",
    [TTM_COUNTER_REFUSED_MEMORY] = "refused_memory",
    [TTM_COUNTER_CONNECTIONS] = "connections",
    [TTM_COUNTER_CONNECTIONS_TOTAL] = "connections_total",
    [TTM_COUNTER_CONNECTIONS_REFUSED] = "connections_refused",
    [TTM_COUNTER_CLOSED_GARBAGE] = "closed_garbage",
    [TTM_COUNTER_CLOSED_SLOW] = "closed_slow",
    [TTM_COUNTER_TORN_MESSAGES] = "torn_messages",
    [TTM_COUNTER_PROCESSES] = "processes",
    [TTM_COUNTER_PROCESSES_ENDED] = "processes_ended",
    [TTM_COUNTER_LOST_TAIL_EVENTS] = "lost_tail_events",
    [TTM_COUNTER_LOST_LOG_LINES] = "lost_log_lines",
    [TTM_COUNTER_QUERIES] = "queries",
    [TTM_COUNTER_QUERY_P50_NS] = "query_p50_ns",
    [TTM_COUNTER_QUERY_P99_NS] = "query_p99_ns",
    [TTM_COUNTER_QUERY_MAX_NS] = "query_max_ns",
    [TTM_COUNTER_LIFE_BYTES] = "life_bytes",
    [TTM_COUNTER_LONGEST_TURN_NS] = "longest_turn_ns",
    [TTM_COUNTER_REFUSED_SHARE] = "refused_share",
    [TTM_COUNTER_RECORDING_ERRNO] = "recording_errno",
    [TTM_COUNTER_LONGEST_TURN_CPU_NS] = "longest_turn_cpu_ns",
};

const char *ttm_counter_name(unsigned counter)
{
    return counter < TTM_COUNTER_COUNT ? names[counter] : "?";
}

void ttm_status_encode(const struct ttm_status *status, uint8_t buf[TTM_STATUS_SIZE])
{
    put_le32(buf, TTM_COUNTER_COUNT);
    put_le32(buf + 4, 0);
    for (size_t i = 0; i < TTM_COUNTER_COUNT; i++)
        put_le64(buf + 8 + 8 * i, status->counter[i]);
}

int ttm_status_decode(const uint8_t *buf, size_t len, struct ttm_status *ret)
{
    if (len < 8)
        return -EBADMSG;
    size_t count = get_le32(buf);
    if ((len - 8) / 8 < count)
        return -EBADMSG;
    if (count > TTM_COUNTER_COUNT) /* a newer sender */
        count = TTM_COUNTER_COUNT;
    *ret = (struct ttm_status){0};
    for (size_t i = 0; i < count; i++)
        ret->counter[i] = get_le64(buf + 8 + 8 * i);
    return 0;
}

void ttm_checked_encode(const struct ttm_checked *checked, uint8_t buf[TTM_CHECKED_SIZE])
{
    put_le64(buf, checked->lives);
    put_le64(buf + 8, checked->processes);
    put_le64(buf + 16, checked->mismatches);
}

int ttm_checked_decode(const uint8_t *buf, size_t len, struct ttm_checked *ret)
{
    if (len < TTM_CHECKED_SIZE)
        return -EBADMSG;
    *ret = (struct ttm_checked){
        .lives = get_le64(buf),
        .processes = get_le64(buf + 8),
        .mismatches = get_le64(buf + 16),
    };
    return 0;
}
