/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/region_line.h"

void ttm_region_line_text(const struct ttm_terminal *terminal, const struct ttm_region_line *row,
                          struct ttm_text *out)
{
    const uint64_t peak = row->peak_bytes, capacity = row->capacity_bytes;
    char now_text[TTM_NUMBER_SIZE], text[TTM_NUMBER_SIZE];

    ttm_text_format(out, "    %-*s%10s %10s", row->label_columns, row->label,
                    row->now_bytes > 0 ? ttm_format_bytes(row->now_bytes, now_text) : "0",
                    ttm_format_bytes(peak, text));
    if (capacity == 0)
        return;
    ttm_text_format(out, " %10s  ", ttm_format_bytes(capacity, text));
    if (row->bar_columns > 0) {
        ttm_terminal_colour(terminal, out, ttm_terminal_load_colour(peak, capacity));
        ttm_terminal_bar(terminal, out, peak, capacity, row->bar_columns);
        ttm_terminal_colour(terminal, out, TTM_PLAIN);
    }
    ttm_text_format(out, " %5.1f %%", 100.0 * (double)peak / (double)capacity);
}
