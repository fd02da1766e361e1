/* SPDX-License-Identifier: Apache-2.0 */
#include "stack/python_lines.h"

#include <stdbool.h>

#include "stack/probe.h"

#define NO_LINE (-128)
#define CODE_UNIT 2u

/* Pairs of bytes: how many bytes of code, and how many lines further. */
TTM_READS_FOREIGN uint32_t ttm_python_line_3_10(const uint8_t *table, uint32_t length,
                                                uint32_t first_line, uint32_t offset)
{
    uint32_t line = first_line, end = 0;

    /* Before its first instruction, as a tracer finds it. */
    if ((int32_t)offset < 0)
        return first_line;
    for (uint32_t i = 0; i + 1 < length; i += 2) {
        const int lines = table[i + 1] < 128 ? table[i + 1] : table[i + 1] - 256; /* signed */

        end += table[i];
        if (lines != NO_LINE)
            line += (uint32_t)lines;
        if (offset < end)
            return lines != NO_LINE ? line : 0;
    }
    return 0;
}

/* Six bits to a byte, lowest first; bit 6 says that more follow. */
TTM_READS_FOREIGN static uint32_t read_varint(const uint8_t *table, uint32_t length, uint32_t at)
{
    uint32_t value = 0;

    for (unsigned shift = 0; at < length && shift < 32; shift += 6, at++) {
        value |= (uint32_t)(table[at] & 63) << shift;
        if (!(table[at] & 64))
            break;
    }
    return value;
}

/* The sign is the lowest bit. */
static uint32_t read_signed(const uint8_t *table, uint32_t length, uint32_t at)
{
    const uint32_t value = read_varint(table, length, at);

    return value & 1 ? 0u - (value >> 1) : value >> 1;
}

/*
 * Entries: a byte with bit 7 set (bits 3 to 6: the form, 0 to 2: code units less
 * one), then bytes without it.
 */
TTM_READS_FOREIGN uint32_t ttm_python_line_3_11(const uint8_t *table, uint32_t length,
                                                uint32_t first_line, uint32_t offset)
{
    uint32_t line = first_line, end = 0;

    for (uint32_t at = 0; at < length;) {
        const uint8_t head = table[at];
        const unsigned form = head >> 3 & 15;
        const bool has_line = form != 15;

        end += ((head & 7) + 1u) * CODE_UNIT;
        if (form == 13 || form == 14)
            line += read_signed(table, length, at + 1);
        else if (form >= 10 && form <= 12)
            line += form - 10;
        if (offset < end)
            return has_line ? line : 0;
        do
            at++;
        while (at < length && !(table[at] & 128));
    }
    return 0;
}
