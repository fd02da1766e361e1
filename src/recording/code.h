/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code - what encoder and decoder have to agree on: operations and predictions.
 *
 * A number that can be guessed from what came before is written as its distance
 * from the guess, which in a loop is nearly always 0. Both sides keep the same
 * guesses and forget them at the start of a section. docs/recording-format.md has
 * the same in words. Private to src/recording.
 */
#ifndef TTM_RECORDING_CODE_H
#define TTM_RECORDING_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "recording/varint.h"
#include "wire/region.h"

enum ttm_code_op {
    OP_BIRTH = 1,
    OP_FREED = 2,
    OP_END = 3, /* any other end */
    OP_TOLD = 4,
    OP_SITE = 5,
    OP_SITES_RESET = 6,
    OP_NOTE = 7,
    OP_PROCESS = 8,
    OP_PROCESS_END = 9,
    OP_DEVICE = 10,
    OP_RENAME = 11,
    OP_DISPATCH = 12,
    OP_MARK = 13,
    OP_FAILURE = 14,
    OP_LOSS = 15,
    OP_COUNTERS = 16,
    OP_TOLD_FACTS = 17, /* what was known of processes has been told again, but for lives */
    OP_TOLD_ALL = 18,   /* and now the lives too */
    OP_COUNT
};

#define OP_MASK 0x1f
#define OP_OTHER_PROCESS 0x80 /* its number is in the column of the rest */

/* Of counters, in the column of doubts. */
#define COUNTERS_GAP 1u
#define COUNTERS_OFF 2u
#define COUNTERS_INEXACT 4u

#define SERIAL_STREAMS 16

/* What both sides guess about a process. */
struct ttm_guesses {
    uint64_t last_id[3]; /* buffers, circular buffers, kernels: each count for themselves */
    uint64_t last_program;
    uint64_t last_serial[SERIAL_STREAMS];
    uint64_t last_told_ns;
    uint32_t last_note;
    uint32_t stream; /* of the last serial */
};

static inline unsigned guess_id_of(uint8_t region)
{
    return region == TTM_REGION_CB ? 1 : region == TTM_REGION_KERNEL ? 2 : 0;
}

/* A process counts its serials once per thread, the thread in the upper 16 bits. */
static inline uint32_t guess_stream_of(uint64_t serial)
{
    return (uint32_t)(serial >> 48) % SERIAL_STREAMS;
}

/*
 * Serials: 0 = the next one of the same stream; 1 = it follows in full; s + 2 =
 * the next one of stream s.
 */
static inline size_t guess_put_serial(struct ttm_guesses *guesses, uint64_t serial, uint8_t *at)
{
    const uint32_t stream = guess_stream_of(serial);
    const bool is_next = serial == guesses->last_serial[stream] + 1;
    const bool is_same = stream == guesses->stream;

    guesses->last_serial[stream] = serial;
    guesses->stream = stream;
    if (is_next) {
        at[0] = is_same ? 0 : (uint8_t)(stream + 2);
        return 1;
    }
    at[0] = 1;
    return 1 + ttm_varint_put(at + 1, serial);
}

static inline bool guess_get_serial(struct ttm_guesses *guesses, const uint8_t **at,
                                    const uint8_t *end, uint64_t *ret)
{
    uint32_t stream = guesses->stream;
    uint64_t serial;

    if (*at == end)
        return false;
    const uint8_t code = *(*at)++;
    if (code == 1) {
        if (!ttm_varint_get(at, end, &serial))
            return false;
        stream = guess_stream_of(serial);
    } else {
        if (code >= SERIAL_STREAMS + 2)
            return false;
        if (code != 0)
            stream = code - 2u;
        serial = guesses->last_serial[stream] + 1;
        if (guess_stream_of(serial) != stream)
            return false;
    }
    guesses->last_serial[stream] = serial;
    guesses->stream = stream;
    *ret = serial;
    return true;
}

/*
 * Addresses, as their distance from the last one at the same site: of multiples of
 * 32, which is what allocators give, twice the folded quotient; 1 and then the
 * folded distance of others.
 */
static inline size_t guess_put_address(uint64_t *last, uint64_t address, uint8_t *at)
{
    const uint64_t distance = address - *last;

    *last = address;
    if (distance % 32 == 0)
        return ttm_varint_put(at, ttm_fold((uint64_t)((int64_t)distance >> 5)) << 1);
    at[0] = 1;
    return 1 + ttm_varint_put(at + 1, ttm_fold(distance));
}

static inline bool guess_get_address(uint64_t *last, const uint8_t **at, const uint8_t *end,
                                     uint64_t *ret)
{
    uint64_t code, distance;

    if (!ttm_varint_get(at, end, &code))
        return false;
    if (code & 1) {
        if (code != 1 || !ttm_varint_get(at, end, &code))
            return false;
        distance = ttm_unfold(code);
    } else {
        distance = ttm_unfold(code >> 1) << 5;
    }
    *last += distance;
    *ret = *last;
    return true;
}

#endif /* TTM_RECORDING_CODE_H */
