/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head says what ran and how far the numbers can be trusted; then come devices,
 * failures, suspects with their source lines, the rest by origin, and what to type
 * next. Lists share the rows of the terminal, and what does not fit is counted.
 */
#include "cli/report_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/recording_file.h"
#include "cli/source_line.h"
#include "wire/region.h"

#define WIDE_COLUMNS 110 /* from here on, more columns */
#define ROWS_ELSEWHERE 40
#define CALLERS_SHOWN 2
#define SUSPECTS_LEAST 3
#define SPARK_BARS 8

struct sheet {
    const struct ttm_report *report;
    const struct ttm_report_choice *choice;
    const struct ttm_report_process *process;
    const struct ttm_terminal *terminal;
    struct ttm_text *out;
    const char *path;
    size_t rows; /* that are left */
};

static void put(const struct sheet *sheet, const char *text)
{
    ttm_text_append(sheet->out, text);
}

static void put_in(const struct sheet *sheet, enum ttm_colour colour, const char *text)
{
    ttm_terminal_colour(sheet->terminal, sheet->out, colour);
    put(sheet, text);
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
}

static void put_columns(const struct sheet *sheet, const char *text, size_t columns)
{
    ttm_text_append_column(sheet->out, text, columns, sheet->terminal->has_utf8);
}

static const char *plural(uint64_t count, const char *one, const char *many)
{
    return count == 1 ? one : many;
}

static void end_line(struct sheet *sheet)
{
    put(sheet, "\n");
    sheet->rows -= sheet->rows > 0;
}

static const char *dot(const struct sheet *sheet)
{
    return ttm_terminal_dot(sheet->terminal);
}

static bool is_wide(const struct sheet *sheet)
{
    return sheet->terminal->columns >= WIDE_COLUMNS;
}

/* ---- the head ---- */

static void put_end(const struct sheet *sheet)
{
    const struct ttm_report_process *process = sheet->process;
    const struct ttm_recording_info *info = &sheet->report->info;
    char span[TTM_NUMBER_SIZE], how[64];

    const uint64_t end_ns = ttm_report_wall(sheet->report, process->last_ns);
    const bool has_start = process->start_wall_ns > 0 && process->start_wall_ns < end_ns;
    (void)ttm_format_duration(
        has_start ? end_ns - process->start_wall_ns : process->last_ns - process->first_ns, span);
    if (!process->has_ended) {
        ttm_text_format(sheet->out, ", %s recorded, ", span);
        put_in(sheet, TTM_YELLOW,
               info->is_being_written ? "still running"
               : info->is_finished    ? "running on"
                                      : "its end is not known");
        return;
    }
    ttm_text_format(sheet->out, " ended after %s, ", span);
    const char *name =
        process->end.how == TTM_PROCESS_SIGNALLED ? sigabbrev_np(process->end.code) : NULL;
    if (process->end.how == TTM_PROCESS_EXITED)
        (void)snprintf(how, sizeof(how), "exit %d", process->end.code);
    else if (name)
        (void)snprintf(how, sizeof(how), "killed by SIG%s", name);
    else if (process->end.how == TTM_PROCESS_SIGNALLED)
        (void)snprintf(how, sizeof(how), "killed by signal %d", process->end.code);
    else
        (void)snprintf(how, sizeof(how), "nobody knows how");
    put_in(sheet,
           process->end.how == TTM_PROCESS_EXITED && process->end.code == 0 ? TTM_PLAIN : TTM_RED,
           how);
}

static void put_command(const struct sheet *sheet)
{
    const size_t width = sheet->terminal->columns;
    const size_t room = width > 60 ? width - 46 : 14;
    struct ttm_text safe;

    ttm_text_init(&safe);
    ttm_terminal_command(&safe, sheet->process->command);
    const size_t length = ttm_terminal_width(ttm_text_string(&safe));
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_BOLD);
    put_columns(sheet, ttm_text_string(&safe), length < room ? length : room);
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
    sheet->out->failed |= safe.failed;
    ttm_text_done(&safe);
}

static void put_head(struct sheet *sheet)
{
    const struct ttm_report_process *process = sheet->process;
    char allocs[TTM_NUMBER_SIZE], frees[TTM_NUMBER_SIZE], lost[TTM_NUMBER_SIZE];

    put_command(sheet);
    if (sheet->report->process_count > 1)
        ttm_text_format(sheet->out, " (pid %d)", process->pid);
    put_end(sheet);
    end_line(sheet);
    ttm_text_format(sheet->out, "  %u %s%s%s %s, %s %s, ", process->device_count,
                    plural(process->device_count, "device", "devices"), dot(sheet),
                    ttm_format_count(process->allocs, allocs),
                    plural(process->allocs, "allocation", "allocations"),
                    ttm_format_count(process->frees, frees),
                    plural(process->frees, "free", "frees"));
    if (process->counters.lost_events == 0) {
        put(sheet, "nothing lost");
    } else {
        char text[64];
        (void)snprintf(text, sizeof(text), "%s lost",
                       ttm_format_count(process->counters.lost_events, lost));
        put_in(sheet, TTM_RED, text);
    }
    if (process->mark_count > 0)
        ttm_text_format(sheet->out, "%s%u %s", dot(sheet), process->mark_count,
                        plural(process->mark_count, "mark", "marks"));
    end_line(sheet);
}

