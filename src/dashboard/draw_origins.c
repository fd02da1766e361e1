/* SPDX-License-Identifier: Apache-2.0 */
/* The third page: what is allocated now, by where it came from, and where it lies. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "dashboard/draw_parts.h"

#define MAP_ROWS 3 /* a line of words, one of cells and one of addresses at least */
#define MAP_ROWS_MAX 8
#define OLD_NS (5 * TTM_NS_PER_S) /* from then on it is said how old the origins are */

/* ---- the table ---- */

enum { BYTES, COUNT, GROWTH, REGION, DEV, PID, AGE, OPERATION, WHERE };

static const struct {
    const char *title;
    size_t width; /* 0: the rest */
    size_t from;  /* shown from that width of the screen on */
    bool is_right;
} columns[] = {
    [BYTES] = {"BYTES", 6, 0, true},     [COUNT] = {"COUNT", 6, 0, true},
    [GROWTH] = {"GROWTH", 8, 52, true},  [REGION] = {"REGION", 8, 46, false},
    [DEV] = {"DEV", 5, 64, false},       [PID] = {"PID", 7, 70, true},
    [AGE] = {"HELD FOR", 11, 100, true}, [OPERATION] = {"OPERATION", 20, 110, false},
    [WHERE] = {"WHERE", 0, 0, false},
};
#define COLUMN_COUNT (sizeof(columns) / sizeof(columns[0]))

#define CELL_SIZE (TTM_ORIGIN_WHERE_SIZE + TTM_ORIGIN_OPERATION_SIZE + TTM_ORIGIN_CALLERS_SIZE + 8)

static const char *cell_text(const struct ttm_origin_line *line, unsigned column, bool is_wide,
                             char room[CELL_SIZE])
{
    const struct ttm_origin_group *group = line->group;
    const char *operation = group->operation;

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
        return ttm_format_duration(group->held_ns, room);
    case OPERATION:
        return group->operation[0] ? group->operation : "—";
    default:
        /* In little room the name of the operation goes without that of its library. */
        operation += strncmp(operation, "ttnn.", 5) == 0 ? 5 : 0;
        (void)snprintf(room, CELL_SIZE, "%s%s%s%s%s%s", group->where,
                       is_wide || !group->operation[0] ? "" : " (", is_wide ? "" : operation,
                       is_wide || !group->operation[0] ? "" : ")", group->callers[0] ? " " : "",
                       group->callers);
        return room;
    }
}

static void draw_line(struct ttm_grid *grid, size_t row, const struct ttm_origin_line *line)
{
    char room[CELL_SIZE];
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
    if (view->facts->server == TTM_SERVER_GONE)
        return "the server has gone, and what it knew with it";
    if (view->facts->server != TTM_SERVER_OK)
        return "the server does not answer";
    if (!view->has_origins)
        return "asking the server";
    if (view->filter[0] && view->origins.count > 0)
        return "nothing matches the search";
    if (view->origins.hidden_count > 0)
        return "only other users have memory: sudo tt-mem top";
    return view->facts->is_narrowed
               ? "nothing is allocated on devices chosen with -d by programs that report"
               : "nothing is allocated by programs that report";
}

