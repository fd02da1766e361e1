/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/command.h"
#include "cli/look.h"
#include "cli/machine.h"
#include "cli/options.h"
#include "cli/process_list.h"
#include "cli/runtime.h"
#include "cli/table.h"
#include "cli/terminal.h"

static const struct ttm_option options[] = {
    TTM_OPTION_JSON,
    TTM_OPTION_SOCKET,
    TTM_OPTION_HELP_ROW,
    {0},
};

/* ---- the table ---- */

static void put_pid(const void *row, const struct ttm_terminal *terminal, struct ttm_text *cell)
{
    const struct ttm_listed_process *listed = row;
    (void)terminal;

    if (listed->process.pid > 0)
        ttm_text_format(cell, "%d", listed->process.pid);
}

static void put_user(const void *row, const struct ttm_terminal *terminal, struct ttm_text *cell)
{
    const struct ttm_listed_process *listed = row;
    char user[TTM_USER_SIZE];
    (void)terminal;

    ttm_text_append_safe(cell,
                         listed->process.has_uid ? ttm_process_user(&listed->process, user) : "?");
}

static void put_devices(const void *row, const struct ttm_terminal *terminal, struct ttm_text *cell)
{
    (void)terminal;
    ttm_listed_process_devices(row, cell);
}

static void put_usage(const void *row, enum ttm_region region, struct ttm_text *cell)
{
    const struct ttm_usage *usage = &((const struct ttm_listed_process *)row)->regions[region];
    char text[TTM_NUMBER_SIZE];

    if (usage->is_known)
        ttm_text_append(cell, ttm_format_bytes(usage->used_bytes, text));
}

static void put_dram(const void *row, const struct ttm_terminal *terminal, struct ttm_text *cell)
{
    (void)terminal;
    put_usage(row, TTM_REGION_DRAM, cell);
}

static void put_l1(const void *row, const struct ttm_terminal *terminal, struct ttm_text *cell)
{
    (void)terminal;
    put_usage(row, TTM_REGION_L1, cell);
}

static void put_l1_small(const void *row, const struct ttm_terminal *terminal,
                         struct ttm_text *cell)
{
    (void)terminal;
    put_usage(row, TTM_REGION_L1_SMALL, cell);
}

static void put_trace(const void *row, const struct ttm_terminal *terminal, struct ttm_text *cell)
{
    (void)terminal;
    put_usage(row, TTM_REGION_TRACE, cell);
}

static void put_cb(const void *row, const struct ttm_terminal *terminal, struct ttm_text *cell)
{
    (void)terminal;
    put_usage(row, TTM_REGION_CB, cell);
}

static void put_kernel(const void *row, const struct ttm_terminal *terminal, struct ttm_text *cell)
{
    (void)terminal;
    put_usage(row, TTM_REGION_KERNEL, cell);
}

static void put_reporting(const void *row, const struct ttm_terminal *terminal,
                          struct ttm_text *cell)
{
    const struct ttm_listed_process *listed = row;
    (void)terminal;

    ttm_text_append(cell, ttm_reporting_name(listed->reporting));
}

static void put_command(const void *row, const struct ttm_terminal *terminal, struct ttm_text *cell)
{
    const struct ttm_listed_process *listed = row;
    (void)terminal;

    ttm_terminal_command(cell, listed->process.command[0] ? listed->process.command : "?");
}

static const struct ttm_table_column columns[] = {
    {"PID", 7, true, 0, put_pid},
    {"USER", 8, false, 0, put_user},
    {"DEVICES", 7, false, 0, put_devices},
    {"DRAM", 9, true, 0, put_dram},
    {"L1", 9, true, 0, put_l1},
    {"CB", 9, true, 100, put_cb},
    {"L1_SMALL", 9, true, 132, put_l1_small},
    {"TRACE", 9, true, 132, put_trace},
    {"KERNEL", 9, true, 132, put_kernel},
    {"REPORTS", 8, false, 0, put_reporting},
    {"COMMAND", 0, false, 0, put_command},
    {NULL},
};

