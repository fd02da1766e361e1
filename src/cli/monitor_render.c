/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/monitor_render.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/runtime.h"
#include "cli/vitals.h"

#define BAR_MIN 10
#define BAR_MAX 60
#define COMMAND_MIN 20
#define COMMAND_MAX 40
#define ORIGINS_SHOWN 3
#define ORIGINS_TOLD 16    /* in JSON */
#define VITALS_COLUMNS 102 /* a short row has room for "  54 °C  12 W  500 MHz" from then on */

/* What takes room in a core's L1. TRACE lives in DRAM. */
static const enum ttm_region l1_parts[] = {TTM_REGION_L1, TTM_REGION_L1_SMALL, TTM_REGION_CB,
                                           TTM_REGION_KERNEL};

/* What is left of the width beside label, numbers and count. */
static size_t bar_columns(const struct ttm_terminal *terminal)
{
    const size_t rest = terminal->columns > 66 ? terminal->columns - 66 : 0;

    return rest < BAR_MIN ? BAR_MIN : rest > BAR_MAX ? BAR_MAX : rest;
}

static void put_usage(const struct ttm_terminal *terminal, struct ttm_text *out, const char *label,
                      uint64_t bytes, uint64_t capacity)
{
    const size_t columns = bar_columns(terminal);
    char used[TTM_NUMBER_SIZE], all[TTM_NUMBER_SIZE];

    ttm_text_format(out, "  %-13s ", label);
    if (capacity == 0) {
        ttm_text_repeat(out, " ", columns + 2);
        ttm_text_format(out, " %10s%23s", ttm_format_bytes(bytes, used), "");
        return;
    }
    ttm_text_append(out, "[");
    ttm_terminal_colour(terminal, out, ttm_terminal_load_colour(bytes, capacity));
    ttm_terminal_bar(terminal, out, bytes, capacity, columns);
    ttm_terminal_colour(terminal, out, TTM_PLAIN);
    ttm_text_format(out, "] %10s of %10s %6.1f %%", ttm_format_bytes(bytes, used),
                    ttm_format_bytes(capacity, all), 100.0 * (double)bytes / (double)capacity);
}

/* What the runtime alone counts stands below what is tracked, and is no part of it. */
static void put_runtime_region(const struct ttm_answer *answer, const struct ttm_terminal *terminal,
                               struct ttm_text *out, const struct ttm_device_row *device,
                               unsigned region)
{
    const uint64_t bytes = ttm_runtime_bytes(answer, device->id, region);

    if (bytes == 0)
        return;
    put_usage(terminal, out, "  + runtime", bytes, device->capacity_bytes[region]);
    ttm_text_format(out, " %9s\n", "-");
}

static void put_region(const struct ttm_terminal *terminal, struct ttm_text *out,
                       const struct ttm_device_row *device, unsigned region)
{
    const struct ttm_totals *t = &device->totals.region[region];
    char count[TTM_NUMBER_SIZE];

    /* Host memory is of no interest where there is none. */
    if (region == TTM_REGION_SYSTEM_MEMORY && t->count == 0)
        return;
    put_usage(terminal, out, ttm_region_name(region), ttm_device_used(&device->totals, region),
              device->capacity_bytes[region]);
    ttm_text_format(out, " %9s\n", ttm_format_count(t->count, count));
}

static uint64_t total_l1(const struct ttm_device_row *device)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < sizeof(l1_parts) / sizeof(l1_parts[0]); i++)
        bytes += ttm_device_used(&device->totals, l1_parts[i]);
    return bytes;
}

static void put_total_l1(const struct ttm_terminal *terminal, struct ttm_text *out,
                         const struct ttm_device_row *device)
{
    put_usage(terminal, out, "Total L1", total_l1(device), device->capacity_bytes[TTM_REGION_L1]);
    ttm_text_append(out, "\n");
}

static const struct ttm_device_totals *totals_on(const struct ttm_answer_process *process,
                                                 uint16_t device)
{
    for (size_t i = 0; i < process->device_count; i++) {
        if (process->devices[i].device_id == device)
            return &process->devices[i].totals;
    }
    return NULL;
}

