/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table - rows under titles, with more columns where the screen is wider.
 */
#ifndef TTM_CLI_TABLE_H
#define TTM_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "cli/terminal.h"

struct ttm_table_column {
    const char *title;
    size_t width; /* what is longer is cut; 0, of the last column alone: all that is left */
    bool is_right;
    size_t from_columns; /* shown on screens at least so wide */
    /* Appends the cell's text, harmless to a terminal; nothing is shown as a dash. */
    void (*put)(const void *row, const struct ttm_terminal *terminal, struct ttm_text *cell);
};

/* 'columns' ends with a title of NULL. */
void ttm_table_head(const struct ttm_table_column *columns, const struct ttm_terminal *terminal,
                    struct ttm_text *out);
void ttm_table_row(const struct ttm_table_column *columns, const struct ttm_terminal *terminal,
                   const void *row, struct ttm_text *out);

#endif /* TTM_CLI_TABLE_H */
