/* SPDX-License-Identifier: Apache-2.0 */
#define NCURSES_WIDECHAR 1
#include "dashboard/screen.h"

#include <curses.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dashboard/view.h"

/* After an escape, so long for the rest of a key's sequence; more is felt as slow. */
#define ESCAPE_MS 25

static SCREEN *screen;
static bool has_pairs; /* colours were asked for, and the terminal has them */

/* What was drawn last: ncurses takes 200 instructions a cell, and most rows stay as they are. */
static struct ttm_grid shown;

static const struct {
    short colour;
    attr_t attributes;
} looks[TTM_STYLE_COUNT] = {
    [TTM_STYLE_PLAIN] = {-1, A_NORMAL},
    [TTM_STYLE_BOLD] = {-1, A_BOLD},
    [TTM_STYLE_DIM] = {-1, A_DIM},
    [TTM_STYLE_HEAD] = {-1, A_REVERSE},
    [TTM_STYLE_KEY] = {COLOR_CYAN, A_BOLD},
    [TTM_STYLE_SELECTED] = {-1, A_REVERSE},
    [TTM_STYLE_GOOD] = {COLOR_GREEN, A_NORMAL},
    [TTM_STYLE_WARN] = {COLOR_YELLOW, A_NORMAL},
    [TTM_STYLE_BAD] = {COLOR_RED, A_BOLD},
    [TTM_STYLE_CB] = {COLOR_MAGENTA, A_NORMAL},
    [TTM_STYLE_KERNEL] = {COLOR_BLUE, A_NORMAL},
    [TTM_STYLE_SMALL] = {COLOR_CYAN, A_NORMAL},
    [TTM_STYLE_DRAM] = {COLOR_CYAN, A_NORMAL},
    [TTM_STYLE_L1] = {COLOR_GREEN, A_NORMAL},
};

int ttm_screen_open(bool has_colour)
{
    screen = newterm(NULL, stdout, stdin);
    if (!screen)
        return -ENOTTY;
    /* What cannot move its cursor is no terminal for this. */
    const char *move = tigetstr("cup");
    if (!move || move == (char *)-1) {
        ttm_screen_close();
        return -ENOTTY;
    }
    (void)set_escdelay(ESCAPE_MS);
    (void)cbreak();
    (void)noecho();
    (void)nonl();
    (void)curs_set(0);
    (void)keypad(stdscr, TRUE);
    (void)nodelay(stdscr, TRUE);
    (void)leaveok(stdscr, TRUE);
    if (has_colour && has_colors() && start_color() == OK) {
        has_pairs = true;
        (void)use_default_colors();
        for (int i = 1; i < TTM_STYLE_COUNT; i++)
            (void)init_pair((short)i, looks[i].colour, -1);
    }
    return 0;
}

void ttm_screen_close(void)
{
    if (!screen)
        return;
    (void)endwin();
    delscreen(screen);
    ttm_grid_done(&shown);
    screen = NULL;
}

int ttm_screen_fit(struct ttm_grid *grid)
{
    return ttm_grid_resize(grid, COLS > 0 ? (size_t)COLS : 0, LINES > 0 ? (size_t)LINES : 0);
}

static void show_cell(const struct ttm_cell *cell, size_t row, size_t column)
{
    const wchar_t text[] = {(wchar_t)cell->character, 0};
    cchar_t wide;

    short pair = 0;

    if (has_pairs && looks[cell->style].colour >= 0)
        pair = (short)cell->style;
    if (cell->character == 0 ||
        setcchar(&wide, text, looks[cell->style].attributes, pair, NULL) != OK)
        return;
    (void)mvadd_wch((int)row, (int)column, &wide);
}

static void show_row(const struct ttm_grid *grid, size_t row)
{
    (void)move((int)row, 0);
    (void)clrtoeol();
    for (size_t column = 0; column < grid->columns; column++) {
        const struct ttm_cell *cell = &grid->cells[row * grid->columns + column];
        if (cell->character != ' ' || cell->style != TTM_STYLE_PLAIN)
            show_cell(cell, row, column);
    }
}

static bool is_row_shown(const struct ttm_grid *grid, size_t row)
{
    const struct ttm_cell *now = &grid->cells[row * grid->columns];
    const struct ttm_cell *before = &shown.cells[row * grid->columns];

    for (size_t i = 0; i < grid->columns; i++) {
        if (now[i].character != before[i].character || now[i].style != before[i].style)
            return false;
    }
    return true;
}

/* Whether there is a picture of that size to compare with; else all of it is drawn. */
static bool can_compare(const struct ttm_grid *grid)
{
    if (shown.columns == grid->columns && shown.rows == grid->rows)
        return true;
    (void)erase();
    return false;
}

static void remember(const struct ttm_grid *grid)
{
    if ((shown.columns != grid->columns || shown.rows != grid->rows) &&
        ttm_grid_resize(&shown, grid->columns, grid->rows) < 0) {
        ttm_grid_done(&shown); /* then the next one is drawn whole */
        return;
    }
    memcpy(shown.cells, grid->cells, grid->columns * grid->rows * sizeof(shown.cells[0]));
}

void ttm_screen_show(const struct ttm_grid *grid)
{
    const bool has_before = can_compare(grid);

    for (size_t row = 0; row < grid->rows; row++) {
        if (!has_before || !is_row_shown(grid, row))
            show_row(grid, row);
    }
    remember(grid);
    (void)refresh();
}

uint32_t ttm_screen_key(void)
{
    static const struct {
        int theirs;
        uint32_t ours;
    } keys[] = {
        {KEY_UP, TTM_KEY_UP},
        {KEY_DOWN, TTM_KEY_DOWN},
        {KEY_LEFT, TTM_KEY_LEFT},
        {KEY_RIGHT, TTM_KEY_RIGHT},
        {KEY_PPAGE, TTM_KEY_PAGE_UP},
        {KEY_NPAGE, TTM_KEY_PAGE_DOWN},
        {KEY_HOME, TTM_KEY_HOME},
        {KEY_END, TTM_KEY_END},
        {KEY_ENTER, TTM_KEY_ENTER},
        {KEY_BACKSPACE, TTM_KEY_BACKSPACE},
        {KEY_F(1), '?'},
        {KEY_F(3), '/'},
        {KEY_F(6), 's'},
        {KEY_F(10), 'q'},
        {KEY_RESIZE, TTM_SCREEN_RESIZED},
    };
    const int key = getch();

    if (key == ERR)
        return 0;
    if (key == KEY_RESIZE) /* it may have been smaller in between, and have forgotten */
        ttm_grid_done(&shown);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (keys[i].theirs == key)
            return keys[i].ours;
    }
    switch (key) {
    case '\r':
    case '\n':
        return TTM_KEY_ENTER;
    case 27:
        return TTM_KEY_ESCAPE;
    case 8:
    case 127:
        return TTM_KEY_BACKSPACE;
    default:
        return key > 0 && key < 256 ? (uint32_t)key : 1; /* 1: a key that means nothing */
    }
}
