/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/monitor_render.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"

#define BAR_MIN 10
#define BAR_MAX 60
#define COMMAND_MIN 20
#define COMMAND_MAX 40

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

static bool is_empty(const struct ttm_device_totals *totals)
{
    for (size_t r = 0; r < TTM_REGION_COUNT; r++) {
        if (totals->region[r].count > 0)
            return false;
    }
    return true;
}

static size_t command_columns(const struct ttm_terminal *terminal)
{
    const size_t quarter = terminal->columns / 4;

    return quarter < COMMAND_MIN ? COMMAND_MIN : quarter > COMMAND_MAX ? COMMAND_MAX : quarter;
}

static uint64_t sum_bytes(const struct ttm_device_totals *totals)
{
    uint64_t sum = 0;

    for (unsigned r = 0; r < TTM_REGION_COUNT; r++)
        sum += ttm_device_used(totals, r);
    return sum;
}

static void put_process(const struct ttm_terminal *terminal, struct ttm_text *out,
                        const struct ttm_answer_process *process,
                        const struct ttm_device_totals *totals)
{
    struct ttm_text command;
    const char *separator = "  ";

    ttm_text_init(&command);
    ttm_terminal_command(&command, process->row.command);
    ttm_text_format(out, "  pid %-9d ", process->row.pid);
    ttm_text_append_column(out, ttm_text_string(&command), command_columns(terminal),
                           terminal->has_utf8);
    ttm_text_done(&command);
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
        char bytes[TTM_NUMBER_SIZE];
        if (totals->region[r].count == 0)
            continue;
        ttm_text_format(out, "%s%s %s", separator, ttm_region_name(r),
                        ttm_format_bytes(ttm_device_used(totals, r), bytes));
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
    const uint64_t xs = sum_bytes(x->totals), ys = sum_bytes(y->totals);

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
        if (totals && !is_empty(totals))
            shares[count++] = (struct share){&answer->processes[p], totals};
    }
    if (count > 0)
        qsort(shares, count, sizeof(shares[0]), compare_shares);
    for (size_t i = 0; i < count; i++)
        put_process(terminal, out, shares[i].process, shares[i].totals);
    free(shares);
}

static void put_device(const struct ttm_answer *answer, const struct ttm_terminal *terminal,
                       struct ttm_text *out, const struct ttm_device_row *device)
{
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
    ttm_text_append(out, "\n");
    ttm_terminal_colour(terminal, out, TTM_DIM);
    ttm_text_format(out, "  %*s%10s    %10s %7s %10s\n", (int)bar_columns(terminal) + 17, "",
                    "used", "capacity", "", "count");
    ttm_terminal_colour(terminal, out, TTM_PLAIN);
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++)
        put_region(terminal, out, device, r);
    put_total_l1(terminal, out, device);
    put_processes(answer, terminal, out, device->id);
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

/* How full a device is: the fuller of its two memories. */
static double load_of(const struct ttm_device_row *device)
{
    const double dram = share_of(ttm_device_used(&device->totals, TTM_REGION_DRAM),
                                 device->capacity_bytes[TTM_REGION_DRAM]);
    const double l1 = share_of(total_l1(device), device->capacity_bytes[TTM_REGION_L1]);

    return dram > l1 ? dram : l1;
}

