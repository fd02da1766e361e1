/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region_line - a region of a device in a table: what is held, the peak, and how much
 * of it that is. The summary of a run and a report have it in common.
 *
 * Pure: text is appended, and the line is ended by the caller.
 */
#ifndef TTM_CLI_REGION_LINE_H
#define TTM_CLI_REGION_LINE_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "cli/terminal.h"

struct ttm_region_line {
    const char *label; /* of a region */
    uint64_t now_bytes;
    uint64_t peak_bytes;
    uint64_t capacity_bytes; /* 0: not known, then there is no bar */
    int label_columns;
    size_t bar_columns; /* 0: no bar */
};

/*
 * Below a table in which more remains than the peak: a device that is closed and opened again, or
 * one process after another, leaves something each time, and what remains is the sum.
 */
#define TTM_REGION_SUM_NOTE                                                                        \
    "  more remains than the peak: it was left at several times, never all at once"

/* "    DRAM            72.0 KiB    144 KiB  11.99 GiB  ▏     0.0 %" */
void ttm_region_line_text(const struct ttm_terminal *terminal, const struct ttm_region_line *row,
                          struct ttm_text *out);

#endif /* TTM_CLI_REGION_LINE_H */
