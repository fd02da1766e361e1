/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draw_parts - what the pages share. Private to drawing.
 */
#ifndef TTM_DASHBOARD_DRAW_PARTS_H
#define TTM_DASHBOARD_DRAW_PARTS_H

#include "dashboard/grid.h"
#include "dashboard/view.h"

#define DRAW_NUMBER_SIZE 32

/* The rows between header and footer. */
struct draw_area {
    size_t row;
    size_t rows;
};

void ttm_draw_devices(struct ttm_view *view, struct ttm_grid *grid, struct draw_area area);
void ttm_draw_charts(struct ttm_view *view, struct ttm_grid *grid, struct draw_area area);
void ttm_draw_origins(struct ttm_view *view, struct ttm_grid *grid, struct draw_area area);

/* Of the selected origin, of which there is one. */
void ttm_draw_detail(struct ttm_view *view, struct ttm_grid *grid, struct draw_area area);

/* Nothing to see: says so, and what to type. Returns whether there was room for all of it. */
void ttm_draw_nothing(const struct ttm_view *view, struct ttm_grid *grid, struct draw_area area);

/* "3.90G", "132K", "0": at most five characters. */
char *ttm_draw_short_bytes(uint64_t bytes, char ret[DRAW_NUMBER_SIZE]);

/* "+1.20M/s", "-132K/s", "0"; a dash when it is not known. */
char *ttm_draw_rate(bool is_known, int64_t bytes_per_s, char ret[DRAW_NUMBER_SIZE]);

/* "3.90G/12.0G". */
char *ttm_draw_share(uint64_t part, uint64_t whole, char ret[2 * DRAW_NUMBER_SIZE]);

/*
 * "32 %", "0.4 %", "<0.1%": what is below ten has a decimal; 'space' stands before the sign. At most
 * five characters for a part of the whole.
 */
char *ttm_draw_percent(uint64_t part, uint64_t whole, const char *space,
                       char ret[DRAW_NUMBER_SIZE]);

/* The device's name: where it does not fit, without what stands behind its dash. "galaxy-wormhole". */
const char *ttm_draw_name(const struct ttm_facts_device *device, size_t columns,
                          char ret[TTM_FACTS_NAME_SIZE]);

/* Green, from 75 % yellow, from 90 % red. */
enum ttm_style ttm_draw_load_style(uint64_t part, uint64_t whole);

static inline const char *ttm_draw_celsius(const struct ttm_grid *grid)
{
    return grid->has_utf8 ? "°C" : "C";
}

/* "30 s", "5 min", "1 h". */
char *ttm_draw_window(unsigned seconds, char ret[DRAW_NUMBER_SIZE]);

/* A row of a table: titles in reverse, over the whole width. */
void ttm_draw_head(struct ttm_grid *grid, size_t row);

#endif /* TTM_DASHBOARD_DRAW_PARTS_H */
