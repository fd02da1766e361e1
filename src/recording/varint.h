/* SPDX-License-Identifier: Apache-2.0 */
/*
 * varint - numbers in as few bytes as they need: seven bits each, lowest first,
 * the high bit set on all but the last. Signed ones are folded first (0, -1, 1, -2 …).
 */
#ifndef TTM_RECORDING_VARINT_H
#define TTM_RECORDING_VARINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TTM_VARINT_MAX 10

static inline uint64_t ttm_fold(uint64_t difference)
{
    return difference << 1 ^ (0 - (difference >> 63));
}

static inline uint64_t ttm_unfold(uint64_t folded)
{
    return folded >> 1 ^ (0 - (folded & 1));
}

/* Room for TTM_VARINT_MAX bytes is the caller's business. Returns the bytes written. */
static inline size_t ttm_varint_put(uint8_t *at, uint64_t value)
{
    size_t n = 0;

    while (value >= 0x80) {
        at[n++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    at[n++] = (uint8_t)value;
    return n;
}

/*
 * Reads one at '*at' and moves behind it. Returns false when it is cut off, does
 * not fit 64 bits, or is longer than it need be: each number has one spelling.
 */
static inline bool ttm_varint_get(const uint8_t **at, const uint8_t *end, uint64_t *ret)
{
    const uint8_t *p = *at;
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64 && p < end; shift += 7) {
        const uint8_t byte = *p++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte & 0x80)
            continue;
        if ((byte == 0 && shift > 0) || (shift == 63 && byte > 1))
            return false;
        *at = p;
        *ret = value;
        return true;
    }
    return false;
}

#endif /* TTM_RECORDING_VARINT_H */
