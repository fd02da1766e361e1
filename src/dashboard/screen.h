/* SPDX-License-Identifier: Apache-2.0 */
/*
 * screen - shows a grid on a terminal, by ncurses, and tells what is typed.
 *
 * There is one terminal, so there is one screen. ttm_screen_close() leaves the
 * terminal as it was.
 */
#ifndef TTM_DASHBOARD_SCREEN_H
#define TTM_DASHBOARD_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

#include "dashboard/grid.h"

/*
 * Returns 0; -ENOTTY when this terminal cannot be drawn on, which leaves it as it is.
 */
int ttm_screen_open(bool has_colour);
void ttm_screen_close(void);

/* Fits the grid to the terminal. Returns 0 or -ENOMEM. */
int ttm_screen_fit(struct ttm_grid *grid);

/* Writes what has changed. */
void ttm_screen_show(const struct ttm_grid *grid);

/* What was typed: a character or an enum ttm_key; 0 when nothing was. Never waits. */
uint32_t ttm_screen_key(void);

/* From ttm_screen_key(): the terminal has another size. */
#define TTM_SCREEN_RESIZED 0x120000

#endif /* TTM_DASHBOARD_SCREEN_H */
