/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grid - a screen as cells: what all drawing goes to.
 *
 * A backend shows it: screen.h on a terminal, ttm_grid_print() as text, so that what
 * a test compares is what people see. Nothing is drawn outside the grid; text that
 * comes from elsewhere cannot move a cursor, as a cell holds one printable character.
 */
#ifndef TTM_DASHBOARD_GRID_H
#define TTM_DASHBOARD_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* What a cell means; a backend has a colour for each, or none. */
enum ttm_style {
    TTM_STYLE_PLAIN,
    TTM_STYLE_BOLD,
    TTM_STYLE_DIM,
    TTM_STYLE_HEAD, /* the first line, and titles of tables */
    TTM_STYLE_KEY,  /* what can be typed */
    TTM_STYLE_SELECTED,
    TTM_STYLE_GOOD,
    TTM_STYLE_WARN,
    TTM_STYLE_BAD,
    TTM_STYLE_CB,
    TTM_STYLE_KERNEL,
    TTM_STYLE_SMALL,
    TTM_STYLE_DRAM,
    TTM_STYLE_L1,
    TTM_STYLE_COUNT
};

struct ttm_cell {
    uint32_t character; /* 0: the right half of the one before */
    uint8_t style;
};

struct ttm_grid {
    struct ttm_cell *cells; /* rows from top to bottom */
    size_t columns;
    size_t rows;
    size_t room;   /* cells that there is memory for */
    bool has_utf8; /* else every character drawn is ASCII */
    bool has_braille;
};

/* Larger screens are drawn in part. */
#define TTM_GRID_COLUMNS_MAX 1000
#define TTM_GRID_ROWS_MAX 500

/* A zeroed grid can be resized. Returns 0 or -ENOMEM; then it is as before. Empties it. */
int ttm_grid_resize(struct ttm_grid *grid, size_t columns, size_t rows);
void ttm_grid_clear(struct ttm_grid *grid);
void ttm_grid_done(struct ttm_grid *grid);

/* One cell. Outside the grid nothing happens. */
void ttm_grid_put(struct ttm_grid *grid, size_t row, size_t column, uint32_t character,
                  enum ttm_style style);

/*
 * UTF-8 text, cut at 'columns' with an ellipsis; returns the column behind it. What
 * cannot be shown is a '?'. Without UTF-8 the few characters that we draw ourselves
 * have a stand-in.
 */
size_t ttm_grid_text(struct ttm_grid *grid, size_t row, size_t column, size_t columns,
                     enum ttm_style style, const char *text);
size_t ttm_grid_format(struct ttm_grid *grid, size_t row, size_t column, size_t columns,
                       enum ttm_style style, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* The same, so that its last character is at the end of the columns. */
void ttm_grid_right(struct ttm_grid *grid, size_t row, size_t column, size_t columns,
                    enum ttm_style style, const char *text);

/* Gives what is drawn there another style; 'columns' cells. */
void ttm_grid_restyle(struct ttm_grid *grid, size_t row, size_t column, size_t columns,
                      enum ttm_style style);

/* How many columns a text takes. */
size_t ttm_grid_width(const char *text);

/* A part of a bar. */
struct ttm_bar_part {
    uint64_t bytes;
    enum ttm_style style;
    uint32_t glyph;       /* of cells that it fills */
    uint32_t ascii_glyph; /* the same without UTF-8 */
};

/*
 * A bar of 'columns' cells that 'whole' would fill, as long as its parts together are to
 * the eighth of a cell. A part that is too small for a cell is not seen.
 */
void ttm_grid_bar(struct ttm_grid *grid, size_t row, size_t column, size_t columns,
                  const struct ttm_bar_part *parts, size_t count, uint64_t whole);

/* As text, without the spaces at the ends of lines. */
void ttm_grid_print(const struct ttm_grid *grid, bool has_colour, struct ttm_text *out);

#endif /* TTM_DASHBOARD_GRID_H */
