/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_sheet - what the parts of a summary share. Private to run_*.c.
 */
#ifndef TTM_CLI_RUN_SHEET_H
#define TTM_CLI_RUN_SHEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/run_summary.h"

struct sheet {
    const struct ttm_run_summary *summary;
    const struct ttm_departed *departed;
    const struct ttm_terminal *terminal;
    struct ttm_text *out;
    bool is_brief; /* suspects on a low terminal: they come before all that can be left out */
};

static inline void put(const struct sheet *sheet, const char *text)
{
    ttm_text_append(sheet->out, text);
}

static inline void put_in(const struct sheet *sheet, enum ttm_colour colour, const char *text)
{
    ttm_terminal_colour(sheet->terminal, sheet->out, colour);
    put(sheet, text);
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
}

/* Lets go of a text that was put together apart; what failed there has failed here. */
static inline void part_done(const struct sheet *sheet, struct ttm_text *part)
{
    sheet->out->failed |= ttm_text_failed(part);
    ttm_text_done(part);
}

static inline const char *plural(uint64_t count, const char *one, const char *many)
{
    return count == 1 ? one : many;
}

static inline size_t within(size_t value, size_t low, size_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* "0", "0-7", "0,2,5": ids in ascending order, of which 'ids' has the first. */
void ttm_run_ids(const struct sheet *sheet, const uint16_t ids[TTM_REMAINS_DEVICES], uint32_t count,
                 uint16_t last);

/* A block for devices that look alike, in so many rows. */
void ttm_run_devices(const struct sheet *sheet, size_t row_max);

/* What remains, by origin or kind in so many rows, or as its report has it in 'analysis_rows'. */
void ttm_run_remains(const struct sheet *sheet, uint32_t row_max, size_t analysis_rows);

#endif /* TTM_CLI_RUN_SHEET_H */