/* ---- what to do about it ---- */

/* How many report in that way, and the first of them. */
static size_t count_of(const struct ttm_process_list *list, enum ttm_reporting reporting,
                       const struct ttm_listed_process **ret_first)
{
    size_t count = 0;

    for (size_t i = list->count; i-- > 0;) {
        if (list->processes[i].reporting != reporting)
            continue;
        *ret_first = &list->processes[i];
        count++;
    }
    return count;
}

static void put_silent_hint(const struct ttm_process_list *list, struct ttm_text *out)
{
    const struct ttm_listed_process *first = NULL;
    const size_t count = count_of(list, TTM_REPORTING_NO, &first);

    if (count == 0)
        return;
    ttm_text_format(out, "%d ", first->process.pid);
    if (count == 1)
        ttm_text_append(out, "does not report; to see its memory: tt-mem run ");
    else
        ttm_text_format(out, "and %zu more do not report; to see it all: tt-mem run ", count - 1);
    if (first->process.command[0])
        ttm_terminal_command(out, first->process.command);
    else
        ttm_text_append(out, "COMMAND");
    ttm_text_append(out, "\n");
}

static void put_disabled_hint(const struct ttm_process_list *list, bool has_server,
                              struct ttm_text *out)
{
    const struct ttm_listed_process *first = NULL;
    const size_t count = count_of(list, TTM_REPORTING_DISABLED, &first);

    if (count > 0 && has_server)
        ttm_text_format(out, "tt-mem enable %d switches its tracking on\n", first->process.pid);
    else if (count > 0)
        ttm_text_format(out, "%d could report, and there is no server: tt-mem serve\n",
                        first->process.pid);
}

static void put_runtime_hint(const struct ttm_process_list *list, struct ttm_text *out)
{
    const struct ttm_listed_process *first = NULL;

    if (count_of(list, TTM_REPORTING_RUNTIME, &first) > 0)
        ttm_text_append(out, TTM_RUNTIME_HINT);
}

static void put_hints(const struct ttm_machine *machine, const struct ttm_process_list *list,
                      struct ttm_text *out)
{
    put_silent_hint(list, out);
    put_disabled_hint(list, machine->answer_count > 0, out);
    put_runtime_hint(list, out);
    if (list->foreign_count > 0)
        ttm_text_format(out,
                        "%zu more hold%s a device and cannot be seen from here: "
                        "in another container\n",
                        list->foreign_count, list->foreign_count == 1 ? "s" : "");
    if (list->hidden_count > 0)
        ttm_text_format(out,
                        "%zu process%s of other users could not be looked into: "
                        "sudo tt-mem ps\n",
                        list->hidden_count, list->hidden_count == 1 ? "" : "es");
    if (machine->upstream.denied_count > 0)
        ttm_text_format(out,
                        "TT-Metal's count of %zu device%s is another user's: "
                        "sudo tt-mem ps\n",
                        machine->upstream.denied_count,
                        machine->upstream.denied_count == 1 ? "" : "s");
    if (count_of(list, TTM_REPORTING_TRACKED, &(const struct ttm_listed_process *){NULL}) > 0)
        ttm_text_append(out, "tt-mem dump: what they hold, one by one\n");
}

static void put_text(const struct ttm_machine *machine, const struct ttm_process_list *list,
                     const struct ttm_terminal *terminal, struct ttm_text *out)
{
    if (list->count > 0) {
        ttm_table_head(columns, terminal, out);
        for (size_t i = 0; i < list->count; i++)
            ttm_table_row(columns, terminal, &list->processes[i], out);
    } else if (list->foreign_count == 0) {
        ttm_text_append(out, "no process holds a Tenstorrent device\n");
        ttm_text_append(out, machine->device_count == 0
                                 ? "tt-mem demo shows what tt-mem does, without hardware\n"
                                 : "tt-mem run COMMAND starts one that is tracked\n");
    }
    put_hints(machine, list, out);
}

/* ---- JSON ---- */