/* How far to trust it, when that is not all the way. */
static void put_caution(struct sheet *sheet)
{
    struct ttm_text flaws;

    if (sheet->process->why_incomplete[0] != '\0') {
        put(sheet, "  ");
        put_in(sheet, TTM_YELLOW,
               sheet->process->is_complete ? "what remains is exact, the history is not: "
                                           : "not exact: ");
        put(sheet, sheet->process->why_incomplete);
        end_line(sheet);
    }
    ttm_text_init(&flaws);
    ttm_recording_flaws(&sheet->report->info, &flaws);
    if (flaws.length > 0) {
        put(sheet, "  ");
        put_in(sheet, TTM_YELLOW, ttm_text_string(&flaws));
        end_line(sheet);
    }
    sheet->out->failed |= flaws.failed;
    ttm_text_done(&flaws);
}

/* ---- devices ---- */

static bool is_used(const struct ttm_report_region *region)
{
    return region->allocs > 0;
}

/* Devices that look alike are shown once: a mesh is not 32 times as long. */
static bool looks_alike(const struct ttm_report_device *a, const struct ttm_report_device *b)
{
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
        const struct ttm_report_region *x = &a->region[r], *y = &b->region[r];
        if (x->allocs != y->allocs ||
            x->remaining.footprint_bytes != y->remaining.footprint_bytes ||
            x->peak_footprint_bytes != y->peak_footprint_bytes ||
            x->capacity_bytes != y->capacity_bytes)
            return false;
    }
    return a->arch == b->arch && strcmp(a->board, b->board) == 0;
}

/* "0", "0-7", "0,2,5": those of the process that look like 'like', or are in the list. */
static uint32_t put_alike(const struct sheet *sheet, const struct ttm_report_device *like,
                          struct ttm_text *out)
{
    const struct ttm_report_process *process = sheet->process;
    uint32_t count = 0;

    for (uint32_t i = 0, next; i < process->device_count; i = next) {
        next = i + 1;
        if (!looks_alike(&process->devices[i], like))
            continue;
        while (next < process->device_count && looks_alike(&process->devices[next], like) &&
               process->devices[next].id == process->devices[next - 1].id + 1)
            next++;
        ttm_text_format(out, next - i > 1 ? "%s%u-%u" : "%s%u", count > 0 ? "," : "",
                        process->devices[i].id, process->devices[next - 1].id);
        count += next - i;
    }
    return count;
}

#define LABEL_COLUMNS 26

static void put_region(struct sheet *sheet, const struct ttm_report_device *device, unsigned r)
{
    const struct ttm_report_region *region = &device->region[r];
    const bool is_cb = r == TTM_REGION_CB;
    const uint64_t now = is_cb ? device->cbs.registered_bytes : region->remaining.footprint_bytes;
    const uint64_t peak = is_cb ? device->cbs.peak_resident_bytes > 0
                                      ? device->cbs.peak_resident_bytes
                                      : device->cbs.peak_registered_bytes
                                : region->peak_footprint_bytes;
    const uint64_t capacity = region->capacity_bytes;
    const size_t width = sheet->terminal->columns;
    char text[TTM_NUMBER_SIZE], label[64];

    (void)snprintf(label, sizeof(label), "%s%s", ttm_region_name(r),
                   !is_cb                                ? ""
                   : device->cbs.peak_resident_bytes > 0 ? " (peak resident)"
                                                         : "");
    ttm_text_format(sheet->out, "    %-*s%10s", LABEL_COLUMNS - 2, label,
                    now ? ttm_format_bytes(now, text) : "0");
    ttm_text_format(sheet->out, " %10s", ttm_format_bytes(peak, text));
    if (capacity > 0) {
        ttm_text_format(sheet->out, " %10s  ", ttm_format_bytes(capacity, text));
        ttm_terminal_colour(sheet->terminal, sheet->out, ttm_terminal_load_colour(peak, capacity));
        ttm_terminal_bar(sheet->terminal, sheet->out, peak, capacity,
                         width > 100  ? 24
                         : width > 76 ? 8
                                      : 0);
        ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
        ttm_text_format(sheet->out, " %5.1f %%", 100.0 * (double)peak / (double)capacity);
    }
    end_line(sheet);
}

static void put_device(struct sheet *sheet, const struct ttm_report_device *device, bool is_first)
{
    struct ttm_text label, ids;

    ttm_text_init(&label);
    ttm_text_init(&ids);
    const uint32_t count = put_alike(sheet, device, &ids);
    ttm_text_format(&label, "%s %s%s ", count == 1 ? "device" : "devices", ttm_text_string(&ids),
                    count == 1 ? "" : " each");
    ttm_text_append_safe(&label, device->board);
    if (device->arch != TTM_ARCH_UNKNOWN && (count == 1 || !device->board[0]))
        ttm_text_format(&label, "%s%s", device->board[0] ? " " : "", ttm_arch_name(device->arch));
    put(sheet, "  ");
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_BOLD);
    put_columns(sheet, ttm_text_string(&label), LABEL_COLUMNS + 2);
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
    if (is_first)
        put_in(sheet, TTM_DIM, " remains       peak   capacity");
    end_line(sheet);
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
        if (is_used(&device->region[r]) &&
            (sheet->choice->region < 0 || sheet->choice->region == (int)r))
            put_region(sheet, device, r);
    }
    sheet->out->failed |= label.failed || ids.failed;
    ttm_text_done(&label);
    ttm_text_done(&ids);
}

/* At most so many kinds of devices, unless all are asked for. */
#define DEVICES_SHOWN 3

