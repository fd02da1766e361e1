/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/diff.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/recording_file.h"
#include "cli/report_json.h"
#include "cli/terminal.h"
#include "cli/words_json.h"

enum { OPTION_FROM = 256, OPTION_TO, OPTION_ALL };

static const struct ttm_option options[] = {
    {.id = OPTION_FROM, .name = "from", .arg = "MARK", .help = "in one FILE: from this mark"},
    {.id = OPTION_TO, .name = "to", .arg = "MARK", .help = "to this one"},
    {.id = OPTION_ALL, .name = "all", .help = "show long lists whole, and what did not change"},
    TTM_OPTION_JSON,
    TTM_OPTION_HELP_ROW,
    {0},
};

/* How far to trust the recordings: twice the same one for two marks of it. */
struct trust {
    const struct ttm_recording_info *of[2];
};

struct wish {
    const char *marks[TTM_MOMENTS]; /* NULL: the ends of two files */
    const char *labels[2];
    const char *paths[2]; /* of the recordings */
    bool is_unfolded;
    bool is_json;
    bool is_backwards; /* the first mark comes after the second */
};

/* ---- JSON ---- */

static void put_side(struct ttm_json *json, const char *prefix, const struct ttm_held *held)
{
    char key[64];

    (void)snprintf(key, sizeof(key), "%s_count", prefix);
    ttm_json_put_u64(json, key, held->count);
    (void)snprintf(key, sizeof(key), "%s_bytes", prefix);
    ttm_json_put_u64(json, key, held->bytes);
    (void)snprintf(key, sizeof(key), "%s_footprint_bytes", prefix);
    ttm_json_put_u64(json, key, held->footprint_bytes);
}

static void put_json(const struct ttm_diff *diff, const struct trust *trust,
                     const struct wish *wish, struct ttm_text *out)
{
    struct ttm_json json;

    ttm_json_init(&json, out);
    ttm_json_object_begin(&json);
    ttm_json_put_string(&json, "schema", "tt-mem/diff/1");
    ttm_json_put_string(&json, "from", wish->labels[0]);
    ttm_json_put_string(&json, "to", wish->labels[1]);
    ttm_recording_json(&json, "from_recording", trust->of[0]);
    ttm_recording_json(&json, "to_recording", trust->of[1]);
    ttm_json_key(&json, "origins");
    ttm_json_array_begin(&json);
    for (uint32_t i = 0; i < diff->count; i++) {
        const struct ttm_diff_row *row = &diff->rows[i];
        ttm_json_object_begin(&json);
        ttm_words_json(&json, &row->origin->words, false);
        ttm_json_put_string(&json, "region", ttm_region_name(row->origin->region));
        put_side(&json, "from", &row->from);
        put_side(&json, "to", &row->to);
        ttm_json_put_i64(&json, "growth_count", (int64_t)row->to.count - (int64_t)row->from.count);
        ttm_json_put_i64(&json, "growth_footprint_bytes", ttm_diff_growth(row));
        ttm_json_put_string(&json, "class", ttm_class_name(row->origin->verdict.class));
        ttm_json_put_bool(&json, "suspect", row->origin->verdict.is_suspect);
        ttm_json_object_end(&json);
    }
    ttm_json_array_end(&json);
    ttm_json_object_end(&json);
    ttm_text_append(out, "\n");
}

/* ---- text ---- */

static void put_place(const struct ttm_origin_words *words, struct ttm_text *out)
{
    if (words->python_count > 0) {
        ttm_text_append_safe(out, ttm_base_name(words->python[0].file));
        ttm_text_format(out, ":%u ", words->python[0].line);
        ttm_text_append_safe(out, words->python[0].function);
    } else if (words->operation[0] != '\0') {
        ttm_text_append_safe(out, words->operation);
    } else if (words->native_count > 0) {
        ttm_text_append_safe(out, words->native[words->native_place]);
    } else {
        ttm_text_append(out, "(origin not known)");
    }
}

static void put_row(const struct ttm_diff_row *row, const struct ttm_terminal *terminal,
                    struct ttm_text *out)
{
    const int64_t growth = ttm_diff_growth(row);
    const size_t columns = terminal->columns > 80 ? terminal->columns - 52 : 28;
    char from[TTM_NUMBER_SIZE], to[TTM_NUMBER_SIZE], by[TTM_NUMBER_SIZE], counts[64];
    struct ttm_text place;

