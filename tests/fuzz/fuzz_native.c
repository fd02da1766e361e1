/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames of the native protocol and every row that a server sends. An input
 * is a stream of frames. What decodes is encoded, decoded and encoded again: the
 * two encodings must be the same.
 */
#include "fuzzing.h"

#include "wire/event.h"
#include "wire/frame.h"
#include "wire/life_row.h"
#include "wire/origin_row.h"
#include "wire/site_sum.h"
#include "wire/status.h"
#include "wire/totals.h"

/* One pair of functions for each kind of row. */
#define ROUND_TRIP(name, type, decode, encode, room)                                               \
    static void try_##name(const uint8_t *buf, size_t len)                                         \
    {                                                                                              \
        static type first, second;                                                                 \
        static uint8_t once[room], twice[room];                                                    \
                                                                                                   \
        if (decode(buf, len, &first) < 0)                                                          \
            return;                                                                                \
        const size_t n = encode(&first, once);                                                     \
        MUST(n <= (room));                                                                         \
        MUST(decode(once, n, &second) == 0);                                                       \
        MUST(encode(&second, twice) == n);                                                         \
        MUST(memcmp(once, twice, n) == 0);                                                         \
    }

static size_t encode_event(const struct ttm_event *event, uint8_t *buf)
{
    ttm_event_encode(event, buf);
    return TTM_EVENT_SIZE;
}

static size_t encode_status(const struct ttm_status *status, uint8_t *buf)
{
    ttm_status_encode(status, buf);
    return TTM_STATUS_SIZE;
}

static size_t encode_checked(const struct ttm_checked *checked, uint8_t *buf)
{
    ttm_checked_encode(checked, buf);
    return TTM_CHECKED_SIZE;
}

/* A decoded origin and the room that its texts lie in. */
struct origin {
    struct ttm_origin_row row;
    struct ttm_origin_texts texts;
};

static int decode_origin(const uint8_t *buf, size_t len, struct origin *ret)
{
    return ttm_origin_row_decode(buf, len, &ret->texts, &ret->row);
}

static size_t encode_origin(const struct origin *origin, uint8_t *buf)
{
    return ttm_origin_row_encode(&origin->row, buf);
}

ROUND_TRIP(origin, struct origin, decode_origin, encode_origin, TTM_ORIGIN_ROW_SIZE_MAX)
ROUND_TRIP(mark, struct ttm_mark_row, ttm_mark_row_decode, ttm_mark_row_encode, TTM_ROW_SIZE_MAX)
ROUND_TRIP(failure, struct ttm_failure_row, ttm_failure_row_decode, ttm_failure_row_encode,
           TTM_ROW_SIZE_MAX)
ROUND_TRIP(moment, struct ttm_moment, ttm_moment_decode, ttm_moment_encode, TTM_ROW_SIZE_MAX)
ROUND_TRIP(device, struct ttm_device_row, ttm_device_row_decode, ttm_device_row_encode,
           TTM_ROW_SIZE_MAX)
ROUND_TRIP(process, struct ttm_process_row, ttm_process_row_decode, ttm_process_row_encode,
           TTM_ROW_SIZE_MAX)
ROUND_TRIP(process_device, struct ttm_process_device_row, ttm_process_device_row_decode,
           ttm_process_device_row_encode, TTM_ROW_SIZE_MAX)
ROUND_TRIP(site, struct ttm_site_row, ttm_site_row_decode, ttm_site_row_encode,
           TTM_SITE_ROW_SIZE_MAX)
ROUND_TRIP(site_sum, struct ttm_site_sum, ttm_site_sum_decode, ttm_site_sum_encode,
           TTM_SITE_SUM_SIZE)
ROUND_TRIP(left_out, struct ttm_left_out, ttm_left_out_decode, ttm_left_out_encode,
           TTM_LEFT_OUT_SIZE)
ROUND_TRIP(event, struct ttm_event, ttm_event_decode, encode_event, TTM_EVENT_SIZE)
ROUND_TRIP(status, struct ttm_status, ttm_status_decode, encode_status, TTM_STATUS_SIZE)
ROUND_TRIP(checked, struct ttm_checked, ttm_checked_decode, encode_checked, TTM_CHECKED_SIZE)

static void try_lives(const uint8_t *buf, size_t len)
{
    uint32_t index;
    const long count = ttm_lives_head_decode(buf, len, &index);

    for (long i = 0; i < count; i++) {
        const uint8_t *at = buf + TTM_LIVES_HEAD_SIZE + i * TTM_LIFE_ROW_SIZE;
        uint8_t once[TTM_LIFE_ROW_SIZE];
        struct ttm_life_row row;
        ttm_life_row_decode(at, &row);
        ttm_life_row_encode(&row, once);
        MUST(memcmp(once, at, 44) == 0); /* the rest is reserved */
    }
}

static void try_frame(const struct ttm_frame *frame)
{
    uint8_t *payload = exact_copy(frame->payload, frame->length);

    /* A row under the wrong type is as good an input as any. */
    try_moment(payload, frame->length);
    try_device(payload, frame->length);
    try_process(payload, frame->length);
    try_process_device(payload, frame->length);
    try_site(payload, frame->length);
    try_site_sum(payload, frame->length);
    try_left_out(payload, frame->length);
    try_origin(payload, frame->length);
    try_mark(payload, frame->length);
    try_failure(payload, frame->length);
    try_status(payload, frame->length);
    try_checked(payload, frame->length);
    try_lives(payload, frame->length);
    for (uint32_t at = 0; at < frame->length; at += TTM_EVENT_SIZE)
        try_event(payload + at, frame->length - at);
    free(payload);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ttm_frame frame;
    long n;

    while ((n = ttm_frame_parse(data, size, TTM_FRAME_ANSWER_MAX, &frame)) > 0) {
        MUST((size_t)n <= size);
        MUST(frame.payload + frame.length == data + n);
        try_frame(&frame);
        data += n;
        size -= (size_t)n;
    }
    return 0;
}