static void put_devices(struct sheet *sheet)
{
    const struct ttm_report_process *process = sheet->process;
    uint32_t shown = 0, left_out = 0;

    for (uint32_t i = 0; i < process->device_count; i++) {
        const struct ttm_report_device *device = &process->devices[i];
        uint32_t before = 0;
        while (before < i && !looks_alike(&process->devices[before], device))
            before++;
        if (before < i || !ttm_device_filter_has(&sheet->choice->devices, device->id))
            continue;
        if (shown == DEVICES_SHOWN && !sheet->choice->is_unfolded) {
            left_out++;
            continue;
        }
        put_device(sheet, device, shown++ == 0);
    }
    if (left_out > 0) {
        ttm_text_format(sheet->out, "  %s %u more that differ: --all",
                        ttm_terminal_ellipsis(sheet->terminal), left_out);
        end_line(sheet);
    }
}

/* ---- origins ---- */

/* "decode.py:28 cache_kv", or what is known instead. */
static void put_place(const struct sheet *sheet, const struct ttm_origin_words *words,
                      struct ttm_text *out)
{
    if (words->python_count > 0) {
        const struct ttm_frame_words *frame = &words->python[0];
        ttm_text_append_safe(out, sheet->choice->has_full_paths ? frame->file
                                                                : ttm_base_name(frame->file));
        if (frame->line > 0)
            ttm_text_format(out, ":%u", frame->line);
        ttm_text_append(out, " ");
        ttm_text_append_safe(out, frame->function);
    } else if (words->operation[0] != '\0') {
        ttm_text_append_safe(out, words->operation);
    } else if (words->native_count > 0) {
        ttm_text_append_safe(out, words->native[0]);
    } else {
        ttm_text_append(out, "(origin not known)");
    }
}

static bool is_same_frame(const struct ttm_frame_words *a, const struct ttm_frame_words *b)
{
    return a->line == b->line && strcmp(a->file, b->file) == 0 &&
           strcmp(a->function, b->function) == 0;
}

/* Where several origins share their innermost line, the first caller that tells this one apart. */
static const struct ttm_frame_words *telling_caller(const struct ttm_report_process *process,
                                                    const struct ttm_origin_words *words)
{
    const struct ttm_frame_words *caller = NULL;
    uint32_t depth = 0;

    for (uint32_t i = 0; i < process->origin_count && words->python_count > 0; i++) {
        const struct ttm_origin_words *other = &process->origins[i].words;
        uint32_t at = 0;
        while (at < words->python_count && at < other->python_count &&
               is_same_frame(&words->python[at], &other->python[at]))
            at++;
        if (at > depth && at < words->python_count) {
            depth = at;
            caller = &words->python[at];
        }
    }
    return caller;
}

static void put_place_and_caller(const struct sheet *sheet, const struct ttm_origin_words *words,
                                 struct ttm_text *out)
{
    const struct ttm_frame_words *caller = telling_caller(sheet->process, words);

    if (!caller || is_wide(sheet)) {
        put_place(sheet, words, out);
    } else {
        ttm_text_append_safe(out, ttm_base_name(words->python[0].file));
        ttm_text_format(out, ":%u", words->python[0].line);
    }
    if (!caller)
        return;
    ttm_text_append(out, sheet->terminal->has_utf8 ? " ← " : " < ");
    if (is_wide(sheet)) {
        ttm_text_append_safe(out, ttm_base_name(caller->file));
        ttm_text_format(out, ":%u ", caller->line);
    }
    ttm_text_append_safe(out, caller->function);
}

/* What was there as the run went on: growth is a ramp, what came at the start a block. */
static void put_spark(const struct sheet *sheet, const struct ttm_report_origin *origin)
{
    static const char *const levels[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const plain[] = {" ", ".", ".", ":", ":", "+", "+", "#", "#"};
    uint64_t all = 0, sum = 0;

    for (uint32_t i = 0; i < TTM_REPORT_BARS; i++)
        all += origin->bars[i];
    for (uint32_t i = 0; i < TTM_REPORT_BARS; i++) {
        sum += origin->bars[i];
        if ((i + 1) % (TTM_REPORT_BARS / SPARK_BARS) != 0)
            continue;
        const uint64_t level = all > 0 ? (sum * 8 + all - 1) / all : 0;
        put(sheet, sheet->terminal->has_utf8 ? levels[level] : plain[level]);
    }
}

static const char *class_words(const struct ttm_report_origin *origin)
{
    static const char *const words[TTM_CLASS_COUNT] = {
        [TTM_CLASS_UNSURE] = "unsure",        [TTM_CLASS_SYSTEM] = "system",
        [TTM_CLASS_PROGRAM_CACHE] = "cached", [TTM_CLASS_CIRCULAR_BUFFER] = "circular",
        [TTM_CLASS_KERNEL] = "kernel",        [TTM_CLASS_STEADY] = "steady",
        [TTM_CLASS_GROWING] = "growing",      [TTM_CLASS_TEMPORARY] = "temporary",
    };

    return words[origin->verdict.class];
}

/* Number, region, count, bytes, share, bars and class take so much. */
#define FIXED_COLUMNS 55
#define OPERATION_COLUMNS 20

static size_t place_columns(const struct sheet *sheet)
{
    const size_t width = sheet->terminal->columns < 60 ? 60 : sheet->terminal->columns;
    const size_t taken = FIXED_COLUMNS + (is_wide(sheet) ? OPERATION_COLUMNS + 1 : 0);
    const size_t room = width - taken;

    return room < 16 ? 16 : room > 60 ? 60 : room;
}

static void put_titles(struct sheet *sheet, uint64_t all_bytes)
{
    const struct ttm_report_choice *choice = sheet->choice;
    char title[160], bytes[TTM_NUMBER_SIZE];

    (void)snprintf(title, sizeof(title), "%s%s, by origin",
                   choice->at == TTM_AT_PEAK   ? "at the peak"
                   : choice->at == TTM_AT_MARK ? "live at "
                                               : "what remains",
                   choice->at == TTM_AT_MARK ? choice->mark : "");
    (void)ttm_format_bytes(all_bytes, bytes);
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_DIM);
    put(sheet, "  ");
    put_columns(sheet, title, place_columns(sheet) + (is_wide(sheet) ? OPERATION_COLUMNS + 2 : 1));
    put(sheet, " region   count      takes share  over run class");
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
    end_line(sheet);
}