    ttm_text_init(&place);
    put_place(&row->origin->words, &place);
    ttm_text_append(out, "  ");
    ttm_text_append_column(out, ttm_text_string(&place), columns < 60 ? columns : 60,
                           terminal->has_utf8);
    (void)snprintf(counts, sizeof(counts), "%s %s %s", ttm_format_count(row->from.count, from),
                   terminal->has_utf8 ? "→" : ">", ttm_format_count(row->to.count, to));
    ttm_text_format(out, " %-7s", ttm_region_name(row->origin->region));
    const size_t width = ttm_terminal_width(counts);
    ttm_text_repeat(out, " ", width < 15 ? 15 - width : 0);
    ttm_text_append(out, counts);
    ttm_terminal_colour(terminal, out, growth > 0 ? TTM_RED : growth < 0 ? TTM_GREEN : TTM_PLAIN);
    (void)snprintf(counts, sizeof(counts), "%s%s",
                   growth > 0   ? "+"
                   : growth < 0 ? "-"
                                : "",
                   ttm_format_bytes((uint64_t)(growth < 0 ? -growth : growth), by));
    ttm_text_format(out, " %11s", counts);
    ttm_terminal_colour(terminal, out, TTM_PLAIN);
    ttm_text_format(out, "%s\n", row->origin->verdict.is_suspect ? " suspect" : "");
    out->failed |= place.failed;
    ttm_text_done(&place);
}

/* What is not in a recording can look as if it had become less. */
static void put_flaws(const struct trust *trust, const struct wish *wish,
                      const struct ttm_terminal *terminal, struct ttm_text *out)
{
    struct ttm_text flaws;

    ttm_text_init(&flaws);
    for (unsigned i = 0; i < 2 && wish->paths[i]; i++) {
        ttm_text_clear(&flaws);
        ttm_recording_flaws(trust->of[i], &flaws);
        if (flaws.length == 0)
            continue;
        ttm_text_append(out, "  ");
        ttm_text_append_safe(out, wish->paths[i]);
        ttm_text_append(out, ": ");
        ttm_terminal_colour(terminal, out, TTM_YELLOW);
        ttm_text_append(out, ttm_text_string(&flaws));
        ttm_terminal_colour(terminal, out, TTM_PLAIN);
        ttm_text_append(out, "\n");
    }
    out->failed |= flaws.failed;
    ttm_text_done(&flaws);
}

/* Three rows for the head and the foot, one for the prompt. */
static uint32_t rows_for(const struct wish *wish, const struct ttm_terminal *terminal)
{
    if (wish->is_unfolded)
        return UINT32_MAX;
    return !terminal->is_terminal ? 30 : terminal->rows > 10 ? (uint32_t)terminal->rows - 5 : 5;
}

static void put_text(const struct ttm_diff *diff, const struct trust *trust,
                     const struct wish *wish, const struct ttm_terminal *terminal,
                     struct ttm_text *out)
{
    const uint32_t most = rows_for(wish, terminal);
    char number[TTM_NUMBER_SIZE];
    uint32_t shown = 0, same = 0;

    for (uint32_t i = 0; i < diff->count; i++)
        same += ttm_diff_growth(&diff->rows[i]) == 0;
    ttm_text_append(out, "from ");
    ttm_text_append_safe(out, wish->labels[0]);
    ttm_text_append(out, " to ");
    ttm_text_append_safe(out, wish->labels[1]);
    const bool has_grown = diff->grown_bytes > 0, has_shrunk = diff->shrunk_bytes > 0;
    ttm_text_append(out, has_grown || has_shrunk ? ": " : ": as much as before");
    if (has_grown)
        ttm_text_format(out, "+%s", ttm_format_bytes(diff->grown_bytes, number));
    if (has_shrunk)
        ttm_text_format(out, "%s-%s", has_grown ? ", " : "",
                        ttm_format_bytes(diff->shrunk_bytes, number));
    ttm_text_append(out, "\n");
    if (wish->is_backwards)
        ttm_text_append(out, "  backwards: there is no such mark before the other one\n");
    put_flaws(trust, wish, terminal, out);
    for (uint32_t i = 0; i < diff->count && shown < most; i++) {
        if (ttm_diff_growth(&diff->rows[i]) == 0 && !wish->is_unfolded)
            continue;
        put_row(&diff->rows[i], terminal, out);
        shown++;
    }
    const uint32_t changed = diff->count - same;
    if (!wish->is_unfolded && changed > shown)
        ttm_text_format(out, "  %s %u more changed: --all\n", ttm_terminal_ellipsis(terminal),
                        changed - shown);
    if (!wish->is_unfolded && same > 0)
        ttm_text_format(out, "  %u did not change\n", same);
}

/* ---- the command ---- */

static int print(const struct ttm_diff *diff, const struct trust *trust, const struct wish *wish)
{
    const struct ttm_terminal terminal = ttm_terminal_of(STDOUT_FILENO);
    struct ttm_text whole, out;

    ttm_text_init(&whole);
    ttm_text_init(&out);
    if (wish->is_json) {
        put_json(diff, trust, wish, &out);
    } else {
        put_text(diff, trust, wish, &terminal, &whole);
        ttm_terminal_fit(&terminal, &whole, &out);
    }
    out.failed |= whole.failed;
    const int r = ttm_terminal_print(&out);
    ttm_text_done(&whole);
    ttm_text_done(&out);
    return r < 0 ? ttm_ask_unwritten(r) : TTM_EXIT_OK;
}

