/* SPDX-License-Identifier: Apache-2.0 */
/* The first page: bars of each device, and the processes below. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "dashboard/draw_parts.h"

/* The forms that a device is shown in, the richest first. */
enum form { FORM_ALL, FORM_FULL, FORM_WIDE, FORM_NARROW, FORM_TINY };

static const struct {
    size_t rows;
    size_t columns; /* at least */
} forms[] = {
    [FORM_ALL] = {4, 78},    [FORM_FULL] = {3, 78}, [FORM_WIDE] = {2, 78},
    [FORM_NARROW] = {3, 38}, [FORM_TINY] = {1, 38},
};

#define INFO_COLUMNS 38
#define NAME_COLUMNS 8
#define NAME_COLUMNS_MAX 16
#define LONG_NAMES_FROM 96 /* columns of a device in which its name may be longer */
#define NUMBERS_COLUMNS 19 /* " 3.90G/12.0G  32 %", right of a bar */

/* How all devices are laid out. */
struct layout {
    enum form form;
    size_t across;  /* devices side by side */
    size_t columns; /* of each */
    size_t rows;    /* of all that are shown */
    size_t shown;
    size_t name_columns;
};

/* The richest form in which all of them fit, or as many as fit in the smallest. */
static struct layout choose_layout(size_t count, size_t columns, size_t rows, enum form richest)
{
    struct layout layout = {0};

    for (unsigned form = richest; form <= FORM_TINY; form++) {
        layout.form = form;
        layout.across = columns / forms[form].columns;
        if (layout.across == 0)
            continue;
        if (layout.across > count)
            layout.across = count;
        const size_t down = (count + layout.across - 1) / layout.across;
        if (down * forms[form].rows <= rows || form == FORM_TINY) {
            const size_t fitting = rows / forms[form].rows;
            const size_t lines = down < fitting ? down : fitting;
            layout.across = (count + down - 1) / down; /* no empty column */
            if (down > lines)
                layout.across = columns / forms[form].columns;
            layout.rows = lines * forms[form].rows;
            layout.shown = lines * layout.across < count ? lines * layout.across : count;
            break;
        }
    }
    layout.columns = layout.across > 0 ? columns / layout.across : columns;
    return layout;
}

/* ---- one device ---- */

static const struct ttm_bar_part l1_looks[] = {
    {0, TTM_STYLE_L1, 0x2588, '#'},
    {0, TTM_STYLE_CB, 0x2592, '='},
    {0, TTM_STYLE_KERNEL, 0x2593, '%'},
    {0, TTM_STYLE_SMALL, 0x2591, '+'},
};
static const uint8_t l1_regions[] = {TTM_REGION_L1, TTM_REGION_CB, TTM_REGION_KERNEL,
                                     TTM_REGION_L1_SMALL};
#define L1_PARTS (sizeof(l1_looks) / sizeof(l1_looks[0]))

static void put_bar(struct ttm_grid *grid, size_t row, size_t column, size_t columns,
                    const struct ttm_bar_part *parts, size_t count, uint64_t used,
                    uint64_t capacity)
{
    if (columns < 4)
        return;
    ttm_grid_put(grid, row, column, '[', TTM_STYLE_DIM);
    ttm_grid_put(grid, row, column + columns - 1, ']', TTM_STYLE_DIM);
    ttm_grid_bar(grid, row, column + 1, columns - 2, parts, count, capacity);
    /* What is nearly full is told by colour as well, whatever it consists of. */
    if (ttm_draw_load_style(used, capacity) == TTM_STYLE_BAD)
        ttm_grid_restyle(grid, row, column + 1, columns - 2, TTM_STYLE_BAD);
}

