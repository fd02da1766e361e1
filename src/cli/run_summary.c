/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One screen: the head says how it ended, then come devices, what remains, the
 * processes when there were several, and what to type next. The lists share the rows
 * of the terminal; what does not fit is counted in a line of its own.
 */
#include "cli/run_summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/older_headers.h"
#include "base/own_fd.h"
#include "cli/report_text.h"
#include "cli/run_sheet.h"
#include "ring/producer.h"

#define COMMAND_MIN 12
#define COMMAND_MAX 60
#define PROCESS_COMMAND_MIN 20
#define PROCESS_COMMAND_MAX 60
#define RUNNING_NAMED 4
#define ROWS_HIGH 40 /* a terminal with this many shows longer lists */
#define ANALYSIS_LEAST 8
#define ANALYSIS_MOST 24

/* A command line for people, cut to so many columns. Returns those it takes. */
static size_t put_command(const struct sheet *sheet, const char *command, size_t columns,
                          bool is_padded)
{
    struct ttm_text safe;

    ttm_text_init(&safe);
    ttm_terminal_command(&safe, command);
    const char *text = ttm_text_string(&safe);
    const size_t width = ttm_terminal_width(text);
    const size_t taken = is_padded || width > columns ? columns : width;
    ttm_text_append_column(sheet->out, text, taken, sheet->terminal->has_utf8);
    part_done(sheet, &safe);
    return taken;
}

/* ---- the head ---- */

/* "exited 1", "was killed by SIGSEGV"; in 'was' other words for that: "exit 1", "killed by …". */
static void name_end(const struct ttm_child_end *end, bool is_verb, char ret[64])
{
    const char *name = end->signal > 0 ? sigabbrev_np(end->signal) : NULL;
    const char *was = is_verb ? "was " : "";

    if (end->signal == 0)
        (void)snprintf(ret, 64, "%s %d", is_verb ? "exited" : "exit", end->exit_code);
    else if (name)
        (void)snprintf(ret, 64, "%skilled by SIG%s", was, name);
    else
        (void)snprintf(ret, 64, "%skilled by signal %d", was, end->signal);
}

static void put_end(const struct sheet *sheet)
{
    const struct ttm_child_end *end = &sheet->summary->end;
    const enum ttm_colour colour = ttm_child_status(end) == 0 ? TTM_PLAIN : TTM_RED;
    const bool is_tracked = ttm_departed_has_news(sheet->departed);
    const char *core = end->has_dumped_core ? " (core dumped)" : "";
    char duration[TTM_NUMBER_SIZE], how[64];

    name_end(end, !is_tracked, how);
    (void)ttm_format_duration(end->duration_ns, duration);
    if (is_tracked)
        ttm_text_format(sheet->out, " ended after %s, ", duration);
    else
        put(sheet, " ");
    put_in(sheet, colour, how);
    put(sheet, core);
    if (!is_tracked)
        ttm_text_format(sheet->out, " after %s", duration);
}

/* Why the program itself keeps the hook out, or NULL. */
static const char *obstacle_of(const struct ttm_run_summary *summary)
{
    switch (summary->program) {
    case TTM_PROGRAM_STATIC:
        return "not tracked: it is linked statically";
    case TTM_PROGRAM_PRIVILEGED:
        return "not tracked: it runs as another user";
    case TTM_PROGRAM_FOREIGN:
        return "not tracked: it is built for another system";
    case TTM_PROGRAM_ORDINARY:
        break;
    }
    if (!ttm_producer_is_allowed())
        return "not tracked: what tracking shares is larger than files may be (ulimit -f)";
    return NULL;
}

/* Of a program in which TT-Metal was loaded, and no device was open. */
static void put_idle_runtime(const struct sheet *sheet)
{
    const struct ttm_departed *d = sheet->departed;
    const char *what = "was loaded, but no device was opened";

    if (d->opening[0] != '\0')
        what = d->opening;
    else if (d->is_runtime_off)
        what = "was loaded, but tracking was off";
    ttm_text_append_safe(sheet->out, d->runtime);
    put(sheet, d->opening[0] != '\0' ? ": " : " ");
    ttm_text_append_safe(sheet->out, what);
    put(sheet, ", so nothing was tracked");
}

