/* SPDX-License-Identifier: Apache-2.0 */
#include "dashboard/draw.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "dashboard/draw_parts.h"

/* ---- numbers ---- */

char *ttm_draw_short_bytes(uint64_t bytes, char ret[DRAW_NUMBER_SIZE])
{
    static const char units[] = " KMGTPE";
    double value = (double)bytes;
    size_t unit = 0;

    for (; value >= 999.5 && unit + 2 < sizeof(units); unit++)
        value /= 1024;
    if (unit == 0)
        (void)snprintf(ret, DRAW_NUMBER_SIZE, "%u", (unsigned)bytes);
    else
        (void)snprintf(ret, DRAW_NUMBER_SIZE, "%.*f%c",
                       value < 9.995   ? 2
                       : value < 99.95 ? 1
                                       : 0,
                       value, units[unit]);
    return ret;
}

const char *ttm_draw_name(const struct ttm_facts_device *device, size_t columns,
                          char ret[TTM_FACTS_NAME_SIZE])
{
    const size_t dash = strcspn(device->name, "-");

    memcpy(ret, device->name, TTM_FACTS_NAME_SIZE);
    if (ttm_grid_width(ret) > columns)
        ret[dash] = '\0';
    return ret;
}

char *ttm_draw_rate(bool is_known, int64_t bytes_per_s, char ret[DRAW_NUMBER_SIZE])
{
    char number[DRAW_NUMBER_SIZE];
    const uint64_t size = bytes_per_s < 0 ? (uint64_t)-bytes_per_s : (uint64_t)bytes_per_s;

    if (!is_known)
        (void)snprintf(ret, DRAW_NUMBER_SIZE, "—");
    else if (size == 0)
        (void)snprintf(ret, DRAW_NUMBER_SIZE, "0");
    else
        (void)snprintf(ret, DRAW_NUMBER_SIZE, "%c%.16s/s", bytes_per_s < 0 ? '-' : '+',
                       ttm_draw_short_bytes(size, number));
    return ret;
}

char *ttm_draw_share(uint64_t part, uint64_t whole, char ret[2 * DRAW_NUMBER_SIZE])
{
    char used[DRAW_NUMBER_SIZE], all[DRAW_NUMBER_SIZE];

    (void)snprintf(ret, (size_t)2 * DRAW_NUMBER_SIZE, "%.16s/%.16s",
                   ttm_draw_short_bytes(part, used), ttm_draw_short_bytes(whole, all));
    return ret;
}

char *ttm_draw_percent(uint64_t part, uint64_t whole, const char *space, char ret[DRAW_NUMBER_SIZE])
{
    const double percent = whole > 0 ? 100.0 * (double)part / (double)whole : 0;

    if (part > 0 && percent < 0.1)
        (void)snprintf(ret, DRAW_NUMBER_SIZE, "<0.1%%");
    else
        (void)snprintf(ret, DRAW_NUMBER_SIZE, "%.*f%s%%", part > 0 && percent < 9.95, percent,
                       space);
    return ret;
}

enum ttm_style ttm_draw_load_style(uint64_t part, uint64_t whole)
{
    const double share = whole > 0 ? (double)part / (double)whole : 0;

    return share >= 0.9 ? TTM_STYLE_BAD : share >= 0.75 ? TTM_STYLE_WARN : TTM_STYLE_GOOD;
}

char *ttm_draw_window(unsigned seconds, char ret[DRAW_NUMBER_SIZE])
{
    if (seconds < 60)
        (void)snprintf(ret, DRAW_NUMBER_SIZE, "%u s", seconds);
    else if (seconds < 3600)
        (void)snprintf(ret, DRAW_NUMBER_SIZE, "%u min", seconds / 60);
    else
        (void)snprintf(ret, DRAW_NUMBER_SIZE, "%u h", seconds / 3600);
    return ret;
}