/* "DRAM [█████     ] 3.90G/12.0G 32 %". */
static void put_memory(struct ttm_grid *grid, size_t row, size_t column, size_t columns,
                       const struct ttm_facts_device *device, bool is_l1)
{
    const unsigned region = is_l1 ? TTM_REGION_L1 : TTM_REGION_DRAM;
    const uint64_t used = is_l1 ? ttm_facts_l1_bytes(device) : ttm_facts_dram_bytes(device);
    const uint64_t capacity = device->capacity_bytes[region];
    const size_t bar = columns > 5 + NUMBERS_COLUMNS + 6 ? columns - 5 - NUMBERS_COLUMNS : 0;
    const size_t numbers_at = column + 5 + bar;
    struct ttm_bar_part parts[L1_PARTS] = {
        {used, ttm_draw_load_style(used, capacity), 0x2588, '#'}};
    char text[2 * DRAW_NUMBER_SIZE];

    (void)ttm_grid_text(grid, row, column, 5, TTM_STYLE_BOLD, is_l1 ? "L1" : "DRAM");
    if (!device->regions[region].is_known) {
        (void)snprintf(text, sizeof(text), "not known of %.16s",
                       ttm_draw_short_bytes(capacity, (char[DRAW_NUMBER_SIZE]){0}));
        ttm_grid_right(grid, row, numbers_at, column + columns - numbers_at, TTM_STYLE_DIM,
                       capacity > 0 ? text : "not known");
        return;
    }
    if (capacity == 0) {
        ttm_grid_right(grid, row, numbers_at, column + columns - numbers_at, TTM_STYLE_PLAIN,
                       ttm_format_bytes(used, text));
        return;
    }
    for (size_t i = 0; is_l1 && i < L1_PARTS; i++) {
        parts[i] = l1_looks[i];
        parts[i].bytes = device->regions[l1_regions[i]].used_bytes;
    }
    put_bar(grid, row, column + 5, bar, parts, is_l1 ? L1_PARTS : 1, used, capacity);
    const size_t right = column + columns;
    ttm_grid_right(grid, row, numbers_at, right - numbers_at - 6, TTM_STYLE_PLAIN,
                   ttm_draw_share(used, capacity, text));
    ttm_grid_right(grid, row, right - 6, 6, ttm_draw_load_style(used, capacity),
                   ttm_draw_percent(used, capacity, " ", text));
}

/* Why there are no sensors; of a chip that hangs, what it last told and when. */
static void put_place(struct ttm_grid *grid, size_t row, size_t column, size_t columns,
                      const struct ttm_facts_device *device)
{
    const bool is_usual =
        strcmp(device->place, "remote") == 0 || strcmp(device->place, "no card") == 0;
    const size_t end = column + columns;
    const uint64_t age_s = device->age_ns / TTM_NS_PER_S;

    column = ttm_grid_text(grid, row, column, columns, is_usual ? TTM_STYLE_DIM : TTM_STYLE_WARN,
                           device->place);
    if (device->age_ns == 0 || column + 8 >= end)
        return;
    column = ttm_grid_format(grid, row, column, end - column, TTM_STYLE_DIM, " for %" PRIu64 " %s",
                             age_s < 100 ? age_s : age_s / 60, age_s < 100 ? "s" : "min");
    if (device->temperature_mc.validity == TTM_VALID)
        (void)ttm_grid_format(grid, row, column, end - column, TTM_STYLE_DIM,
                              ", was %" PRIu64 " %s", (device->temperature_mc.number + 500) / 1000,
                              ttm_draw_celsius(grid));
}