/* The runtime does not tell how many. */
static bool holds_region(const struct ttm_answer_process *process,
                         const struct ttm_device_totals *totals, unsigned region)
{
    return ttm_runtime_is_source(process) ? totals->region[region].bytes > 0
                                          : totals->region[region].count > 0;
}

static bool holds_anything(const struct ttm_answer_process *process,
                           const struct ttm_device_totals *totals)
{
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
        if (holds_region(process, totals, r))
            return true;
    }
    return false;
}

static size_t command_columns(const struct ttm_terminal *terminal)
{
    const size_t quarter = terminal->columns / 4;

    return quarter < COMMAND_MIN ? COMMAND_MIN : quarter > COMMAND_MAX ? COMMAND_MAX : quarter;
}

static uint64_t sum_bytes(const struct ttm_answer_process *process,
                          const struct ttm_device_totals *totals)
{
    uint64_t sum = 0;

    for (unsigned r = 0; r < TTM_REGION_COUNT; r++)
        sum += ttm_runtime_used(process, totals, r);
    return sum;
}

static void put_process(const struct ttm_terminal *terminal, struct ttm_text *out,
                        const struct ttm_answer_process *process,
                        const struct ttm_device_totals *totals)
{
    struct ttm_text command;
    const char *separator = ttm_runtime_is_source(process) ? "  runtime: " : "  ";

    ttm_text_init(&command);
    ttm_terminal_command(&command, process->row.command);
    ttm_text_format(out, "  pid %-9d ", process->row.pid);
    ttm_text_append_column(out, ttm_text_string(&command), command_columns(terminal),
                           terminal->has_utf8);
    ttm_text_done(&command);
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
        char bytes[TTM_NUMBER_SIZE];
        if (!holds_region(process, totals, r))
            continue;
        ttm_text_format(out, "%s%s %s", separator, ttm_region_name(r),
                        ttm_format_bytes(ttm_runtime_used(process, totals, r), bytes));
        separator = ttm_terminal_dot(terminal);
    }
    ttm_text_append(out, "\n");
}

/* What one process holds on a device. */
struct share {
    const struct ttm_answer_process *process;
    const struct ttm_device_totals *totals;
};

static int compare_shares(const void *a, const void *b)
{
    const struct share *x = a;
    const struct share *y = b;
    const uint64_t xs = sum_bytes(x->process, x->totals), ys = sum_bytes(y->process, y->totals);

    return xs != ys ? (xs < ys ? 1 : -1) : x->process->row.pid - y->process->row.pid;
}

/* Who holds most comes first. */
static void put_processes(const struct ttm_answer *answer, const struct ttm_terminal *terminal,
                          struct ttm_text *out, uint16_t device)
{
    struct share *shares = calloc(answer->process_count + 1, sizeof(shares[0]));
    size_t count = 0;

    for (size_t p = 0; shares && p < answer->process_count; p++) {
        const struct ttm_device_totals *totals = totals_on(&answer->processes[p], device);
        if (totals && holds_anything(&answer->processes[p], totals))
            shares[count++] = (struct share){&answer->processes[p], totals};
    }
    if (count > 0)
        qsort(shares, count, sizeof(shares[0]), compare_shares);
    for (size_t i = 0; i < count; i++)
        put_process(terminal, out, shares[i].process, shares[i].totals);
    free(shares);
}

/* Where it is told how the device fares; NULL: nowhere. */
static const struct ttm_machine_device *find_device(const struct ttm_monitor_look *look,
                                                    const struct ttm_device_row *row)
{
    const struct ttm_machine_device *device =
        look->machine ? ttm_machine_by_metal_id(look->machine, row->id) : NULL;

    return device && !ttm_machine_is_other(device, row) ? device : NULL;
}

