/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draw - puts a view on a grid.
 *
 * Decides where things stand and how much of them there is room for, from 40 by 12
 * cells on; tells the view how many rows fit, and nothing else changes.
 */
#ifndef TTM_DASHBOARD_DRAW_H
#define TTM_DASHBOARD_DRAW_H

#include "dashboard/grid.h"
#include "dashboard/view.h"

#define TTM_DRAW_COLUMNS_MIN 40
#define TTM_DRAW_ROWS_MIN 12

/* All of it, on a grid that has its size. */
void ttm_draw(struct ttm_view *view, struct ttm_grid *grid);

#endif /* TTM_DASHBOARD_DRAW_H */
