/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame - the envelope of every message of the native protocol.
 *
 *   0 u16 type | 2 u16 reserved (0) | 4 u32 length of what follows
 *
 * An unknown type is skipped by its length. docs/wire-format.md is the
 * specification of all of src/wire.
 */
#ifndef TTM_WIRE_FRAME_H
#define TTM_WIRE_FRAME_H

#include <stddef.h>
#include <stdint.h>

struct ttm_queue;

enum ttm_frame_type {
    TTM_FRAME_HELLO = 1,
    TTM_FRAME_ERROR = 2, /* text; the sender closes after it */
    TTM_FRAME_END = 3,   /* the answer is complete */

    /* requests */
    TTM_FRAME_GET_STATUS = 16,
    TTM_FRAME_GET_TOTALS = 17,
    TTM_FRAME_GET_LIVES = 18,
    TTM_FRAME_CHECK = 19,
    TTM_FRAME_SUBSCRIBE_TOTALS = 20,
    TTM_FRAME_SUBSCRIBE_EVENTS = 21,
    TTM_FRAME_GET_SITES = 22,    /* of servers that have TTM_FEATURE_SITES */
    TTM_FRAME_GET_LIVES_OF = 23, /* likewise */

    /* of a tracked process and to it: wire/attach.h */
    TTM_FRAME_ATTACH = 64,
    TTM_FRAME_TOLD = 65,
    TTM_FRAME_TOLD_END = 66,
    TTM_FRAME_SWITCHED = 67,
    TTM_FRAME_TELL = 80,

    /* answers */
    TTM_FRAME_STATUS = 32,
    TTM_FRAME_TOTALS = 33, /* opens an answer: the moment it speaks of */
    TTM_FRAME_DEVICE = 34,
    TTM_FRAME_PROCESS = 35,
    TTM_FRAME_PROCESS_DEVICE = 36,
    TTM_FRAME_SITE = 37,
    TTM_FRAME_LIVES = 38,
    TTM_FRAME_EVENTS = 39,
    TTM_FRAME_LOST = 40,
    TTM_FRAME_CHECKED = 41,
    TTM_FRAME_ORIGIN = 42,
    TTM_FRAME_MARK = 43,
    TTM_FRAME_FAILURE = 44,
    TTM_FRAME_SITE_SUM = 45,
    TTM_FRAME_LEFT_OUT = 46,
};

#define TTM_FRAME_HEADER_SIZE 8

/* What a server accepts from a client, and a client from a server. */
#define TTM_FRAME_REQUEST_MAX 4096
#define TTM_FRAME_ANSWER_MAX (1u << 20)

struct ttm_frame {
    uint16_t type;
    uint32_t length;
    const uint8_t *payload; /* borrowed from the buffer that was parsed */
};

/*
 * Parse the frame at the start of 'buf'. Returns its whole size; 0 when more
 * bytes are needed; -EMSGSIZE when it claims more than 'max' payload bytes.
 */
long ttm_frame_parse(const uint8_t *buf, size_t len, uint32_t max, struct ttm_frame *ret);

/*
 * How many bytes the frame at the start of 'buf' still needs; 0 when it is whole. As long as its
 * header is not, those of the header.
 */
size_t ttm_frame_missing(const uint8_t *buf, size_t len);

void ttm_frame_header_encode(uint16_t type, uint32_t length, uint8_t buf[TTM_FRAME_HEADER_SIZE]);

/* Append a whole frame. Returns 0 or -ENOMEM. */
int ttm_frame_append(struct ttm_queue *out, uint16_t type, const void *payload, uint32_t length);

/*
 * Append a frame's header and room for its payload, which the caller fills at
 * once. Returns the payload, or NULL when memory is short.
 */
uint8_t *ttm_frame_begin(struct ttm_queue *out, uint16_t type, uint32_t length);

#endif /* TTM_WIRE_FRAME_H */