/* "  54/75 °C  12/100 W  500 MHz", or why there is none of it; nothing where there is no card. */
static void put_vitals(const struct ttm_monitor_look *look, const struct ttm_terminal *terminal,
                       struct ttm_text *out, const struct ttm_device_row *row, bool is_short)
{
    static const struct ttm_value none = {.validity = TTM_ABSENT};
    const struct ttm_machine_device *device = find_device(look, row);

    if (!device || !device->chip)
        return;
    if (ttm_vitals_trouble(device)[0])
        ttm_text_format(out, "  %s", ttm_vitals_trouble(device));
    const struct {
        struct ttm_value value, limit;
        uint64_t per_unit;
        const char *unit;
    } values[] = {
        {ttm_vitals_sensor(device, TTM_SENSOR_TEMPERATURE_MC),
         ttm_vitals_limit(device, TTM_LIMIT_TEMPERATURE_MC), 1000, terminal->has_utf8 ? "°C" : "C"},
        {ttm_vitals_sensor(device, TTM_SENSOR_POWER_UW),
         ttm_vitals_limit(device, TTM_LIMIT_POWER_UW), 1000000, "W"},
        {ttm_vitals_sensor(device, TTM_SENSOR_AICLK_MHZ), none, 1, "MHz"},
    };
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        if (values[i].value.validity != TTM_VALID)
            continue;
        ttm_text_append(out, "  ");
        ttm_vitals_put(out, values[i].value, is_short ? none : values[i].limit, values[i].per_unit,
                       values[i].unit);
    }
}

/* "  from   3.1 MiB  L1  25  leak.py:4 zeros (ttnn.zeros) ← step:16" */
static void put_origin(const struct ttm_terminal *terminal, struct ttm_text *out,
                       const struct ttm_origin_group *group, bool is_first)
{
    char bytes[TTM_NUMBER_SIZE], count[TTM_NUMBER_SIZE];
    struct ttm_text words;

    ttm_text_init(&words);
    ttm_text_append(&words, group->where);
    if (group->operation[0])
        ttm_text_format(&words, "%s(%s)", words.length > 0 ? " " : "", group->operation);
    if (group->callers[0])
        ttm_text_format(&words, " %s", group->callers);
    ttm_text_format(out, "  %-4s %11s  %-8s %6s  ", is_first ? "from" : "",
                    ttm_format_bytes(group->used_bytes, bytes), ttm_region_name(group->region),
                    ttm_format_count(group->count, count));
    const size_t taken = 37;
    if (terminal->is_terminal && terminal->columns > taken + 20 &&
        ttm_terminal_width(ttm_text_string(&words)) > terminal->columns - taken)
        ttm_text_append_column(out, ttm_text_string(&words), terminal->columns - taken,
                               terminal->has_utf8);
    else
        ttm_text_append(out, ttm_text_string(&words));
    ttm_text_append(out, "\n");
    out->failed |= words.failed;
    ttm_text_done(&words);
}

/* Where most of what a device holds comes from. */
static void put_origins(const struct ttm_monitor_look *look, const struct ttm_terminal *terminal,
                        struct ttm_text *out, uint16_t device, size_t most)
{
    size_t shown = 0;

    for (size_t i = 0; look->origins && i < look->origins->count && shown < most; i++) {
        const struct ttm_origin_group *group = &look->origins->groups[i];
        if (ttm_origin_group_is_on(group, device) && (group->where[0] || group->operation[0]))
            put_origin(terminal, out, group, shown++ == 0);
    }
}

static void put_device(const struct ttm_monitor_look *look, const struct ttm_terminal *terminal,
                       struct ttm_text *out, const struct ttm_device_row *device, size_t origins)
{
    const struct ttm_answer *answer = look->answer;

