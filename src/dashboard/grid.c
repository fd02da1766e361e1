/* SPDX-License-Identifier: Apache-2.0 */
#include "dashboard/grid.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define REPLACEMENT '?'

/* ---- the cells ---- */

int ttm_grid_resize(struct ttm_grid *grid, size_t columns, size_t rows)
{
    columns = columns < TTM_GRID_COLUMNS_MAX ? columns : TTM_GRID_COLUMNS_MAX;
    rows = rows < TTM_GRID_ROWS_MAX ? rows : TTM_GRID_ROWS_MAX;
    if (columns * rows > grid->room) {
        void *grown = realloc(grid->cells, columns * rows * sizeof(grid->cells[0]));
        if (!grown)
            return -ENOMEM;
        grid->cells = grown;
        grid->room = columns * rows;
    }
    grid->columns = columns;
    grid->rows = rows;
    ttm_grid_clear(grid);
    return 0;
}

void ttm_grid_clear(struct ttm_grid *grid)
{
    for (size_t i = 0; i < grid->columns * grid->rows; i++)
        grid->cells[i] = (struct ttm_cell){' ', TTM_STYLE_PLAIN};
}

void ttm_grid_done(struct ttm_grid *grid)
{
    free(grid->cells);
    *grid = (struct ttm_grid){0};
}

/* ---- characters ---- */

/* What we draw ourselves, where the terminal shows ASCII alone. */
static uint32_t stand_in(uint32_t character)
{
    static const struct {
        uint32_t character;
        char ascii;
    } table[] = {
        {0x00b7, '-'}, {0x2014, '-'}, {0x2026, '~'}, {0x00b0, ' '}, {0x2588, '#'}, {0x2592, ':'},
        {0x2593, '%'}, {0x2591, '.'}, {0x2502, '|'}, {0x2500, '-'}, {0x254c, '-'}, {0x2190, '<'},
        {0x2192, '>'}, {0x2191, '^'}, {0x2193, 'v'}, {0x00d7, 'x'}, {0x25b8, '>'}, {0x2595, '|'},
        {0x258f, '|'}, {0x25bc, 'v'}, {0x25b2, '^'},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].character == character)
            return (uint32_t)table[i].ascii;
    }
    return REPLACEMENT;
}

/* Columns that a character takes: 1 or 2, or 0 for what is not to be drawn. */
static size_t width_of(uint32_t character)
{
    if (character < 0x20 || (character >= 0x7f && character < 0xa0))
        return 0;
    /* Latin letters, punctuation, arrows, boxes, blocks, braille: known without the locale. */
    if (character < 0x300 || (character >= 0x2010 && character < 0x2800 + 0x100))
        return character >= 0x2028 && character < 0x202f ? 0 : 1;
    const int width = wcwidth((wchar_t)character);
    return width == 1 || width == 2 ? (size_t)width : 0;
}

/* The next character of UTF-8 text, moving on; 0 at the end. What is broken is one '?' a byte. */
static uint32_t next_character(const char **text)
{
    const uint8_t *s = (const uint8_t *)*text;
    const size_t n = *s ? ttm_utf8_length(*text) : 1;

    if (*s == 0)
        return 0;
    if (n == 0) {
        *text += 1;
        return REPLACEMENT;
    }
    *text += n;
    uint32_t character = n == 1 ? s[0] : s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++)
        character = character << 6 | (s[i] & 0x3f);
    return width_of(character) > 0 ? character : REPLACEMENT;
}

size_t ttm_grid_width(const char *text)
{
    uint32_t character;
    size_t columns = 0;

    while ((character = next_character(&text)) != 0)
        columns += width_of(character);
    return columns;
}

void ttm_grid_put(struct ttm_grid *grid, size_t row, size_t column, uint32_t character,
                  enum ttm_style style)
{
    if (row >= grid->rows || column >= grid->columns)
        return;
    if (!grid->has_utf8 && character >= 0x7f)
        character = stand_in(character);
    grid->cells[row * grid->columns + column] = (struct ttm_cell){character, (uint8_t)style};
}

size_t ttm_grid_text(struct ttm_grid *grid, size_t row, size_t column, size_t columns,
                     enum ttm_style style, const char *text)
{
    const bool is_cut = ttm_grid_width(text) > columns;
    const size_t end = column + (is_cut ? columns - (columns > 0) : columns);
    uint32_t character;

    if (columns == 0)
        return column;
    while ((character = next_character(&text)) != 0) {
        const size_t width = grid->has_utf8 ? width_of(character) : 1;
        if (column + width > end)
            break;
        ttm_grid_put(grid, row, column, character, style);
        if (width == 2)
            ttm_grid_put(grid, row, column + 1, 0, style);
        column += width;
    }
    if (is_cut)
        ttm_grid_put(grid, row, column++, 0x2026, style);
    return column;
}

size_t ttm_grid_format(struct ttm_grid *grid, size_t row, size_t column, size_t columns,
                       enum ttm_style style, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return ttm_grid_text(grid, row, column, columns, style, text);
}

void ttm_grid_right(struct ttm_grid *grid, size_t row, size_t column, size_t columns,
                    enum ttm_style style, const char *text)
{
    const size_t width = ttm_grid_width(text);
    const size_t skipped = width < columns ? columns - width : 0;

    (void)ttm_grid_text(grid, row, column + skipped, columns - skipped, style, text);
}

