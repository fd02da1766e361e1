/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row - the shape that all answer rows share.
 *
 *   0 u16 size of the fixed part F | … fields … | F: strings, each u16 length and bytes
 *
 * Private to src/wire.
 */
#ifndef TTM_WIRE_ROW_H
#define TTM_WIRE_ROW_H

#include <errno.h>
#include <stdint.h>

#include "base/bytes.h"

/* Returns the size of the fixed part, at least 'least', or -EBADMSG. */
static inline int row_fixed_size(const uint8_t *buf, size_t len, size_t least)
{
    if (len < 2)
        return -EBADMSG;
    const size_t fixed = get_le16(buf);
    if (fixed < least || fixed > len)
        return -EBADMSG;
    return (int)fixed;
}

/*
 * Copies the fixed part of a row to 'ret', which has 'known' bytes. A sender that
 * knows fewer fields, but at least those in the first 'least' bytes, has zeros for
 * the rest. Returns the size of the part as it was sent, or -EBADMSG.
 */
static inline int row_get_fixed(const uint8_t *buf, size_t len, size_t least, size_t known,
                                uint8_t *ret)
{
    const int fixed = row_fixed_size(buf, len, least);

    if (fixed < 0)
        return fixed;
    memset(ret, 0, known);
    memcpy(ret, buf, (size_t)fixed < known ? (size_t)fixed : known);
    return fixed;
}

/* Appends at most 'max' bytes of 'string'; returns the bytes written. */
static inline size_t row_put_string(uint8_t *at, const char *string, size_t max)
{
    const size_t n = strnlen(string, max);

    put_le16(at, (uint16_t)n);
    memcpy(at + 2, string, n);
    return 2 + n;
}

/*
 * Reads the string at '*at' into 'ret' (room for max + 1 bytes, cut there) and
 * moves '*at' behind it. Returns 0 or -EBADMSG. A NUL inside ends the string.
 */
static inline int row_get_string(const uint8_t *buf, size_t len, size_t *at, char *ret, size_t max)
{
    if (len - *at < 2)
        return -EBADMSG;
    const size_t n = get_le16(buf + *at);
    if (len - *at - 2 < n)
        return -EBADMSG;
    const size_t kept = n < max ? n : max;
    memcpy(ret, buf + *at + 2, kept);
    ret[kept] = '\0';
    *at += 2 + n;
    return 0;
}

#endif /* TTM_WIRE_ROW_H */