static void put_row(struct sheet *sheet, const struct ttm_report_origin *origin, uint32_t number,
                    uint64_t all_bytes)
{
    const struct ttm_held held = ttm_report_held(sheet->choice, origin);
    const bool is_suspect = origin->verdict.is_suspect;
    const unsigned share =
        all_bytes > 0 ? (unsigned)((double)held.footprint_bytes * 100 / (double)all_bytes + 0.5)
                      : 0;
    char count[TTM_NUMBER_SIZE], bytes[TTM_NUMBER_SIZE];
    struct ttm_text place;

    ttm_text_init(&place);
    put_place_and_caller(sheet, &origin->words, &place);
    ttm_text_format(sheet->out, "%2u ", number);
    ttm_terminal_colour(sheet->terminal, sheet->out, is_suspect ? TTM_BOLD : TTM_PLAIN);
    put_columns(sheet, ttm_text_string(&place), place_columns(sheet));
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
    if (is_wide(sheet)) {
        ttm_text_clear(&place);
        ttm_text_append_safe(&place, origin->words.operation);
        put(sheet, " ");
        put_columns(sheet, ttm_text_string(&place), OPERATION_COLUMNS);
    }
    put(sheet, " ");
    put_columns(sheet, ttm_region_name(origin->region), 6);
    ttm_text_format(sheet->out, "%8s %10s %3u %%  ", ttm_format_count(held.count, count),
                    ttm_format_bytes(held.footprint_bytes, bytes), share);
    ttm_terminal_colour(sheet->terminal, sheet->out, is_suspect ? TTM_RED : TTM_DIM);
    put_spark(sheet, origin);
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
    put(sheet, " ");
    put_in(sheet, is_suspect ? TTM_RED : TTM_PLAIN, class_words(origin));
    end_line(sheet);
    sheet->out->failed |= place.failed;
    ttm_text_done(&place);
}

/* The line of source below its place; nothing when it cannot be read any more. */
static void put_source(struct sheet *sheet, const struct ttm_frame_words *frame)
{
    const uint64_t until_ns = ttm_report_wall(sheet->report, sheet->report->info.last_ns);
    struct ttm_text line;

    ttm_text_init(&line);
    if (ttm_source_line(frame->file, frame->line, until_ns, &line)) {
        put(sheet, "     ");
        put_in(sheet, TTM_BOLD, ttm_text_string(&line));
        end_line(sheet);
    }
    sheet->out->failed |= line.failed;
    ttm_text_done(&line);
}

#define FRAME_COLUMNS 30

/* "from decode.py:15 cache_kv   LEAKED.append(zeros(dev))" */
static void put_frame(struct sheet *sheet, const struct ttm_frame_words *frame)
{
    const uint64_t until_ns = ttm_report_wall(sheet->report, sheet->report->info.last_ns);
    struct ttm_text place, line;

    ttm_text_init(&place);
    ttm_text_init(&line);
    ttm_text_append_safe(&place,
                         sheet->choice->has_full_paths ? frame->file : ttm_base_name(frame->file));
    ttm_text_format(&place, ":%u ", frame->line);
    ttm_text_append_safe(&place, frame->function);
    put(sheet, "     from ");
    const size_t width = ttm_terminal_width(ttm_text_string(&place));
    put_columns(sheet, ttm_text_string(&place), width < FRAME_COLUMNS ? FRAME_COLUMNS : width);
    if (ttm_source_line(frame->file, frame->line, until_ns, &line)) {
        put(sheet, " ");
        put_in(sheet, TTM_BOLD, ttm_text_string(&line));
    }
    end_line(sheet);
    sheet->out->failed |= place.failed || line.failed;
    ttm_text_done(&place);
    ttm_text_done(&line);
}

/* Words, wrapped to the terminal, each line behind so many spaces. */
static void put_wrapped(struct sheet *sheet, const char *text, size_t indent)
{
    const size_t width =
        sheet->terminal->columns > indent + 20 ? sheet->terminal->columns - indent : 20;
    size_t column = 0;

    ttm_text_repeat(sheet->out, " ", indent);
    while (*text) {
        const size_t length = strcspn(text, " ");
        char word[TTM_VERDICT_TEXT];
        (void)snprintf(word, sizeof(word), "%.*s", (int)length, text);
        const size_t columns = ttm_terminal_width(word);
        if (column > 0 && column + 1 + columns > width) {
            end_line(sheet);
            ttm_text_repeat(sheet->out, " ", indent);
            column = 0;
        }
        if (column > 0)
            put(sheet, " ");
        put(sheet, word);
        column += columns + (column > 0);
        text += length;
        text += strspn(text, " ");
    }
    end_line(sheet);
}