/* "54 °C  12/100 W  500 MHz", or why there is nothing. */
static void put_sensors(struct ttm_grid *grid, size_t row, size_t column, size_t columns,
                        const struct ttm_facts_device *device)
{
    const size_t end = column + columns;

    if (device->place[0]) {
        put_place(grid, row, column, columns, device);
        return;
    }
    if (device->temperature_mc.validity == TTM_VALID) {
        const uint64_t limit = device->temperature_limit_mc.validity == TTM_VALID
                                   ? device->temperature_limit_mc.number
                                   : 0;
        enum ttm_style style = ttm_draw_load_style(device->temperature_mc.number, limit);
        style = style == TTM_STYLE_GOOD ? TTM_STYLE_PLAIN : style;
        column =
            ttm_grid_format(grid, row, column, end - column, style, "%" PRIu64 " %s",
                            (device->temperature_mc.number + 500) / 1000, ttm_draw_celsius(grid));
    } else {
        column = ttm_grid_format(grid, row, column, end - column, TTM_STYLE_DIM, "— %s",
                                 ttm_draw_celsius(grid));
    }
    column += 2;
    if (column < end && device->power_uw.validity == TTM_VALID &&
        device->power_limit_uw.validity == TTM_VALID)
        column = ttm_grid_format(
            grid, row, column, end - column, TTM_STYLE_PLAIN, "%" PRIu64 "/%" PRIu64 " W",
            (device->power_uw.number + 500000) / 1000000, device->power_limit_uw.number / 1000000);
    else if (column < end && device->power_uw.validity == TTM_VALID)
        column = ttm_grid_format(grid, row, column, end - column, TTM_STYLE_PLAIN, "%" PRIu64 " W",
                                 (device->power_uw.number + 500000) / 1000000);
    else if (column < end)
        column = ttm_grid_text(grid, row, column, end - column, TTM_STYLE_DIM, "— W");
    column += 2;
    if (column < end && device->aiclk_mhz.validity == TTM_VALID)
        (void)ttm_grid_format(grid, row, column, end - column, TTM_STYLE_PLAIN, "%" PRIu64 " MHz",
                              device->aiclk_mhz.number);
    else if (column < end)
        (void)ttm_grid_text(grid, row, column, end - column, TTM_STYLE_DIM, "— MHz");
}

static void put_info(struct ttm_grid *grid, size_t row, size_t column, size_t columns,
                     size_t name_columns, const struct ttm_facts_device *device)
{
    const size_t end = column + columns, sensors = column + 4 + name_columns;
    char name[TTM_FACTS_NAME_SIZE];

    (void)ttm_grid_format(grid, row, column, 3, TTM_STYLE_BOLD, "%2u", device->id);
    (void)ttm_grid_text(grid, row, column + 3, name_columns, TTM_STYLE_PLAIN,
                        device->name[0] ? ttm_draw_name(device, name_columns, name) : "—");
    put_sensors(grid, row, sensors, end > sensors ? end - sensors : 0, device);
}

/* "PCIe in 1.20G out 35.0M/s", below the sensors. */
static void put_link(struct ttm_grid *grid, size_t row, size_t column, size_t columns,
                     const struct ttm_facts_device *device)
{
    char in[DRAW_NUMBER_SIZE], out[DRAW_NUMBER_SIZE];

    if (device->place[0] || device->link_in_bytes_per_s.validity != TTM_VALID ||
        device->link_out_bytes_per_s.validity != TTM_VALID)
        return;
    const size_t end = column + columns;
    column = ttm_grid_text(grid, row, column, columns, TTM_STYLE_DIM, "PCIe in ");
    column = ttm_grid_text(grid, row, column, end - column, TTM_STYLE_PLAIN,
                           ttm_draw_short_bytes(device->link_in_bytes_per_s.number, in));
    column = ttm_grid_text(grid, row, column, end - column, TTM_STYLE_DIM, " out ");
    (void)ttm_grid_format(grid, row, column, end - column, TTM_STYLE_PLAIN, "%.16s/s",
                          ttm_draw_short_bytes(device->link_out_bytes_per_s.number, out));
}

/* One kind of memory in a breakdown. */
struct kind {
    const char *name, *short_name;
    uint64_t bytes;
    const struct ttm_bar_part *look; /* NULL: no part of the bar of L1 */
};
#define KINDS 5

static void list_kinds(const struct ttm_facts_device *device, struct kind ret[KINDS])
{
    static const char *const names[][2] = {
        {"buffers", "L1"}, {"circular", "CB"}, {"kernels", "kern"}, {"L1_SMALL", "small"}};

    for (size_t i = 0; i < L1_PARTS; i++)
        ret[i] = (struct kind){names[i][0], names[i][1], device->regions[l1_regions[i]].used_bytes,
                               &l1_looks[i]};
    ret[L1_PARTS] =
        (struct kind){"TRACE", "trace", device->regions[TTM_REGION_TRACE].used_bytes, NULL};
}

