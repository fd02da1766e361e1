/* SPDX-License-Identifier: Apache-2.0 */
/* The third page: what is allocated now, by where it came from, and where it lies. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "dashboard/draw_parts.h"

#define MAP_ROWS 3 /* a line of words and two of addresses at least */

/* ---- the table ---- */

enum { BYTES, COUNT, GROWTH, REGION, DEV, PID, AGE, OPERATION, WHERE };

static const struct {
    const char *title;
    size_t width; /* 0: the rest */
    size_t from;  /* shown from that width of the screen on */
    bool is_right;
} columns[] = {
    [BYTES] = {"BYTES", 6, 0, true},    [COUNT] = {"COUNT", 6, 0, true},
    [GROWTH] = {"GROWTH", 8, 52, true}, [REGION] = {"REGION", 8, 46, false},
    [DEV] = {"DEV", 5, 64, false},      [PID] = {"PID", 7, 70, true},
    [AGE] = {"OLDEST", 10, 100, true},  [OPERATION] = {"OPERATION", 20, 110, false},
    [WHERE] = {"WHERE", 0, 0, false},
};
#define COLUMN_COUNT (sizeof(columns) / sizeof(columns[0]))

static const char *cell_text(const struct ttm_origin_line *line, unsigned column, bool is_wide,
                             char room[TTM_ORIGIN_WHERE_SIZE + TTM_ORIGIN_OPERATION_SIZE + 8])
{
    const struct ttm_origin_group *group = line->group;

    switch (column) {
    case BYTES:
        return ttm_draw_short_bytes(group->used_bytes, room);
    case COUNT:
        (void)snprintf(room, DRAW_NUMBER_SIZE, "%" PRIu64, group->count);
        return room;
    case GROWTH:
        return ttm_draw_rate(line->has_growth, line->growth_bytes_per_s, room);
    case REGION:
        return ttm_region_name(group->region);
    case DEV:
        return group->devices;
    case PID:
        (void)snprintf(room, DRAW_NUMBER_SIZE, "%d", group->pid);
        return room;
    case AGE:
        return ttm_format_duration(group->oldest_ns, room);
    case OPERATION:
        return group->operation[0] ? group->operation : "—";
    default:
        if (is_wide || !group->operation[0])
            return group->where;
        (void)snprintf(room, TTM_ORIGIN_WHERE_SIZE + TTM_ORIGIN_OPERATION_SIZE + 8, "%s (%s)",
                       group->where, group->operation);
        return room;
    }
}

static void draw_line(struct ttm_grid *grid, size_t row, const struct ttm_origin_line *line)
{
    char room[TTM_ORIGIN_WHERE_SIZE + TTM_ORIGIN_OPERATION_SIZE + 8];
    const bool is_wide = grid->columns >= columns[OPERATION].from;
    size_t at = 0;

    for (unsigned i = 0; i < COLUMN_COUNT && at < grid->columns; i++) {
        if (grid->columns < columns[i].from)
            continue;
        const size_t width = columns[i].width ? columns[i].width : grid->columns - at;
        const char *text = line ? cell_text(line, i, is_wide, room) : columns[i].title;
        const bool is_fast =
            line && i == GROWTH && line->has_growth && line->growth_bytes_per_s > 0;
        const enum ttm_style style = is_fast ? TTM_STYLE_WARN : TTM_STYLE_PLAIN;
        if (columns[i].is_right)
            ttm_grid_right(grid, row, at, width, style, text);
        else
            (void)ttm_grid_text(grid, row, at, width, style, text);
        at += width + 1;
    }
}

/* Why there is no row. */
static const char *empty_text(const struct ttm_view *view)
{
    if (view->facts->server == TTM_SERVER_NONE)
        return "no server is running: tt-mem serve, or tt-mem run COMMAND";
    if (view->facts->server != TTM_SERVER_OK)
        return "the server does not answer";
    if (!view->has_origins)
        return "asking the server";
    if (view->filter[0] && view->origins.count > 0)
        return "nothing matches the search";
    return view->origins.hidden_count > 0 ? "only other users have memory: sudo tt-mem top"
                                          : "nothing is allocated by programs that report";
}

static void draw_table(struct ttm_view *view, struct ttm_grid *grid, struct draw_area area)
{
    struct ttm_view_list *list = &view->origin_list;
    char title[64];

    draw_line(grid, area.row, NULL);
    ttm_draw_head(grid, area.row);
    (void)snprintf(title, sizeof(title), "by %s%s ",
                   ttm_origin_sort_name(view->settings.origin_sort),
                   view->settings.is_reversed[TTM_PAGE_ORIGINS] ? ", reversed" : "");
    if (grid->columns >= 70)
        ttm_grid_right(grid, area.row, grid->columns - 24, 24, TTM_STYLE_HEAD, title);
    ttm_view_list_show(list, area.rows - 1);
    for (size_t i = 0; i + 1 < area.rows && list->first + i < view->line_count; i++) {
        const size_t row = area.row + 1 + i;
        draw_line(grid, row, &view->lines[list->first + i]);
        if (list->first + i == list->selected)
            ttm_grid_restyle(grid, row, 0, grid->columns, TTM_STYLE_SELECTED);
    }
    if (view->line_count == 0)
        (void)ttm_grid_text(grid, area.row + 1, 1, grid->columns - 1, TTM_STYLE_DIM,
                            empty_text(view));
}