    ttm_terminal_colour(terminal, out, TTM_BOLD);
    ttm_text_format(out, "device %u", device->id);
    ttm_terminal_colour(terminal, out, TTM_PLAIN);
    if (device->board[0])
        ttm_text_append(out, "  ");
    ttm_text_append_safe(out, device->board);
    if (device->arch != TTM_ARCH_UNKNOWN)
        ttm_text_format(out, "  %s", ttm_arch_name(device->arch));
    else
        ttm_text_append(out, "  (capacity not known: tt-mem serve --board)");
    put_vitals(look, terminal, out, device, false);
    ttm_text_append(out, "\n");
    ttm_terminal_colour(terminal, out, TTM_DIM);
    ttm_text_format(out, "  %*s%10s    %10s %7s %10s\n", (int)bar_columns(terminal) + 17, "",
                    "used", "capacity", "", "count");
    ttm_terminal_colour(terminal, out, TTM_PLAIN);
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
        put_region(terminal, out, device, r);
        put_runtime_region(answer, terminal, out, device, r);
    }
    put_total_l1(terminal, out, device);
    put_processes(answer, terminal, out, device->id);
    put_origins(look, terminal, out, device->id, origins);
}

static void put_clock(struct ttm_text *out, uint64_t time_ns)
{
    const time_t seconds = (time_t)(time_ns / TTM_NS_PER_S);
    struct tm local;
    char text[16] = "";

    if (localtime_r(&seconds, &local))
        (void)strftime(text, sizeof(text), "%H:%M:%S", &local);
    ttm_text_append(out, text);
}

