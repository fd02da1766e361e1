/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suspects come first, each with its source line, its callers and the evidence, as far as
 * there are rows; then the rest, a row each.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/caller.h"
#include "cli/report_causes.h"
#include "cli/report_rows.h"
#include "cli/report_sheet.h"
#include "cli/report_words.h"
#include "wire/region.h"

#define CALLERS_SHOWN 2
#define KEEPERS_SHOWN 2
#define SUSPECTS_LEAST 3 /* have their line of source, however few rows there are */
#define SPARK_BARS 8

/* "decode.py:28 cache_kv", or the function alone. */
static void put_place(const struct sheet *sheet, const struct ttm_frame_words *frame,
                      struct ttm_text *out)
{
    if (frame->file[0] != '\0') {
        ttm_text_append_safe(out, sheet->choice->has_full_paths ? frame->file
                                                                : ttm_base_name(frame->file));
        if (frame->line > 0)
            ttm_text_format(out, ":%u", frame->line);
        ttm_text_append(out, " ");
    }
    ttm_text_append_safe(out, frame->function);
}

void ttm_report_place(const struct sheet *sheet, const struct ttm_origin_words *words,
                      struct ttm_text *out)
{
    const struct ttm_stack_words stack = ttm_origin_users_stack(words);

    if (stack.count > 0) {
        put_place(sheet, &stack.frames[0], out);
    } else if (words->operation[0] != '\0') {
        ttm_text_append_safe(out, words->operation);
    } else if (words->native_count > 0) {
        ttm_text_append_safe(out, words->native[words->native_place]);
    } else {
        ttm_text_append(out, "(origin not known)");
    }
}

static struct ttm_stack_words stack_of(const void *arg, uint32_t i)
{
    const struct ttm_report_process *process = arg;

    return ttm_origin_users_stack(&process->origins[i].words);
}

void ttm_report_place_and_caller(const struct sheet *sheet, const struct ttm_origin_words *words,
                                 struct ttm_text *out)
{
    const struct ttm_stack_words stack = ttm_origin_users_stack(words);
    const struct ttm_caller caller =
        ttm_caller_find(&stack, stack_of, sheet->process, sheet->process->origin_count);

    if (!caller.frame || is_wide(sheet) || stack.frames[0].line == 0) {
        ttm_report_place(sheet, words, out);
    } else {
        ttm_text_append_safe(out, ttm_base_name(stack.frames[0].file));
        ttm_text_format(out, ":%u", stack.frames[0].line);
    }
    if (caller.frame)
        ttm_caller_text(out, sheet->terminal, is_wide(sheet), &caller);
}

