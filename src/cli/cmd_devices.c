/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/command.h"
#include "cli/look.h"
#include "cli/machine.h"
#include "cli/options.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/vitals.h"

static const struct ttm_option options[] = {
    TTM_OPTION_JSON,
    TTM_OPTION_SOCKET,
    TTM_OPTION_HELP_ROW,
    {0},
};

/* ---- what is known of a device ---- */

static const struct ttm_value nothing = {.validity = TTM_ABSENT};

/* What takes room in L1. */
static uint64_t total_l1(const struct ttm_machine_device *device)
{
    return device->regions[TTM_REGION_L1].used_bytes +
           device->regions[TTM_REGION_L1_SMALL].used_bytes +
           device->regions[TTM_REGION_CB].used_bytes +
           device->regions[TTM_REGION_KERNEL].used_bytes;
}

static uint64_t total_dram(const struct ttm_machine_device *device)
{
    return device->regions[TTM_REGION_DRAM].used_bytes +
           device->regions[TTM_REGION_TRACE].used_bytes;
}

/* ---- the table ---- */

/* Widths of the screen from which on there is more to see; each fills what the columns need. */
#define WIDE 104
#define WIDER 120
#define WIDEST 150

static void put_id(const void *row, const struct ttm_terminal *terminal, struct ttm_text *cell)
{
    const struct ttm_machine_device *device = row;
    (void)terminal;

    ttm_text_format(cell, "%u", device->id);
}

static void put_metal_id(const void *row, const struct ttm_terminal *terminal,
                         struct ttm_text *cell)
{
    const struct ttm_machine_device *device = row;
    (void)terminal;

    if (device->metal_id >= 0)
        ttm_text_format(cell, "%d", device->metal_id);
}

static void put_board(const void *row, const struct ttm_terminal *terminal, struct ttm_text *cell)
{
    const struct ttm_machine_device *device = row;
    (void)terminal;

    if (device->board[0] || strcmp(device->arch, "unknown") != 0)
        ttm_text_append_safe(cell, device->board[0] ? device->board : device->arch);
    if (strcmp(device->board, "n300") == 0 && device->chip)
        ttm_text_append(cell, device->is_remote ? " R" : " L");
}

static void put_bus_from(const struct ttm_machine_device *device, size_t skipped,
                         struct ttm_text *cell)
{
    const struct ttm_chip *chip = ttm_vitals_chip(device);
    const bool is_usual = chip && strncmp(chip->bdf, "0000:", 5) == 0;

    if (chip)
        ttm_text_append_safe(cell, chip->bdf + (is_usual ? skipped : 0));
    else
        ttm_text_append(cell, device->is_remote ? "remote" : "no card");
}

static void put_bus(const void *row, const struct ttm_terminal *terminal, struct ttm_text *cell)
{
    put_bus_from(row, terminal->columns >= WIDE ? 0 : 5, cell);
}

/* "54/75 °C", with the limit where there is room. */
static void put_sensor(const struct ttm_terminal *terminal, struct ttm_text *cell,
                       struct ttm_value value, struct ttm_value most, uint64_t per_unit,
                       const char *unit)
{
    ttm_vitals_put(cell, value, terminal->columns >= WIDE ? most : nothing, per_unit, unit);
}

static void put_temperature(const void *row, const struct ttm_terminal *terminal,
                            struct ttm_text *cell)
{
    const struct ttm_machine_device *device = row;

    if (ttm_vitals_chip(device) && strcmp(ttm_vitals_state(device), "ok") != 0)
        ttm_text_append(cell, ttm_vitals_does_answer(device) ? ttm_vitals_state(device) : "hangs");
    put_sensor(terminal, cell, ttm_vitals_sensor(device, TTM_SENSOR_TEMPERATURE_MC),
               ttm_vitals_limit(device, TTM_LIMIT_TEMPERATURE_MC), 1000,
               terminal->has_utf8 ? "°C" : "C");
}

static void put_power(const void *row, const struct ttm_terminal *terminal, struct ttm_text *cell)
{
    put_sensor(terminal, cell, ttm_vitals_sensor(row, TTM_SENSOR_POWER_UW),
               ttm_vitals_limit(row, TTM_LIMIT_POWER_UW), 1000000, "W");
}

static void put_clock(const void *row, const struct ttm_terminal *terminal, struct ttm_text *cell)
{
    put_sensor(terminal, cell, ttm_vitals_sensor(row, TTM_SENSOR_AICLK_MHZ), nothing, 1, "MHz");
}

