/* SPDX-License-Identifier: Apache-2.0 */
/* One origin of the third page: its stack, sizes, ages and addresses. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "dashboard/draw_parts.h"

#define PAGE_ROWS 192 /* of which as many are shown as there is room for */

static size_t draw_frame(struct ttm_grid *grid, size_t row, const char *frame)
{
    struct ttm_text text;

    ttm_text_init(&text);
    ttm_text_append_safe(&text, frame);
    (void)ttm_grid_text(grid, row, 4, grid->columns - 5, TTM_STYLE_PLAIN, ttm_text_string(&text));
    ttm_text_done(&text);
    return row + 1;
}

/* "decode.py:28:cache_kv", one a row, with a space before the function. Returns the row behind. */
static size_t draw_python(struct ttm_grid *grid, size_t row, size_t end, const char *lines)
{
    while (*lines && row < end) {
        const size_t n = strcspn(lines, "\n");
        char frame[512];
        (void)snprintf(frame, sizeof(frame), "%.*s", (int)(n < 500 ? n : 500), lines);
        char *function = strrchr(frame, ':');
        if (function && function != frame)
            *function = ' ';
        row = draw_frame(grid, row, frame);
        lines += n + (lines[n] == '\n');
    }
    return row;
}

static size_t draw_native(const struct ttm_view *view, struct ttm_grid *grid, size_t row,
                          size_t end, const char *lines)
{
    const int32_t pid = view->lines[view->origin_list.selected].group->pid;

    while (*lines && row < end) {
        const size_t n = strcspn(lines, "\n");
        char frame[512];
        (void)snprintf(frame, sizeof(frame), "%.*s", (int)(n < 500 ? n : 500), lines);
        row = draw_frame(grid, row,
                         view->frame_name ? view->frame_name(view->frame_context, pid, lines, n)
                                          : frame);
        lines += n + (lines[n] == '\n');
    }
    return row;
}

static size_t draw_named(struct ttm_grid *grid, size_t row, size_t end, const char *label,
                         const char *value)
{
    struct ttm_text text;

    if (!value[0] || row >= end)
        return row;
    ttm_text_init(&text);
    ttm_text_append_safe(&text, value);
    (void)ttm_grid_text(grid, row, 2, 10, TTM_STYLE_DIM, label);
    (void)ttm_grid_text(grid, row, 13, grid->columns - 14, TTM_STYLE_PLAIN, ttm_text_string(&text));
    ttm_text_done(&text);
    return row + 1;
}

/* In few digits, or where another size would read the same, to the byte. */
static const char *size_text(const struct ttm_origin_detail *detail, size_t which,
                             char ret[TTM_NUMBER_SIZE])
{
    char other[TTM_NUMBER_SIZE], bytes[TTM_NUMBER_SIZE - 4];

    (void)ttm_format_bytes(detail->sizes[which].bytes, ret);
    for (size_t i = 0; i < detail->size_count; i++) {
        if (i != which && strcmp(ttm_format_bytes(detail->sizes[i].bytes, other), ret) == 0) {
            (void)snprintf(bytes, sizeof(bytes), "%" PRIu64, detail->sizes[which].bytes);
            (void)snprintf(ret, TTM_NUMBER_SIZE, "%s B", bytes);
            break;
        }
    }
    return ret;
}

static size_t draw_sizes(const struct ttm_view *view, struct ttm_grid *grid, size_t row, size_t end)
{
    const struct ttm_origin_detail *detail = &view->detail;
    char bytes[TTM_NUMBER_SIZE];
    size_t at = 13, shown = 0;

    if (row >= end)
        return row;
    (void)ttm_grid_text(grid, row, 2, 10, TTM_STYLE_DIM, "sizes");
    for (; shown < detail->size_count && at + 20 < grid->columns; shown++)
        at = ttm_grid_format(grid, row, at, grid->columns - at, TTM_STYLE_PLAIN,
                             "%" PRIu64 " × %s   ", detail->sizes[shown].count,
                             size_text(detail, shown, bytes));
    if ((shown < detail->size_count || detail->more_sizes > 0) && at + 12 < grid->columns)
        (void)ttm_grid_text(grid, row, at, grid->columns - at, TTM_STYLE_DIM, "and others");
    return row + 1;
}

static size_t draw_lives(const struct ttm_view *view, struct ttm_grid *grid, size_t row, size_t end)
{
    const struct ttm_origin_detail *detail = &view->detail;
    const size_t width = 38;
    const size_t across = (grid->columns - 2) / width > 0 ? (grid->columns - 2) / width : 1;
    char age[TTM_NUMBER_SIZE], bytes[TTM_NUMBER_SIZE];

    if (row + 1 >= end || detail->live_count == 0)
        return row;
    (void)ttm_grid_text(grid, row++, 2, grid->columns - 2, TTM_STYLE_DIM,
                        "addresses, the youngest first");
    for (size_t i = 0; i < detail->live_count && row + i / across < end; i++) {
        const struct ttm_life_row *life = &detail->lives[i];
        (void)ttm_grid_format(grid, row + i / across, 4 + i % across * width, width - 2,
                              TTM_STYLE_PLAIN, "0x%-10" PRIx64 " %9s %12s", life->address,
                              ttm_format_bytes(life->bytes, bytes),
                              ttm_format_duration(life->age_ns, age));
    }
    const size_t rows = (detail->live_count + across - 1) / across;
    return row + rows < end ? row + rows : end;
}