static int compare_loads(const void *a, const void *b)
{
    const struct ttm_device_row *x = *(const struct ttm_device_row *const *)a;
    const struct ttm_device_row *y = *(const struct ttm_device_row *const *)b;
    const double xl = load_of(x), yl = load_of(y);

    return xl != yl ? (xl < yl ? 1 : -1) : x->id - y->id;
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

/* Where the whole of all devices does not fit: a line each, the fullest first. */
static void put_short(const struct ttm_answer *answer, const struct ttm_device_filter *devices,
                      const struct ttm_terminal *terminal, struct ttm_text *out)
{
    const struct ttm_device_row **rows = calloc(answer->device_count + 1, sizeof(void *));
    size_t count = 0;

    for (size_t i = 0; rows && i < answer->device_count; i++) {
        if (ttm_device_filter_has(devices, answer->devices[i].id))
            rows[count++] = &answer->devices[i];
    }
    if (count > 0)
        qsort(rows, count, sizeof(void *), compare_loads);
    for (size_t i = 0; i < count; i++) {
        ttm_text_format(out, "%4u %-6.6s", rows[i]->id,
                        rows[i]->board[0] ? rows[i]->board : ttm_arch_name(rows[i]->arch));
        put_short_usage(terminal, out, "DRAM", ttm_device_used(&rows[i]->totals, TTM_REGION_DRAM),
                        rows[i]->capacity_bytes[TTM_REGION_DRAM]);
        put_short_usage(terminal, out, "L1", total_l1(rows[i]),
                        rows[i]->capacity_bytes[TTM_REGION_L1]);
        ttm_text_append(out, "\n");
    }
    free(rows);
}

/* A device takes about so many lines when shown whole. */
#define DEVICE_ROWS 10

void ttm_monitor_text(const struct ttm_answer *answer, const struct ttm_device_filter *devices,
                      const struct ttm_terminal *terminal, struct ttm_text *out)
{
    const char *dot = ttm_terminal_dot(terminal);
    char uptime[TTM_NUMBER_SIZE];
    size_t shown = 0;

    put_clock(out, answer->moment.time_ns);
    ttm_text_format(out, "%s%zu device%s%s%zu process%s%sserver up %s\n", dot, answer->device_count,
                    answer->device_count == 1 ? "" : "s", dot, answer->process_count,
                    answer->process_count == 1 ? "" : "es", dot,
                    ttm_format_duration(answer->moment.uptime_ns, uptime));
    for (size_t i = 0; i < answer->device_count; i++)
        shown += ttm_device_filter_has(devices, answer->devices[i].id);
    if (terminal->is_terminal && shown > 1 && shown * DEVICE_ROWS + 1 > terminal->rows) {
        put_short(answer, devices, terminal, out);
        return;
    }
    for (size_t i = 0; i < answer->device_count; i++) {
        if (ttm_device_filter_has(devices, answer->devices[i].id))
            put_device(answer, terminal, out, &answer->devices[i]);
    }
    if (shown == 0)
        ttm_text_append(out, answer->device_count == 0
                                 ? "no program has reported a device yet\n"
                                 : "no program has reported the devices chosen with -d\n");
}

static void put_region_json(struct ttm_json *json, const struct ttm_device_totals *totals,
                            unsigned region, const uint64_t *capacity)
{
    const struct ttm_totals *t = &totals->region[region];

    ttm_json_object_begin(json);
    ttm_json_put_u64(json, "bytes", t->bytes);
    ttm_json_put_u64(json, "footprint_bytes", t->footprint_bytes);
    ttm_json_put_u64(json, "count", t->count);
    if (region == TTM_REGION_CB) {
        ttm_json_put_u64(json, "resident_bytes", totals->cb.resident_bytes);
        ttm_json_put_u64(json, "registered_bytes", totals->cb.registered_bytes);
    }
    if (capacity && *capacity > 0)
        ttm_json_put_u64(json, "capacity_bytes", *capacity);
    else if (capacity)
        ttm_json_put_null(json, "capacity_bytes");
    ttm_json_object_end(json);
}

static void put_regions_json(struct ttm_json *json, const struct ttm_device_totals *totals,
                             const uint64_t *capacities)
{
    ttm_json_key(json, "regions");
    ttm_json_object_begin(json);
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
        ttm_json_key(json, ttm_region_name(r));
        put_region_json(json, totals, r, capacities ? &capacities[r] : NULL);
    }
    ttm_json_object_end(json);
}

static void put_device_json(struct ttm_json *json, const struct ttm_answer *answer,
                            const struct ttm_device_row *device)
{
    ttm_json_object_begin(json);
    ttm_json_put_u64(json, "id", device->id);
    ttm_json_put_string(json, "arch", ttm_arch_name(device->arch));
    ttm_json_put_string(json, "board", device->board);
    put_regions_json(json, &device->totals, device->capacity_bytes);
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
        put_regions_json(json, totals, NULL);
        ttm_json_object_end(json);
    }
    ttm_json_array_end(json);
    ttm_json_object_end(json);
}

void ttm_monitor_json(const struct ttm_answer *answer, const struct ttm_device_filter *devices,
                      struct ttm_text *out)
{
    struct ttm_json json;

    ttm_json_init(&json, out);
    ttm_json_object_begin(&json);
    ttm_json_put_string(&json, "schema", "tt-mem/monitor/1");
    ttm_json_put_u64(&json, "time_ns", answer->moment.time_ns);
    ttm_json_key(&json, "devices");
    ttm_json_array_begin(&json);
    for (size_t i = 0; i < answer->device_count; i++) {
        if (ttm_device_filter_has(devices, answer->devices[i].id))
            put_device_json(&json, answer, &answer->devices[i]);
    }
    ttm_json_array_end(&json);
    ttm_json_object_end(&json);
    ttm_text_append(out, "\n");
}

void ttm_monitor_csv_header(struct ttm_text *out)
{
    ttm_text_append(out, "time_ns,device,arch,region,bytes,footprint_bytes,count,capacity_bytes\n");
}

void ttm_monitor_csv(const struct ttm_answer *answer, const struct ttm_device_filter *devices,
                     struct ttm_text *out)
{
    for (size_t i = 0; i < answer->device_count; i++) {
        const struct ttm_device_row *device = &answer->devices[i];
        for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
            const struct ttm_totals *t = &device->totals.region[r];
            if (!ttm_device_filter_has(devices, device->id))
                continue;
            ttm_text_format(out, "%" PRIu64 ",%u,%s,%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",",
                            answer->moment.time_ns, device->id, ttm_arch_name(device->arch),
                            ttm_region_name(r), t->bytes, t->footprint_bytes, t->count);
            if (device->capacity_bytes[r] > 0)
                ttm_text_format(out, "%" PRIu64, device->capacity_bytes[r]);
            ttm_text_append(out, "\n");
        }
    }
}