/* ---- the bank ---- */

/* The selected one, others and what is free. */
static void put_map_cell(struct ttm_grid *grid, size_t row, size_t column,
                         const struct ttm_bank_block *block, uint64_t selected)
{
    if (!block || block->key == 0)
        ttm_grid_put(grid, row, column, grid->has_utf8 ? 0x2591 : '.', TTM_STYLE_DIM);
    else if (block->key == selected)
        ttm_grid_put(grid, row, column, grid->has_utf8 ? 0x2588 : '#', TTM_STYLE_WARN);
    else
        ttm_grid_put(grid, row, column, grid->has_utf8 ? 0x2593 : '=', TTM_STYLE_DRAM);
}

static void draw_map_words(const struct ttm_view *view, struct ttm_grid *grid, size_t row)
{
    const struct ttm_bank *bank = &view->bank;
    char all[TTM_NUMBER_SIZE], left[TTM_NUMBER_SIZE], largest[TTM_NUMBER_SIZE];
    size_t at;

    at = ttm_grid_format(grid, row, 0, grid->columns, TTM_STYLE_BOLD, "device %u %s",
                         view->bank_device, ttm_region_name(view->bank_region));
    if (!bank->has_size) {
        (void)ttm_grid_text(grid, row, at, grid->columns - at, TTM_STYLE_DIM,
                            bank->bank_bytes > 0
                                ? ": addresses do not fit one bank; those in use are drawn"
                                : ": the banks are not known; addresses in use are drawn");
        return;
    }
    at = ttm_grid_format(grid, row, at, grid->columns - at, TTM_STYLE_PLAIN,
                         ", each of %u banks: %s, %s free, largest block ", bank->bank_count,
                         ttm_format_bytes(bank->bank_bytes, all),
                         ttm_format_bytes(bank->free_bytes, left));
    at = ttm_grid_text(grid, row, at, grid->columns - at,
                       bank->largest_free_bytes < bank->free_bytes / 2 ? TTM_STYLE_WARN
                                                                       : TTM_STYLE_PLAIN,
                       ttm_format_bytes(bank->largest_free_bytes, largest));
    if (bank->free_bytes > 0 && grid->columns > at + 18)
        (void)ttm_grid_format(
            grid, row, at, grid->columns - at, TTM_STYLE_DIM, " (%.0f %% fragmented)",
            100.0 - 100.0 * (double)bank->largest_free_bytes / (double)bank->free_bytes);
}

/* A line of words, the bank to scale in as many rows as there are, and its addresses. */
static void draw_map(const struct ttm_view *view, struct ttm_grid *grid, struct draw_area area)
{
    const struct ttm_bank *bank = &view->bank;
    const uint64_t selected = view->origin_list.selected < view->line_count
                                  ? view->lines[view->origin_list.selected].group->key
                                  : 0;
    const size_t width = grid->columns - 2;
    const size_t rows = area.rows - 2;
    const double cell = (double)(bank->end - bank->begin) / (double)(width * rows);
    char text[64];

    draw_map_words(view, grid, area.row);
    for (size_t r = 0; r < rows; r++) {
        ttm_grid_put(grid, area.row + 1 + r, 0, 0x2595, TTM_STYLE_DIM);
        ttm_grid_put(grid, area.row + 1 + r, width + 1, 0x258f, TTM_STYLE_DIM);
        for (size_t c = 0; c < width; c++) {
            const double at = (double)(r * width + c);
            const uint64_t begin = bank->begin + (uint64_t)(at * cell);
            uint64_t end = bank->begin + (uint64_t)((at + 1) * cell);
            end = end > begin ? end : begin + 1;
            put_map_cell(grid, area.row + 1 + r, c + 1, ttm_bank_at(bank, begin, end), selected);
        }
    }
    const size_t row = area.row + area.rows - 1;
    const size_t after =
        ttm_grid_format(grid, row, 0, grid->columns, TTM_STYLE_DIM, "0x%" PRIx64, bank->begin);
    (void)snprintf(text, sizeof(text), "0x%" PRIx64, bank->end);
    ttm_grid_right(grid, row, grid->columns - 20, 20, TTM_STYLE_DIM, text);
    if (grid->columns >= 76) {
        put_map_cell(grid, row, after + 4, &(struct ttm_bank_block){.key = 1}, 1);
        (void)ttm_grid_text(grid, row, after + 6, 8, TTM_STYLE_DIM, "selected");
        put_map_cell(grid, row, after + 17, &(struct ttm_bank_block){.key = 1}, 2);
        (void)ttm_grid_text(grid, row, after + 19, 6, TTM_STYLE_DIM, "others");
        put_map_cell(grid, row, after + 28, NULL, 0);
        (void)ttm_grid_text(grid, row, after + 30, 4, TTM_STYLE_DIM, "free");
    }
}