/* "ttnn.zeros · on devices 0-7 each · "weights" in model_init · MainThread" */
static void put_particulars(struct sheet *sheet, const struct ttm_report_origin *origin)
{
    const struct ttm_origin_words *words = &origin->words;
    struct ttm_text line;

    ttm_text_init(&line);
    if (words->operation[0] != '\0' && !is_wide(sheet))
        ttm_text_append_safe(&line, words->operation);
    if (words->name[0] != '\0') {
        ttm_text_format(&line, "%s\"", line.length ? dot(sheet) : "");
        ttm_text_append_safe(&line, words->name);
        ttm_text_append(&line, "\"");
    }
    if (words->context[0] != '\0') {
        ttm_text_format(&line, "%sin ", line.length ? dot(sheet) : "");
        ttm_text_append_safe(&line, words->context);
    }
    if (words->thread[0] != '\0' && strcmp(words->thread, "MainThread") != 0) {
        ttm_text_format(&line, "%sthread ", line.length ? dot(sheet) : "");
        ttm_text_append_safe(&line, words->thread);
    }
    if (origin->device_count > 1)
        ttm_text_format(&line, "%son each of %u devices", line.length ? dot(sheet) : "",
                        origin->device_count);
    ttm_text_format(&line, "%s%s", line.length ? dot(sheet) : "", origin->verdict.why);
    put_wrapped(sheet, ttm_text_string(&line), 5);
    sheet->out->failed |= line.failed;
    ttm_text_done(&line);
}

/* With --all: where it was called from, sizes, and the native frames. */
static void put_whole(struct sheet *sheet, const struct ttm_report_origin *origin)
{
    char count[TTM_NUMBER_SIZE], bytes[TTM_NUMBER_SIZE];

    for (uint32_t i = origin->verdict.is_suspect ? CALLERS_SHOWN + 1 : 1;
         i < origin->words.python_count; i++)
        put_frame(sheet, &origin->words.python[i]);
    for (uint32_t i = 0; i < origin->words.native_count; i++) {
        put(sheet, "       ");
        ttm_terminal_colour(sheet->terminal, sheet->out, TTM_DIM);
        ttm_text_append_safe(sheet->out, origin->words.native[i]);
        ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
        end_line(sheet);
    }
    for (uint32_t i = 0; i < origin->size_count; i++) {
        ttm_text_format(sheet->out, "       %s x %s",
                        ttm_format_count(origin->sizes[i].count, count),
                        ttm_format_bytes(origin->sizes[i].bytes, bytes));
        end_line(sheet);
    }
}

/* 'spare' rows may be used for the evidence and the advice. */
static void put_suspect(struct sheet *sheet, const struct ttm_report_origin *origin, size_t spare)
{
    if (origin->words.python_count > 0)
        put_source(sheet, &origin->words.python[0]);
    /* Callers first: the line that keeps a buffer is seldom the one that makes it. */
    for (uint32_t i = 1; i < origin->words.python_count && i <= CALLERS_SHOWN && spare > i + 1; i++)
        put_frame(sheet, &origin->words.python[i]);
    if (spare >= 2)
        put_particulars(sheet, origin);
    if (spare < 7)
        return;
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_GREEN);
    put_wrapped(sheet, origin->verdict.advice, 5);
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
}

static bool is_shown(const struct sheet *sheet, const struct ttm_report_origin *origin)
{
    return ttm_report_held(sheet->choice, origin).count > 0;
}

/* The rest, in one line. */
static void put_left_out(struct sheet *sheet, const struct ttm_report_origin *const *order,
                         uint32_t from, uint32_t count)
{
    char number[TTM_NUMBER_SIZE], bytes[TTM_NUMBER_SIZE];
    uint64_t buffers = 0, sum = 0;
    uint32_t left = 0;

    for (uint32_t i = from; i < count; i++) {
        const struct ttm_held held = ttm_report_held(sheet->choice, order[i]);
        left += held.count > 0;
        buffers += held.count;
        sum += held.footprint_bytes;
    }
    if (left == 0)
        return;
    ttm_text_format(sheet->out, "   %s %u more %s with %s %s, %s: --all",
                    ttm_terminal_ellipsis(sheet->terminal), left, plural(left, "origin", "origins"),
                    ttm_format_count(buffers, number), plural(buffers, "buffer", "buffers"),
                    ttm_format_bytes(sum, bytes));
    end_line(sheet);
}

/* Suspects behind this one that should be on the screen as well, with two rows each. */
static size_t rows_of_suspects(const struct ttm_report_origin *const *order, uint32_t from,
                               uint32_t count)
{
    size_t rows = 0;

    while (from < count && order[from]->verdict.is_suspect && rows < 6) {
        rows += 2;
        from++;
    }
    return rows;
}

