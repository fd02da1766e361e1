/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/runtime.h"
#include "cli/terminal.h"
#include "ring/control.h"

enum { OPTION_CHECK = 256, STANDBY_MAX = 256 };

static const struct ttm_option options[] = {
    {.id = OPTION_CHECK, .name = "check", .help = "add up all allocations anew and compare"},
    TTM_OPTION_JSON,
    TTM_OPTION_SOCKET,
    TTM_OPTION_HELP_ROW,
    {0},
};

static uint64_t refusals(const struct ttm_status *status)
{
    uint64_t sum = 0;

    for (unsigned i = TTM_COUNTER_REFUSED_DEVICE; i <= TTM_COUNTER_REFUSED_MEMORY; i++)
        sum += status->counter[i];
    return sum + status->counter[TTM_COUNTER_REFUSED_SHARE];
}

static void put_count(struct ttm_text *out, const char *label, uint64_t count)
{
    char text[TTM_NUMBER_SIZE];

    ttm_text_format(out, "  %-24s %15s\n", label, ttm_format_count(count, text));
}

/* A server that is older does not measure it. */
static void put_longest_turn(struct ttm_text *out, const struct ttm_status *status)
{
    const uint64_t cpu_ns = status->counter[TTM_COUNTER_LONGEST_TURN_CPU_NS];
    char text[TTM_NUMBER_SIZE];

    if (cpu_ns == 0)
        return;
    (void)snprintf(text, sizeof(text), "%.2f ms", (double)cpu_ns / TTM_NS_PER_MS);
    ttm_text_format(out, "  %-24s %15s\n", "longest work in one go", text);
}

/* Counters that are only worth a line when something happened. */
static void put_troubles(struct ttm_text *out, const struct ttm_status *status)
{
    static const struct {
        enum ttm_counter counter;
        const char *label;
    } troubles[] = {
        {TTM_COUNTER_UNKNOWN_FREES, "frees of the unknown"},
        {TTM_COUNTER_AMBIGUOUS_FREES, "ambiguous frees"},
        {TTM_COUNTER_REPLACED, "replaced allocations"},
        {TTM_COUNTER_REFUSED_DEVICE, "refused: device id"},
        {TTM_COUNTER_REFUSED_REGION, "refused: region or kind"},
        {TTM_COUNTER_REFUSED_SIZE, "refused: size"},
        {TTM_COUNTER_REFUSED_TYPE, "refused: message type"},
        {TTM_COUNTER_REFUSED_MEMORY, "refused: memory short"},
        {TTM_COUNTER_REFUSED_SHARE, "refused: over a user's share"},
        {TTM_COUNTER_CLOSED_GARBAGE, "closed: garbage"},
        {TTM_COUNTER_CLOSED_SLOW, "closed: too slow"},
        {TTM_COUNTER_TORN_MESSAGES, "torn messages"},
        {TTM_COUNTER_CONNECTIONS_REFUSED, "refused connections"},
        {TTM_COUNTER_LOST_TAIL_EVENTS, "lines lost to slow tails"},
        {TTM_COUNTER_LOST_LOG_LINES, "log lines dropped"},
    };

    for (size_t i = 0; i < sizeof(troubles) / sizeof(troubles[0]); i++) {
        if (status->counter[troubles[i].counter] > 0)
            put_count(out, troubles[i].label, status->counter[troubles[i].counter]);
    }
}

/* Why the server's recording has stopped; "" when it has not. Borrowed. */
static const char *recording_trouble(const struct ttm_status *status)
{
    const uint64_t error = status->counter[TTM_COUNTER_RECORDING_ERRNO];

    return error == 0 ? "" : strerror(error < INT_MAX ? (int)error : INT_MAX);
}

static void put_recording_stopped(struct ttm_text *out, const struct ttm_status *status)
{
    const char *why = recording_trouble(status);

    if (why[0] != '\0')
        ttm_text_format(out, "  recording stopped (%s): tracking goes on without it\n", why);
}

/* Processes with libttmem in which tracking is off, and which the server has not heard of. */
struct standby {
    pid_t pids[STANDBY_MAX];
    size_t count;
};

static void find_standby(const struct ttm_answer *answer, size_t client_count, struct standby *ret)
{
    const char *root = getenv("TTMEM_ROOT");
    const size_t found = ttm_control_list_off(root ? root : "", ret->pids, STANDBY_MAX);

    ret->count = 0;
    for (size_t i = 0; i < found; i++) {
        size_t p = 0;
        while (p < client_count && answer->processes[p].row.pid != ret->pids[i])
            p++;
        if (p == client_count)
            ret->pids[ret->count++] = ret->pids[i];
    }
}