static void put_voltage(const void *row, const struct ttm_terminal *terminal, struct ttm_text *cell)
{
    put_sensor(terminal, cell, ttm_vitals_sensor(row, TTM_SENSOR_VOLTAGE_MV), nothing, 1, "mV");
}

static void put_current(const void *row, const struct ttm_terminal *terminal, struct ttm_text *cell)
{
    put_sensor(terminal, cell, ttm_vitals_sensor(row, TTM_SENSOR_CURRENT_MA), nothing, 1000, "A");
}

static void put_fan(const void *row, const struct ttm_terminal *terminal, struct ttm_text *cell)
{
    put_sensor(terminal, cell, ttm_vitals_sensor(row, TTM_SENSOR_FAN_RPM), nothing, 1, "rpm");
}

static void put_link(const void *row, const struct ttm_terminal *terminal, struct ttm_text *cell)
{
    const struct ttm_chip *chip = ttm_vitals_chip(row);
    (void)terminal;

    if (chip && chip->link_gen.validity == TTM_VALID && chip->link_width.validity == TTM_VALID)
        ttm_text_format(cell, "%" PRIu64 " x%" PRIu64, chip->link_gen.number,
                        chip->link_width.number);
}

static void put_firmware(const void *row, const struct ttm_terminal *terminal,
                         struct ttm_text *cell)
{
    const struct ttm_chip *chip = ttm_vitals_chip(row);
    (void)terminal;

    if (chip)
        ttm_text_append_safe(cell, chip->firmware);
}

/* "3.90/12.00 GiB", both in the unit of the capacity. */
static void put_memory(struct ttm_text *cell, bool is_known, uint64_t bytes, uint64_t capacity)
{
    char all[TTM_NUMBER_SIZE], used[TTM_NUMBER_SIZE];
    uint64_t unit = 1;

    if (capacity == 0) {
        if (is_known)
            ttm_text_append(cell, ttm_format_bytes(bytes, used));
        return;
    }
    (void)ttm_format_bytes(capacity, all);
    if (is_known) {
        const char *dot = strchr(all, '.'), *space = strchr(all, ' ');
        const int decimals = dot && space ? (int)(space - dot - 1) : 0;
        while (capacity / unit >= 1024)
            unit *= 1024;
        ttm_text_format(cell, "%.*f/", decimals, (double)bytes / (double)unit);
    }
    ttm_text_append(cell, all);
}

static void put_dram(const void *row, const struct ttm_terminal *terminal, struct ttm_text *cell)
{
    const struct ttm_machine_device *device = row;
    (void)terminal;

    put_memory(cell, device->regions[TTM_REGION_DRAM].is_known, total_dram(device),
               device->capacity_bytes[TTM_REGION_DRAM]);
}

static void put_l1(const void *row, const struct ttm_terminal *terminal, struct ttm_text *cell)
{
    const struct ttm_machine_device *device = row;
    (void)terminal;

    put_memory(cell, device->regions[TTM_REGION_L1].is_known, total_l1(device),
               device->capacity_bytes[TTM_REGION_L1]);
}

#define CHIP_COLUMN 1 /* shown only where it says something */

static const struct ttm_table_column all_columns[] = {
    {"ID", 2, true, 0, put_id},
    {"CHIP", 4, true, 0, put_metal_id},
    {"BOARD", 9, false, 0, put_board},
    {"BUS", 7, false, 0, put_bus},
    {"TEMP", 7, true, 0, put_temperature},
    {"POWER", 5, true, 0, put_power},
    {"CLOCK", 8, true, 0, put_clock},
    {"FAN", 8, true, WIDER, put_fan},
    {"VCORE", 7, true, WIDEST, put_voltage},
    {"AMPS", 6, true, WIDEST, put_current},
    {"LINK", 5, true, WIDE, put_link},
    {"DRAM", 14, true, 0, put_dram},
    {"L1", 13, true, 0, put_l1},
    {"FIRMWARE", 11, false, WIDEST, put_firmware},
    {NULL},
};

static bool has_other_order(const struct ttm_machine *machine)
{
    for (size_t i = 0; i < machine->device_count; i++) {
        const struct ttm_machine_device *device = &machine->devices[i];
        if (device->metal_id >= 0 && (unsigned)device->metal_id != device->id)
            return true;
    }
    return false;
}

