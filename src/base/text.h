/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text - a growing string, and numbers as people read them.
 *
 * An out-of-memory condition is remembered and makes every later append a
 * no-op, so callers check once, at the end (ttm_text_failed).
 */
#ifndef TTM_BASE_TEXT_H
#define TTM_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ttm_text {
    char *data; /* NUL-terminated once anything was appended */
    size_t length;
    size_t room;
    bool failed;
};

void ttm_text_init(struct ttm_text *text);
void ttm_text_done(struct ttm_text *text);

/* Empties it and keeps the memory for the next use. */
void ttm_text_clear(struct ttm_text *text);

static inline bool ttm_text_failed(const struct ttm_text *text)
{
    return text->failed;
}

/* The string so far, never NULL. Borrowed until the next append. */
const char *ttm_text_string(const struct ttm_text *text);

void ttm_text_append(struct ttm_text *text, const char *string);
void ttm_text_append_bytes(struct ttm_text *text, const char *bytes, size_t length);
void ttm_text_repeat(struct ttm_text *text, const char *piece, size_t times);
void ttm_text_format(struct ttm_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* 'value' has so many decimals: 54300 with 3 is "54.3". */
void ttm_text_append_decimal(struct ttm_text *text, uint64_t value, unsigned decimals);

/*
 * Append a string that came from outside, for a terminal: control characters
 * and broken UTF-8 become \xNN a byte, so that no process name can move a cursor,
 * begin a line or turn the text behind it around.
 */
void ttm_text_append_safe(struct ttm_text *text, const char *string);

/*
 * The same into a buffer, without memory of its own: as much as there is room for, and a
 * terminating zero. Returns the length.
 */
size_t ttm_text_copy_safe(char *ret, size_t size, const char *string);

/*
 * Append 'string', padded with spaces or cut to exactly 'columns' (a character
 * counts as one column; what is cut ends in "…" or, without UTF-8, in "~").
 */
void ttm_text_append_column(struct ttm_text *text, const char *string, size_t columns, bool utf8);

/* Length of the well-formed UTF-8 sequence at 'string' (1 to 4), or 0 where it is broken. */
size_t ttm_utf8_length(const char *string);

/*
 * The control character at 'string', or 0 where a character stands that is only shown.
 * Controls are those of C0 and C1 and DEL, the separators of lines and paragraphs
 * (U+2028, U+2029), which end a line of JavaScript, and those that change the direction
 * of text (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069), which make one
 * name look like another. 'string' is well-formed there: see ttm_utf8_length().
 */
uint32_t ttm_utf8_control(const char *string);

/* Buffers of this size hold any result of the functions below. */
#define TTM_NUMBER_SIZE 32

/* "0 B", "512 B", "2.0 KiB", "128 KiB", "11.99 GiB": three to four digits, binary units. */
char *ttm_format_bytes(uint64_t bytes, char ret[TTM_NUMBER_SIZE]);

/* "24,687". */
char *ttm_format_count(uint64_t count, char ret[TTM_NUMBER_SIZE]);

/* "12 ms", "3.4 s", "2 min 05 s", "2 h 13 min", "3 d 04 h". */
char *ttm_format_duration(uint64_t duration_ns, char ret[TTM_NUMBER_SIZE]);

/* The name behind the last slash. */
const char *ttm_base_name(const char *path);

#endif /* TTM_BASE_TEXT_H */