void ttm_grid_restyle(struct ttm_grid *grid, size_t row, size_t column, size_t columns,
                      enum ttm_style style)
{
    for (size_t i = column; row < grid->rows && i < column + columns && i < grid->columns; i++)
        grid->cells[row * grid->columns + i].style = (uint8_t)style;
}

/* ---- bars ---- */

/* Eighths of a cell that so many bytes take; something is one at least. */
static size_t eighths_of(uint64_t bytes, uint64_t whole, size_t columns)
{
    const double share = whole > 0 ? (double)bytes / (double)whole : 0;
    const size_t eighths = share >= 1 ? columns * 8 : (size_t)(share * (double)columns * 8 + 0.5);

    return bytes > 0 && eighths == 0 ? 1 : eighths;
}

/* The part that has the byte at 'at', or the last one with any. */
static const struct ttm_bar_part *part_at(const struct ttm_bar_part *parts, size_t count, double at)
{
    const struct ttm_bar_part *found = &parts[0];
    double end = 0;

    for (size_t i = 0; i < count; i++) {
        if (parts[i].bytes == 0)
            continue;
        found = &parts[i];
        end += (double)parts[i].bytes;
        if (at < end)
            break;
    }
    return found;
}

void ttm_grid_bar(struct ttm_grid *grid, size_t row, size_t column, size_t columns,
                  const struct ttm_bar_part *parts, size_t count, uint64_t whole)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++)
        sum = sum + parts[i].bytes < sum ? UINT64_MAX : sum + parts[i].bytes;
    size_t eighths = eighths_of(sum, whole, columns);
    if (!grid->has_utf8)
        eighths = eighths < 8 && sum > 0 ? 8 : (eighths + 4) / 8 * 8;
    /* The length is that of the sum, to the eighth; a part that is too small for a cell has none. */
    for (size_t i = 0; i * 8 < eighths; i++) {
        const size_t filled = eighths - i * 8 < 8 ? eighths - i * 8 : 8;
        const double middle = ((double)i + (double)filled / 16) * (double)whole / (double)columns;
        const struct ttm_bar_part *part = part_at(parts, count, middle);
        const uint32_t glyph = !grid->has_utf8 ? part->ascii_glyph
                               : filled < 8    ? (uint32_t)(0x2590 - filled)
                                               : part->glyph;
        ttm_grid_put(grid, row, column + i, glyph, part->style);
    }
}

/* ---- as text ---- */

static void append_character(struct ttm_text *out, uint32_t character)
{
    char bytes[4];
    size_t n = 0;

    if (character < 0x80) {
        bytes[n++] = (char)character;
    } else if (character < 0x800) {
        bytes[n++] = (char)(0xc0 | character >> 6);
    } else if (character < 0x10000) {
        bytes[n++] = (char)(0xe0 | character >> 12);
        bytes[n++] = (char)(0x80 | (character >> 6 & 0x3f));
    } else {
        bytes[n++] = (char)(0xf0 | character >> 18);
        bytes[n++] = (char)(0x80 | (character >> 12 & 0x3f));
        bytes[n++] = (char)(0x80 | (character >> 6 & 0x3f));
    }
    if (character >= 0x80)
        bytes[n++] = (char)(0x80 | (character & 0x3f));
    ttm_text_append_bytes(out, bytes, n);
}

static const char *const codes[TTM_STYLE_COUNT] = {
    [TTM_STYLE_PLAIN] = "\033[0m",     [TTM_STYLE_BOLD] = "\033[0;1m",
    [TTM_STYLE_DIM] = "\033[0;2m",     [TTM_STYLE_HEAD] = "\033[0;7m",
    [TTM_STYLE_KEY] = "\033[0;1;36m",  [TTM_STYLE_SELECTED] = "\033[0;7m",
    [TTM_STYLE_GOOD] = "\033[0;32m",   [TTM_STYLE_WARN] = "\033[0;33m",
    [TTM_STYLE_BAD] = "\033[0;31m",    [TTM_STYLE_CB] = "\033[0;35m",
    [TTM_STYLE_KERNEL] = "\033[0;34m", [TTM_STYLE_SMALL] = "\033[0;36m",
    [TTM_STYLE_DRAM] = "\033[0;36m",   [TTM_STYLE_L1] = "\033[0;32m",
};

static void print_row(const struct ttm_cell *cells, size_t columns, bool has_colour,
                      struct ttm_text *out)
{
    uint8_t style = TTM_STYLE_PLAIN;

    for (size_t i = 0; i < columns; i++) {
        if (has_colour && cells[i].style != style)
            ttm_text_append(out, codes[cells[i].style]);
        style = cells[i].style;
        if (cells[i].character != 0)
            append_character(out, cells[i].character);
    }
    if (has_colour && style != TTM_STYLE_PLAIN)
        ttm_text_append(out, codes[TTM_STYLE_PLAIN]);
}

void ttm_grid_print(const struct ttm_grid *grid, bool has_colour, struct ttm_text *out)
{
    for (size_t row = 0; row < grid->rows; row++) {
        const struct ttm_cell *cells = &grid->cells[row * grid->columns];
        size_t columns = grid->columns;
        while (columns > 0 && cells[columns - 1].character == ' ' &&
               (!has_colour || cells[columns - 1].style == TTM_STYLE_PLAIN))
            columns--;
        print_row(cells, columns, has_colour, out);
        ttm_text_append(out, "\n");
    }
}