#define TITLES "       pid  source        live        events   events/s    lost resyncs   ring"
#define COMMAND_LEAST 20

static bool is_narrow(const struct ttm_terminal *terminal)
{
    return terminal->is_terminal && terminal->columns < sizeof(TITLES) + COMMAND_LEAST;
}

/* At the end of the row, or on a terminal that has no room for it there, below it. */
static void put_command(struct ttm_text *out, const struct ttm_terminal *terminal,
                        const struct ttm_process_row *row)
{
    if (is_narrow(terminal)) {
        while (out->length > 0 && out->data[out->length - 1] == ' ')
            out->data[--out->length] = '\0';
        ttm_text_append(out, "\n            ");
    }
    ttm_terminal_command(out, row->command);
    ttm_text_append(out, "\n");
}

static void put_process(struct ttm_text *out, const struct ttm_terminal *terminal,
                        const struct ttm_process_row *row)
{
    char lives[TTM_NUMBER_SIZE], events[TTM_NUMBER_SIZE], rate[TTM_NUMBER_SIZE];
    char lost[TTM_NUMBER_SIZE];

    ttm_text_format(out, "  %8d  %-8s %9s %13s", row->pid,
                    row->is_disabled ? "disabled" : ttm_source_name(row->source),
                    ttm_format_count(row->lives, lives), ttm_format_count(row->events, events));
    if (row->source == TTM_SOURCE_TRACKED)
        ttm_text_format(
            out, " %10s %7s %7" PRIu64 " %4u %%  ", ttm_format_count(row->events_per_s, rate),
            ttm_format_count(row->lost_events, lost), row->resyncs, (row->ring_permille + 5) / 10);
    else
        ttm_text_format(out, " %10s %7s %7s %6s  ", "", "", "", "");
    put_command(out, terminal, row);
    if (row->trouble[0] != '\0') {
        ttm_text_append(out, "            ");
        ttm_text_append_safe(out, row->trouble);
        ttm_text_append(out, "\n");
    }
    if (row->notes_left_out > 0)
        ttm_text_append(out, "            no room for more names and contexts: later ones are "
                             "missing\n");
}

/* Known by TT-Metal's own count alone, so no part of what the server has counted. */
static void put_counted(struct ttm_text *out, const struct ttm_terminal *terminal,
                        const struct ttm_process_row *row)
{
    ttm_text_format(out, "  %8d  %-8s %9s %13s %10s %7s %7s %6s  ", row->pid,
                    ttm_source_name(row->source), "-", "-", "", "", "", "");
    put_command(out, terminal, row);
}

/* The first 'client_count' processes report to the server. */
static void put_processes(struct ttm_text *out, const struct ttm_terminal *terminal,
                          const struct ttm_answer *answer, size_t client_count,
                          const struct standby *standby)
{
    if (client_count == 0)
        ttm_text_append(out, "  no program reports\n");
    if (answer->process_count > 0)
        ttm_text_format(out, "%s%s\n", TITLES, is_narrow(terminal) ? "" : "  command");
    for (size_t i = 0; i < client_count; i++)
        put_process(out, terminal, &answer->processes[i].row);
    for (size_t i = client_count; i < answer->process_count; i++)
        put_counted(out, terminal, &answer->processes[i].row);
    for (size_t i = 0; i < standby->count; i++)
        ttm_text_format(out, "  %8d  disabled  tracking is off: tt-mem enable %d\n",
                        (int)standby->pids[i], (int)standby->pids[i]);
    if (client_count < answer->process_count)
        ttm_text_append(out, TTM_RUNTIME_HINT);
}

static void put_check(struct ttm_text *out, const struct ttm_checked *checked)
{
    char lives[TTM_NUMBER_SIZE], count[TTM_NUMBER_SIZE];

    ttm_text_format(out, "  check: %s %s of %" PRIu64 " %s added up anew: ",
                    ttm_format_count(checked->lives, lives),
                    checked->lives == 1 ? "allocation" : "allocations", checked->processes,
                    checked->processes == 1 ? "process" : "processes");
    if (checked->mismatches == 0)
        ttm_text_append(out, "all totals are right\n");
    else
        ttm_text_format(out, "%s totals are WRONG, please report this\n",
                        ttm_format_count(checked->mismatches, count));
}