/* Why nothing was tracked. */
static void put_reason(const struct sheet *sheet)
{
    const struct ttm_run_summary *summary = sheet->summary;
    const char *trouble = ttm_departed_trouble(summary->departed);
    const char *obstacle = obstacle_of(summary);

    if (trouble)
        ttm_text_append_safe(sheet->out, trouble);
    else if (summary->is_untracked)
        put(sheet, "it was not tracked");
    else if (summary->is_server_gone)
        put(sheet, "the server has gone, nothing is known of it");
    else if (summary->departed->runtime[0] != '\0')
        put_idle_runtime(sheet);
    else if (obstacle)
        put(sheet, obstacle);
    else if (summary->fd_limit < TTM_OWN_FD_LIMIT_MIN)
        ttm_text_format(sheet->out,
                        "not tracked: it may have %" PRIu64 " files open, tracking needs %d "
                        "(ulimit -n)",
                        summary->fd_limit, TTM_OWN_FD_LIMIT_MIN);
    else if (summary->end.signal > 0 || summary->server)
        put(sheet, "no TT-Metal device was opened, so nothing was tracked");
    else
        put(sheet, "no TT-Metal library was loaded, so nothing was tracked");
}

static void put_lost(const struct sheet *sheet)
{
    const uint64_t lost_events = sheet->departed->sums.lost_events;
    char text[TTM_NUMBER_SIZE + 16], number[TTM_NUMBER_SIZE];

    if (lost_events == 0) {
        put(sheet, ttm_departed_has_missed(sheet->departed) ? "not all was heard" : "nothing lost");
        return;
    }
    (void)snprintf(text, sizeof(text), "%s %s lost", ttm_format_count(lost_events, number),
                   plural(lost_events, "event", "events"));
    put_in(sheet, TTM_RED, text);
}

static void put_counts(const struct sheet *sheet)
{
    const struct ttm_departed *d = sheet->departed;
    const char *server = sheet->summary->server;
    char births[TTM_NUMBER_SIZE], ends[TTM_NUMBER_SIZE];

    put(sheet, "tracked");
    if (!server || d->device_count > 0)
        ttm_text_format(sheet->out, " on %u %s", d->device_count,
                        plural(d->device_count, "device", "devices"));
    if (server) {
        if (!sheet->summary->is_server_gone) {
            put(sheet, ", ");
            put_lost(sheet);
            put(sheet, ",");
        }
        put(sheet, " by the server at ");
        ttm_text_append_safe(sheet->out, server);
        return;
    }
    ttm_text_format(sheet->out, "%s%s %s, %s %s, ", ttm_terminal_dot(sheet->terminal),
                    ttm_format_count(d->sums.births, births),
                    plural(d->sums.births, "allocation", "allocations"),
                    ttm_format_count(d->sums.ends, ends), plural(d->sums.ends, "free", "frees"));
    put_lost(sheet);
}

/* How the command ended, and what was heard of it: one line where both fit, else two. */
static void put_head(const struct sheet *sheet)
{
    const bool is_heard_of = ttm_departed_has_news(sheet->departed);
    const size_t width = sheet->terminal->columns;
    struct ttm_text end, heard;
    struct sheet part = *sheet;

    ttm_text_init(&end);
    ttm_text_init(&heard);
    part.out = &end;
    put_end(&part);
    part.out = &heard;
    if (is_heard_of)
        put_counts(&part);
    else
        put_reason(&part);
    const size_t end_width = ttm_terminal_width(ttm_text_string(&end)) + strlen("tt-mem: ");
    const size_t heard_width = ttm_terminal_width(ttm_text_string(&heard)) + strlen(" - ");
    const size_t room = within(width > end_width ? width - end_width : 0, COMMAND_MIN, COMMAND_MAX);

    put(sheet, "tt-mem: ");
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_BOLD);
    const size_t command_width = put_command(sheet, sheet->summary->command, room, false);
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
    put(sheet, ttm_text_string(&end));
    const bool is_too_wide = end_width + command_width + heard_width > width;
    if (!is_heard_of) /* what is not read on a terminal stays one line, however long */
        put(sheet, is_too_wide && sheet->terminal->is_terminal ? ";\n  " : "; ");
    else
        put(sheet, is_too_wide ? "\n  " : ttm_terminal_dot(sheet->terminal));
    put(sheet, ttm_text_string(&heard));
    put(sheet, "\n");
    part_done(sheet, &end);
    part_done(sheet, &heard);
}