static void put_table(const struct ttm_machine *machine, const struct ttm_terminal *terminal,
                      struct ttm_text *out)
{
    struct ttm_table_column columns[sizeof(all_columns) / sizeof(all_columns[0])];

    memcpy(columns, all_columns, sizeof(columns));
    if (!has_other_order(machine))
        columns[CHIP_COLUMN].from_columns = SIZE_MAX;
    for (size_t i = 0; columns[i].title;
         i++) { /* where there is room: limits and whole addresses */
        if (terminal->columns >= WIDE && columns[i].put == put_bus)
            columns[i].width = 12;
        if (terminal->columns >= WIDE && columns[i].put == put_temperature)
            columns[i].width = 9;
        if (terminal->columns >= WIDE && columns[i].put == put_power)
            columns[i].width = 9;
        if (terminal->columns >= WIDER && columns[i].put == put_board)
            columns[i].width = 16;
    }
    ttm_table_head(columns, terminal, out);
    for (size_t i = 0; i < machine->device_count; i++)
        ttm_table_row(columns, terminal, &machine->devices[i], out);
}

/* ---- what to know besides ---- */

static void put_trouble(const struct ttm_machine_device *device, struct ttm_text *out)
{
    const struct ttm_chip *chip = ttm_vitals_chip(device);

    if (!chip)
        return;
    const struct ttm_value temperature = ttm_vitals_sensor(device, TTM_SENSOR_TEMPERATURE_MC);
    const struct ttm_value most = chip->limits[TTM_LIMIT_TEMPERATURE_MC];
    const struct ttm_value trips = ttm_vitals_sensor(device, TTM_SENSOR_THERMAL_TRIPS);
    if (chip->state == TTM_CHIP_REMOVED)
        ttm_text_format(out, "device %u has gone\n", device->id);
    else if (!ttm_vitals_does_answer(device))
        ttm_text_format(out, "device %u does not answer: it is being reset, or hangs\n",
                        device->id);
    else if (chip->state == TTM_CHIP_RESET)
        ttm_text_format(out, "device %u is in reset: it has no values until it is back\n",
                        device->id);
    if (temperature.validity == TTM_VALID && most.validity == TTM_VALID &&
        temperature.number >= most.number)
        ttm_text_format(out, "device %u is too hot: it slows down from %" PRIu64 " C on\n",
                        device->id, most.number / 1000);
    if (trips.validity == TTM_VALID && trips.number > 0)
        ttm_text_format(out, "device %u was shut down by heat, times since power-on: %" PRIu64 "\n",
                        device->id, trips.number);
    if (chip->link_gen.number < chip->link_gen_max.number && chip->link_gen.number > 0)
        ttm_text_format(out, "device %u has a PCIe link of generation %" PRIu64 " of %" PRIu64 "\n",
                        device->id, chip->link_gen.number, chip->link_gen_max.number);
    if (chip->link_width.number < chip->link_width_max.number && chip->link_width.number > 0)
        ttm_text_format(out, "device %u has %" PRIu64 " of %" PRIu64 " PCIe lanes\n", device->id,
                        chip->link_width.number, chip->link_width_max.number);
}

/* Bytes that the runtime counts on chips that are none of this machine's cards. */
static void put_unmatched(const struct ttm_machine *machine, struct ttm_text *out)
{
    for (size_t i = 0; i < machine->upstream.count; i++) {
        const struct ttm_upstream_file *file = &machine->upstream.files[i];
        struct ttm_upstream_totals live;
        char text[TTM_NUMBER_SIZE];
        uint64_t sum = 0;

        ttm_upstream_live(file, &live);
        for (unsigned r = 0; r < TTM_UPSTREAM_REGION_COUNT; r++)
            sum += live.bytes[r];
        if (sum > 0 && !ttm_machine_of_file(machine, file))
            ttm_text_format(out,
                            "TT-Metal counts %s on a chip that is none of these "
                            "(tt_device_%" PRIu64 "_memory)\n",
                            ttm_format_bytes(sum, text), file->unique_id);
    }
}