/* What was there as the run went on: growth is a ramp, what came at the start a block. */
static void put_spark(const struct sheet *sheet, const uint64_t bars[TTM_REPORT_BARS])
{
    static const char *const levels[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const plain[] = {" ", ".", ".", ":", ":", "+", "+", "#", "#"};
    uint64_t all = 0, sum = 0;

    for (uint32_t i = 0; i < TTM_REPORT_BARS; i++)
        all += bars[i];
    for (uint32_t i = 0; i < TTM_REPORT_BARS; i++) {
        sum += bars[i];
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
    char title[160], mark[128] = "", bytes[TTM_NUMBER_SIZE];

    if (choice->at == TTM_AT_MARK)
        (void)ttm_text_copy_safe(mark, sizeof(mark), choice->mark);
    (void)snprintf(title, sizeof(title), "%s%s, by origin",
                   choice->at == TTM_AT_PEAK   ? "at the peak"
                   : choice->at == TTM_AT_MARK ? "live at "
                                               : "what remains",
                   mark);
    (void)ttm_format_bytes(all_bytes, bytes);
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_DIM);
    put(sheet, "  ");
    put_columns(sheet, title, place_columns(sheet) + (is_wide(sheet) ? OPERATION_COLUMNS + 2 : 1));
    put(sheet, " region   count      takes share  over run class");
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
    end_line(sheet);
}

/* Columns from the left that a label can do without, so that its caller is seen. */
static size_t spare_columns(const struct sheet *sheet, const char *label, size_t columns)
{
    const char *caller = strstr(label, sheet->terminal->has_utf8 ? " ← " : " < ");
    const size_t width = ttm_terminal_width(label);

    if (!caller || width <= columns)
        return 0;
    const size_t head = (size_t)(caller - label);
    const size_t cut = width - columns + 1; /* an ellipsis comes in its place */
    /* What is left has to say something: ".cpp:17"; and a column is a byte. */
    for (size_t i = 0; i < head; i++) {
        if ((unsigned char)label[i] >= 0x80)
            return 0;
    }
    return cut + 7 <= head ? cut : 0;
}

/* "…worker.cpp:17 ← step:33" where "model_worker.cpp:17 ← step:33" has no room. */
static void put_label(const struct sheet *sheet, const char *label, size_t columns)
{
    const size_t cut = spare_columns(sheet, label, columns);

    if (cut == 0) {
        put_columns(sheet, label, columns);
        return;
    }
    put(sheet, sheet->terminal->has_utf8 ? "…" : "~");
    put_columns(sheet, label + cut, columns - 1);
}

static void put_row(struct sheet *sheet, const struct ttm_report_row *row, uint32_t number,
                    uint64_t all_bytes)
{
    const struct ttm_report_origin *origin = row->origin;
    const struct ttm_held held = row->held;
    const bool is_suspect = origin->verdict.is_suspect;
    const unsigned share =
        all_bytes > 0 ? (unsigned)((double)held.footprint_bytes * 100 / (double)all_bytes + 0.5)
                      : 0;
    char count[TTM_NUMBER_SIZE], bytes[TTM_NUMBER_SIZE];
    struct ttm_text place;

    ttm_text_init(&place);
    ttm_report_place_and_caller(sheet, &origin->words, &place);
    ttm_text_format(sheet->out, "%2u ", number);
    ttm_terminal_colour(sheet->terminal, sheet->out, is_suspect ? TTM_BOLD : TTM_PLAIN);
    put_label(sheet, ttm_text_string(&place), place_columns(sheet));
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
    put_spark(sheet, row->bars);
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
    put(sheet, " ");
    put_in(sheet, is_suspect ? TTM_RED : TTM_PLAIN, class_words(origin));
    end_line(sheet);
    sheet->out->failed |= place.failed;
    ttm_text_done(&place);
}

static bool source_of(const struct sheet *sheet, const struct ttm_frame_words *frame,
                      struct ttm_text *out)
{
    return ttm_source_line(sheet->sources, ttm_source_is_own(sheet->sources, sheet->process),
                           frame->file, frame->line, out);
}

/* The line of source below its place; nothing when it cannot be read any more. */
static void put_source(struct sheet *sheet, const struct ttm_frame_words *frame)
{
    struct ttm_text line;

    ttm_text_init(&line);
    if (source_of(sheet, frame, &line)) {
        put(sheet, "     ");
        put_in(sheet, TTM_BOLD, ttm_text_string(&line));
        end_line(sheet);
    }
    sheet->out->failed |= line.failed;
    ttm_text_done(&line);
}

#define FRAME_COLUMNS 30

/* "from decode.py:15 cache_kv   LEAKED.append(zeros(dev))" */
void ttm_report_frame(struct sheet *sheet, const struct ttm_frame_words *frame)
{
    struct ttm_text place, line;

    ttm_text_init(&place);
    ttm_text_init(&line);
    put_place(sheet, frame, &place);
    put(sheet, "     from ");
    const size_t width = ttm_terminal_width(ttm_text_string(&place));
    if (source_of(sheet, frame, &line)) {
        put_columns(sheet, ttm_text_string(&place), width < FRAME_COLUMNS ? FRAME_COLUMNS : width);
        put(sheet, " ");
        put_in(sheet, TTM_BOLD, ttm_text_string(&line));
    } else {
        put(sheet, ttm_text_string(&place));
    }
    end_line(sheet);
    sheet->out->failed |= place.failed || line.failed;
    ttm_text_done(&place);
    ttm_text_done(&line);
}

/* How long the next word is; a number and what it counts are one. */
static size_t word_length(const char *text)
{
    const size_t length = strcspn(text, " ");

    if (length == 0 || strspn(text, "0123456789.,") < length || text[length] == '\0')
        return length;
    return length + 1 + strcspn(text + length + 1, " ");
}

void ttm_report_wrapped(struct sheet *sheet, const char *text, size_t indent)
{
    const size_t width =
        sheet->terminal->columns > indent + 20 ? sheet->terminal->columns - indent : 20;
    size_t column = 0;

    ttm_text_repeat(sheet->out, " ", indent);
    while (*text) {
        const size_t length = word_length(text);
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

/* " · held by list LEAKED in module decode, and 2 others" */
static void put_keepers(const struct sheet *sheet, const struct ttm_keepers *keepers,
                        struct ttm_text *line)
{
    if (!keepers->is_known)
        return;
    ttm_text_append(line, dot(sheet));
    if (keepers->count == 0) {
        ttm_text_append(line, keepers->is_unfinished
                                  ? "search for holders not finished"
                                  : "held by no Python object that could be seen");
        return;
    }
    for (uint32_t i = 0; i < keepers->count && i < KEEPERS_SHOWN; i++) {
        ttm_text_append(line, i == 0 ? "held by " : ", ");
        ttm_text_append_safe(line, keepers->texts[i]);
    }
    if (keepers->count > KEEPERS_SHOWN)
        ttm_text_format(line, ", and %u more", keepers->count - KEEPERS_SHOWN);
    if (keepers->is_unfinished)
        ttm_text_append(line, " (search for holders not finished)");
}

/* "1.9 s old", "3 ms to 1.9 s old": what remains, when the process was last heard of. */
static void put_ages(const struct sheet *sheet, const struct ttm_report_row *row,
                     struct ttm_text *line)
{
    const struct ttm_report_process *process = sheet->process;
    char youngest[TTM_NUMBER_SIZE], oldest[TTM_NUMBER_SIZE];

    if (sheet->choice->at != TTM_AT_REMAINING || process->is_untimed || row->held.count == 0 ||
        row->first_ns > row->last_ns || row->last_ns > process->last_ns)
        return;
    (void)ttm_format_duration(process->last_ns - row->last_ns, youngest);
    (void)ttm_format_duration(process->last_ns - row->first_ns, oldest);
    ttm_text_append(line, dot(sheet));
    if (strcmp(youngest, oldest) != 0)
        ttm_text_format(line, "%s to ", youngest);
    ttm_text_format(line, "%s old", oldest);
}

/* "ttnn.zeros · on devices 0-7 each · "weights" in model_init · MainThread" */
static void put_particulars(struct sheet *sheet, const struct ttm_report_row *row)
{
    const struct ttm_report_origin *origin = row->origin;
    const uint32_t other_names = row->names;
    const struct ttm_origin_words *words = &origin->words;
    struct ttm_text line;

    ttm_text_init(&line);
    if (words->operation[0] != '\0' && !is_wide(sheet))
        ttm_text_append_safe(&line, words->operation);
    if (words->name[0] != '\0') {
        ttm_text_format(&line, "%s\"", line.length ? dot(sheet) : "");
        ttm_text_append_safe(&line, words->name);
        ttm_text_append(&line, "\"");
        if (other_names > 0)
            ttm_text_format(&line, " and %u other %s", other_names,
                            plural(other_names, "name", "names"));
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
    put_ages(sheet, row, &line);
    put_keepers(sheet, &origin->keepers, &line);
    ttm_report_wrapped(sheet, ttm_text_string(&line), 5);
    sheet->out->failed |= line.failed;
    ttm_text_done(&line);
}

/* With --all: where it was called from, sizes, and the native frames. */
static void put_whole(struct sheet *sheet, const struct ttm_report_origin *origin)
{
    const struct ttm_stack_words stack = ttm_origin_users_stack(&origin->words);
    char count[TTM_NUMBER_SIZE], bytes[TTM_NUMBER_SIZE];

    for (uint32_t i = origin->verdict.is_suspect ? CALLERS_SHOWN + 1 : 1; i < stack.count; i++)
        ttm_report_frame(sheet, &stack.frames[i]);
    for (uint32_t i = 0; i < origin->words.native_count; i++) {
        put(sheet, "       ");
        ttm_terminal_colour(sheet->terminal, sheet->out, TTM_DIM);
        ttm_text_append_safe(sheet->out, origin->words.native[i]);
        ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
        end_line(sheet);
    }
    ttm_text_format(sheet->out, "       %s allocated, ", ttm_format_count(origin->allocs, count));
    ttm_text_format(sheet->out, "%s freed", ttm_format_count(origin->frees, count));
    end_line(sheet);
    for (uint32_t i = 0; i < origin->size_count; i++) {
        ttm_text_format(sheet->out, "       %s x %s",
                        ttm_format_count(origin->sizes[i].count, count),
                        ttm_format_bytes(origin->sizes[i].bytes, bytes));
        end_line(sheet);
    }
}

static void put_advice(struct sheet *sheet, const struct ttm_report_origin *origin)
{
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_GREEN);
    ttm_report_wrapped(sheet, origin->verdict.advice, 5);
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
}

/* The rows that evidence and advice take. */
static size_t rows_of_reasons(const struct sheet *sheet, const struct ttm_report_row *row,
                              bool has_advice)
{
    struct sheet trial = *sheet;
    struct ttm_text text;

    ttm_text_init(&text);
    trial.out = &text;
    trial.rows = SIZE_MAX;
    put_particulars(&trial, row);
    if (has_advice)
        put_advice(&trial, row->origin);
    sheet->out->failed |= text.failed;
    ttm_text_done(&text);
    return SIZE_MAX - trial.rows;
}

/* Where rows are few: evidence and advice, else the evidence; callers as far as they fit too. */
static void put_briefly(struct sheet *sheet, const struct ttm_report_row *row, size_t spare)
{
    const struct ttm_report_origin *origin = row->origin;
    const struct ttm_stack_words stack = ttm_origin_users_stack(&origin->words);
    const bool has_advice = row->cause == 0; /* else it stands with the cause */
    const size_t reasons = rows_of_reasons(sheet, row, has_advice);

    for (uint32_t i = 1; i < stack.count && i <= CALLERS_SHOWN && spare >= reasons + i; i++)
        ttm_report_frame(sheet, &stack.frames[i]);
    if (spare >= 2)
        put_particulars(sheet, row);
    if (has_advice && spare >= reasons)
        put_advice(sheet, origin);
}

/* 'spare' rows may be used for the evidence and the advice. */
static void put_suspect(struct sheet *sheet, const struct ttm_report_row *row, bool has_source,
                        size_t spare)
{
    const struct ttm_report_origin *origin = row->origin;
    const struct ttm_stack_words stack = ttm_origin_users_stack(&origin->words);

    if (stack.count > 0 && has_source)
        put_source(sheet, &stack.frames[0]);
    if (sheet->is_brief) {
        put_briefly(sheet, row, spare);
        return;
    }
    /* Callers first: the line that keeps a buffer is seldom the one that makes it. */
    uint32_t callers = 0;
    while (callers + 1 < stack.count && callers < CALLERS_SHOWN && spare > callers + 2)
        ttm_report_frame(sheet, &stack.frames[++callers]);
    if (spare >= 2)
        put_particulars(sheet, row);
    if (row->cause == 0 && (spare >= 7 || spare >= callers + rows_of_reasons(sheet, row, true)))
        put_advice(sheet, origin);
}

static bool is_part_of_program(const struct ttm_report_origin *origin)
{
    return origin->verdict.class == TTM_CLASS_CIRCULAR_BUFFER ||
           origin->verdict.class == TTM_CLASS_KERNEL ||
           origin->verdict.class == TTM_CLASS_PROGRAM_CACHE;
}

/* The rest, in one line. What cached programs keep is not among what is said to remain. */
static void put_left_out(struct sheet *sheet, const struct ttm_report_row *rows, uint32_t from,
                         uint32_t count)
{
    char number[TTM_NUMBER_SIZE], bytes[TTM_NUMBER_SIZE];
    uint64_t buffers = 0, sum = 0, parts = 0;
    uint32_t left = 0;

    for (uint32_t i = from; i < count; i++) {
        left += rows[i].origins;
        if (is_part_of_program(rows[i].origin)) {
            parts += rows[i].held.count;
            continue;
        }
        buffers += rows[i].held.count;
        sum += rows[i].held.footprint_bytes;
    }
    if (left == 0)
        return;
    ttm_text_format(sheet->out, "   %s %u more %s with ", ttm_terminal_ellipsis(sheet->terminal),
                    left, plural(left, "origin", "origins"));
    if (buffers > 0)
        ttm_text_format(sheet->out, "%s %s, %s%s", ttm_format_count(buffers, number),
                        plural(buffers, "buffer", "buffers"), ttm_format_bytes(sum, bytes),
                        parts > 0 ? ", and " : "");
    if (parts > 0)
        ttm_text_format(sheet->out, "%s %s of programs", ttm_format_count(parts, number),
                        plural(parts, "part", "parts"));
    put(sheet, ": --all");
    end_line(sheet);
}

/* Suspects behind this one that should be on the screen as well, with two rows each. */
static size_t rows_of_suspects(const struct ttm_report_row *rows, uint32_t from, uint32_t count)
{
    size_t needed = 0;

    while (from < count && rows[from].origin->verdict.is_suspect && needed < 6) {
        needed += 2;
        from++;
    }
    return needed;
}

/* Operation and age of what is no suspect, where all the other rows fit below it all the same. */
static bool has_room_for_particulars(const struct sheet *sheet, const struct ttm_report_row *row,
                                     size_t others, bool has_advice)
{
    return sheet->choice->at == TTM_AT_REMAINING && sheet->choice->top == 0 &&
           sheet->rows >= others * 2 + 4 + sheet->below + rows_of_reasons(sheet, row, has_advice);
}

/* Of what is no suspect. Advice is for a program cache that grows. Returns whether there is room. */
static bool put_innocent(struct sheet *sheet, const struct ttm_report_row *row, size_t others,
                         bool has_advice)
{
    if (!sheet->choice->is_unfolded && !has_room_for_particulars(sheet, row, others, has_advice))
        return false;
    put_particulars(sheet, row);
    if (has_advice)
        put_advice(sheet, row->origin);
    return true;
}

static void put_list(struct sheet *sheet, const struct ttm_report_row *rows, uint32_t count)
{
    const struct ttm_report_choice *choice = sheet->choice;
    bool has_room = true;    /* for particulars, from the first row on as far as it goes */
    bool is_advised = false; /* once, for all that the program cache has */
    uint64_t all_bytes = 0;
    uint32_t i;

    for (i = 0; i < count; i++)
        all_bytes += rows[i].held.footprint_bytes;
    put_titles(sheet, all_bytes);
    for (i = 0; i < count; i++) {
        const struct ttm_report_origin *origin = rows[i].origin;
        /* A screen that leaves out a suspect has failed: rather some rows too many. */
        const bool is_tight = !choice->is_unfolded && i > 0 && sheet->rows < 4 + sheet->below;
        const bool is_needed = origin->verdict.is_suspect && choice->at == TTM_AT_REMAINING;
        if (choice->top > 0 ? i == choice->top : is_tight && !is_needed)
            break;
        put_row(sheet, &rows[i], i + 1, all_bytes);
        /* The line of source, and those that were left out; more where there are more rows. */
        const size_t others =
            rows_of_suspects(rows, i + 1, count) + (sheet->is_brief ? 2 : 5) + sheet->below;
        if (origin->verdict.is_suspect && choice->at == TTM_AT_REMAINING)
            put_suspect(sheet, &rows[i], !is_tight || i < SUSPECTS_LEAST,
                        choice->is_unfolded    ? SIZE_MAX
                        : sheet->rows > others ? sheet->rows - others
                                               : 0);
        else if (has_room) {
            const bool has_advice = origin->verdict.is_growing_cache && !is_advised;
            has_room = put_innocent(sheet, &rows[i], count - i - 1, has_advice);
            is_advised |= has_advice;
        }
        if (choice->is_unfolded)
            put_whole(sheet, origin);
    }
    put_left_out(sheet, rows, i, count);
}

/* Of one process or of several. */
struct suspects {
    uint32_t processes; /* that have any */
    uint64_t count;
    uint64_t over; /* of them: of loops that are over */
    uint64_t buffers;
    uint64_t bytes;
    uint64_t most_bytes; /* at a time; 0: not known */
};

static bool is_suspect(const void *arg, const struct ttm_report_origin *origin)
{
    return origin->verdict.is_suspect && ttm_report_has_origin(arg, origin);
}

/* Without what other sessions of a device left that does not grow. */
static void add_suspects(const struct sheet *sheet, struct suspects *sum,
                         const struct ttm_report_process *process,
                         const struct ttm_report_row *rows, uint32_t count)
{
    const uint64_t before = sum->count;

    for (uint32_t i = 0; i < count; i++) {
        if (!rows[i].origin->verdict.is_suspect)
            continue;
        sum->count++;
        sum->over += rows[i].origin->verdict.is_over;
        sum->buffers += rows[i].judged.count;
        sum->bytes += rows[i].judged.footprint_bytes;
    }
    if (process->session_count > 1)
        sum->most_bytes += ttm_report_most_judged(process, is_suspect, sheet->choice);
    sum->processes += sum->count > before;
}

/* "3 suspects in 3 processes: 33 buffers that keep growing, 792 KiB, 96.0 KiB at a time" */
static void put_suspects(const struct sheet *sheet, const struct suspects *suspects,
                         uint32_t processes)
{
    char number[TTM_NUMBER_SIZE], sum[TTM_NUMBER_SIZE];
    struct ttm_text text;

    ttm_text_init(&text);
    ttm_text_format(&text, "%llu %s", (unsigned long long)suspects->count,
                    plural(suspects->count, "suspect", "suspects"));
    ttm_report_part(sheet->choice, &text);
    if (processes > 1 && suspects->processes == processes)
        ttm_text_format(&text, " in %u processes", processes);
    else if (processes > 1)
        ttm_text_format(&text, " in %u of %u processes", suspects->processes, processes);
    ttm_text_format(&text, ": %s %s that %s growing, %s",
                    ttm_format_count(suspects->buffers, number),
                    plural(suspects->buffers, "buffer", "buffers"),
                    suspects->over == 0                 ? "keep"
                    : suspects->over == suspects->count ? "kept"
                                                        : "keep or kept",
                    ttm_format_bytes(suspects->bytes, sum));
    if (suspects->most_bytes > 0 && suspects->most_bytes < suspects->bytes)
        ttm_text_format(&text, ", %s at a time", ttm_format_bytes(suspects->most_bytes, sum));
    put_in(sheet, TTM_RED, ttm_text_string(&text));
    sheet->out->failed |= text.failed;
    ttm_text_done(&text);
}

/* "; others: tt-mem report --pid PID" */
static void put_others_hint(const struct sheet *sheet)
{
    if (!sheet->path)
        return;
    put(sheet, "; others: ");
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_BOLD);
    put(sheet, "tt-mem report ");
    if (strchr(sheet->path, '/')) { /* else it finds the newest in this folder */
        ttm_text_append_safe(sheet->out, sheet->path);
        put(sheet, " ");
    }
    put(sheet, "--pid PID");
    ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
}

/* Where one process of several is shown: what all have, then which this is, and how to see others. */
static int put_all_suspects(struct sheet *sheet, const struct suspects *own, uint32_t processes)
{
    char sum[TTM_NUMBER_SIZE];
    struct suspects all = {0};

    for (uint32_t i = 0; i < sheet->report->process_count; i++) {
        const struct ttm_report_process *process = &sheet->report->processes[i];
        struct ttm_report_row *rows = NULL;
        uint32_t count = 0;
        if (!ttm_report_has_process(sheet->choice, process))
            continue;
        const int r = ttm_report_rows_of(sheet->choice, process, &rows, &count);
        if (r < 0)
            return r;
        add_suspects(sheet, &all, process, rows, count);
        free(rows);
    }
    put_suspects(sheet, &all, processes);
    end_line(sheet);
    ttm_text_format(sheet->out, "  below: process %d, ", sheet->process->pid);
    if (own->count == all.count)
        put(sheet, "all of them");
    else
        ttm_text_format(sheet->out, "%llu of them, %s", (unsigned long long)own->count,
                        ttm_format_bytes(own->bytes, sum));
    put_others_hint(sheet);
    return 0;
}

/* Of how many processes this one is shown in place of all. */
static uint32_t processes_of(const struct sheet *sheet)
{
    uint32_t count = 0;

    if (sheet->choice->is_unfolded)
        return 1;
    for (uint32_t i = 0; i < sheet->report->process_count; i++)
        count += ttm_report_has_process(sheet->choice, &sheet->report->processes[i]);
    return count;
}

/* Whether anything was allocated in the part that is looked at, however small. */
static bool was_used(const struct sheet *sheet)
{
    struct ttm_report_choice part = *sheet->choice;

    part.min_bytes = 0;
    for (uint32_t i = 0; i < sheet->process->origin_count; i++) {
        if (ttm_report_has_origin(&part, &sheet->process->origins[i]))
            return true;
    }
    return false;
}

/* Some were allocated again where they lay, without a free: nobody knows how they ended. */
static bool was_replaced(const struct sheet *sheet)
{
    for (uint32_t i = 0; i < sheet->process->origin_count; i++) {
        const struct ttm_report_origin *origin = &sheet->process->origins[i];
        if (origin->replaced > 0 && ttm_report_has_origin(sheet->choice, origin))
            return true;
    }
    return false;
}

void ttm_report_nothing(struct sheet *sheet)
{
    struct ttm_report_choice part = *sheet->choice;
    struct ttm_text text;

    ttm_text_init(&text);
    if (part.at == TTM_AT_MARK && !sheet->process->has_moment[0]) {
        ttm_text_append(&text, "this process has no mark '");
        ttm_text_append_safe(&text, part.mark);
        ttm_text_append(&text, "'");
    } else if (!was_used(sheet)) {
        part.min_bytes = 0;
        ttm_text_append(&text, "nothing was allocated");
        ttm_report_part(&part, &text);
    } else {
        ttm_text_append(&text, "nothing");
        ttm_report_part(&part, &text);
        ttm_text_append(&text, part.at != TTM_AT_REMAINING ? " was live then" : " remains");
        if (part.at == TTM_AT_REMAINING && sheet->process->has_missed)
            ttm_text_append(&text, sheet->process->is_complete ? "" : ", as far as was heard");
        else if (part.at == TTM_AT_REMAINING && part.min_bytes == 0)
            ttm_text_format(&text, ": all that was allocated%s was freed%s",
                            ttm_report_is_narrowed(&part) ? " there" : "",
                            was_replaced(sheet) ? " or replaced" : "");
    }
    put_in(sheet, part.at == TTM_AT_REMAINING ? TTM_GREEN : TTM_PLAIN, ttm_text_string(&text));
    sheet->out->failed |= text.failed;
    ttm_text_done(&text);
}

void ttm_report_hidden(struct sheet *sheet)
{
    uint32_t hidden = 0;
    char text[80];

    sheet->out->failed |= ttm_report_suspects_hidden(sheet->choice, sheet->process, &hidden) < 0;
    if (hidden == 0)
        return;
    (void)snprintf(text, sizeof(text), "%u %s not shown by this filter", hidden,
                   plural(hidden, "suspect is", "suspects are"));
    put(sheet, "  ");
    put_in(sheet, TTM_YELLOW, text);
    end_line(sheet);
}

/* What is left of a process: buffers, some of which may be unsure, and what cached programs have. */
struct left {
    uint64_t buffers;
    uint64_t unsure;
    uint64_t caught;  /* of those that have one cause */
    uint64_t parts;   /* circular buffers and kernels */
    uint64_t tensors; /* that programs keep */
};

static struct left count_left(const struct ttm_report_row *rows, uint32_t count)
{
    struct left left = {0};

    for (uint32_t i = 0; i < count; i++) {
        const struct ttm_report_origin *origin = rows[i].origin;
        uint64_t *sum = &left.buffers;
        if (is_part_of_program(origin))
            sum = origin->region < TTM_REGION_CB ? &left.tensors : &left.parts;
        *sum += rows[i].held.count;
        left.caught += rows[i].cause > 0 ? rows[i].held.count : 0;
        left.unsure += origin->verdict.class == TTM_CLASS_UNSURE ? rows[i].held.count : 0;
    }
    return left;
}

/* Nothing is left but what the program cache has. */
static void put_only_parts(const struct sheet *sheet, const struct left *left)
{
    struct ttm_text text;

    ttm_text_init(&text);
    ttm_text_append(&text, "no suspects");
    ttm_report_part(sheet->choice, &text);
    ttm_text_append(&text, ": ");
    ttm_report_put_parts(&text, left->parts, left->tensors);
    put_in(sheet, TTM_GREEN, ttm_text_string(&text));
    sheet->out->failed |= text.failed;
    ttm_text_done(&text);
}

static void put_no_suspects(const struct sheet *sheet, const struct left *found)
{
    const char *left = ttm_report_is_narrowed(sheet->choice) ? "shown" : "left";
    const uint64_t buffers = found->buffers, unsure = found->unsure, caught = found->caught;
    char number[TTM_NUMBER_SIZE], other[TTM_NUMBER_SIZE];
    struct ttm_text text;

    ttm_text_init(&text);
    ttm_text_append(&text, "no suspects");
    ttm_report_part(sheet->choice, &text);
    (void)ttm_format_count(buffers, number);
    if (caught > 0)
        ttm_text_format(&text, "; %s of the %s %s %s %s held by an exception or a cycle",
                        ttm_format_count(caught, other), number,
                        plural(buffers, "buffer", "buffers"), left, caught == 1 ? "is" : "are");
    else if (unsure > 0)
        ttm_text_format(&text, "; %s of the %s %s %s %s unsure", ttm_format_count(unsure, other),
                        number, plural(buffers, "buffer", "buffers"), left,
                        unsure == 1 ? "is" : "are");
    else
        ttm_text_format(
            &text, ": the %s %s %s %s intended%s", number, plural(buffers, "buffer", "buffers"),
            left, plural(buffers, "looks", "look"),
            sheet->report->suppressed == 0 ? "" : plural(buffers, " or is known", " or are known"));
    put_in(sheet, unsure + caught > 0 ? TTM_YELLOW : TTM_GREEN, ttm_text_string(&text));
    sheet->out->failed |= text.failed;
    ttm_text_done(&text);
}

static int put_sum_up(struct sheet *sheet, const struct ttm_report_row *rows, uint32_t count)
{
    const uint32_t processes = processes_of(sheet);
    const struct left left = count_left(rows, count);
    struct suspects suspects = {0};
    int r = 0;

    add_suspects(sheet, &suspects, sheet->process, rows, count);
    put(sheet, "  ");
    if (suspects.count > 0 && processes > 1)
        r = put_all_suspects(sheet, &suspects, processes);
    else if (suspects.count > 0)
        put_suspects(sheet, &suspects, 1);
    else if (left.buffers > 0)
        put_no_suspects(sheet, &left);
    else if (left.parts > 0 || left.tensors > 0)
        put_only_parts(sheet, &left);
    else
        ttm_report_nothing(sheet);
    if (sheet->report->suppressed > 0)
        ttm_text_format(sheet->out, "%s%u known and suppressed", dot(sheet),
                        sheet->report->suppressed);
    end_line(sheet);
    ttm_report_hidden(sheet);
    return r;
}

/* One line, whose middle is cut on a terminal where all of it does not fit. */
static void put_between(const struct sheet *sheet, const struct ttm_text *head,
                        const struct ttm_text *middle, const struct ttm_text *tail)
{
    const size_t taken =
        ttm_terminal_width(ttm_text_string(head)) + ttm_terminal_width(ttm_text_string(tail));
    const size_t room = sheet->terminal->columns > taken + 8 ? sheet->terminal->columns - taken : 8;
    const size_t width = ttm_terminal_width(ttm_text_string(middle));

    put(sheet, ttm_text_string(head));
    if (sheet->terminal->is_terminal && width > room)
        put_columns(sheet, ttm_text_string(middle), room);
    else
        put(sheet, ttm_text_string(middle));
    put(sheet, ttm_text_string(tail));
    sheet->out->failed |= head->failed || middle->failed || tail->failed;
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
    if (!most || (sheet->is_brief && sheet->rows == 0))
        return;
    struct ttm_text head, place, tail;
    ttm_text_init(&head);
    ttm_text_init(&place);
    ttm_text_init(&tail);
    ttm_text_format(&head, "  temporary: %s from %llu %s, most at ",
                    ttm_format_count(births, number), (unsigned long long)lines,
                    plural(lines, "origin", "origins"));
    ttm_report_place(sheet, &most->words, &place);
    const uint64_t mean_ns = most->lifetime_ns / most->frees;
    if (process->is_untimed || (process->is_logged && mean_ns < TTM_NS_PER_S))
        ttm_text_format(&tail, " (%s)", ttm_format_count(most->allocs, frees));
    else
        ttm_text_format(&tail, " (%s, %s each)", ttm_format_count(most->allocs, frees),
                        mean_ns < TTM_NS_PER_MS ? "< 1 ms" : ttm_format_duration(mean_ns, mean));
    put_between(sheet, &head, &place, &tail);
    end_line(sheet);
    ttm_text_done(&head);
    ttm_text_done(&place);
    ttm_text_done(&tail);
}

/* What grew and was freed only when nothing more came: nothing remains, but it was there. */
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
        put_in(sheet, TTM_YELLOW, "grew as long as anything was allocated, freed only after: ");
        ttm_text_format(sheet->out, "%s %s, %s", ttm_format_count(origin->late.count, count),
                        plural(origin->late.count, "buffer", "buffers"),
                        ttm_format_bytes(origin->late.footprint_bytes, bytes));
        end_line(sheet);
        put(sheet, "   ");
        ttm_terminal_colour(sheet->terminal, sheet->out, TTM_BOLD);
        ttm_report_place(sheet, &origin->words, sheet->out);
        ttm_terminal_colour(sheet->terminal, sheet->out, TTM_PLAIN);
        ttm_text_format(sheet->out, "  %s", ttm_region_name(origin->region));
        end_line(sheet);
        const struct ttm_report_row row = {.origin = origin}; /* holds nothing any more */
        put_suspect(sheet, &row, true, sheet->choice->is_unfolded ? SIZE_MAX : 4);
    }
}