static void put_list(struct sheet *sheet, const struct ttm_report_origin *const *order,
                     uint32_t count)
{
    const struct ttm_report_choice *choice = sheet->choice;
    uint64_t all_bytes = 0;
    uint32_t shown = 0, i;

    for (i = 0; i < count; i++)
        all_bytes += ttm_report_held(choice, order[i]).footprint_bytes;
    put_titles(sheet, all_bytes);
    for (i = 0; i < count; i++) {
        /* A screen that leaves out a suspect has failed: rather three rows too many. */
        const bool is_needed = order[i]->verdict.is_suspect && shown < SUSPECTS_LEAST;
        const bool is_full =
            choice->top > 0 ? shown == choice->top
                            : !choice->is_unfolded && shown > 0 && sheet->rows < 4 && !is_needed;
        if (is_full)
            break;
        if (!is_shown(sheet, order[i]))
            continue;
        put_row(sheet, order[i], ++shown, all_bytes);
        const size_t others = rows_of_suspects(order, i + 1, count) + 5;
        if (order[i]->verdict.is_suspect && choice->at == TTM_AT_REMAINING)
            put_suspect(sheet, order[i],
                        choice->is_unfolded    ? SIZE_MAX
                        : sheet->rows > others ? sheet->rows - others
                                               : 0);
        else if (choice->is_unfolded)
            put_particulars(sheet, order[i]);
        if (choice->is_unfolded)
            put_whole(sheet, order[i]);
    }
    put_left_out(sheet, order, i, count);
}

static void put_sum_up(struct sheet *sheet, const struct ttm_report_origin *const *order,
                       uint32_t count)
{
    uint64_t suspects = 0, buffers = 0, bytes = 0, all = 0;
    char number[TTM_NUMBER_SIZE], sum[TTM_NUMBER_SIZE], text[160];

    for (uint32_t i = 0; i < count; i++) {
        all += order[i]->remaining.count;
        if (!order[i]->verdict.is_suspect)
            continue;
        suspects++;
        buffers += order[i]->remaining.count;
        bytes += order[i]->remaining.footprint_bytes;
    }
    put(sheet, "  ");
    if (suspects > 0) {
        (void)snprintf(text, sizeof(text), "%llu %s: %s %s that keep growing, %s",
                       (unsigned long long)suspects, plural(suspects, "suspect", "suspects"),
                       ttm_format_count(buffers, number), plural(buffers, "buffer", "buffers"),
                       ttm_format_bytes(bytes, sum));
        put_in(sheet, TTM_RED, text);
    } else if (all > 0) {
        (void)snprintf(text, sizeof(text), "no suspects: the %s %s left look intended",
                       ttm_format_count(all, number), plural(all, "buffer", "buffers"));
        put_in(sheet, TTM_GREEN, text);
    } else {
        put_in(sheet, TTM_GREEN,
               sheet->process->allocs > 0 ? "nothing remains: all that was allocated was freed"
                                          : "nothing was allocated");
    }
    end_line(sheet);
}

/* What came and went, in one line. */
static void put_temporaries(struct sheet *sheet)
{
    const struct ttm_report_process *process = sheet->process;
    const struct ttm_report_origin *most = NULL;
    char number[TTM_NUMBER_SIZE], frees[TTM_NUMBER_SIZE], mean[TTM_NUMBER_SIZE];
    uint64_t births = 0, lines = 0;

    for (uint32_t i = 0; i < process->origin_count; i++) {
        const struct ttm_report_origin *origin = &process->origins[i];
        if (origin->verdict.class != TTM_CLASS_TEMPORARY ||
            !ttm_report_has_origin(sheet->choice, origin))
            continue;
        births += origin->allocs;
        lines++;
        if (!most || origin->allocs > most->allocs)
            most = origin;
    }
    if (!most)
        return;
    ttm_text_format(sheet->out, "  temporary: %s from %llu %s, most at ",
                    ttm_format_count(births, number), (unsigned long long)lines,
                    plural(lines, "origin", "origins"));
    put_place(sheet, &most->words, sheet->out);
    const uint64_t mean_ns = most->lifetime_ns / most->frees;
    ttm_text_format(sheet->out, " (%s, %s each)", ttm_format_count(most->allocs, frees),
                    mean_ns < TTM_NS_PER_MS ? "< 1 ms" : ttm_format_duration(mean_ns, mean));
    end_line(sheet);
}

/* What grew and was freed only at the end: nothing remains, but it was there. */
static void put_kept(struct sheet *sheet)
{
    const struct ttm_report_process *process = sheet->process;
    char count[TTM_NUMBER_SIZE], bytes[TTM_NUMBER_SIZE];

    for (uint32_t i = 0; i < process->origin_count; i++) {
        const struct ttm_report_origin *origin = &process->origins[i];
        if (origin->verdict.class != TTM_CLASS_GROWING || origin->remaining.count > 0 ||
            !ttm_report_has_origin(sheet->choice, origin))
            continue;
        put(sheet, "  ");
        put_in(sheet, TTM_YELLOW, "grew all through the run, freed only at its end: ");
        ttm_text_format(sheet->out, "%s %s, %s", ttm_format_count(origin->late.count, count),
                        plural(origin->late.count, "buffer", "buffers"),
                        ttm_format_bytes(origin->late.footprint_bytes, bytes));
        end_line(sheet);
        put(sheet, "   ");
        ttm_terminal_colour(sheet->terminal, sheet->out, TTM_BOLD);
        put_place(sheet, &origin->words, sheet->out);
        ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
        ttm_text_format(sheet->out, "  %s", ttm_region_name(origin->region));
        end_line(sheet);
        put_suspect(sheet, origin, sheet->choice->is_unfolded ? SIZE_MAX : 4);
    }
}