static double share_of(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

/* One device where only a line of it is shown. */
struct short_row {
    const struct ttm_device_row *device;
    uint64_t runtime_dram_bytes; /* what the runtime alone counts */
    uint64_t runtime_l1_bytes;
};

static struct short_row short_row_of(const struct ttm_answer *answer,
                                     const struct ttm_device_row *device)
{
    struct short_row row = {
        .device = device,
        .runtime_dram_bytes = ttm_runtime_bytes(answer, device->id, TTM_REGION_DRAM),
    };

    for (size_t i = 0; i < sizeof(l1_parts) / sizeof(l1_parts[0]); i++)
        row.runtime_l1_bytes += ttm_runtime_bytes(answer, device->id, l1_parts[i]);
    return row;
}

/* How full a device is by all that is known: the fuller of its two memories. */
static double load_of(const struct short_row *row)
{
    const struct ttm_device_row *device = row->device;
    const double dram =
        share_of(ttm_device_used(&device->totals, TTM_REGION_DRAM) + row->runtime_dram_bytes,
                 device->capacity_bytes[TTM_REGION_DRAM]);
    const double l1 =
        share_of(total_l1(device) + row->runtime_l1_bytes, device->capacity_bytes[TTM_REGION_L1]);

    return dram > l1 ? dram : l1;
}

static int compare_loads(const void *a, const void *b)
{
    const struct short_row *x = a;
    const struct short_row *y = b;
    const double xl = load_of(x), yl = load_of(y);

    return xl != yl ? (xl < yl ? 1 : -1) : x->device->id - y->device->id;
}

static void put_short_usage(const struct ttm_terminal *terminal, struct ttm_text *out,
                            const char *label, uint64_t bytes, uint64_t capacity)
{
    char used[TTM_NUMBER_SIZE];

    ttm_text_format(out, "  %s [", label);
    ttm_terminal_colour(terminal, out, ttm_terminal_load_colour(bytes, capacity));
    ttm_terminal_bar(terminal, out, capacity ? bytes : 0, capacity, BAR_MIN);
    ttm_terminal_colour(terminal, out, TTM_PLAIN);
    ttm_text_format(out, "] %9s", ttm_format_bytes(bytes, used));
    if (capacity > 0)
        ttm_text_format(out, " %3.0f %%", 100 * share_of(bytes, capacity));
    else
        ttm_text_append(out, "      ");
}

static void put_short_row(const struct ttm_monitor_look *look, const struct ttm_terminal *terminal,
                          struct ttm_text *out, const struct short_row *row)
{
    const struct ttm_device_row *device = row->device;
    const uint64_t *capacity = device->capacity_bytes;

    const char *kind = device->board[0]                   ? device->board
                       : device->arch == TTM_ARCH_UNKNOWN ? ""
                                                          : ttm_arch_name(device->arch);

    ttm_text_format(out, "%4u %-6.6s", device->id, kind);
    put_short_usage(terminal, out, "DRAM", ttm_device_used(&device->totals, TTM_REGION_DRAM),
                    capacity[TTM_REGION_DRAM]);
    put_short_usage(terminal, out, "L1", total_l1(device), capacity[TTM_REGION_L1]);
    if (terminal->columns >= VITALS_COLUMNS)
        put_vitals(look, terminal, out, device, true);
    ttm_text_append(out, "\n");
    if (row->runtime_dram_bytes == 0 && row->runtime_l1_bytes == 0)
        return;
    ttm_text_append(out, "  + runtime");
    put_short_usage(terminal, out, "DRAM", row->runtime_dram_bytes, capacity[TTM_REGION_DRAM]);
    put_short_usage(terminal, out, "L1", row->runtime_l1_bytes, capacity[TTM_REGION_L1]);
    ttm_text_append(out, "\n");
}

/* Where the whole of all devices does not fit: a line each, the fullest first. */
static void put_short(const struct ttm_monitor_look *look, const struct ttm_terminal *terminal,
                      struct ttm_text *out)
{
    const struct ttm_answer *answer = look->answer;
    struct short_row *rows = calloc(answer->device_count + 1, sizeof(rows[0]));
    size_t count = 0;

    for (size_t i = 0; rows && i < answer->device_count; i++) {
        if (ttm_device_filter_has(look->devices, answer->devices[i].id))
            rows[count++] = short_row_of(answer, &answer->devices[i]);
    }
    if (count > 0)
        qsort(rows, count, sizeof(rows[0]), compare_loads);
    for (size_t i = 0; i < count; i++)
        put_short_row(look, terminal, out, &rows[i]);
    free(rows);
}

/* A device takes about so many lines when shown whole. */
static size_t device_rows(const struct ttm_answer *answer, unsigned device_id)
{
    size_t rows = 10;

    for (unsigned r = 0; r < TTM_REGION_COUNT; r++)
        rows += ttm_runtime_bytes(answer, device_id, r) > 0;
    return rows;
}

static void put_headline(const struct ttm_answer *answer, const struct ttm_terminal *terminal,
                         struct ttm_text *out)
{
    const char *dot = ttm_terminal_dot(terminal);
    char uptime[TTM_NUMBER_SIZE];

    put_clock(out, answer->moment.time_ns);
    ttm_text_format(out, "%s%zu device%s%s%zu process%s%s", dot, answer->device_count,
                    answer->device_count == 1 ? "" : "s", dot, answer->process_count,
                    answer->process_count == 1 ? "" : "es", dot);
    if (ttm_runtime_is_alone(answer))
        ttm_text_append(out, "no server is running\n");
    else
        ttm_text_format(out, "server up %s\n",
                        ttm_format_duration(answer->moment.uptime_ns, uptime));
    /* Above the devices: below them it would be cut off first. */
    if (ttm_runtime_has_any(answer))
        ttm_text_append(out, TTM_RUNTIME_HINT);
}

void ttm_monitor_text(const struct ttm_monitor_look *look, const struct ttm_terminal *terminal,
                      struct ttm_text *out)
{
    const struct ttm_answer *answer = look->answer;
    const struct ttm_device_filter *devices = look->devices;
    size_t shown = 0, rows = ttm_runtime_has_any(answer) ? 2 : 1;

    put_headline(answer, terminal, out);
    for (size_t i = 0; i < answer->device_count; i++) {
        if (!ttm_device_filter_has(devices, answer->devices[i].id))
            continue;
        shown++;
        rows += device_rows(answer, answer->devices[i].id);
    }
    if (terminal->is_terminal && shown > 1 && rows > terminal->rows) {
        put_short(look, terminal, out);
        return;
    }
    /* Not at the cost of another device. */
    size_t origins = ORIGINS_SHOWN;
    while (terminal->is_terminal && origins > 0 &&
           rows + shown * (answer->process_count + origins) > terminal->rows)
        origins--;
    for (size_t i = 0; i < answer->device_count; i++) {
        if (ttm_device_filter_has(devices, answer->devices[i].id))
            put_device(look, terminal, out, &answer->devices[i], origins);
    }
    if (shown == 0)
        ttm_text_append(out, answer->device_count == 0
                                 ? "no program has reported a device yet\n"
                                 : "no program has reported the devices chosen with -d\n");
}

static void put_region_json(struct ttm_json *json, const struct ttm_device_totals *totals,
                            unsigned region)
{
    const struct ttm_totals *t = &totals->region[region];

    ttm_json_put_u64(json, "bytes", t->bytes);
    ttm_json_put_u64(json, "footprint_bytes", t->footprint_bytes);
    ttm_json_put_u64(json, "count", t->count);
    if (region == TTM_REGION_CB) {
        ttm_json_put_u64(json, "resident_bytes", totals->cb.resident_bytes);
        ttm_json_put_u64(json, "registered_bytes", totals->cb.registered_bytes);
    }
}

static void put_device_regions_json(struct ttm_json *json, const struct ttm_answer *answer,
                                    const struct ttm_device_row *device)
{
    ttm_json_key(json, "regions");
    ttm_json_object_begin(json);
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
        ttm_json_key(json, ttm_region_name(r));
        ttm_json_object_begin(json);
        put_region_json(json, &device->totals, r);
        if (device->capacity_bytes[r] > 0)
            ttm_json_put_u64(json, "capacity_bytes", device->capacity_bytes[r]);
        else
            ttm_json_put_null(json, "capacity_bytes");
        ttm_json_put_u64(json, "runtime_bytes", ttm_runtime_bytes(answer, device->id, r));
        ttm_json_object_end(json);
    }
    ttm_json_object_end(json);
}