static void put_nothing_found(const struct ttm_machine *machine, struct ttm_text *out)
{
    const size_t on_pci = ttm_telemetry_count_pci(ttm_machine_root());

    ttm_text_append(out, "no Tenstorrent device found\n");
    if (on_pci > 0 && !machine->telemetry.driver[0])
        ttm_text_format(out,
                        "PCI lists %zu, and the driver is not loaded: modprobe tenstorrent, or "
                        "install tt-kmd\n",
                        on_pci);
    else if (on_pci > 0)
        ttm_text_format(out, "PCI lists %zu, and the driver has taken none: see dmesg\n", on_pci);
    else
        ttm_text_append(out, "tt-mem demo shows what tt-mem does, without hardware\n");
}

static bool has_runtime_bytes(const struct ttm_machine *machine)
{
    for (size_t i = 0; i < machine->device_count; i++) {
        if (machine->devices[i].regions[TTM_REGION_DRAM].is_known)
            return true;
    }
    return false;
}

static void put_hints(const struct ttm_machine *machine, struct ttm_text *out)
{
    for (size_t i = 0; i < machine->device_count; i++)
        put_trouble(&machine->devices[i], out);
    put_unmatched(machine, out);
    if (has_other_order(machine))
        ttm_text_append(out, "CHIP is what TT-Metal and tt-mem monitor call the device\n");
    if (machine->answer_count == 0)
        ttm_text_format(out, "no server is running, so memory in use is %s: tt-mem serve\n",
                        has_runtime_bytes(machine) ? "TT-Metal's own count" : "not known");
    ttm_text_append(out, "tt-mem ps: who holds them, and who does not report\n");
}

static void put_text(const struct ttm_machine *machine, const struct ttm_terminal *terminal,
                     struct ttm_text *out)
{
    const char *dot = ttm_terminal_dot(terminal);

    if (machine->device_count == 0) {
        put_nothing_found(machine, out);
        return;
    }
    ttm_text_format(out, "%zu device%s", machine->device_count,
                    machine->device_count == 1 ? "" : "s");
    if (machine->telemetry.count == 0)
        ttm_text_format(out, "%snone of them a card of this machine", dot);
    if (machine->telemetry.driver[0]) {
        ttm_text_format(out, "%sdriver ", dot);
        ttm_text_append_safe(out, machine->telemetry.driver);
    }
    ttm_text_append(out, "\n");
    put_table(machine, terminal, out);
    put_hints(machine, out);
}

/* ---- JSON ---- */

static void put_string(struct ttm_json *json, const char *key, const char *value)
{
    if (value && value[0])
        ttm_json_put_string(json, key, value);
    else
        ttm_json_put_null(json, key);
}

/* As the driver writes it, in hexadecimal. */
static void put_hex(struct ttm_json *json, const char *key, struct ttm_value value)
{
    char text[TTM_NUMBER_SIZE] = "";

    if (value.validity == TTM_VALID)
        (void)snprintf(text, sizeof(text), "%016" PRIX64, value.number);
    put_string(json, key, text);
}

static void put_limits_json(struct ttm_json *json, const struct ttm_machine_device *device)
{
    ttm_json_key(json, "limits");
    ttm_json_object_begin(json);
    ttm_vitals_json_value(json, "temperature_c", ttm_vitals_limit(device, TTM_LIMIT_TEMPERATURE_MC),
                          3);
    ttm_vitals_json_value(json, "power_w", ttm_vitals_limit(device, TTM_LIMIT_POWER_UW), 6);
    ttm_vitals_json_value(json, "voltage_mv", ttm_vitals_limit(device, TTM_LIMIT_VOLTAGE_MV), 0);
    ttm_vitals_json_value(json, "current_a", ttm_vitals_limit(device, TTM_LIMIT_CURRENT_MA), 3);
    ttm_json_object_end(json);
}

static bool has_counters(const struct ttm_chip *chip)
{
    for (size_t i = 0; chip && i < TTM_LINK_COUNTERS; i++) {
        if (chip->counters.words[i].validity == TTM_VALID)
            return true;
    }
    return false;
}

/* Words since the last reset, each modulo 2^32. A rate takes two readings, and this is one. */
static void put_counters_json(struct ttm_json *json, const struct ttm_machine_device *device)
{
    const struct ttm_chip *chip = ttm_vitals_chip(device);

    if (!has_counters(chip)) {
        ttm_json_put_null(json, "link_counters");
        return;
    }
    ttm_json_key(json, "link_counters");
    ttm_json_object_begin(json);
    for (size_t i = 0; i < TTM_LINK_COUNTERS; i++)
        ttm_vitals_json_value(json, ttm_link_counter_name(i), chip->counters.words[i], 0);
    ttm_json_object_end(json);
}