/* "█ buffers 42.5M". Returns the column behind it, or 'end' + 1 when there is no room. */
static size_t put_kind(struct ttm_grid *grid, size_t row, size_t column, size_t end,
                       const struct kind *kind, const char *name)
{
    char bytes[DRAW_NUMBER_SIZE];
    const size_t glyph = kind->look ? 1 + (name[0] != '\0') : 0;
    const size_t width = glyph + ttm_grid_width(name) + (name[0] != '\0') +
                         ttm_grid_width(ttm_draw_short_bytes(kind->bytes, bytes));

    if (column + width > end)
        return end + 1;
    if (kind->look) {
        ttm_grid_put(grid, row, column,
                     grid->has_utf8 ? kind->look->glyph : kind->look->ascii_glyph,
                     kind->look->style);
        column += glyph;
    }
    if (name[0])
        column = ttm_grid_format(grid, row, column, end - column, TTM_STYLE_DIM, "%s ", name);
    return ttm_grid_text(grid, row, column, end - column, TTM_STYLE_PLAIN, bytes);
}

static size_t put_extra(struct ttm_grid *grid, size_t row, size_t column, size_t end,
                        const char *name, uint64_t bytes)
{
    const struct kind kind = {.bytes = bytes};
    const size_t next = bytes > 0 ? put_kind(grid, row, column + 2, end, &kind, name) : end + 1;

    return next > end ? column : next;
}

static uint64_t requested_dram(const struct ttm_facts_device *device)
{
    return device->regions[TTM_REGION_DRAM].requested_bytes +
           device->regions[TTM_REGION_TRACE].requested_bytes;
}

/* Of buffers: what circular buffers and kernels take is what was asked for. */
static uint64_t requested_l1(const struct ttm_facts_device *device)
{
    return device->regions[TTM_REGION_L1].requested_bytes +
           device->regions[TTM_REGION_L1_SMALL].requested_bytes;
}

/* "  requested DRAM 3.80G  requested L1 1.90M  reserved L1 6.50M", as much as there is room for. */
static void put_extras(struct ttm_grid *grid, size_t row, size_t column, size_t end,
                       const struct ttm_facts_device *device)
{
    if (!device->regions[TTM_REGION_L1].is_known)
        return;
    column = put_extra(grid, row, column, end, "requested DRAM", requested_dram(device));
    column = put_extra(grid, row, column, end, "requested L1", requested_l1(device));
    column = put_extra(grid, row, column, end, "reserved L1", device->l1_reserved_bytes);
    if (device->cb_registered_bytes > device->regions[TTM_REGION_CB].used_bytes)
        (void)put_extra(grid, row, column, end, "circular of all programs",
                        device->cb_registered_bytes);
}

/*
 * "█ buffers 42.5M  ▒ circular 3.40M  ▓ kernels 2.10M  ░ L1_SMALL 0  TRACE 0". Returns the column
 * behind it, or 'end' when it does not fit.
 */
static size_t put_breakdown(struct ttm_grid *grid, size_t row, size_t column, size_t end,
                            const struct ttm_facts_device *device)
{
    struct kind kinds[KINDS];

    if (!device->regions[TTM_REGION_L1].is_known)
        return end;
    list_kinds(device, kinds);
    for (size_t i = 0; i < KINDS; i++) {
        const size_t next = put_kind(grid, row, column, end, &kinds[i], kinds[i].name);
        if (next > end)
            return end;
        column = next + 2;
    }
    return column - 2;
}

/* The same beside the bar of L1: what there is of each kind, in as many words as there is room. */
static void put_short_breakdown(struct ttm_grid *grid, size_t row, size_t column, size_t columns,
                                const struct ttm_facts_device *device)
{
    struct kind kinds[KINDS];
    size_t end = column + columns, width = 0;
    char bytes[DRAW_NUMBER_SIZE];

    if (!device->regions[TTM_REGION_L1].is_known)
        return;
    list_kinds(device, kinds);
    for (size_t i = 0; i < KINDS; i++) {
        if (kinds[i].bytes > 0)
            width += 2 + ttm_grid_width(kinds[i].short_name) + 1 + 1 +
                     ttm_grid_width(ttm_draw_short_bytes(kinds[i].bytes, bytes));
    }
    const bool has_names = width <= columns + 1;
    for (size_t i = 0; i < KINDS && column < end; i++) {
        if (kinds[i].bytes > 0)
            column = put_kind(grid, row, column, end, &kinds[i],
                              has_names        ? kinds[i].short_name
                              : !kinds[i].look ? "T"
                                               : "") +
                     1;
    }
}