void ttm_draw_head(struct ttm_grid *grid, size_t row)
{
    ttm_grid_restyle(grid, row, 0, grid->columns, TTM_STYLE_HEAD);
}

/* ---- header ---- */

static const char *server_text(const struct ttm_facts *facts, char room[128])
{
    switch (facts->server) {
    case TTM_SERVER_OK:
        if (facts->server_count == 1)
            return "server ok";
        (void)snprintf(room, 128, "%zu servers ok", facts->server_count);
        return room;
    case TTM_SERVER_SILENT:
        return "server does not answer";
    case TTM_SERVER_GONE:
        return "server gone, looking for it";
    case TTM_SERVER_REFUSED:
        (void)snprintf(room, 128, "server refuses: %.100s", facts->server_text);
        return room;
    case TTM_SERVER_NONE:
        break;
    }
    return "no server";
}

static void put_clock(struct ttm_grid *grid, uint64_t wall_ns, size_t from)
{
    const time_t seconds = (time_t)(wall_ns / TTM_NS_PER_S);
    struct tm local;
    char text[16] = "";

    if (wall_ns > 0 && localtime_r(&seconds, &local))
        (void)strftime(text, sizeof(text), "%H:%M:%S", &local);
    if (grid->columns > from + 10)
        ttm_grid_right(grid, 0, grid->columns - 9, 8, TTM_STYLE_HEAD, text);
}

static void draw_header(const struct ttm_view *view, struct ttm_grid *grid)
{
    const struct ttm_facts *facts = view->facts;
    const char *dot = " · ";
    char room[128];
    size_t at = 1;
    size_t left = grid->columns - 1;

    ttm_draw_head(grid, 0);
    at = ttm_grid_text(grid, 0, at, left - at, TTM_STYLE_HEAD,
                       grid->columns >= 60 ? "tt-mem " TTM_VERSION : "tt-mem");
    if (!facts) {
        (void)ttm_grid_text(grid, 0, at, left - at, TTM_STYLE_HEAD, " · looking");
        return;
    }
    if (grid->columns >= 60)
        at =
            ttm_grid_format(grid, 0, at, left - at, TTM_STYLE_HEAD, "%s%zu device%s%s%zu process%s",
                            dot, facts->device_count, facts->device_count == 1 ? "" : "s", dot,
                            facts->process_count, facts->process_count == 1 ? "" : "es");
    at = ttm_grid_text(grid, 0, at, left - at, TTM_STYLE_HEAD, dot);
    const size_t server_at = at;
    at = ttm_grid_text(grid, 0, at, left - at, TTM_STYLE_HEAD, server_text(facts, room));
    if (facts->server > TTM_SERVER_OK)
        ttm_grid_restyle(grid, 0, server_at, at - server_at, TTM_STYLE_BAD);
    if (facts->lost_events > 0 && left > at)
        at = ttm_grid_format(grid, 0, at, left - at, TTM_STYLE_HEAD, "%s%llu lost", dot,
                             (unsigned long long)facts->lost_events);
    if (view->is_paused && left > at)
        at = ttm_grid_format(grid, 0, at, left - at, TTM_STYLE_HEAD, "%sPAUSED", dot);
    put_clock(grid, facts->wall_time_ns, at);
}

/* ---- footer ---- */

struct key_hint {
    const char *key;
    const char *text;
    int page; /* on that page alone; -1: on all */
};

/* Left of 'end', if there is room for it. */
static size_t put_hint(struct ttm_grid *grid, size_t at, size_t end, const struct key_hint *hint,
                       bool is_here)
{
    const size_t row = grid->rows - 1;
    const size_t width = ttm_grid_width(hint->key) + 1 + ttm_grid_width(hint->text) + 2;

    if (at + width > end)
        return at;
    const size_t begin = at;
    at = ttm_grid_text(grid, row, at, grid->columns - at, TTM_STYLE_KEY, hint->key);
    at = ttm_grid_text(grid, row, at + 1, grid->columns - at - 1, TTM_STYLE_PLAIN, hint->text);
    if (is_here)
        ttm_grid_restyle(grid, row, begin, at - begin, TTM_STYLE_SELECTED);
    return at + 2;
}

