/* SPDX-License-Identifier: Apache-2.0 */
/* The second page: what was used over time. */
#include <stdio.h>
#include <string.h>

#include "dashboard/draw_parts.h"

#define PANE_ROWS_MIN 4
#define PANE_COLUMNS_MIN 36
#define AXIS_COLUMNS 6     /* "4.10G " left of the dots */
#define NUMBERS_COLUMNS 27 /* "31  DRAM 72.5M/12.0G 0.6 %" */

/* One chart: a device and what of it. */
struct pane {
    size_t row, column, rows, columns;
    const struct ttm_facts_device *device;
    enum ttm_track track;
};

/* A round number of bytes that is not below 'peak', so that the scale stands still for a while. */
static uint64_t scale_of(uint64_t peak, uint64_t capacity)
{
    uint64_t scale = 1024;

    if (capacity > 0 && (peak == 0 || peak >= capacity / 2))
        return peak > capacity ? peak : capacity;
    while (scale < peak) {
        const uint64_t next = scale * 2;
        if (scale + scale / 2 >= peak && scale >= 2048)
            return scale + scale / 2;
        scale = next;
    }
    return scale;
}

/* How many of 'height' dots so many bytes take; something is one at least. */
static size_t dots_of(uint64_t bytes, uint64_t scale, size_t height)
{
    const size_t dots = (size_t)((double)bytes / (double)scale * (double)height + 0.5);

    if (bytes > 0 && dots == 0)
        return 1;
    return dots < height ? dots : height;
}

/* The eight dots of a braille character, by column and row from the bottom. */
static const uint8_t braille_dots[2][4] = {{0x40, 0x04, 0x02, 0x01}, {0x80, 0x20, 0x10, 0x08}};

static void put_braille(struct ttm_grid *grid, size_t row, size_t column, size_t rows,
                        const uint64_t values[2], uint64_t scale, enum ttm_style style)
{
    for (size_t r = 0; r < rows; r++) {
        const size_t below = (rows - 1 - r) * 4;
        uint32_t dots = 0;
        for (size_t x = 0; x < 2; x++) {
            if (values[x] == TTM_SAMPLES_NONE)
                continue;
            const size_t height = dots_of(values[x], scale, rows * 4);
            for (size_t y = 0; y < 4 && below + y < height; y++)
                dots |= braille_dots[x][y];
        }
        if (dots)
            ttm_grid_put(grid, row + r, column, 0x2800 + dots, style);
    }
}

/* The same of one value a column, in '#' and ':' for half a row. */
static void put_column(struct ttm_grid *grid, size_t row, size_t column, size_t rows,
                       uint64_t value, uint64_t scale, enum ttm_style style)
{
    const size_t height = value == TTM_SAMPLES_NONE ? 0 : dots_of(value, scale, rows * 2);

    for (size_t r = 0; r < rows; r++) {
        const size_t below = (rows - 1 - r) * 2;
        if (height > below)
            ttm_grid_put(grid, row + r, column, height > below + 1 ? '#' : ':', style);
    }
}

/* A dashed line at the peak, with its value on the axis where nothing else stands there. */
static void put_peak(struct ttm_grid *grid, size_t row, size_t column, size_t columns, size_t rows,
                     uint64_t peak, uint64_t scale)
{
    char text[DRAW_NUMBER_SIZE];
    const size_t dots = dots_of(peak, scale, rows * 4);
    const size_t at = row + (dots > 0 ? rows - 1 - (dots - 1) / 4 : rows - 1);

    for (size_t i = 0; i < columns && peak > 0; i++) {
        if (column + i < grid->columns && at < grid->rows &&
            grid->cells[at * grid->columns + column + i].character == ' ')
            ttm_grid_put(grid, at, column + i, 0x254c, TTM_STYLE_DIM);
    }
    if (peak > 0 && at > row && at + 1 < row + rows)
        ttm_grid_right(grid, at, column - AXIS_COLUMNS, 5, TTM_STYLE_PLAIN,
                       ttm_draw_short_bytes(peak, text));
}

static void put_curve(const struct ttm_view *view, struct ttm_grid *grid, const struct pane *pane,
                      uint64_t *ret_peak)
{
    const bool has_braille = grid->has_utf8 && grid->has_braille;
    const enum ttm_style style = pane->track == TTM_TRACK_L1 ? TTM_STYLE_L1 : TTM_STYLE_DRAM;
    const size_t rows = pane->rows - 1, columns = pane->columns - AXIS_COLUMNS;
    const size_t column = pane->column + AXIS_COLUMNS, row = pane->row + 1;
    uint64_t values[2 * TTM_GRID_COLUMNS_MAX];
    char text[DRAW_NUMBER_SIZE];

    const uint64_t peak =
        ttm_samples_read(&view->history, pane->device->id, pane->track, view->facts->time_ns,
                         view->settings.window_s, values, columns * (has_braille ? 2 : 1));
    const uint64_t capacity =
        pane->device->capacity_bytes[pane->track == TTM_TRACK_L1 ? TTM_REGION_L1 : TTM_REGION_DRAM];
    const uint64_t scale = scale_of(peak, capacity);
    for (size_t i = 0; i < columns; i++) {
        if (has_braille)
            put_braille(grid, row, column + i, rows, &values[2 * i], scale, style);
        else
            put_column(grid, row, column + i, rows, values[i], scale, style);
    }
    put_peak(grid, row, column, columns, rows, peak, scale);
    if (peak > 0 || capacity > 0) { /* else there is nothing to measure */
        ttm_grid_right(grid, row, pane->column, 5, TTM_STYLE_DIM,
                       ttm_draw_short_bytes(scale, text));
        ttm_grid_right(grid, row + rows - 1, pane->column, 5, TTM_STYLE_DIM, "0");
    }
    *ret_peak = peak;
}