/* In six columns. */
static const char *tiny_place(const char *place)
{
    if (strcmp(place, "no card") == 0)
        return "";
    if (strcmp(place, "in reset") == 0)
        return "reset";
    return strcmp(place, "removed") == 0 ? "gone" : strcmp(place, "reading") == 0 ? "…" : place;
}

/* " 0 D██▌      32% L█████   59%  54°C" on one row. */
static void put_tiny(struct ttm_grid *grid, size_t row, size_t column, size_t columns,
                     const struct ttm_facts_device *device)
{
    const size_t bar = (columns - 3 - 6 - (size_t)2 * 7) / 2;
    const uint64_t used[] = {ttm_facts_dram_bytes(device), ttm_facts_l1_bytes(device)};
    const uint8_t regions[] = {TTM_REGION_DRAM, TTM_REGION_L1};
    char text[DRAW_NUMBER_SIZE];
    size_t at = column + 3;

    (void)ttm_grid_format(grid, row, column, 3, TTM_STYLE_BOLD, "%2u", device->id);
    for (size_t i = 0; i < 2; i++) {
        const uint64_t capacity = device->capacity_bytes[regions[i]];
        const struct ttm_bar_part part = {used[i], ttm_draw_load_style(used[i], capacity), 0x2588,
                                          '#'};
        ttm_grid_put(grid, row, at, i == 0 ? 'D' : 'L', TTM_STYLE_DIM);
        if (capacity > 0 && device->regions[regions[i]].is_known) {
            ttm_grid_bar(grid, row, at + 1, bar, &part, 1, capacity);
            (void)ttm_draw_percent(used[i], capacity, "", text);
        } else {
            (void)snprintf(text, sizeof(text), "%s",
                           device->regions[regions[i]].is_known
                               ? ttm_draw_short_bytes(used[i], (char[DRAW_NUMBER_SIZE]){0})
                               : "—");
        }
        ttm_grid_right(grid, row, at + 1 + bar, 5, part.style, text);
        at += bar + 7;
    }
    if (device->place[0])
        (void)ttm_grid_text(grid, row, at, 6, TTM_STYLE_DIM, tiny_place(device->place));
    else if (device->temperature_mc.validity == TTM_VALID)
        (void)ttm_grid_format(grid, row, at, 6, TTM_STYLE_PLAIN, "%" PRIu64 " %s",
                              (device->temperature_mc.number + 500) / 1000, ttm_draw_celsius(grid));
}

static void draw_device(struct ttm_grid *grid, size_t row, size_t column,
                        const struct layout *layout, const struct ttm_facts_device *device)
{
    const size_t columns = layout->columns - 1;
    const size_t info = INFO_COLUMNS - NAME_COLUMNS + layout->name_columns;

    const size_t end = column + columns;

    switch (layout->form) {
    case FORM_ALL:
    case FORM_FULL:
    case FORM_WIDE:
        if (layout->form == FORM_WIDE) {
            put_short_breakdown(grid, row + 1, column + 3, info - 4, device);
        } else {
            const size_t at = put_breakdown(grid, row + 2, column + 3, end, device);
            if (layout->form == FORM_FULL)
                put_extras(grid, row + 2, at, end, device);
            else
                put_extras(grid, row + 3, column + 1, end, device);
        }
        if (layout->form != FORM_WIDE || !device->regions[TTM_REGION_L1].is_known)
            put_link(grid, row + 1, column + 4 + layout->name_columns,
                     info - layout->name_columns - 5, device);
        put_info(grid, row, column, info, layout->name_columns, device);
        put_memory(grid, row, column + info, columns - info, device, false);
        put_memory(grid, row + 1, column + info, columns - info, device, true);
        break;
    case FORM_NARROW:
        put_info(grid, row, column, columns, layout->name_columns, device);
        put_memory(grid, row + 1, column + 3, columns - 3, device, false);
        put_memory(grid, row + 2, column + 3, columns - 3, device, true);
        break;
    case FORM_TINY:
        put_tiny(grid, row, column, columns, device);
        break;
    }
}