static int compare(const struct ttm_diff_side *from, const struct ttm_diff_side *to,
                   const struct wish *wish)
{
    const struct trust trust = {{&from->report->info, &to->report->info}};
    struct ttm_diff diff;
    const int r = ttm_diff_make(from, to, &diff);

    if (r < 0) {
        ttm_log("cannot compare: %s", strerror(-r));
        return TTM_EXIT_FAILED;
    }
    const int status = print(&diff, &trust, wish);
    ttm_diff_done(&diff);
    return status;
}

/* Whether a process has said that mark; says so when none has. */
static bool has_mark(const struct ttm_report *report, uint32_t moment, const char *name,
                     const char *path)
{
    for (uint32_t i = 0; i < report->process_count; i++) {
        if (report->processes[i].has_moment[moment])
            return true;
    }
    ttm_log("there is no mark '%s' in '%s'", name, path);
    return false;
}

static bool is_backwards(const struct ttm_report *report)
{
    for (uint32_t i = 0; i < report->process_count; i++) {
        const struct ttm_report_process *process = &report->processes[i];
        if (process->has_moment[0] && process->has_moment[1] &&
            process->moment_ns[0] > process->moment_ns[1])
            return true;
    }
    return false;
}

static int compare_marks(struct wish *wish)
{
    const char *path = wish->paths[0];
    const struct ttm_report_options wanted = {.moments = {wish->marks[0], wish->marks[1]}};
    struct ttm_report report = {0};
    int status = ttm_recording_report(path, &wanted, &report);

    wish->is_backwards = status == TTM_EXIT_OK && is_backwards(&report);
    if (status == TTM_EXIT_OK && (!has_mark(&report, 0, wish->marks[0], path) ||
                                  !has_mark(&report, 1, wish->marks[1], path)))
        status = TTM_EXIT_FAILED;
    else if (status == TTM_EXIT_OK)
        status =
            compare(&(struct ttm_diff_side){&report, 0}, &(struct ttm_diff_side){&report, 1}, wish);
    ttm_report_done(&report);
    return status;
}

static int compare_files(const struct wish *wish)
{
    const struct ttm_report_options wanted = {0};
    struct ttm_report from = {0}, to = {0};
    int status = ttm_recording_report(wish->paths[0], &wanted, &from);

    if (status == TTM_EXIT_OK)
        status = ttm_recording_report(wish->paths[1], &wanted, &to);
    if (status == TTM_EXIT_OK)
        status =
            compare(&(struct ttm_diff_side){&from, -1}, &(struct ttm_diff_side){&to, -1}, wish);
    ttm_report_done(&from);
    ttm_report_done(&to);
    return status;
}

static int run(int argc, char **argv)
{
    struct ttm_options parsed;
    struct wish wish = {0};
    int id;

    ttm_options_init(&parsed, &ttm_command_diff, argc, argv);
    while ((id = ttm_options_next(&parsed)) > 0) {
        if (id == OPTION_FROM || id == OPTION_TO)
            wish.marks[id - OPTION_FROM] = parsed.value;
        wish.is_unfolded |= id == OPTION_ALL;
        wish.is_json |= id == 'j';
    }
    if (id != TTM_OPTION_END)
        return id == TTM_OPTION_HELP ? TTM_EXIT_OK : TTM_EXIT_USAGE;
    char **rest = ttm_options_rest(&parsed);
    const bool is_marks = wish.marks[0] && wish.marks[1];
    const int count = !rest[0] ? 0 : !rest[1] ? 1 : !rest[2] ? 2 : 3;
    if (count != (is_marks ? 1 : 2) || (!is_marks && (wish.marks[0] || wish.marks[1]))) {
        (void)ttm_options_complain(&parsed, "two recordings, or one with --from and --to");
        return TTM_EXIT_USAGE;
    }
    wish.labels[0] = is_marks ? wish.marks[0] : rest[0];
    wish.labels[1] = is_marks ? wish.marks[1] : rest[1];
    wish.paths[0] = rest[0];
    wish.paths[1] = rest[1];
    return is_marks ? compare_marks(&wish) : compare_files(&wish);
}

const struct ttm_command ttm_command_diff = {
    .name = "diff",
    .synopsis = "A B | FILE --from MARK --to MARK [--all] [--json]",
    .summary = "What grew between two recordings or two marks, by origin.",
    .details = "Origins are matched by function and operation, as lines may have moved.",
    .options = options,
    .run = run,
    .takes_operands = true,
};