static void put_number(struct ttm_json *json, const char *key, bool is_known, uint64_t number)
{
    if (is_known)
        ttm_json_put_u64(json, key, number);
    else
        ttm_json_put_null(json, key);
}

static void put_string(struct ttm_json *json, const char *key, const char *value)
{
    if (value && value[0])
        ttm_json_put_string(json, key, value);
    else
        ttm_json_put_null(json, key);
}

/* Regions of which nothing is known are left out. */
static void put_regions_json(struct ttm_json *json, const struct ttm_listed_process *listed)
{
    ttm_json_key(json, "regions");
    ttm_json_object_begin(json);
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
        const struct ttm_usage *usage = &listed->regions[r];
        if (!usage->is_known)
            continue;
        ttm_json_key(json, ttm_region_name(r));
        ttm_json_object_begin(json);
        ttm_json_put_u64(json, "bytes", usage->bytes);
        put_number(json, "footprint_bytes", usage->has_footprint, usage->footprint_bytes);
        put_number(json, "count", usage->has_footprint, usage->count);
        if (r == TTM_REGION_CB)
            ttm_usage_put_cb_json(json, usage);
        ttm_json_object_end(json);
    }
    ttm_json_object_end(json);
}

static void put_process_json(struct ttm_json *json, const struct ttm_listed_process *listed)
{
    char user[TTM_USER_SIZE];

    ttm_json_object_begin(json);
    put_number(json, "pid", listed->process.pid > 0, (uint64_t)listed->process.pid);
    put_string(json, "user", ttm_process_user(&listed->process, user));
    put_number(json, "uid", listed->process.has_uid, listed->process.uid);
    put_string(json, "command", listed->process.command);
    ttm_json_key(json, "devices");
    ttm_json_array_begin(json);
    for (size_t i = 0; i < listed->device_count; i++)
        ttm_json_u64(json, listed->devices[i]);
    ttm_json_array_end(json);
    ttm_json_put_string(json, "reporting", ttm_reporting_name(listed->reporting));
    put_string(json, "source",
               listed->source >= 0 ? ttm_source_name((unsigned)listed->source) : NULL);
    put_regions_json(json, listed);
    ttm_json_object_end(json);
}

static void put_json(const struct ttm_machine *machine, const struct ttm_process_list *list,
                     struct ttm_text *out)
{
    struct ttm_json json;

    ttm_json_init(&json, out);
    ttm_json_object_begin(&json);
    ttm_json_put_string(&json, "schema", "tt-mem/ps/1");
    ttm_json_key(&json, "processes");
    ttm_json_array_begin(&json);
    for (size_t i = 0; i < list->count; i++)
        put_process_json(&json, &list->processes[i]);
    ttm_json_array_end(&json);
    ttm_json_put_u64(&json, "foreign", list->foreign_count);
    ttm_json_put_u64(&json, "hidden", list->hidden_count);
    ttm_json_put_bool(&json, "server", machine->answer_count > 0);
    ttm_json_object_end(&json);
    ttm_text_append(out, "\n");
}

/* ---- the command ---- */

static int put(const struct ttm_machine *machine, const struct ttm_terminal *terminal,
               struct ttm_text *out)
{
    struct ttm_process_list list;
    const int r = ttm_process_list_read(ttm_machine_root(), machine, NULL, &list);

    if (r == 0 && terminal)
        put_text(machine, &list, terminal, out);
    else if (r == 0)
        put_json(machine, &list, out);
    ttm_process_list_done(&list);
    return r;
}

static int run(int argc, char **argv)
{
    return ttm_look_run(&ttm_command_ps, argc, argv, put);
}

const struct ttm_command ttm_command_ps = {
    .name = "ps",
    .synopsis = "[--json]",
    .summary = "The processes that hold a device, and what is known of their memory.",
    .details = "REPORTS says how the memory is known: 'tracked' by a server, 'runtime' from\n"
               "TT-Metal's own count; 'disabled' has libttmem loaded and switched off, or no\n"
               "server; 'no' cannot be known. Works without a server.",
    .options = options,
    .run = run,
};