/* Else there is nothing to break down. */
static bool is_any_known(const struct ttm_facts *facts)
{
    for (size_t i = 0; i < facts->device_count; i++) {
        if (facts->devices[i].regions[TTM_REGION_L1].is_known)
            return true;
    }
    return false;
}

static bool is_any_requested(const struct ttm_facts *facts)
{
    for (size_t i = 0; i < facts->device_count; i++) {
        if (requested_dram(&facts->devices[i]) > 0 || requested_l1(&facts->devices[i]) > 0)
            return true;
    }
    return false;
}

/* All that is known of each, where that takes no row from what else is 'wanted'. */
static enum form richest_form(const struct ttm_facts *facts, size_t columns, size_t rows,
                              size_t wanted)
{
    if (!is_any_known(facts))
        return FORM_WIDE;
    if (!is_any_requested(facts) || rows < wanted ||
        choose_layout(facts->device_count, columns, rows - wanted, FORM_ALL).form != FORM_ALL)
        return FORM_FULL;
    return FORM_ALL;
}

/* As wide as the longest name, where there is room. */
static size_t name_columns(const struct ttm_facts *facts, size_t columns)
{
    size_t most = NAME_COLUMNS;

    for (size_t i = 0; columns >= LONG_NAMES_FROM && i < facts->device_count; i++) {
        const size_t width = ttm_grid_width(facts->devices[i].name);
        most = width > most ? width : most;
    }
    return most < NAME_COLUMNS_MAX ? most : NAME_COLUMNS_MAX;
}

/* Returns the rows taken. */
static size_t draw_all_devices(struct ttm_view *view, struct ttm_grid *grid, struct draw_area area,
                               enum form richest)
{
    const struct ttm_facts *facts = view->facts;
    struct layout layout = choose_layout(facts->device_count, grid->columns, area.rows, richest);
    const size_t down = layout.rows / forms[layout.form].rows;

    layout.name_columns = name_columns(facts, layout.columns);
    view->devices_a_page = layout.shown;
    if (view->first_device + layout.shown > facts->device_count)
        view->first_device = facts->device_count - layout.shown;
    for (size_t i = 0; i < layout.shown; i++) {
        const size_t row = area.row + (i % down) * forms[layout.form].rows;
        draw_device(grid, row, (i / down) * layout.columns, &layout,
                    &facts->devices[view->first_device + i]);
    }
    if (layout.shown == facts->device_count)
        return layout.rows;
    const size_t row = area.row + layout.rows - 1;
    for (size_t i = 0; i < grid->columns; i++)
        ttm_grid_put(grid, row, i, ' ', TTM_STYLE_PLAIN);
    /* The last row gives way to the line that says how to see the others. */
    const size_t hidden =
        (layout.shown + layout.across - 1) / layout.across > 0 ? layout.across : 0;
    view->devices_a_page = layout.shown > hidden ? layout.shown - hidden : 1;
    (void)ttm_grid_format(grid, row, 1, grid->columns - 1, TTM_STYLE_DIM,
                          "%zu of %zu devices: ← → for the others", view->devices_a_page,
                          facts->device_count);
    return layout.rows;
}

/* ---- processes ---- */

struct column {
    const char *title;
    size_t width; /* 0: the rest */
    size_t from;  /* shown from that width of the screen on */
    bool is_right;
};

enum { PID, USER, DEV, DRAM, L1, CB, KERNEL, SMALL, TRACE, GROWTH, REPORTS, COMMAND };

static const struct column columns[] = {
    [PID] = {"PID", 7, 0, true},
    [USER] = {"USER", 8, 66, false},
    [DEV] = {"DEV", 5, 0, false},
    [DRAM] = {"DRAM", 5, 0, true},
    [L1] = {"L1", 5, 0, true},
    [CB] = {"CB", 5, 60, true},
    [KERNEL] = {"KERNEL", 6, 110, true},
    [SMALL] = {"L1_SMALL", 8, 130, true},
    [TRACE] = {"TRACE", 5, 130, true},
    [GROWTH] = {"GROWTH", 8, 52, true},
    [REPORTS] = {"REPORTS", 8, 76, false},
    [COMMAND] = {"COMMAND", 0, 0, false},
};
#define COLUMN_COUNT (sizeof(columns) / sizeof(columns[0]))

