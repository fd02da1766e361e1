/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

void ttm_text_init(struct ttm_text *text)
{
    *text = (struct ttm_text){0};
}

void ttm_text_done(struct ttm_text *text)
{
    free(text->data);
    ttm_text_init(text);
}

void ttm_text_clear(struct ttm_text *text)
{
    text->length = 0;
    text->failed = false;
    if (text->data)
        text->data[0] = '\0';
}

const char *ttm_text_string(const struct ttm_text *text)
{
    return text->data ? text->data : "";
}

/* Makes room for 'extra' more bytes and the NUL behind them. */
static bool reserve(struct ttm_text *text, size_t extra)
{
    if (text->failed)
        return false;
    if (extra < text->room - text->length)
        return true;

    size_t room = text->room ? text->room * 2 : 256;
    while (room - text->length <= extra)
        room *= 2;
    char *data = realloc(text->data, room);
    if (!data) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->room = room;
    return true;
}

void ttm_text_append_bytes(struct ttm_text *text, const char *bytes, size_t length)
{
    if (!reserve(text, length))
        return;
    memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void ttm_text_append(struct ttm_text *text, const char *string)
{
    ttm_text_append_bytes(text, string, strlen(string));
}

void ttm_text_repeat(struct ttm_text *text, const char *piece, size_t times)
{
    for (size_t i = 0; i < times; i++)
        ttm_text_append(text, piece);
}

void ttm_text_format(struct ttm_text *text, const char *format, ...)
{
    va_list args;

    if (!reserve(text, 0))
        return;
    const size_t left = text->room - text->length;
    va_start(args, format);
    const int need = vsnprintf(text->data + text->length, left, format, args);
    va_end(args);
    if (need < 0 || !reserve(text, (size_t)need)) {
        text->data[text->length] = '\0';
        text->failed = true;
        return;
    }
    if ((size_t)need >= left) { /* there was no room for all of it, and is now */
        va_start(args, format);
        (void)vsnprintf(text->data + text->length, (size_t)need + 1, format, args);
        va_end(args);
    }
    text->length += (size_t)need;
}

size_t ttm_utf8_length(const char *string)
{
    const unsigned char *s = (const unsigned char *)string;
    size_t n;

    if (s[0] < 0x80)
        return 1;
    if (s[0] >= 0xc2 && s[0] <= 0xdf)
        n = 2;
    else if (s[0] >= 0xe0 && s[0] <= 0xef)
        n = 3;
    else if (s[0] >= 0xf0 && s[0] <= 0xf4)
        n = 4;
    else
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

/* The character of a well-formed sequence of 'length' bytes. */
static uint32_t decode_utf8(const char *string, size_t length)
{
    const unsigned char *s = (const unsigned char *)string;
    uint32_t character = length == 1 ? s[0] : s[0] & (0x7fu >> length);

    for (size_t i = 1; i < length; i++)
        character = character << 6 | (s[i] & 0x3fu);
    return character;
}

uint32_t ttm_utf8_control(const char *string)
{
    static const struct {
        uint32_t first, last;
    } controls[] = {
        {0x01, 0x1f},     {0x7f, 0x9f},     {0x61c, 0x61c},
        {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069},
    };
    const uint32_t character = decode_utf8(string, ttm_utf8_length(string));

    for (size_t i = 0; i < sizeof(controls) / sizeof(controls[0]); i++) {
        if (character >= controls[i].first && character <= controls[i].last)
            return character;
    }
    return 0;
}

void ttm_text_append_decimal(struct ttm_text *text, uint64_t value, unsigned decimals)
{
    uint64_t scale = 1;

    for (unsigned i = 0; i < decimals; i++)
        scale *= 10;
    uint64_t rest = value % scale;
    while (decimals > 0 && rest % 10 == 0) {
        rest /= 10;
        decimals--;
    }
    ttm_text_format(text, "%" PRIu64, value / scale);
    if (decimals > 0)
        ttm_text_format(text, ".%0*" PRIu64, (int)decimals, rest);
}

/* Writes the next piece of a safe text to 'piece' and returns how much of 'string' it stands for. */
static size_t safe_piece(const char *string, char piece[8])
{
    const size_t n = ttm_utf8_length(string);

    if (n == 0 || ttm_utf8_control(string) != 0) {
        (void)snprintf(piece, 8, "\\x%02x", (unsigned char)*string);
        return 1;
    }
    memcpy(piece, string, n);
    piece[n] = '\0';
    return n;
}

void ttm_text_append_safe(struct ttm_text *text, const char *string)
{
    char piece[8];

    while (*string) {
        string += safe_piece(string, piece);
        ttm_text_append(text, piece);
    }
}

size_t ttm_text_copy_safe(char *ret, size_t size, const char *string)
{
    size_t length = 0;
    char piece[8];

    while (*string) {
        string += safe_piece(string, piece);
        const size_t n = strlen(piece);
        if (n >= size - length)
            break;
        memcpy(ret + length, piece, n);
        length += n;
    }
    ret[length] = '\0';
    return length;
}

void ttm_text_append_column(struct ttm_text *text, const char *string, size_t columns, bool utf8)
{
    size_t width = 0;
    const char *cut = string; /* where the string ends if one column is kept for the mark */
    const char *s = string;

    while (*s) {
        size_t n = ttm_utf8_length(s);
        width++;
        if (width > columns) {
            ttm_text_append_bytes(text, string, (size_t)(cut - string));
            ttm_text_append(text, columns == 0 ? "" : utf8 ? "…" : "~");
            return;
        }
        s += n ? n : 1;
        if (width < columns)
            cut = s;
    }
    ttm_text_append(text, string);
    ttm_text_repeat(text, " ", columns - width);
}

char *ttm_format_bytes(uint64_t bytes, char ret[TTM_NUMBER_SIZE])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t unit = 0;
    double value = (double)bytes;

    while (value >= 1023.5 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1024;
        unit++;
    }
    /* Device capacities such as 11.99 GiB want two decimals, smaller units one. */
    int decimals = unit == 0 ? 0 : value >= 99.95 ? 0 : unit >= 3 ? 2 : 1;
    (void)snprintf(ret, TTM_NUMBER_SIZE, "%.*f %s", decimals, value, units[unit]);
    return ret;
}

char *ttm_format_count(uint64_t count, char ret[TTM_NUMBER_SIZE])
{
    char digits[TTM_NUMBER_SIZE];
    int n = snprintf(digits, sizeof(digits), "%" PRIu64, count);
    int at = 0;

    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            ret[at++] = ',';
        ret[at++] = digits[i];
    }
    ret[at] = '\0';
    return ret;
}

char *ttm_format_duration(uint64_t duration_ns, char ret[TTM_NUMBER_SIZE])
{
    const uint64_t ms = duration_ns / TTM_NS_PER_MS;
    const uint64_t s = ms / 1000;

    if (ms < 1000)
        (void)snprintf(ret, TTM_NUMBER_SIZE, "%" PRIu64 " ms", ms);
    else if (s < 60)
        (void)snprintf(ret, TTM_NUMBER_SIZE, "%" PRIu64 ".%" PRIu64 " s", s, ms % 1000 / 100);
    else if (s < 3600)
        (void)snprintf(ret, TTM_NUMBER_SIZE, "%" PRIu64 " min %02" PRIu64 " s", s / 60, s % 60);
    else if (s < 86400)
        (void)snprintf(ret, TTM_NUMBER_SIZE, "%" PRIu64 " h %02" PRIu64 " min", s / 3600,
                       s % 3600 / 60);
    else
        (void)snprintf(ret, TTM_NUMBER_SIZE, "%" PRIu64 " d %02" PRIu64 " h", s / 86400,
                       s % 86400 / 3600);
    return ret;
}

const char *ttm_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}