static bool is_chosen(const void *arg, const struct ttm_report_origin *origin)
{
    return ttm_report_has_origin(arg, origin);
}

/* What remains in all, and what several rows have in common; those rows come first. */
static int put_findings(struct sheet *sheet, struct ttm_report_row *rows, uint32_t count)
{
    struct ttm_root_causes causes = {0};
    int r = ttm_root_causes_find(sheet->process, is_chosen, sheet->choice, &causes);

    if (r == 0) {
        ttm_report_causes_order(sheet->process, &causes, rows, count);
        r = put_sum_up(sheet, rows, count);
        ttm_report_causes(sheet, &causes, rows, count);
    }
    ttm_root_causes_done(&causes);
    return r;
}

static int put_table(struct sheet *sheet)
{
    struct ttm_report_row *rows = NULL;
    uint32_t count = 0;
    int r = ttm_report_rows_of(sheet->choice, sheet->process, &rows, &count);

    if (r < 0)
        return r;
    end_line(sheet);
    if (sheet->choice->at == TTM_AT_REMAINING)
        r = put_findings(sheet, rows, count);
    if (count > 0) {
        put_list(sheet, rows, count);
    } else if (sheet->choice->at != TTM_AT_REMAINING) {
        put(sheet, "  ");
        ttm_report_nothing(sheet);
        end_line(sheet);
    }
    free(rows);
    return r;
}

/* The table, and below it the lines of other processes, for which it leaves room. */
static int put_table_above(struct sheet *sheet, const struct ttm_text *elsewhere, size_t lines)
{
    sheet->below += lines;
    const int r = put_table(sheet);
    sheet->below -= lines;
    put(sheet, ttm_text_string(elsewhere));
    sheet->rows -= sheet->rows < lines ? sheet->rows : lines;
    sheet->out->failed |= elsewhere->failed;
    return r;
}

int ttm_report_origins(struct sheet *sheet)
{
    struct ttm_text elsewhere;
    size_t lines = 0;
    int r = 0;

    ttm_text_init(&elsewhere);
    if (sheet->choice->at == TTM_AT_REMAINING && !sheet->choice->is_unfolded)
        r = ttm_report_suspects_elsewhere(sheet, &elsewhere, &lines);
    if (r == 0)
        r = put_table_above(sheet, &elsewhere, lines);
    ttm_text_done(&elsewhere);
    if (sheet->choice->at == TTM_AT_REMAINING)
        put_kept(sheet);
    put_temporaries(sheet);
    return r;
}