static const char *usage_text(const struct ttm_facts_process *process, unsigned region,
                              char room[DRAW_NUMBER_SIZE])
{
    return process->regions[region].is_known
               ? ttm_draw_short_bytes(process->regions[region].used_bytes, room)
               : "—";
}

static const char *cell_text(const struct ttm_process_line *line, unsigned column,
                             char room[DRAW_NUMBER_SIZE])
{
    const struct ttm_facts_process *process = line->process;

    switch (column) {
    case PID:
        if (process->pid <= 0)
            return "—";
        (void)snprintf(room, DRAW_NUMBER_SIZE, "%d", process->pid);
        return room;
    case USER:
        return process->user;
    case DEV:
        return process->devices;
    case DRAM:
        return usage_text(process, TTM_REGION_DRAM, room);
    case L1:
        return usage_text(process, TTM_REGION_L1, room);
    case CB:
        return usage_text(process, TTM_REGION_CB, room);
    case KERNEL:
        return usage_text(process, TTM_REGION_KERNEL, room);
    case SMALL:
        return usage_text(process, TTM_REGION_L1_SMALL, room);
    case TRACE:
        return usage_text(process, TTM_REGION_TRACE, room);
    case GROWTH:
        return ttm_draw_rate(line->has_growth, line->growth_bytes_per_s, room);
    case REPORTS:
        return process->reports;
    default:
        return process->command[0] ? process->command : "?";
    }
}

