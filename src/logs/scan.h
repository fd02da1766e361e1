/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan - reading a line of text from left to right, without copying it.
 *
 * Each step returns whether it found what it looked for; when not, the place is
 * where it was.
 */
#ifndef TTM_LOGS_SCAN_H
#define TTM_LOGS_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct ttm_scan {
    const char *at;
    const char *end;
};

static inline size_t ttm_scan_left(const struct ttm_scan *scan)
{
    return (size_t)(scan->end - scan->at);
}

static inline bool ttm_scan_bytes(struct ttm_scan *scan, const char *bytes, size_t length)
{
    if (ttm_scan_left(scan) < length || memcmp(scan->at, bytes, length) != 0)
        return false;
    scan->at += length;
    return true;
}

/* A literal. */
#define TTM_SCAN(scan, text) ttm_scan_bytes(scan, text, sizeof(text) - 1)

static inline void ttm_scan_blanks(struct ttm_scan *scan)
{
    while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\t'))
        scan->at++;
}

/* Digits, at most 'max' in all. */
static inline bool ttm_scan_decimal(struct ttm_scan *scan, uint64_t max, uint64_t *ret)
{
    const char *at = scan->at;
    uint64_t value = 0;

    for (; at < scan->end && *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
            return false;
    }
    if (at == scan->at || value > max)
        return false;
    scan->at = at;
    *ret = value;
    return true;
}

static inline int ttm_scan_nibble(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* "0x18b20" or "101152". */
static inline bool ttm_scan_number(struct ttm_scan *scan, uint64_t *ret)
{
    const char *const begin = scan->at;
    uint64_t value = 0;

    if (!TTM_SCAN(scan, "0x"))
        return ttm_scan_decimal(scan, UINT64_MAX, ret);
    const char *at = scan->at;
    for (int digit; at < scan->end && (digit = ttm_scan_nibble(*at)) >= 0; at++) {
        if (value >> 60)
            break;
        value = value << 4 | (unsigned)digit;
    }
    if (at == scan->at || (at < scan->end && ttm_scan_nibble(*at) >= 0)) {
        scan->at = begin;
        return false;
    }
    scan->at = at;
    *ret = value;
    return true;
}

/* The next line without its end; 'scan' goes behind it. Returns whether there was one. */
static inline bool ttm_scan_line(struct ttm_scan *scan, struct ttm_scan *ret)
{
    if (scan->at == scan->end)
        return false;
    const char *newline = memchr(scan->at, '\n', ttm_scan_left(scan));
    const char *end = newline ? newline : scan->end;

    *ret = (struct ttm_scan){scan->at, end};
    scan->at = newline ? newline + 1 : end;
    if (ret->end > ret->at && ret->end[-1] == '\r')
        ret->end--;
    return true;
}

#endif /* TTM_LOGS_SCAN_H */
