/* SPDX-License-Identifier: Apache-2.0 */
/*
 * testing - cmocka with the headers that it needs, and what many tests share.
 */
#ifndef TTM_TESTS_UNIT_TESTING_H
#define TTM_TESTS_UNIT_TESTING_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "faults.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* A repeatable sequence of numbers: xorshift64. '*state' is not 0. */
static inline uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* A number from 0 to 'below' - 1. */
static inline uint32_t random_below(uint64_t *state, uint32_t below)
{
    return (uint32_t)((next_random(state) >> 16) % below);
}

/* Bytes on the heap, exactly so many, so that the address sanitizer sees a read beyond them. */
struct bytes {
    uint8_t *data;
    size_t length;
    void *block;
};

static inline struct bytes bytes_of(const void *data, size_t length)
{
    struct bytes bytes = {.length = length, .block = malloc(length > 0 ? length : 1)};

    assert_non_null(bytes.block);
    bytes.data = (uint8_t *)bytes.block + (length > 0 ? 0 : 1);
    if (length > 0)
        memcpy(bytes.data, data, length);
    return bytes;
}

static inline void bytes_done(struct bytes *bytes)
{
    free(bytes->block);
    *bytes = (struct bytes){0};
}

/* The golden message of that name: tests/data/wire. */
static inline struct bytes golden(const char *name)
{
    uint8_t buf[4096];
    char path[512];

    (void)snprintf(path, sizeof(path), "%s/wire/%s", TTM_TEST_DATA, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("cannot open '%s'", path);
    const size_t length = fread(buf, 1, sizeof(buf), file);
    (void)fclose(file);
    assert_in_range(length, 1, sizeof(buf) - 1);
    return bytes_of(buf, length);
}

static inline void assert_bytes_equal(const struct bytes *expected, const void *data, size_t length)
{
    assert_int_equal(length, expected->length);
    assert_memory_equal(data, expected->data, length);
}

/* With a sanitizer the compiler thinks that a text may be NULL, and minds it in a format. */
static inline const char *text_or_nothing(const char *string)
{
    return string ? string : "";
}

static inline void assert_has(const char *string, const char *piece)
{
    if (!strstr(string, piece))
        fail_msg("no '%s' in:\n%s", text_or_nothing(piece), text_or_nothing(string));
}

static inline void assert_lacks(const char *string, const char *piece)
{
    if (strstr(string, piece))
        fail_msg("'%s' is in:\n%s", text_or_nothing(piece), text_or_nothing(string));
}

/* Decodes into something that the test has at hand; returns what the decoder did. */
typedef int (*decode_fn)(const uint8_t *buf, size_t len);

/* The message cut off at each length: -EBADMSG, and under the address sanitizer no read beyond. */
static inline void assert_truncation_refused(const struct bytes *whole, decode_fn decode)
{
    for (size_t n = 0; n < whole->length; n++) {
        struct bytes part = bytes_of(whole->data, n);
        const int r = decode(part.data, part.length);
        if (r != -EBADMSG)
            fail_msg("%zu of %zu bytes: %d", n, whole->length, r);
        bytes_done(&part);
    }
}

/* The row as a newer sender writes it: 'extra' bytes more in its fixed part, of 'fixed' bytes. */
static inline struct bytes lengthened(const struct bytes *row, size_t fixed, size_t extra)
{
    uint8_t buf[8192];

    assert_true(row->length + extra <= sizeof(buf) && fixed <= row->length);
    memcpy(buf, row->data, fixed);
    memset(buf + fixed, 0xee, extra);
    memcpy(buf + fixed + extra, row->data + fixed, row->length - fixed);
    buf[0] = (uint8_t)(fixed + extra);
    buf[1] = (uint8_t)((fixed + extra) >> 8);
    return bytes_of(buf, row->length + extra);
}

#endif /* TTM_TESTS_UNIT_TESTING_H */
