/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one object holds of several lines is one finding, and stands above all rows: one line of the
 * program is to be changed for all of them.
 */
#include <stdlib.h>

#include "cli/report_causes.h"

/* Suspects first; those of a cause side by side, and as large as all of them; else as they were. */
static int by_cause(const void *a, const void *b)
{
    const struct ttm_report_row *x = a, *y = b;
    const bool is_suspect = x->origin->verdict.is_suspect;

    if (is_suspect != y->origin->verdict.is_suspect)
        return is_suspect ? -1 : 1;
    if (is_suspect && x->block_bytes != y->block_bytes)
        return x->block_bytes > y->block_bytes ? -1 : 1;
    if (is_suspect && x->cause != y->cause)
        return x->cause > y->cause ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static uint32_t rows_of(const struct ttm_report_row *rows, uint32_t count, uint32_t cause)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < count; i++)
        n += rows[i].cause == cause;
    return n;
}

void ttm_report_causes_order(const struct ttm_report_process *process,
                             const struct ttm_root_causes *causes, struct ttm_report_row *rows,
                             uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        rows[i].cause = causes->of_origin[rows[i].origin - process->origins];
        rows[i].number = i;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (rows[i].cause > 0 && rows_of(rows, count, rows[i].cause) < 2)
            rows[i].cause = 0;
        rows[i].block_bytes = rows[i].cause > 0
                                  ? causes->list[rows[i].cause - 1].held.footprint_bytes
                                  : rows[i].held.footprint_bytes;
    }
    if (causes->count > 0)
        qsort(rows, count, sizeof(rows[0]), by_cause);
}

/* "1-5", "1, 3-4": the numbers of its rows. */
static void put_numbers(struct ttm_text *out, const struct ttm_report_row *rows, uint32_t count,
                        uint32_t cause)
{
    const char *separator = "";

    for (uint32_t i = 0; i < count; i++) {
        uint32_t last = i;
        if (rows[i].cause != cause)
            continue;
        while (last + 1 < count && rows[last + 1].cause == cause)
            last++;
        ttm_text_format(out, "%s%u", separator, i + 1);
        if (last > i)
            ttm_text_format(out, "-%u", last + 1);
        separator = ", ";
        i = last;
    }
}

/* "one cause for 5 origins (1-5), 50 buffers, 11.2 MiB: traceback of ValueError, held by …" */
static void put_cause(struct sheet *sheet, const struct ttm_root_cause *cause, uint32_t number,
                      const struct ttm_report_row *rows, uint32_t count)
{
    char buffers[TTM_NUMBER_SIZE], bytes[TTM_NUMBER_SIZE];
    bool is_suspect = false;
    struct ttm_text text;

    for (uint32_t i = 0; i < count; i++)
        is_suspect |= rows[i].cause == number && rows[i].origin->verdict.is_suspect;
    ttm_text_init(&text);
    ttm_text_format(&text, "one cause for %u origins (", rows_of(rows, count, number));
    put_numbers(&text, rows, count, number);
    ttm_text_format(&text, "), %s %s, %s: ", ttm_format_count(cause->held.count, buffers),
                    plural(cause->held.count, "buffer", "buffers"),
                    ttm_format_bytes(cause->held.footprint_bytes, bytes));
    ttm_text_append_safe(&text, cause->text);
    ttm_terminal_colour(sheet->terminal, sheet->out, is_suspect ? TTM_RED : TTM_YELLOW);
    ttm_report_wrapped(sheet, ttm_text_string(&text), 2);
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_GREEN);
    ttm_report_wrapped(sheet, cause->advice, 5);
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
    sheet->out->failed |= text.failed;
    ttm_text_done(&text);
}

void ttm_report_causes(struct sheet *sheet, const struct ttm_root_causes *causes,
                       const struct ttm_report_row *rows, uint32_t count)
{
    for (uint32_t i = 0; i < causes->count; i++) {
        if (rows_of(rows, count, i + 1) > 1)
            put_cause(sheet, &causes->list[i], i + 1, rows, count);
    }
}