/* What is known beside the stack. Returns the row behind it. */
static size_t draw_facts(const struct ttm_view *view, struct ttm_grid *grid, size_t row, size_t end)
{
    const struct ttm_origin_line *line = &view->lines[view->origin_list.selected];
    const struct ttm_origin_group *group = line->group;
    char used[DRAW_NUMBER_SIZE], asked[DRAW_NUMBER_SIZE], rate[DRAW_NUMBER_SIZE];
    char young[TTM_NUMBER_SIZE], old[TTM_NUMBER_SIZE];

    (void)ttm_grid_text(grid, row++, 1, grid->columns - 1, TTM_STYLE_BOLD, group->where);
    (void)ttm_grid_format(grid, row++, 2, grid->columns - 2, TTM_STYLE_PLAIN,
                          "%s on device %s · pid %d · %" PRIu64 " allocation%s · %s (%s requested)",
                          ttm_region_name(group->region), group->devices, group->pid, group->count,
                          group->count == 1 ? "" : "s",
                          ttm_draw_short_bytes(group->used_bytes, used),
                          ttm_draw_short_bytes(group->requested_bytes, asked));
    row = draw_named(grid, row, end, "growth",
                     ttm_draw_rate(line->has_growth, line->growth_bytes_per_s, rate));
    if (!view->detail.is_told)
        return draw_named(grid, row, end, "ages", "asking the server");
    (void)ttm_grid_text(grid, row, 2, 10, TTM_STYLE_DIM, "ages");
    const size_t at =
        ttm_grid_format(grid, row, 13, grid->columns - 14, TTM_STYLE_PLAIN, "%s to %s",
                        ttm_format_duration(view->detail.youngest_ns, young),
                        ttm_format_duration(view->detail.oldest_ns, old));
    if (view->detail.left_out > 0 && view->detail.seen_count < group->count)
        (void)ttm_grid_format(grid, row, at, grid->columns - at, TTM_STYLE_DIM,
                              ", of %" PRIu64 " that were looked at", view->detail.seen_count);
    return draw_sizes(view, grid, row + 1, end);
}

/* All of it, on a page that may be longer than the screen. Returns how many rows it has. */
static size_t draw_page(const struct ttm_view *view, struct ttm_grid *grid, size_t native_max)
{
    const struct ttm_answer_origin *origin = view->detail.origin;
    const size_t end = grid->rows;
    size_t row = draw_facts(view, grid, 0, end);

    if (origin) {
        row = draw_named(grid, row, end, "operation", origin->operation);
        row = draw_named(grid, row, end, "name", origin->name);
        row = draw_named(grid, row, end, "context", origin->context);
        row = draw_named(grid, row, end, "thread", origin->thread);
        if (origin->python[0]) {
            (void)ttm_grid_text(grid, row++, 2, 10, TTM_STYLE_DIM, "python");
            row = draw_python(grid, row, end, origin->python);
        }
        if (origin->native[0] && row + 1 < end) {
            (void)ttm_grid_text(grid, row++, 2, 10, TTM_STYLE_DIM, "native");
            const size_t stop = end - row > native_max ? row + native_max : end;
            row = draw_native(view, grid, row, stop, origin->native);
        }
    }
    return draw_lives(view, grid, row, end);
}

/* At the right of the last row, whose text is seen to be cut. */
static void draw_more(struct ttm_grid *grid, size_t row)
{
    static const char text[] = "  PgDn: more";
    const size_t at = grid->columns - (sizeof(text) - 1);
    bool is_cut = false;

    for (size_t i = at; i < grid->columns; i++)
        is_cut |= grid->cells[row * grid->columns + i].character != ' ';
    if (is_cut)
        ttm_grid_put(grid, row, at - 1, 0x2026, TTM_STYLE_PLAIN);
    (void)ttm_grid_text(grid, row, at, sizeof(text) - 1, TTM_STYLE_KEY, text);
}

void ttm_draw_detail(struct ttm_view *view, struct ttm_grid *grid, struct draw_area area)
{
    struct ttm_grid page = {.has_utf8 = grid->has_utf8};

    if (ttm_grid_resize(&page, grid->columns, PAGE_ROWS) < 0)
        return; /* the next picture may have more luck */
    const size_t rows = draw_page(view, &page, area.rows > 24 ? area.rows / 2 : 12);
    const size_t last = rows > area.rows ? rows - area.rows : 0;
    view->detail_page = area.rows;
    if (view->detail_first > last)
        view->detail_first = last;
    memcpy(&grid->cells[area.row * grid->columns], &page.cells[view->detail_first * grid->columns],
           area.rows * grid->columns * sizeof(grid->cells[0]));
    if (view->detail_first < last)
        draw_more(grid, area.row + area.rows - 1);
    ttm_grid_done(&page);
}