static void draw_footer(const struct ttm_view *view, struct ttm_grid *grid)
{
    static const struct key_hint hints[] = {
        {"1", "devices", -1},
        {"2", "charts", -1},
        {"3", "origins", -1},
        {"?", "help", -1},
        {"q", "quit", -1},
        {"Enter", "detail", TTM_PAGE_ORIGINS},
        {"/", "filter", TTM_PAGE_DEVICES},
        {"/", "search", TTM_PAGE_ORIGINS},
        {"s", "sort", TTM_PAGE_DEVICES},
        {"s", "sort", TTM_PAGE_ORIGINS},
        {"+-", "window", TTM_PAGE_CHARTS},
        {"←→", "devices", TTM_PAGE_CHARTS},
        {"p", "pause", -1},
    };
    const bool has_detail = view->has_detail && view->origin_list.selected < view->line_count;
    const size_t row = grid->rows - 1;
    /* A filter that was kept is why rows are missing, and goes before keys. */
    const size_t filter = view->filter[0] ? sizeof("filter: ") + ttm_grid_width(view->filter) : 0;
    const size_t end = grid->columns - (filter < grid->columns / 2 ? filter : grid->columns / 2);
    size_t at = 0;

    if (view->is_typing) {
        at = ttm_grid_text(grid, row, 0, grid->columns, TTM_STYLE_KEY, "/");
        at = ttm_grid_text(grid, row, at, grid->columns - at, TTM_STYLE_BOLD, view->filter);
        at = ttm_grid_text(grid, row, at, grid->columns - at, TTM_STYLE_SELECTED, " ");
        (void)ttm_grid_text(grid, row, at + 1, grid->columns - at - 1, TTM_STYLE_DIM,
                            "Enter keeps it, Esc clears it");
        return;
    }
    for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
        if (hints[i].page >= 0 && hints[i].page != (int)view->settings.page)
            continue;
        if (has_detail && hints[i].page >= 0) {
            at = put_hint(grid, at, end, &(struct key_hint){"Esc", "back", -1}, false);
            at = put_hint(grid, at, end, &(struct key_hint){"↑↓", "others", -1}, false);
            at = put_hint(grid, at, end, &(struct key_hint){"PgDn", "more", -1}, false);
            break;
        }
        at = put_hint(grid, at, end, &hints[i], i == (size_t)view->settings.page);
    }
    if (view->filter[0])
        (void)ttm_grid_format(grid, row, at, grid->columns - at, TTM_STYLE_WARN, "filter: %s",
                              view->filter);
}

/* ---- help ---- */

static void draw_help(struct ttm_grid *grid, struct draw_area area)
{
    static const char *const lines[][2] = {
        {"1 2 3  Tab", "devices, charts, origins"},
        {"↑ ↓  PgUp PgDn", "choose a row; in charts: a device"},
        {"← →", "more devices; origins: the bank of another device"},
        {"Enter  Esc", "origins: the stack, sizes, ages, addresses; back"},
        {"PgUp PgDn", "there: more of it"},
        {"/", "show rows with these words only; Esc clears it"},
        {"s  r", "sort by something else; the other way round"},
        {"+ -", "charts: a longer or shorter window"},
        {"z", "origins: the whole bank, or what is in use of it"},
        {"p", "pause: the picture stands, tracking goes on"},
        {"q", "quit"},
        {"", ""},
        {"bars", "what is taken (footprint) of what the device has"},
        {"GROWTH", "bytes a second, over the last ten seconds"},
        {"REPORTS", "tracked; disabled; runtime: TT-Metal's own count; no: not known"},
        {"", ""},
        {"", "man tt-mem-top tells more; any key goes back"},
    };

    static const char *const short_lines[][2] = {
        {"1 2 3 Tab", "devices, charts, origins"},
        {"Up Down", "choose a row"},
        {"← →", "more devices"},
        {"Enter Esc", "one origin; back"},
        {"/", "filter; Esc clears it"},
        {"s r", "sort; the other way"},
        {"+ -", "window of the charts"},
        {"z", "the whole bank"},
        {"p", "pause"},
        {"q", "quit; any key goes back"},
    };
    const bool is_narrow = grid->columns < 72;
    const size_t count =
        is_narrow ? sizeof(short_lines) / sizeof(short_lines[0]) : sizeof(lines) / sizeof(lines[0]);
    const size_t at = is_narrow ? 12 : 17;

    for (size_t i = 0; i < count && i < area.rows; i++) {
        const char *const *line = is_narrow ? short_lines[i] : lines[i];
        (void)ttm_grid_text(grid, area.row + i, 1, at - 2, TTM_STYLE_KEY, line[0]);
        (void)ttm_grid_text(grid, area.row + i, at, grid->columns - at, TTM_STYLE_PLAIN, line[1]);
    }
}