static void put_trouble(const struct sheet *sheet)
{
    const char *trouble = ttm_departed_trouble(sheet->departed);

    if (!trouble)
        return;
    put(sheet, "  ");
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_YELLOW);
    ttm_text_append_safe(sheet->out, trouble);
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
    put(sheet, "\n");
}

/* What the server knows, totals and the plain list of what remains, is exact all the same. */
static void put_recording_stopped(const struct sheet *sheet)
{
    const char *why = sheet->summary->recording_stopped;

    if (!why)
        return;
    put(sheet, "  ");
    put_in(sheet, TTM_YELLOW, "recording stopped");
    ttm_text_format(sheet->out, " (%s): origins are of the time before\n", why);
}

static void add_oddity(const struct sheet *sheet, struct ttm_text *list, uint64_t count,
                       const char *what)
{
    char number[TTM_NUMBER_SIZE];

    if (count == 0)
        return;
    if (list->length > 0)
        ttm_text_append(list, ttm_terminal_dot(sheet->terminal));
    ttm_text_format(list, "%s %s", ttm_format_count(count, number), what);
}

/* How far what is below can be trusted, when that is not all the way. */
static const char *caution_of(const struct ttm_departed *departed)
{
    if (departed->inexact_count > 0)
        return "it ended before that was made good: nothing below is exact";
    if (departed->off_count > 0)
        return "tracking was off in the end: nothing below is exact";
    if (ttm_departed_is_inexact(departed))
        return "nothing below is exact";
    if (departed->gap_count > 0)
        return "its history has a gap: what remains is exact, allocations and frees were more";
    return departed->sums.lost_events > 0
               ? "what remains is exact; allocations and frees were more, peaks perhaps"
               : "";
}

/* What should not be there, in one line, when there is any. */
static void put_oddities(const struct sheet *sheet)
{
    const struct ttm_departed_sums *sums = &sheet->departed->sums;
    struct ttm_text list;

    ttm_text_init(&list);
    ttm_text_append(&list, caution_of(sheet->departed));
    add_oddity(sheet, &list, sums->untracked, "not tracked for want of room");
    add_oddity(
        sheet, &list, sums->refused,
        plural(sums->refused, "refused, as it makes no sense", "refused, as they make no sense"));
    add_oddity(sheet, &list, sums->unknown_frees,
               plural(sums->unknown_frees, "free of something unknown", "unknown frees"));
    add_oddity(sheet, &list, sums->replaced, "replaced without a free");
    add_oddity(sheet, &list, sums->failures,
               plural(sums->failures, "allocation failed", "allocations failed"));
    add_oddity(sheet, &list, sums->notes_left_out, "names and contexts without room");
    if (sheet->departed->is_short)
        ttm_text_format(&list, "%smemory was short: the lists are not whole",
                        list.length > 0 ? ttm_terminal_dot(sheet->terminal) : "");
    if (list.length > 0)
        ttm_text_format(sheet->out, "  %s\n", ttm_text_string(&list));
    part_done(sheet, &list);
}

/* ---- processes ---- */

static uint32_t process_total(const struct ttm_departed *departed)
{
    return departed->process_count + departed->processes_left_out;
}

static size_t process_command_columns(const struct sheet *sheet)
{
    const size_t width = sheet->terminal->columns;

    return within(width > 54 ? width - 54 : 0, PROCESS_COMMAND_MIN, PROCESS_COMMAND_MAX);
}

static void put_process(const struct sheet *sheet, const struct ttm_departed_process *process)
{
    char births[TTM_NUMBER_SIZE], ends[TTM_NUMBER_SIZE], left[TTM_NUMBER_SIZE];
    char sum[TTM_NUMBER_SIZE];

    ttm_text_format(sheet->out, "%9d  ", process->pid);
    put_command(sheet, process->command, process_command_columns(sheet), true);
    if (!sheet->summary->server) /* else not known */
        ttm_text_format(sheet->out, " %11s %9s", ttm_format_count(process->sums.births, births),
                        ttm_format_count(process->sums.ends, ends));
    ttm_text_format(sheet->out, " %9s %10s\n", ttm_format_count(process->sums.remaining, left),
                    process->sums.remaining
                        ? ttm_format_bytes(process->sums.remaining_footprint_bytes, sum)
                        : "0");
}

/* In the list of processes. */
struct place {
    const struct ttm_departed_process *process;
};