/* "0 n300 L DRAM 3.90G/12.0G 32 %  peak 4.1G". */
static void draw_pane(const struct ttm_view *view, struct ttm_grid *grid, const struct pane *pane)
{
    const struct ttm_facts_device *device = pane->device;
    const bool is_l1 = pane->track == TTM_TRACK_L1;
    const uint64_t used = is_l1 ? ttm_facts_l1_bytes(device) : ttm_facts_dram_bytes(device);
    const uint64_t capacity = device->capacity_bytes[is_l1 ? TTM_REGION_L1 : TTM_REGION_DRAM];
    const size_t end = pane->column + pane->columns;
    char text[2 * DRAW_NUMBER_SIZE], name[TTM_FACTS_NAME_SIZE];
    uint64_t peak;
    size_t at;

    /* The numbers are worth more than all of the name. */
    (void)ttm_draw_name(device, pane->columns - NUMBERS_COLUMNS, name);
    at =
        ttm_grid_format(grid, pane->row, pane->column, pane->columns, TTM_STYLE_BOLD, "%2u %s%s%s ",
                        device->id, name, name[0] ? " " : "", is_l1 ? "L1" : "DRAM");
    put_curve(view, grid, pane, &peak);
    if (!device->regions[TTM_REGION_DRAM].is_known) {
        (void)ttm_grid_text(grid, pane->row, at, end - at, TTM_STYLE_DIM, "not known");
        return;
    }
    if (capacity > 0) {
        at = ttm_grid_text(grid, pane->row, at, end - at, TTM_STYLE_PLAIN,
                           ttm_draw_share(used, capacity, text));
        at = ttm_grid_format(grid, pane->row, at, end - at, ttm_draw_load_style(used, capacity),
                             " %s", ttm_draw_percent(used, capacity, " ", text));
    } else {
        at = ttm_grid_text(grid, pane->row, at, end - at, TTM_STYLE_PLAIN,
                           ttm_format_bytes(used, text));
    }
    if (at + 12 <= end)
        (void)ttm_grid_format(grid, pane->row, at, end - at, TTM_STYLE_DIM, "  peak %s",
                              ttm_draw_short_bytes(peak, text));
}

/* The line below: how far back, and which devices. */
static void draw_scale(const struct ttm_view *view, struct ttm_grid *grid, size_t row, size_t shown)
{
    char window[DRAW_NUMBER_SIZE];
    const size_t count = view->facts->device_count;
    size_t at;

    at = ttm_grid_format(grid, row, 0, grid->columns, TTM_STYLE_DIM, "the last %s",
                         ttm_draw_window(view->settings.window_s, window));
    if (shown < count && grid->columns < 60)
        (void)ttm_grid_format(grid, row, at, grid->columns - at, TTM_STYLE_DIM,
                              " · %zu of %zu: ← →", shown, count);
    else if (shown < count)
        (void)ttm_grid_format(grid, row, at, grid->columns - at, TTM_STYLE_DIM,
                              " · devices %u to %u of %zu: ← →",
                              view->facts->devices[view->first_device].id,
                              view->facts->devices[view->first_device + shown - 1].id, count);
    ttm_grid_right(grid, row, grid->columns - 4, 4, TTM_STYLE_DIM, "now");
}

void ttm_draw_charts(struct ttm_view *view, struct ttm_grid *grid, struct draw_area area)
{
    const size_t count = view->facts->device_count;
    /* The two charts of a device stand side by side where there is room. */
    size_t across = grid->columns / PANE_COLUMNS_MIN;

    if (count == 0) {
        ttm_draw_nothing(view, grid, area);
        return;
    }
    across = across < 2 ? 1 : across / 2 * 2;
    if (across > 2 * count)
        across = 2 * count;
    area.rows--;
    const size_t fitting = area.rows / PANE_ROWS_MIN * across / 2;
    while (across > 2 && count <= area.rows / (PANE_ROWS_MIN + 4) * (across - 2) / 2)
        across -= 2; /* fewer side by side, as long as they are high enough */
    size_t shown = fitting < count ? fitting : count;
    shown = shown > 0 ? shown : 1;
    view->devices_a_page = shown;
    if (view->first_device + shown > count)
        view->first_device = count - shown;
    across = across > 0 ? across : 1;
    const size_t down = (2 * shown + across - 1) / across;
    for (size_t i = 0; i < 2 * shown; i++) {
        const struct pane pane = {
            .row = area.row + i / across * (area.rows / down),
            .column = i % across * (grid->columns / across),
            .rows = area.rows / down,
            .columns = grid->columns / across - (across > 1),
            .device = &view->facts->devices[view->first_device + i / 2],
            .track = i % 2 ? TTM_TRACK_L1 : TTM_TRACK_DRAM,
        };
        draw_pane(view, grid, &pane);
    }
    draw_scale(view, grid, area.row + area.rows, shown);
}