/* ---- nothing to see ---- */

void ttm_draw_nothing(const struct ttm_view *view, struct ttm_grid *grid, struct draw_area area)
{
    static const char *const hints[][2] = {
        {"tt-mem run COMMAND", "tracks one program"},
        {"tt-mem serve", "keeps the record of all programs"},
        {"tt-mem demo", "shows all this without hardware"},
    };
    const bool has_server = view->facts && view->facts->server == TTM_SERVER_OK;
    const bool is_chosen = view->facts && view->facts->is_narrowed;
    const bool is_narrow = grid->columns < 66; /* then the explanation is a line of its own */
    size_t row = area.row + (area.rows > 10 ? 2 : 0);
    const size_t end = area.row + area.rows;

    if (row < end)
        (void)ttm_grid_text(grid, row, 2, grid->columns - 3, TTM_STYLE_BOLD,
                            is_chosen    ? "No device chosen with -d is here."
                            : has_server ? "No device here, and no program has told of one yet."
                            : is_narrow  ? "No device here, and no server."
                                         : "No device here, and no server is running.");
    row += 2;
    for (size_t i = has_server ? 2 : 0; i < 3 && row < end; i++, row++) {
        (void)ttm_grid_text(grid, row, 2, grid->columns - 3, TTM_STYLE_KEY, hints[i][0]);
        const size_t at = is_narrow ? 4 : 22;
        row += is_narrow;
        if (row < end)
            (void)ttm_grid_text(grid, row, at, grid->columns - at - 1, TTM_STYLE_PLAIN,
                                hints[i][1]);
    }
    if (has_server && row < end)
        (void)ttm_grid_text(
            grid, row, 2, grid->columns - 3, TTM_STYLE_PLAIN,
            "Programs started by 'tt-mem run' or with \"$(tt-mem env)\" show here.");
}

/* ---- all of it ---- */

void ttm_draw(struct ttm_view *view, struct ttm_grid *grid)
{
    if (grid->columns < TTM_DRAW_COLUMNS_MIN || grid->rows < TTM_DRAW_ROWS_MIN) {
        (void)ttm_grid_format(grid, 0, 0, grid->columns, TTM_STYLE_PLAIN, "tt-mem needs %d by %d",
                              TTM_DRAW_COLUMNS_MIN, TTM_DRAW_ROWS_MIN);
        return;
    }
    const struct draw_area area = {.row = 1, .rows = grid->rows - 2};

    draw_header(view, grid);
    draw_footer(view, grid);
    if (view->has_help)
        draw_help(grid, area);
    else if (!view->facts)
        return;
    else if (view->settings.page == TTM_PAGE_DEVICES)
        ttm_draw_devices(view, grid, area);
    else if (view->settings.page == TTM_PAGE_CHARTS)
        ttm_draw_charts(view, grid, area);
    else
        ttm_draw_origins(view, grid, area);
}