/* Of what the runtime does not count, nothing is said. */
static void put_process_regions_json(struct ttm_json *json,
                                     const struct ttm_answer_process *process,
                                     const struct ttm_device_totals *totals)
{
    ttm_json_key(json, "regions");
    ttm_json_object_begin(json);
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
        if (ttm_runtime_is_source(process) && !ttm_runtime_counts(r))
            continue;
        ttm_json_key(json, ttm_region_name(r));
        ttm_json_object_begin(json);
        if (ttm_runtime_is_source(process)) {
            ttm_json_put_u64(json, "bytes", totals->region[r].bytes);
            ttm_json_put_null(json, "footprint_bytes");
            ttm_json_put_null(json, "count");
        } else {
            put_region_json(json, totals, r);
        }
        ttm_json_object_end(json);
    }
    ttm_json_object_end(json);
}

static void put_origins_json(struct ttm_json *json, const struct ttm_monitor_look *look,
                             uint16_t device)
{
    size_t told = 0;

    ttm_json_key(json, "origins");
    ttm_json_array_begin(json);
    for (size_t i = 0; look->origins && i < look->origins->count && told < ORIGINS_TOLD; i++) {
        const struct ttm_origin_group *group = &look->origins->groups[i];
        if (!ttm_origin_group_is_on(group, device))
            continue;
        told++;
        ttm_json_object_begin(json);
        ttm_json_put_i64(json, "pid", group->pid);
        ttm_json_put_string(json, "region", ttm_region_name(group->region));
        ttm_json_put_u64(json, "count", group->count);
        ttm_json_put_u64(json, "bytes", group->requested_bytes);
        ttm_json_put_u64(json, "footprint_bytes", group->used_bytes);
        ttm_json_put_string(json, "place", group->where);
        ttm_json_put_string(json, "operation", group->operation);
        ttm_json_object_end(json);
    }
    ttm_json_array_end(json);
}