/* ---- one origin ---- */

/* A list of frames, one a row. Returns the row behind it. */
static size_t draw_frames(struct ttm_grid *grid, size_t row, size_t end, const char *lines)
{
    while (*lines && row < end) {
        const size_t n = strcspn(lines, "\n");
        struct ttm_text text;
        char frame[512];
        (void)snprintf(frame, sizeof(frame), "%.*s", (int)(n < 500 ? n : 500), lines);
        char *function = strrchr(frame, ':');
        if (function && function != frame && !strstr(frame, "::"))
            *function = ' ';
        ttm_text_init(&text);
        ttm_text_append_safe(&text, frame);
        (void)ttm_grid_text(grid, row, 4, grid->columns - 5, TTM_STYLE_PLAIN,
                            ttm_text_string(&text));
        ttm_text_done(&text);
        row++;
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

static size_t draw_sizes(const struct ttm_view *view, struct ttm_grid *grid, size_t row, size_t end)
{
    const struct ttm_origin_detail *detail = &view->detail;
    char bytes[TTM_NUMBER_SIZE];
    size_t at = 13;

    if (row >= end)
        return row;
    (void)ttm_grid_text(grid, row, 2, 10, TTM_STYLE_DIM, "sizes");
    for (size_t i = 0; i < detail->size_count && at + 20 < grid->columns; i++)
        at = ttm_grid_format(grid, row, at, grid->columns - at, TTM_STYLE_PLAIN,
                             "%" PRIu64 " × %s   ", detail->sizes[i].count,
                             ttm_format_bytes(detail->sizes[i].bytes, bytes));
    if (detail->more_sizes > 0 && at + 12 < grid->columns)
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

static void draw_detail(const struct ttm_view *view, struct ttm_grid *grid, struct draw_area area)
{
    const struct ttm_origin_line *line = &view->lines[view->origin_list.selected];
    const struct ttm_origin_group *group = line->group;
    const struct ttm_answer_origin *origin = view->detail.origin;
    const size_t end = area.row + area.rows;
    char used[TTM_NUMBER_SIZE], asked[TTM_NUMBER_SIZE], rate[DRAW_NUMBER_SIZE];
    char young[TTM_NUMBER_SIZE], old[TTM_NUMBER_SIZE];
    size_t row = area.row;

    (void)ttm_grid_text(grid, row++, 1, grid->columns - 1, TTM_STYLE_BOLD, group->where);
    (void)ttm_grid_format(grid, row++, 2, grid->columns - 2, TTM_STYLE_PLAIN,
                          "%s on device %s · pid %d · %" PRIu64 " allocations · %s (%s requested)",
                          ttm_region_name(group->region), group->devices, group->pid, group->count,
                          ttm_format_bytes(group->used_bytes, used),
                          ttm_format_bytes(group->requested_bytes, asked));
    row = draw_named(grid, row, end, "growth",
                     ttm_draw_rate(line->has_growth, line->growth_bytes_per_s, rate));
    (void)ttm_grid_text(grid, row, 2, 10, TTM_STYLE_DIM, "ages");
    (void)ttm_grid_format(grid, row++, 13, grid->columns - 14, TTM_STYLE_PLAIN, "%s to %s",
                          ttm_format_duration(group->youngest_ns, young),
                          ttm_format_duration(group->oldest_ns, old));
    row = draw_sizes(view, grid, row, end);
    if (origin) {
        row = draw_named(grid, row, end, "operation", origin->operation);
        row = draw_named(grid, row, end, "name", origin->name);
        row = draw_named(grid, row, end, "context", origin->context);
        row = draw_named(grid, row, end, "thread", origin->thread);
        if (origin->python[0] && row < end) {
            (void)ttm_grid_text(grid, row++, 2, 10, TTM_STYLE_DIM, "python");
            row = draw_frames(grid, row, end, origin->python);
        }
        if (origin->native[0] && row < end) {
            const size_t stop = end - row > 8 ? row + (end - row) / 2 : end;
            (void)ttm_grid_text(grid, row++, 2, 10, TTM_STYLE_DIM, "native");
            row = draw_frames(grid, row, stop, origin->native);
        }
    }
    (void)draw_lives(view, grid, row, end);
}

void ttm_draw_origins(struct ttm_view *view, struct ttm_grid *grid, struct draw_area area)
{
    const bool has_detail = view->has_detail && view->origin_list.selected < view->line_count;
    size_t map_rows = 0;

    if (view->has_bank && view->line_count > 0 && area.rows >= MAP_ROWS + 6)
        map_rows = area.rows < 20 ? MAP_ROWS : area.rows < 40 ? MAP_ROWS + 1 : MAP_ROWS + 3;
    const struct draw_area upper = {area.row, area.rows - map_rows};
    if (has_detail)
        draw_detail(view, grid, upper);
    else
        draw_table(view, grid, upper);
    if (map_rows > 0)
        draw_map(view, grid, (struct draw_area){area.row + upper.rows, map_rows});
}