static void put_link_json(struct ttm_json *json, const struct ttm_machine_device *device)
{
    const struct ttm_chip *chip = ttm_vitals_chip(device);

    ttm_json_key(json, "link");
    ttm_json_object_begin(json);
    ttm_vitals_json_value(json, "gen", chip ? chip->link_gen : nothing, 0);
    ttm_vitals_json_value(json, "width", chip ? chip->link_width : nothing, 0);
    ttm_vitals_json_value(json, "max_gen", chip ? chip->link_gen_max : nothing, 0);
    ttm_vitals_json_value(json, "max_width", chip ? chip->link_width_max : nothing, 0);
    ttm_json_object_end(json);
}

static void put_number(struct ttm_json *json, const char *key, bool is_known, uint64_t number)
{
    if (is_known)
        ttm_json_put_u64(json, key, number);
    else
        ttm_json_put_null(json, key);
}

static void put_regions_json(struct ttm_json *json, const struct ttm_machine_device *device)
{
    ttm_json_key(json, "regions");
    ttm_json_object_begin(json);
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
        const struct ttm_usage *usage = &device->regions[r];
        ttm_json_key(json, ttm_region_name(r));
        ttm_json_object_begin(json);
        put_number(json, "capacity_bytes", device->capacity_bytes[r] > 0,
                   device->capacity_bytes[r]);
        put_number(json, "bytes", usage->is_known, usage->bytes);
        put_number(json, "footprint_bytes", usage->has_footprint, usage->footprint_bytes);
        put_number(json, "runtime_bytes", usage->is_known, usage->runtime_bytes);
        if (r == TTM_REGION_CB)
            ttm_usage_put_cb_json(json, usage);
        ttm_json_object_end(json);
    }
    ttm_json_object_end(json);
}

static void put_device_json(struct ttm_json *json, const struct ttm_machine_device *device)
{
    const struct ttm_chip *chip = ttm_vitals_chip(device);

    ttm_json_object_begin(json);
    ttm_json_put_u64(json, "id", device->id);
    put_number(json, "metal_id", device->metal_id >= 0, (uint64_t)device->metal_id);
    put_string(json, "bdf", chip ? chip->bdf : NULL);
    put_string(json, "arch", strcmp(device->arch, "unknown") == 0 ? NULL : device->arch);
    put_string(json, "board", device->board);
    put_hex(json, "asic_id", chip ? chip->asic_id : nothing);
    put_hex(json, "serial", device->chip ? device->chip->chip.board_id : nothing);
    put_string(json, "firmware", chip ? chip->firmware : NULL);
    ttm_json_put_bool(json, "remote", device->is_remote);
    put_string(json, "state", ttm_vitals_state(device));
    ttm_json_put_bool(json, "stalled", !ttm_vitals_does_answer(device));
    ttm_vitals_json(json, device);
    put_limits_json(json, device);
    put_link_json(json, device);
    put_counters_json(json, device);
    put_regions_json(json, device);
    ttm_json_object_end(json);
}

static void put_json(const struct ttm_machine *machine, struct ttm_text *out)
{
    struct ttm_json json;

    ttm_json_init(&json, out);
    ttm_json_object_begin(&json);
    ttm_json_put_string(&json, "schema", "tt-mem/devices/1");
    put_string(&json, "driver", machine->telemetry.driver);
    ttm_json_key(&json, "devices");
    ttm_json_array_begin(&json);
    for (size_t i = 0; i < machine->device_count; i++)
        put_device_json(&json, &machine->devices[i]);
    ttm_json_array_end(&json);
    ttm_json_object_end(&json);
    ttm_text_append(out, "\n");
}

/* ---- the command ---- */

static int put(const struct ttm_machine *machine, const struct ttm_terminal *terminal,
               struct ttm_text *out)
{
    if (terminal)
        put_text(machine, terminal, out);
    else
        put_json(machine, out);
    return 0;
}

static int run(int argc, char **argv)
{
    return ttm_look_run(&ttm_command_devices, argc, argv, put);
}

const struct ttm_command ttm_command_devices = {
    .name = "devices",
    .synopsis = "[--json]",
    .summary = "The Tenstorrent devices: telemetry, capacity, and what is in use.",
    .details = "Works without a server; with one it also tells what is allocated. No device is\n"
               "opened: a chip that sleeps is not woken, and a program that runs not disturbed.",
    .options = options,
    .run = run,
};