static int put_origins(struct sheet *sheet)
{
    uint32_t count = 0;
    const struct ttm_report_origin **order = ttm_report_order(
        sheet->choice, sheet->process, sheet->choice->at == TTM_AT_REMAINING, &count);
    bool has_any = false;

    if (!order)
        return -ENOMEM;
    for (uint32_t i = 0; i < count && !has_any; i++)
        has_any = is_shown(sheet, order[i]);
    end_line(sheet);
    if (sheet->choice->at == TTM_AT_REMAINING)
        put_sum_up(sheet, order, count);
    if (has_any)
        put_list(sheet, order, count);
    else if (sheet->choice->at != TTM_AT_REMAINING)
        put(sheet, "  nothing was live then\n");
    free(order);
    return 0;
}

/* ---- failures, findings ---- */

static void put_failure(struct sheet *sheet, const struct ttm_report_failure *failure)
{
    const struct ttm_recorded_failure *f = &failure->failure;
    char when[TTM_NUMBER_SIZE], a[TTM_NUMBER_SIZE], b[TTM_NUMBER_SIZE], c[TTM_NUMBER_SIZE];

    put(sheet, "  ");
    put_in(sheet, TTM_RED, f->kind == 1 ? "circular buffers clash with L1" : "out of memory");
    ttm_text_format(sheet->out, " in %s of device %u after %s at ", ttm_region_name(f->region),
                    failure->device_id,
                    ttm_format_duration(failure->time_ns - sheet->process->first_ns, when));
    put_place(sheet, &failure->words, sheet->out);
    end_line(sheet);
    ttm_text_format(
        sheet->out, "    wanted %s (%s a bank); free %s, largest %s: %s",
        ttm_format_bytes(f->wanted_bytes, when), ttm_format_bytes(f->bank_wanted_bytes, a),
        ttm_format_bytes(f->bank_free_bytes, b), ttm_format_bytes(f->bank_largest_bytes, c),
        f->bank_free_bytes >= f->bank_wanted_bytes ? "fragmented" : "exhausted");
    end_line(sheet);
    for (uint32_t i = 0; i < failure->owner_count && (i < 3 || sheet->choice->is_unfolded); i++) {
        const struct ttm_report_share *owner = &failure->owners[i];
        const struct ttm_report_origin *origin = &sheet->process->origins[owner->origin];
        ttm_text_format(sheet->out, "    %s %10s  ", i == 0 ? "held by" : "       ",
                        ttm_format_bytes(owner->held.footprint_bytes, a));
        put_place(sheet, &origin->words, sheet->out);
        ttm_text_format(sheet->out, "  %s %s%s", ttm_format_count(owner->held.count, b),
                        plural(owner->held.count, "buffer", "buffers"),
                        origin->verdict.is_suspect ? "  suspect" : "");
        end_line(sheet);
    }
}

static void put_failures(struct sheet *sheet)
{
    const struct ttm_report_process *process = sheet->process;
    const uint32_t shown =
        sheet->choice->is_unfolded || process->failure_count < 1 ? process->failure_count : 1;

    if (process->failure_count == 0)
        return;
    end_line(sheet);
    for (uint32_t i = 0; i < shown; i++)
        put_failure(sheet, &process->failures[i]);
    if (process->failures_ever > shown) {
        ttm_text_format(sheet->out, "    %s %llu more failed%s",
                        ttm_terminal_ellipsis(sheet->terminal),
                        (unsigned long long)(process->failures_ever - shown),
                        sheet->choice->is_unfolded ? "" : ": --all");
        end_line(sheet);
    }
}

static void put_finding(struct sheet *sheet, uint64_t count, const char *what)
{
    char number[TTM_NUMBER_SIZE];

    if (count == 0)
        return;
    put(sheet, "  ");
    put_in(sheet, TTM_YELLOW, ttm_format_count(count, number));
    ttm_text_format(sheet->out, " %s", what);
    end_line(sheet);
}

static void put_findings(struct sheet *sheet)
{
    const struct ttm_report_process *process = sheet->process;
    uint64_t replaced = 0;

    for (uint32_t i = 0; i < process->origin_count; i++)
        replaced += process->origins[i].replaced;
    put_finding(sheet, replaced, "allocated again at the same address with no free between");
    put_finding(sheet, process->overlaps, "put where something else was still allocated");
    put_finding(sheet, process->counters.unknown_frees, "frees of something unknown");
    put_finding(sheet, process->counters.ambiguous_frees, "frees that fitted several");
}

/* With --all: the addresses that were used most often. */
static void put_addresses(struct sheet *sheet)
{
    const struct ttm_report_process *process = sheet->process;
    char births[TTM_NUMBER_SIZE], frees[TTM_NUMBER_SIZE];

    if (!sheet->choice->is_unfolded || process->reused_count == 0 || process->reused[0].births < 2)
        return;
    end_line(sheet);
    put_in(sheet, TTM_DIM, "  addresses used most often       allocations      frees");
    end_line(sheet);
    for (uint32_t i = 0; i < process->reused_count && process->reused[i].births > 1; i++) {
        const struct ttm_reused *reused = &process->reused[i];
        ttm_text_format(sheet->out, "    %-13s 0x%-12llx %14s %10s",
                        ttm_region_name(reused->region), (unsigned long long)reused->address,
                        ttm_format_count(reused->births, births),
                        ttm_format_count(reused->frees, frees));
        end_line(sheet);
    }
}

/* ---- all of it ---- */