/* A row of the table; its titles for NULL. */
static void draw_process(struct ttm_grid *grid, size_t row, const struct ttm_process_line *line)
{
    char room[DRAW_NUMBER_SIZE];
    size_t at = 0;

    for (unsigned i = 0; i < COLUMN_COUNT && at < grid->columns; i++) {
        if (grid->columns < columns[i].from)
            continue;
        const size_t width = columns[i].width ? columns[i].width : grid->columns - at;
        const char *text = line ? cell_text(line, i, room) : columns[i].title;
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

static const struct ttm_facts_process *first_that_reports(const struct ttm_view *view,
                                                          const char *reports)
{
    for (size_t i = 0; i < view->process_count; i++) {
        if (strcmp(view->processes[i].process->reports, reports) == 0)
            return view->processes[i].process;
    }
    return NULL;
}

/* What to do about memory that is not known, the first of which is worth a row in any case. */
struct advice {
    char lines[5][96];
    size_t count;
};

static struct advice make_advice(const struct ttm_view *view)
{
    const struct ttm_facts *facts = view->facts;
    const struct ttm_facts_process *silent = first_that_reports(view, "no");
    const struct ttm_facts_process *disabled = first_that_reports(view, "disabled");
    struct advice advice = {.count = 0};

    if (silent)
        (void)snprintf(advice.lines[advice.count++], sizeof(advice.lines[0]),
                       "%d does not report: start it with tt-mem run, or call ttmem.start() in it",
                       silent->pid);
    if (disabled && facts->server == TTM_SERVER_OK)
        (void)snprintf(advice.lines[advice.count++], sizeof(advice.lines[0]),
                       "tt-mem enable %d switches its tracking on", disabled->pid);
    if (facts->foreign_count > 0)
        (void)snprintf(advice.lines[advice.count++], sizeof(advice.lines[0]),
                       "%zu more hold%s a device and cannot be seen from this container",
                       facts->foreign_count, facts->foreign_count == 1 ? "s" : "");
    if (facts->hidden_count > 0)
        (void)snprintf(advice.lines[advice.count++], sizeof(advice.lines[0]),
                       "%zu process%s of other users could not be looked into: sudo tt-mem top",
                       facts->hidden_count, facts->hidden_count == 1 ? "" : "es");
    if (facts->server == TTM_SERVER_NONE)
        (void)snprintf(advice.lines[advice.count++], sizeof(advice.lines[0]),
                       "no server: memory is %s; tt-mem serve, or tt-mem run COMMAND",
                       is_any_known(facts) ? "TT-Metal's own count" : "not known");
    return advice;
}

/* In rows that no process needs there is more than one. */
static size_t count_advice_rows(const struct advice *advice, size_t rows, size_t process_count)
{
    size_t count = rows >= 4 && advice->count > 0;

    while (count > 0 && count < advice->count && rows > 1 + process_count + count)
        count++;
    return count;
}

/* With what they are sorted by: where there is little room, if it is not the usual. */
static void draw_titles(const struct ttm_view *view, struct ttm_grid *grid, size_t row)
{
    const bool is_reversed = view->settings.is_reversed[TTM_PAGE_DEVICES];
    const bool is_wide = grid->columns >= 100;
    const size_t width = is_wide ? 30 : 21;
    char title[96];

    draw_process(grid, row, NULL);
    ttm_draw_head(grid, row);
    if (grid->columns < columns[REPORTS].from)
        return;
    (void)snprintf(title, sizeof(title), "by %s%s ",
                   ttm_process_sort_name(view->settings.process_sort),
                   is_reversed ? ", reversed" : "");
    for (size_t i = 0; !is_wide && is_reversed && i < width; i++)
        ttm_grid_put(grid, row, grid->columns - width + i, ' ', TTM_STYLE_HEAD);
    if (is_wide || is_reversed || view->settings.process_sort != ttm_view_defaults.process_sort)
        ttm_grid_right(grid, row, grid->columns - width, width, TTM_STYLE_HEAD, title);
}

static void draw_processes(struct ttm_view *view, struct ttm_grid *grid, struct draw_area area,
                           const struct advice *advice)
{
    struct ttm_view_list *list = &view->process_list;
    const size_t advice_rows = count_advice_rows(advice, area.rows, view->process_count);

    if (area.rows == 0)
        return;
    draw_titles(view, grid, area.row);
    const size_t rows = area.rows - 1 - advice_rows;
    ttm_view_list_show(list, rows);
    for (size_t i = 0; i < rows && list->first + i < view->process_count; i++) {
        const size_t row = area.row + 1 + i;
        draw_process(grid, row, &view->processes[list->first + i]);
        if (list->first + i == list->selected && list->key != 0)
            ttm_grid_restyle(grid, row, 0, grid->columns, TTM_STYLE_SELECTED);
    }
    if (view->process_count == 0 && rows > 0)
        (void)ttm_grid_text(grid, area.row + 1, 1, grid->columns - 1, TTM_STYLE_DIM,
                            view->filter[0]            ? "no process matches the filter"
                            : view->facts->is_narrowed ? "no process holds a device chosen with -d"
                                                       : "no process holds a device");
    for (size_t i = 0; i < advice_rows; i++)
        (void)ttm_grid_text(grid, area.row + area.rows - advice_rows + i, 0, grid->columns,
                            TTM_STYLE_DIM, advice->lines[i]);
}

#define PROCESS_ROWS_MIN 5 /* titles, three processes and an advice */

void ttm_draw_devices(struct ttm_view *view, struct ttm_grid *grid, struct draw_area area)
{
    const struct advice advice = make_advice(view);
    const size_t wanted = view->process_count + 1 + (advice.count > 0);

    if (view->facts->device_count == 0) {
        const size_t rows = view->facts->process_count > 0 ? area.rows / 2 : area.rows;
        ttm_draw_nothing(view, grid, (struct draw_area){area.row, rows});
        area.row += rows;
        area.rows -= rows;
    } else {
        /* The processes get what they need, up to a third of the screen, or what is left over. */
        const size_t third = area.rows / 3 > 3 ? area.rows / 3 : 3;
        size_t kept = wanted < third ? (wanted > 3 ? wanted : 3) : third;
        /* Or a little less, where that makes room for all devices. */
        const size_t across = grid->columns / forms[FORM_TINY].columns;
        const size_t least =
            across > 0 ? (view->facts->device_count + across - 1) / across : area.rows;
        if (least + kept > area.rows && least + PROCESS_ROWS_MIN <= area.rows)
            kept = area.rows - least;
        const size_t taken = draw_all_devices(
            view, grid, (struct draw_area){area.row, area.rows - kept},
            richest_form(view->facts, grid->columns, area.rows, wanted > kept ? wanted : kept));
        area.row += taken;
        area.rows -= taken;
    }
    draw_processes(view, grid, area, &advice);
}