static void draw_table(struct ttm_view *view, struct ttm_grid *grid, struct draw_area area)
{
    struct ttm_view_list *list = &view->origin_list;
    char title[96], age[TTM_NUMBER_SIZE + 8] = "", rest[40] = "";
    const uint64_t now_ns = view->facts->time_ns;

    draw_line(grid, area.row, NULL);
    ttm_draw_head(grid, area.row);
    /* Of many lives the server is asked less often. */
    if (view->has_origins && now_ns > view->lives_ns && now_ns - view->lives_ns > OLD_NS)
        (void)snprintf(age, sizeof(age), "%u s old, ",
                       (unsigned)((now_ns - view->lives_ns) / TTM_NS_PER_S));
    if (view->origins.left_out > 0)
        (void)snprintf(rest, sizeof(rest), "%zu left out, ", view->origins.left_out);
    (void)snprintf(title, sizeof(title), "%s%sby %s%s ", rest, age,
                   ttm_origin_sort_name(view->settings.origin_sort),
                   view->settings.is_reversed[TTM_PAGE_ORIGINS] ? ", reversed" : "");
    if (grid->columns >= 70)
        ttm_grid_right(grid, area.row, grid->columns - 32, 32, TTM_STYLE_HEAD, title);
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

#define ZOOM 8 /* a bank of which less than this part is in use is drawn larger */

/* What a map shows: addresses, in cells. */
struct map {
    uint64_t begin, end;
    bool is_zoomed;
    size_t width, rows;
};

/* The whole bank, or what is in use of it where that would hardly be seen. */
static struct map choose_map(const struct ttm_view *view, size_t width, size_t rows)
{
    const struct ttm_bank *bank = &view->bank;
    struct map map = {bank->begin, bank->end, false, width, rows};
    uint64_t begin, end;

    if (view->has_whole_bank || !ttm_bank_extent(bank, &begin, &end))
        return map;
    uint64_t step = 1; /* to which the edges are rounded, for addresses that can be read */
    while (step < (end - begin) / 16)
        step *= 2;
    begin -= begin % step;
    begin = begin - bank->begin > step && begin > bank->begin ? begin - step : bank->begin;
    end += step - end % step;
    end = end < bank->end && bank->end - end > step ? end + step : bank->end;
    if ((end - begin) * ZOOM > bank->end - bank->begin)
        return map;
    return (struct map){begin, end, true, width, rows};
}

enum map_cell { CELL_FREE, CELL_OTHERS, CELL_SOME_OTHERS, CELL_OWN, CELL_SOME_OWN };

static void put_map_cell(struct ttm_grid *grid, size_t row, size_t column, enum map_cell cell)
{
    static const struct {
        uint32_t glyph;
        char ascii;
        enum ttm_style style;
    } looks[] = {
        [CELL_FREE] = {0x2591, '.', TTM_STYLE_DIM},
        [CELL_OTHERS] = {0x2593, '=', TTM_STYLE_DRAM},
        [CELL_SOME_OTHERS] = {0x2592, '-', TTM_STYLE_DRAM},
        [CELL_OWN] = {0x2588, '#', TTM_STYLE_WARN},
        [CELL_SOME_OWN] = {0x2584, '+', TTM_STYLE_WARN},
    };

    const uint32_t ascii = (uint32_t)looks[cell].ascii;
    ttm_grid_put(grid, row, column, grid->has_utf8 ? looks[cell].glyph : ascii, looks[cell].style);
}

/* What is selected is seen wherever there is any of it, and others before what is free. */
static enum map_cell cell_of(struct ttm_bank_share share, uint64_t bytes)
{
    if (share.own_bytes > 0)
        return share.own_bytes >= bytes / 2 ? CELL_OWN : CELL_SOME_OWN;
    if (share.other_bytes > 0)
        return share.other_bytes >= bytes / 2 ? CELL_OTHERS : CELL_SOME_OTHERS;
    return CELL_FREE;
}

/* What a bank has, what is free of it, and in how large pieces, in as many words as there is room. */
static void draw_map_numbers(const struct ttm_bank *bank, struct ttm_grid *grid, size_t row,
                             size_t at)
{
    char all[DRAW_NUMBER_SIZE], left[DRAW_NUMBER_SIZE], largest[DRAW_NUMBER_SIZE];
    char before[128] = "", after[32] = "";
    const double fragmented =
        bank->free_bytes > 0
            ? 100.0 - 100.0 * (double)bank->largest_free_bytes / (double)bank->free_bytes
            : 0;

    (void)ttm_draw_short_bytes(bank->bank_bytes, all);
    (void)ttm_draw_short_bytes(bank->free_bytes, left);
    (void)ttm_draw_short_bytes(bank->largest_free_bytes, largest);
    for (unsigned form = 0; form < 4; form++) {
        if (form == 0)
            (void)snprintf(before, sizeof(before),
                           ", each of %u banks: %s, %s free, largest block ", bank->bank_count, all,
                           left);
        else if (form == 1)
            (void)snprintf(before, sizeof(before), ", %u banks, each %s, %s free, largest ",
                           bank->bank_count, all, left);
        else
            (void)snprintf(before, sizeof(before), ": %s free, largest ", left);
        (void)snprintf(after, sizeof(after), form == 3 ? "" : ", %.0f %% fragmented", fragmented);
        if (at + ttm_grid_width(before) + ttm_grid_width(largest) + ttm_grid_width(after) <=
            grid->columns)
            break;
    }
    at = ttm_grid_text(grid, row, at, grid->columns - at, TTM_STYLE_PLAIN, before);
    at = ttm_grid_text(grid, row, at, grid->columns - at,
                       bank->largest_free_bytes < bank->free_bytes / 2 ? TTM_STYLE_WARN
                                                                       : TTM_STYLE_PLAIN,
                       largest);
    (void)ttm_grid_text(grid, row, at, grid->columns - at, TTM_STYLE_DIM, after);
}

static void draw_map_words(const struct ttm_view *view, struct ttm_grid *grid, size_t row)
{
    const struct ttm_bank *bank = &view->bank;
    const size_t at = ttm_grid_format(grid, row, 0, grid->columns, TTM_STYLE_BOLD, "device %u %s",
                                      view->bank_device, ttm_region_name(view->bank_region));
    if (!view->is_bank_told) {
        (void)ttm_grid_text(grid, row, at, grid->columns - at, TTM_STYLE_DIM,
                            ": asking the server");
        return;
    }
    if (bank->left_out > 0) { /* so what is free is not known */
        (void)ttm_grid_format(grid, row, at, grid->columns - at, TTM_STYLE_WARN,
                              ": too many to draw all, %" PRIu64 " are left out", bank->left_out);
        return;
    }
    if (!bank->has_size) {
        (void)ttm_grid_text(grid, row, at, grid->columns - at, TTM_STYLE_DIM,
                            bank->bank_bytes > 0
                                ? ": addresses do not fit one bank; those in use are drawn"
                                : ": the banks are not known; addresses in use are drawn");
        return;
    }
    draw_map_numbers(bank, grid, row, at);
}

static void draw_map_cells(struct ttm_view *view, struct ttm_grid *grid, size_t row,
                           const struct map *map)
{
    const struct ttm_bank_look look = {
        .begin = map->begin,
        .end = map->end,
        .cells = map->width * map->rows,
        .key = view->origin_list.selected < view->line_count
                   ? view->lines[view->origin_list.selected].group->key
                   : 0,
    };
    const struct ttm_bank_share *shares = ttm_bank_cells(&view->bank, &look);

    for (size_t r = 0; r < map->rows; r++) {
        ttm_grid_put(grid, row + r, 0, 0x2595, TTM_STYLE_DIM);
        ttm_grid_put(grid, row + r, map->width + 1, 0x258f, TTM_STYLE_DIM);
        for (size_t c = 0; shares && c < map->width; c++) {
            const size_t cell = r * map->width + c;
            put_map_cell(grid, row + r, c + 1,
                         cell_of(shares[cell], ttm_bank_cell_bytes(&look, cell)));
        }
    }
}

/* "0x0   █ selected  ▓ others  ░ free   4.50M of 1023M drawn: z   0x480000". */
static void draw_map_scale(const struct ttm_view *view, struct ttm_grid *grid, size_t row,
                           const struct map *map)
{
    static const struct {
        enum map_cell cell;
        const char *name;
    } legend[] = {{CELL_OWN, "selected"}, {CELL_OTHERS, "others"}, {CELL_FREE, "free"}};
    char text[64], drawn[DRAW_NUMBER_SIZE], all[DRAW_NUMBER_SIZE];
    size_t at =
        ttm_grid_format(grid, row, 0, grid->columns, TTM_STYLE_DIM, "0x%" PRIx64, map->begin) + 3;

    (void)snprintf(text, sizeof(text), "0x%" PRIx64, map->end);
    const size_t right = grid->columns - ttm_grid_width(text);
    (void)ttm_grid_text(grid, row, right, grid->columns - right, TTM_STYLE_DIM, text);
    if (grid->columns >= 60) {
        for (size_t i = 0; i < sizeof(legend) / sizeof(legend[0]); i++) {
            put_map_cell(grid, row, at, legend[i].cell);
            at = ttm_grid_text(grid, row, at + 2, 8, TTM_STYLE_DIM, legend[i].name) + 2;
        }
    }
    (void)snprintf(text, sizeof(text), "%.16s of %.16s drawn, z: all",
                   ttm_draw_short_bytes(map->end - map->begin, drawn),
                   ttm_draw_short_bytes(view->bank.end - view->bank.begin, all));
    if (map->is_zoomed && at + ttm_grid_width(text) + 2 < right)
        (void)ttm_grid_text(grid, row, at, right - at - 2, TTM_STYLE_WARN, text);
}

/* A line of words, the bank to scale in as many rows as there are, and its addresses. */
static void draw_map(struct ttm_view *view, struct ttm_grid *grid, struct draw_area area)
{
    draw_map_words(view, grid, area.row);
    if (!view->is_bank_told)
        return;
    const struct map map = choose_map(view, grid->columns - 2, area.rows - 2);
    draw_map_cells(view, grid, area.row + 1, &map);
    draw_map_scale(view, grid, area.row + area.rows - 1, &map);
}

/* ---- all of it ---- */

void ttm_draw_origins(struct ttm_view *view, struct ttm_grid *grid, struct draw_area area)
{
    const bool has_detail = view->has_detail && view->origin_list.selected < view->line_count;
    size_t map_rows = 0;

    if (view->has_bank && view->line_count > 0 && area.rows >= MAP_ROWS + 6) {
        const size_t fifth = area.rows / 5 < MAP_ROWS_MAX ? area.rows / 5 : MAP_ROWS_MAX;
        const size_t most = area.rows < 20 ? MAP_ROWS : fifth;
        const size_t left = area.rows > view->line_count + 1 ? area.rows - view->line_count - 1 : 0;
        /* Of what the table leaves it gets more. */
        map_rows = has_detail || left < most ? most : left < MAP_ROWS_MAX ? left : MAP_ROWS_MAX;
    }
    const struct draw_area upper = {area.row, area.rows - map_rows};
    if (has_detail)
        ttm_draw_detail(view, grid, upper);
    else
        draw_table(view, grid, upper);
    if (map_rows > 0)
        draw_map(view, grid, (struct draw_area){area.row + upper.rows, map_rows});
}