/* What to type next, as far as it says something new. */
static void put_next(struct sheet *sheet)
{
    const struct ttm_report_choice *choice = sheet->choice;
    struct ttm_text file;

    ttm_text_init(&file);
    ttm_text_append_safe(&file, sheet->path);
    put(sheet, "\n  next: ");
    if (choice->at != TTM_AT_PEAK) {
        put(sheet, "tt-mem report ");
        put(sheet, ttm_text_string(&file));
        put(sheet, " ");
        put_in(sheet, TTM_BOLD, "--at peak");
    } else {
        put(sheet, "tt-mem report ");
        put(sheet, ttm_text_string(&file));
    }
    if (!choice->is_unfolded) {
        put(sheet, dot(sheet));
        put_in(sheet, TTM_BOLD, "--all");
        put(sheet, " for stacks and sizes");
    }
    put(sheet, "\n");
    sheet->out->failed |= file.failed;
    ttm_text_done(&file);
}

static int put_process(struct sheet *sheet)
{
    put_head(sheet);
    put_caution(sheet);
    put_devices(sheet);
    put_failures(sheet);
    const int r = put_origins(sheet);
    if (sheet->choice->at == TTM_AT_REMAINING)
        put_kept(sheet);
    put_temporaries(sheet);
    put_findings(sheet);
    put_addresses(sheet);
    return r;
}

static uint64_t suspect_bytes(const struct ttm_report_process *process)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < process->origin_count; i++)
        sum += process->origins[i].verdict.is_suspect
                   ? process->origins[i].remaining.footprint_bytes
                   : 0;
    return sum;
}

static bool is_worse(const struct ttm_report_process *a, const struct ttm_report_process *b)
{
    const uint64_t x = suspect_bytes(a), y = suspect_bytes(b);

    return x != y ? x > y : a->allocs > b->allocs;
}

/* Of several processes the worst is shown whole, the others in a line each. */
static void put_other(struct sheet *sheet, const struct ttm_report_process *process)
{
    char allocs[TTM_NUMBER_SIZE], bytes[TTM_NUMBER_SIZE];
    const uint64_t suspects = suspect_bytes(process);

    ttm_text_format(sheet->out, "%9d  ", process->pid);
    struct ttm_text safe;
    ttm_text_init(&safe);
    ttm_terminal_command(&safe, process->command);
    put_columns(sheet, ttm_text_string(&safe), 30);
    ttm_text_format(sheet->out, " %s allocations, suspects %s\n",
                    ttm_format_count(process->allocs, allocs),
                    suspects ? ttm_format_bytes(suspects, bytes) : "none");
    sheet->out->failed |= safe.failed;
    ttm_text_done(&safe);
}

#define OTHERS_SHOWN 6

static uint32_t others_of(const struct sheet *sheet, const struct ttm_report_process *shown)
{
    uint32_t others = 0;

    for (uint32_t i = 0; i < sheet->report->process_count; i++)
        others += &sheet->report->processes[i] != shown &&
                  ttm_report_has_process(sheet->choice, &sheet->report->processes[i]);
    return others;
}

static void put_others(struct sheet *sheet, const struct ttm_report_process *shown)
{
    const uint32_t others = others_of(sheet, shown);
    uint32_t put_count = 0;

    if (others == 0)
        return;
    ttm_text_format(sheet->out, "\n  %u more %s (--pid PID shows one, --all all)\n", others,
                    plural(others, "process", "processes"));
    for (uint32_t i = 0; i < sheet->report->process_count && put_count < OTHERS_SHOWN; i++) {
        const struct ttm_report_process *process = &sheet->report->processes[i];
        if (process == shown || !ttm_report_has_process(sheet->choice, process))
            continue;
        put_other(sheet, process);
        put_count++;
    }
}

int ttm_report_text(const struct ttm_report *report, const struct ttm_report_choice *choice,
                    const char *path, const struct ttm_terminal *terminal, struct ttm_text *out)
{
    struct sheet sheet = {
        .report = report, .choice = choice, .terminal = terminal, .out = out, .path = path};
    const struct ttm_report_process *worst = NULL;
    int r = 0;

    for (uint32_t i = 0; i < report->process_count; i++) {
        const struct ttm_report_process *process = &report->processes[i];
        if (ttm_report_has_process(choice, process) && (!worst || is_worse(process, worst)))
            worst = process;
    }
    if (!worst) {
        ttm_text_append(out, "nothing was recorded: no program reported\n");
        return ttm_text_failed(out) ? -ENOMEM : 0;
    }
    /* But for the last two lines, and a prompt; what is no terminal can be a little longer. */
    sheet.rows = !terminal->is_terminal ? ROWS_ELSEWHERE
                 : terminal->rows > 3   ? terminal->rows - 3
                                        : 1;
    const uint32_t others = others_of(&sheet, worst);
    const size_t others_rows =
        others == 0 ? 0 : 2 + (others < OTHERS_SHOWN ? others : OTHERS_SHOWN);
    if (!choice->is_unfolded)
        sheet.rows = sheet.rows > others_rows ? sheet.rows - others_rows : 1;
    for (uint32_t i = 0; r == 0 && i < report->process_count; i++) {
        const struct ttm_report_process *process = &report->processes[i];
        if (!ttm_report_has_process(choice, process) || (process != worst && !choice->is_unfolded))
            continue;
        sheet.process = process;
        r = put_process(&sheet);
        if (choice->is_unfolded && i + 1 < report->process_count)
            put(&sheet, "\n");
    }
    sheet.process = worst;
    if (!choice->is_unfolded)
        put_others(&sheet, worst);
    put_next(&sheet);
    return r < 0 || ttm_text_failed(out) ? -ENOMEM : 0;
}