/* Those with the most that remains first, then those that allocated most. */
static int by_remaining(const void *a, const void *b)
{
    const struct ttm_departed_process *x = ((const struct place *)a)->process;
    const struct ttm_departed_process *y = ((const struct place *)b)->process;

    if (x->sums.remaining_footprint_bytes != y->sums.remaining_footprint_bytes)
        return x->sums.remaining_footprint_bytes < y->sums.remaining_footprint_bytes ? 1 : -1;
    if (x->sums.births != y->sums.births)
        return x->sums.births < y->sums.births ? 1 : -1;
    return x < y ? -1 : x > y; /* in the order of their ends */
}

static void put_process_rows(const struct sheet *sheet, uint32_t row_max)
{
    const struct ttm_departed *d = sheet->departed;
    struct place order[TTM_DEPARTED_PROCESSES_MAX] = {0};
    const uint32_t total = process_total(d);
    const uint32_t shown = total > row_max ? row_max - 1 : d->process_count;

    for (uint32_t i = 0; i < d->process_count; i++)
        order[i].process = &d->processes[i];
    qsort(order, d->process_count, sizeof(order[0]), by_remaining);
    for (uint32_t i = 0; i < shown; i++)
        put_process(sheet, order[i].process);
    if (shown < total)
        ttm_text_format(sheet->out, "           %s %u more\n",
                        ttm_terminal_ellipsis(sheet->terminal), total - shown);
}

static void put_processes(const struct sheet *sheet, uint32_t row_max)
{
    char title[64];

    if (process_total(sheet->departed) < 2)
        return;
    (void)snprintf(title, sizeof(title), "%u processes", process_total(sheet->departed));
    put(sheet, "\n  ");
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_DIM);
    ttm_text_append_column(sheet->out, title, process_command_columns(sheet) + 9,
                           sheet->terminal->has_utf8);
    put(sheet, sheet->summary->server ? "    remain  requested"
                                      : " allocations     frees    remain      takes");
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
    put(sheet, "\n");
    put_process_rows(sheet, row_max);
}

/* Those that outlive the command. */
static void put_running(const struct sheet *sheet)
{
    const struct ttm_departed *d = sheet->departed;
    const char *separator = " ";
    uint32_t named = 0;

    if (d->running_count == 0)
        return;
    put(sheet, "\n  ");
    put_in(sheet, TTM_YELLOW, "still running");
    put(sheet,
        sheet->summary->server ? ", and tracked by the server:" : ", and tracked no longer:");
    for (uint32_t i = 0; i < d->process_count && named < RUNNING_NAMED; i++) {
        if (!d->processes[i].is_running)
            continue;
        ttm_text_format(sheet->out, "%s%d ", separator, d->processes[i].pid);
        put_command(sheet, d->processes[i].command, PROCESS_COMMAND_MIN, false);
        separator = ", ";
        named++;
    }
    if (named < d->running_count)
        ttm_text_format(sheet->out, ", %u more", d->running_count - named);
    put(sheet, "\n");
}

/* ---- all of it ---- */

/* What to type next. */
static void put_next(const struct sheet *sheet)
{
    const struct ttm_run_summary *summary = sheet->summary;
    char bytes[TTM_NUMBER_SIZE];

    if (summary->recording) {
        put(sheet, summary->recording_stopped ? "\n  recorded in part in " : "\n  recorded in ");
        ttm_text_append_safe(sheet->out, summary->recording);
        ttm_text_format(sheet->out, " (%s)%s", ttm_format_bytes(summary->recording_bytes, bytes),
                        ttm_terminal_dot(sheet->terminal));
        ttm_terminal_colour(sheet->terminal, sheet->out, TTM_BOLD);
        put(sheet, "tt-mem report");
        if (strchr(summary->recording, '/')) { /* else it finds the newest in this folder */
            put(sheet, " ");
            ttm_text_append_safe(sheet->out, summary->recording);
        }
        ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
        if (sheet->is_brief) {
            put(sheet, "\n");
            return;
        }
        put(sheet, "\n  as a page: ");
        ttm_terminal_colour(sheet->terminal, sheet->out, TTM_BOLD);
        put(sheet, "tt-mem export ");
        ttm_text_append_safe(sheet->out, summary->recording);
        put(sheet, " --format html -o run.html");
        ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
        put(sheet, "\n");
    } else if (sheet->departed->sums.remaining > sheet->departed->sums.program_parts) {
        put(sheet, "\n  while it runs: ");
        put_in(sheet, TTM_BOLD, "tt-mem dump");
        put(sheet, " lists each, ");
        put_in(sheet, TTM_BOLD, "tt-mem tail");
        put(sheet, " shows them come and go\n");
    }
}

