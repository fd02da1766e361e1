/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other looks at what remains: by call stack, and where frees are missing. They are what
 * people did by hand with logs of allocations, and fill the screen as the table does.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/report_sheet.h"
#include "wire/region.h"

#define NATIVE_FRAMES 6

static bool is_left(const struct ttm_report_origin *origin)
{
    return origin->remaining.count > 0;
}

static uint32_t count_left(const struct ttm_report_origin *const *order, uint32_t count)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < count; i++)
        left += is_left(order[i]);
    return left;
}

static void put_count_left(struct sheet *sheet, uint32_t left)
{
    if (left == 0)
        return;
    ttm_text_format(sheet->out, "   %s %u more: --all", ttm_terminal_ellipsis(sheet->terminal),
                    left);
    end_line(sheet);
}

static bool is_full(const struct sheet *sheet, uint32_t shown, size_t rows)
{
    const struct ttm_report_choice *choice = sheet->choice;

    return choice->top > 0 ? shown == choice->top
                           : !choice->is_unfolded && shown > 0 && sheet->rows < rows;
}

/* ---- missing frees ---- */

static void put_missing(struct sheet *sheet, const struct ttm_report_origin *origin)
{
    const size_t columns = sheet->terminal->columns;
    char allocs[TTM_NUMBER_SIZE], frees[TTM_NUMBER_SIZE], left[TTM_NUMBER_SIZE];
    char bytes[TTM_NUMBER_SIZE];
    struct ttm_text place;

    ttm_text_init(&place);
    ttm_report_place(sheet, &origin->words, &place);
    put(sheet, "  ");
    ttm_terminal_colour(sheet->terminal, sheet->out,
                        origin->verdict.is_suspect ? TTM_RED : TTM_PLAIN);
    put_columns(sheet, ttm_text_string(&place), columns > 78 ? columns - 53 : 25);
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
    put(sheet, " ");
    put_columns(sheet, ttm_region_name(origin->region), 6);
    ttm_text_format(sheet->out, " %10s %9s %9s %11s", ttm_format_count(origin->allocs, allocs),
                    ttm_format_count(origin->frees, frees),
                    ttm_format_count(origin->remaining.count, left),
                    ttm_format_bytes(origin->remaining.footprint_bytes, bytes));
    end_line(sheet);
    sheet->out->failed |= place.failed;
    ttm_text_done(&place);
}

static int by_missing(const void *a, const void *b)
{
    const struct ttm_report_origin *x = *(const struct ttm_report_origin *const *)a;
    const struct ttm_report_origin *y = *(const struct ttm_report_origin *const *)b;

    if (x->remaining.count != y->remaining.count)
        return x->remaining.count < y->remaining.count ? 1 : -1;
    return x < y ? -1 : x > y;
}

static void put_frees(struct sheet *sheet, const struct ttm_report_origin **order, uint32_t count)
{
    const size_t columns = sheet->terminal->columns;
    uint32_t shown = 0, left = 0;

    qsort(order, count, sizeof(void *), by_missing);
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_DIM);
    put(sheet, "  ");
    put_columns(sheet, "missing frees, by origin", columns > 78 ? columns - 53 : 25);
    put(sheet, " region  allocated     freed   missing       takes");
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
    end_line(sheet);
    for (uint32_t i = 0; i < count; i++) {
        if (!is_left(order[i]))
            continue;
        if (left > 0 || is_full(sheet, shown, 3)) {
            left++;
            continue;
        }
        put_missing(sheet, order[i]);
        shown++;
    }
    put_count_left(sheet, left);
}

/* ---- call stacks ---- */

/* The native frames that are shown: not again those that follow as lines. */
static uint32_t native_frames_of(const struct sheet *sheet, const struct ttm_origin_words *words)
{
    const bool has_lines = words->python_count == 0 && words->native_lines.count > 0;
    const uint32_t most = has_lines ? words->native_place : words->native_count;

    if (sheet->choice->is_unfolded)
        return words->native_count;
    return most < NATIVE_FRAMES ? most : NATIVE_FRAMES;
}

static void put_stack(struct sheet *sheet, const struct ttm_report_origin *origin)
{
    const struct ttm_origin_words *words = &origin->words;
    const struct ttm_stack_words stack = ttm_origin_users_stack(words);
    const uint32_t native_frames = native_frames_of(sheet, words);
    char count[TTM_NUMBER_SIZE], bytes[TTM_NUMBER_SIZE], text[160];

    (void)snprintf(text, sizeof(text), "%s %s, %s in %s",
                   ttm_format_count(origin->remaining.count, count),
                   plural(origin->remaining.count, "buffer", "buffers"),
                   ttm_format_bytes(origin->remaining.footprint_bytes, bytes),
                   ttm_region_name(origin->region));
    put(sheet, "  ");
    put_in(sheet, origin->verdict.is_suspect ? TTM_RED : TTM_BOLD, text);
    put(sheet, words->operation[0] != '\0' ? dot(sheet) : "");
    ttm_text_append_safe(sheet->out, words->operation);
    end_line(sheet);
    for (uint32_t i = 0; i < native_frames; i++) {
        put(sheet, "       ");
        ttm_terminal_colour(sheet->terminal, sheet->out, TTM_DIM);
        ttm_text_append_safe(sheet->out, words->native[i]);
        ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
        end_line(sheet);
    }
    for (uint32_t i = 0; i < stack.count; i++)
        ttm_report_frame(sheet, &stack.frames[i]);
}

static void put_stacks(struct sheet *sheet, const struct ttm_report_origin *const *order,
                       uint32_t count)
{
    uint32_t shown = 0, left = 0;

    put_in(sheet, TTM_DIM, "  what remains, by call stack, innermost first");
    end_line(sheet);
    for (uint32_t i = 0; i < count; i++) {
        if (!is_left(order[i]))
            continue;
        const size_t rows = 2 + NATIVE_FRAMES + ttm_origin_users_stack(&order[i]->words).count;
        if (left > 0 || is_full(sheet, shown, rows)) {
            left++;
            continue;
        }
        put_stack(sheet, order[i]);
        shown++;
    }
    put_count_left(sheet, left);
}

int ttm_report_view(struct sheet *sheet)
{
    uint32_t count = 0;
    const struct ttm_report_origin **order =
        ttm_report_order(sheet->choice, sheet->process, true, &count);

    if (!order)
        return -ENOMEM;
    end_line(sheet);
    if (count_left(order, count) == 0) {
        put(sheet, "  ");
        ttm_report_nothing(sheet);
        end_line(sheet);
    } else if (sheet->choice->by == TTM_BY_FREES) {
        put_frees(sheet, order, count);
    } else {
        put_stacks(sheet, order, count);
    }
    ttm_report_hidden(sheet);
    free(order);
    return 0;
}