static void put_text(struct ttm_text *out, const struct ttm_connection *conn,
                     const struct ttm_answer *answer, size_t client_count,
                     const struct ttm_checked *checked)
{
    const struct ttm_terminal terminal = ttm_terminal_of(STDOUT_FILENO);
    const struct ttm_status *status = &answer->status;
    const char *dot = ttm_terminal_dot(&terminal);
    char uptime[TTM_NUMBER_SIZE];

    ttm_text_append(out, "server is running");
    ttm_text_format(out, "%stt-mem ", dot);
    ttm_text_append_safe(out, conn->server.software);
    ttm_text_format(out, "%spid %" PRIu64 "%sup %s%s%s\n", dot, status->counter[TTM_COUNTER_PID],
                    dot, ttm_format_duration(status->counter[TTM_COUNTER_UPTIME_NS], uptime), dot,
                    refusals(status) + status->counter[TTM_COUNTER_CLOSED_GARBAGE] == 0
                        ? "nothing refused"
                        : "some messages were refused");
    put_count(out, "messages", status->counter[TTM_COUNTER_EVENTS]);
    put_count(out, "allocations", status->counter[TTM_COUNTER_BIRTHS]);
    put_count(out, "frees", status->counter[TTM_COUNTER_ENDS]);
    put_count(out, "live now", status->counter[TTM_COUNTER_LIVES]);
    put_count(out, "connections", status->counter[TTM_COUNTER_CONNECTIONS]);
    put_longest_turn(out, status);
    put_troubles(out, status);
    put_recording_stopped(out, status);
    if (checked)
        put_check(out, checked);
    struct standby standby;
    find_standby(answer, client_count, &standby);
    put_processes(out, &terminal, answer, client_count, &standby);
}

static void put_process_json(struct ttm_json *json, const struct ttm_process_row *row)
{
    ttm_json_object_begin(json);
    ttm_json_put_i64(json, "pid", row->pid);
    ttm_json_put_u64(json, "uid", row->uid);
    ttm_json_put_string(json, "command", row->command);
    ttm_json_put_string(json, "source", ttm_source_name(row->source));
    ttm_json_put_u64(json, "connections", row->connections);
    ttm_json_put_u64(json, "lives", row->lives);
    ttm_json_put_u64(json, "events", row->events);
    ttm_json_put_u64(json, "unknown_frees", row->unknown_frees);
    ttm_json_put_u64(json, "ambiguous_frees", row->ambiguous_frees);
    ttm_json_put_u64(json, "replaced", row->replaced);
    ttm_json_put_u64(json, "refused", row->refused);
    ttm_json_put_u64(json, "lost_events", row->lost_events);
    ttm_json_put_u64(json, "resyncs", row->resyncs);
    ttm_json_put_u64(json, "resync_ns", (uint64_t)row->resync_us * 1000);
    ttm_json_put_bool(json, "catching_up", row->is_behind);
    ttm_json_put_u64(json, "events_per_s", row->events_per_s);
    ttm_json_put_u64(json, "ring_permille", row->ring_permille);
    ttm_json_put_u64(json, "untracked", row->untracked);
    ttm_json_put_u64(json, "unknown_ends", row->unknown_ends);
    ttm_json_put_u64(json, "notes_left_out", row->notes_left_out);
    ttm_json_put_bool(json, "disabled", row->is_disabled);
    ttm_json_put_string(json, "runtime", row->runtime);
    ttm_json_put_string(json, "trouble", row->trouble);
    ttm_json_object_end(json);
}

/* Who is known by TT-Metal's own count alone. */
static void put_counted_json(struct ttm_json *json, const struct ttm_answer *answer,
                             size_t client_count)
{
    ttm_json_key(json, "runtime");
    ttm_json_array_begin(json);
    for (size_t i = client_count; i < answer->process_count; i++) {
        ttm_json_object_begin(json);
        ttm_json_put_i64(json, "pid", answer->processes[i].row.pid);
        ttm_json_put_u64(json, "uid", answer->processes[i].row.uid);
        ttm_json_put_string(json, "command", answer->processes[i].row.command);
        ttm_json_put_string(json, "source", ttm_source_name(answer->processes[i].row.source));
        ttm_json_object_end(json);
    }
    ttm_json_array_end(json);
}