static void put_device_json(struct ttm_json *json, const struct ttm_monitor_look *look,
                            const struct ttm_device_row *device)
{
    const struct ttm_answer *answer = look->answer;

    ttm_json_object_begin(json);
    ttm_json_put_u64(json, "id", device->id);
    ttm_json_put_string(json, "arch", ttm_arch_name(device->arch));
    ttm_json_put_string(json, "board", device->board);
    put_device_regions_json(json, answer, device);
    ttm_json_key(json, "processes");
    ttm_json_array_begin(json);
    for (size_t p = 0; p < answer->process_count; p++) {
        const struct ttm_answer_process *process = &answer->processes[p];
        const struct ttm_device_totals *totals = totals_on(process, device->id);
        if (!totals)
            continue;
        ttm_json_object_begin(json);
        ttm_json_put_i64(json, "pid", process->row.pid);
        ttm_json_put_string(json, "name", process->row.command);
        ttm_json_put_string(json, "source", ttm_source_name(process->row.source));
        put_process_regions_json(json, process, totals);
        ttm_json_object_end(json);
    }
    ttm_json_array_end(json);
    put_origins_json(json, look, device->id);
    ttm_vitals_json(json, find_device(look, device));
    ttm_json_object_end(json);
}

void ttm_monitor_json(const struct ttm_monitor_look *look, struct ttm_text *out)
{
    const struct ttm_answer *answer = look->answer;
    struct ttm_json json;

    ttm_json_init(&json, out);
    ttm_json_object_begin(&json);
    ttm_json_put_string(&json, "schema", "tt-mem/monitor/1");
    ttm_json_put_u64(&json, "time_ns", answer->moment.time_ns);
    ttm_json_key(&json, "devices");
    ttm_json_array_begin(&json);
    for (size_t i = 0; i < answer->device_count; i++) {
        if (ttm_device_filter_has(look->devices, answer->devices[i].id))
            put_device_json(&json, look, &answer->devices[i]);
    }
    ttm_json_array_end(&json);
    ttm_json_put_bool(&json, "server", !ttm_runtime_is_alone(answer));
    ttm_json_object_end(&json);
    ttm_text_append(out, "\n");
}

static void put_sensors_csv(const struct ttm_machine_device *device, struct ttm_text *out)
{
    static const struct {
        enum ttm_sensor sensor;
        unsigned decimals;
    } columns[] = {
        {TTM_SENSOR_TEMPERATURE_MC, 3}, {TTM_SENSOR_POWER_UW, 6},   {TTM_SENSOR_AICLK_MHZ, 0},
        {TTM_SENSOR_VOLTAGE_MV, 0},     {TTM_SENSOR_CURRENT_MA, 3}, {TTM_SENSOR_FAN_RPM, 0},
    };

    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        const struct ttm_value value = ttm_vitals_sensor(device, columns[i].sensor);
        ttm_text_append(out, ",");
        if (value.validity == TTM_VALID)
            ttm_text_append_decimal(out, value.number, columns[i].decimals);
    }
}

static void put_region_csv(const struct ttm_monitor_look *look, const struct ttm_device_row *device,
                           unsigned region, struct ttm_text *out)
{
    const struct ttm_totals *t = &device->totals.region[region];
    const uint64_t used = ttm_device_used(&device->totals, region);
    const uint64_t bytes = region == TTM_REGION_CB ? used : t->bytes;

    ttm_text_format(out, "%" PRIu64 ",%u,%s,%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",",
                    look->answer->moment.time_ns, device->id, ttm_arch_name(device->arch),
                    ttm_region_name(region), bytes, used, t->count);
    if (device->capacity_bytes[region] > 0)
        ttm_text_format(out, "%" PRIu64, device->capacity_bytes[region]);
    ttm_text_format(out, ",%" PRIu64, ttm_runtime_bytes(look->answer, device->id, region));
    put_sensors_csv(find_device(look, device), out);
    ttm_text_append(out, "\n");
}

void ttm_monitor_csv(const struct ttm_monitor_look *look, struct ttm_text *out)
{
    for (size_t i = 0; i < look->answer->device_count; i++) {
        const struct ttm_device_row *device = &look->answer->devices[i];
        if (!ttm_device_filter_has(look->devices, device->id))
            continue;
        for (unsigned r = 0; r < TTM_REGION_COUNT; r++)
            put_region_csv(look, device, r, out);
    }
}