/* How much of it goes into the first line: all, or on a terminal the parts that fit. */
static size_t verdict_break(const struct sheet *sheet)
{
    const char *text = sheet->summary->leak_verdict;
    const size_t all = strlen(text), room = sheet->terminal->columns;
    size_t at = all;

    if (!sheet->terminal->is_terminal || 2 + all <= room)
        return all;
    for (const char *part = strstr(text, ", "); part; part = strstr(part + 2, ", ")) {
        if (at == all || 2 + (size_t)(part - text) + 1 <= room)
            at = (size_t)(part - text) + 2;
    }
    return at;
}

static void put_verdict(const struct sheet *sheet)
{
    const char *text = sheet->summary->leak_verdict;

    if (!text)
        return;
    const size_t first = verdict_break(sheet);
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_BOLD);
    ttm_text_format(sheet->out, "  %.*s%s%s", (int)(text[first] ? first - 1 : first), text,
                    text[first] ? "\n  " : "", text + first);
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
    put(sheet, "\n");
}

static size_t count_lines(const struct ttm_text *text, size_t from)
{
    size_t lines = 0;

    for (size_t i = from; i < text->length; i++)
        lines += text->data[i] == '\n';
    return lines;
}

/* The rows that are left for suspects on a low terminal, when so many are taken above them. */
static size_t rows_for_suspects(const struct sheet *sheet, size_t taken, size_t processes_rows)
{
    /* What remains in all, what to type next, and the prompt. */
    size_t others = taken + processes_rows + 2 + 2 + 1;

    if (sheet->summary->leak_verdict)
        others += sheet->summary->leak_verdict[verdict_break(sheet)] ? 3 : 2;
    others += sheet->departed->running_count > 0 ? 2 : 0;
    return sheet->terminal->rows > others ? sheet->terminal->rows - others : 0;
}

void ttm_run_summary_text(const struct ttm_run_summary *summary,
                          const struct ttm_terminal *terminal, struct ttm_text *out)
{
    const struct ttm_departed *d = summary->departed;
    const bool is_high = terminal->rows >= ROWS_HIGH;
    const bool has_suspects = summary->report && ttm_report_has_findings(summary->report);
    const struct sheet sheet = {.summary = summary,
                                .departed = d,
                                .terminal = terminal,
                                .out = out,
                                .is_brief = has_suspects && terminal->is_terminal && !is_high};
    const size_t start = out->length;
    const uint32_t remains_max = is_high ? 12 : 5, processes_max = is_high ? 8 : 3;

    if (terminal->is_terminal && summary->end.signal == SIGINT)
        put(&sheet, "\n"); /* behind the ^C that the terminal shows */
    put_head(&sheet);
    if (!ttm_departed_has_news(d)) {
        put_verdict(&sheet);
        return;
    }
    put_oddities(&sheet);
    put_trouble(&sheet);
    put_recording_stopped(&sheet);
    /* Three for the head, two around the devices, three for what comes last, one for the prompt. */
    const size_t processes_rows =
        process_total(d) > 1 ? 2 + within(process_total(d), 0, processes_max) : 0;
    size_t others = 9 + 3 +
                    (sheet.is_brief ? ANALYSIS_LEAST
                     : has_suspects ? ANALYSIS_MOST
                                    : within(d->remains.count, 0, remains_max));
    others += d->sums.program_parts > 0 ? 1 : 0;
    others += ttm_departed_trouble(d) ? 1 : 0;
    others += summary->recording_stopped ? 1 : 0;
    others += processes_rows;
    others += d->running_count > 0 ? 2 : 0;
    ttm_run_devices(&sheet, terminal->rows > others ? terminal->rows - others : 0);
    const size_t left = rows_for_suspects(&sheet, count_lines(out, start), processes_rows);
    ttm_run_remains(&sheet, remains_max,
                    sheet.is_brief ? within(left, ANALYSIS_LEAST, ANALYSIS_MOST) : ANALYSIS_MOST);
    put_processes(&sheet, processes_max);
    put_running(&sheet);
    put_next(&sheet);
    put(&sheet, summary->leak_verdict ? "\n" : "");
    put_verdict(&sheet);
}