static void put_json(struct ttm_text *out, const struct ttm_connection *conn,
                     const struct ttm_answer *answer, size_t client_count,
                     const struct ttm_checked *checked)
{
    struct ttm_json json;

    ttm_json_init(&json, out);
    ttm_json_object_begin(&json);
    ttm_json_put_string(&json, "schema", "tt-mem/status/1");
    ttm_json_put_bool(&json, "running", true);
    ttm_json_put_string(&json, "version", conn->server.software);
    for (unsigned i = 0; i < TTM_COUNTER_COUNT; i++)
        ttm_json_put_u64(&json, ttm_counter_name(i), answer->status.counter[i]);
    ttm_json_put_string(&json, "recording_trouble", recording_trouble(&answer->status));
    ttm_json_key(&json, "clients");
    ttm_json_array_begin(&json);
    for (size_t i = 0; i < client_count; i++)
        put_process_json(&json, &answer->processes[i].row);
    ttm_json_array_end(&json);
    put_counted_json(&json, answer, client_count);
    struct standby standby;
    find_standby(answer, client_count, &standby);
    ttm_json_key(&json, "disabled"); /* could report, and the server has not heard of them */
    ttm_json_array_begin(&json);
    for (size_t i = 0; i < standby.count; i++)
        ttm_json_i64(&json, standby.pids[i]);
    ttm_json_array_end(&json);
    if (checked) {
        ttm_json_key(&json, "check");
        ttm_json_object_begin(&json);
        ttm_json_put_bool(&json, "ok", checked->mismatches == 0);
        ttm_json_put_u64(&json, "lives", checked->lives);
        ttm_json_put_u64(&json, "processes", checked->processes);
        ttm_json_put_u64(&json, "mismatches", checked->mismatches);
        ttm_json_object_end(&json);
    }
    ttm_json_object_end(&json);
    ttm_text_append(out, "\n");
}

static int ask_and_print(struct ttm_connection *conn, bool is_json, bool has_check)
{
    const struct ttm_terminal terminal = ttm_terminal_of(STDOUT_FILENO);
    struct ttm_runtime runtime = {0};
    struct ttm_answer answer, check;
    struct ttm_text whole, out;
    int status = TTM_EXIT_OK;

    ttm_answer_init(&answer);
    ttm_answer_init(&check);
    ttm_text_init(&whole);
    ttm_text_init(&out);
    int r = ttm_answer_ask(conn, TTM_FRAME_GET_STATUS, &answer);
    if (r == 0 && has_check)
        r = ttm_answer_ask(conn, TTM_FRAME_CHECK, &check);
    if (r < 0) {
        status = ttm_ask_failed(conn, r);
    } else {
        const struct ttm_checked *checked = has_check ? &check.checked : NULL;
        const size_t client_count = answer.process_count;
        (void)ttm_runtime_add(&runtime, &answer); /* what cannot be known of it is left out */
        if (is_json)
            put_json(&out, conn, &answer, client_count, checked);
        else
            put_text(&whole, conn, &answer, client_count, checked);
        ttm_terminal_fit(&terminal, &whole, &out);
        r = ttm_terminal_print(&out);
        if (r < 0)
            status = ttm_ask_unwritten(r);
        else if (checked && checked->mismatches > 0)
            status = TTM_EXIT_FAILED;
    }
    ttm_text_done(&whole);
    ttm_text_done(&out);
    ttm_answer_done(&check);
    ttm_answer_done(&answer);
    ttm_runtime_done(&runtime);
    return status;
}

static int run(int argc, char **argv)
{
    struct ttm_options parsed;
    struct ttm_connection conn;
    const char *socket_path = NULL;
    bool is_json = false, has_check = false;
    int id;

    ttm_options_init(&parsed, &ttm_command_status, argc, argv);
    while ((id = ttm_options_next(&parsed)) > 0) {
        if (id == OPTION_CHECK)
            has_check = true;
        else if (id == 'j')
            is_json = true;
        else if (id == 's')
            socket_path = parsed.value;
    }
    if (id != TTM_OPTION_END)
        return id == TTM_OPTION_HELP ? TTM_EXIT_OK : TTM_EXIT_USAGE;
    int status = ttm_ask_connect(socket_path, &conn);
    if (status == TTM_EXIT_OK)
        status = ask_and_print(&conn, is_json, has_check);
    else if (is_json && status == TTM_EXIT_FAILED)
        printf("{\"schema\":\"tt-mem/status/1\",\"running\":false}\n");
    ttm_connection_close(&conn);
    return status;
}

const struct ttm_command ttm_command_status = {
    .name = "status",
    .synopsis = "[--check] [--json]",
    .summary = "Whether a server is running, who reports to it, and what it refused.",
    .options = options,
    .run = run,
};
