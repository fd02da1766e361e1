/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include <string.h>

static size_t width_of(const char *string)
{
    size_t width = 0;

    while (*string) {
        const size_t n = ttm_utf8_length(string);
        string += n ? n : 1;
        width++;
    }
    return width;
}

static void put_cell(const struct ttm_table_column *column, const struct ttm_terminal *terminal,
                     const char *string, struct ttm_text *out)
{
    const size_t width = width_of(string);

    if (column->width == 0) {
        ttm_text_append(out, string);
        return;
    }
    if (column->is_right && width < column->width) {
        ttm_text_repeat(out, " ", column->width - width);
        ttm_text_append(out, string);
    } else {
        ttm_text_append_column(out, string, column->width, terminal->has_utf8);
    }
}

#define ROOMY_COLUMNS 104 /* from here on, two spaces between columns */

/* None before the first column, and none behind the last. */
static void put_line(const struct ttm_table_column *columns, const struct ttm_terminal *terminal,
                     const void *row, struct ttm_text *out)
{
    struct ttm_text line, cell;
    bool is_first = true;

    ttm_text_init(&line);
    ttm_text_init(&cell);
    for (const struct ttm_table_column *column = columns; column->title; column++) {
        if (terminal->columns < column->from_columns)
            continue;
        ttm_text_clear(&cell);
        if (row)
            column->put(row, terminal, &cell);
        else
            ttm_text_append(&cell, column->title);
        ttm_text_append(&line, is_first ? "" : terminal->columns >= ROOMY_COLUMNS ? "  " : " ");
        put_cell(column, terminal, cell.length > 0 ? ttm_text_string(&cell) : "-", &line);
        is_first = false;
    }
    const char *string = ttm_text_string(&line);
    size_t length = line.length;
    while (length > 0 && string[length - 1] == ' ')
        length--;
    ttm_text_append_bytes(out, string, length);
    ttm_text_append(out, "\n");
    out->failed |= line.failed || cell.failed;
    ttm_text_done(&cell);
    ttm_text_done(&line);
}

void ttm_table_head(const struct ttm_table_column *columns, const struct ttm_terminal *terminal,
                    struct ttm_text *out)
{
    ttm_terminal_colour(terminal, out, TTM_DIM);
    put_line(columns, terminal, NULL, out);
    ttm_terminal_colour(terminal, out, TTM_PLAIN);
}

void ttm_table_row(const struct ttm_table_column *columns, const struct ttm_terminal *terminal,
                   const void *row, struct ttm_text *out)
{
    put_line(columns, terminal, row, out);
}
