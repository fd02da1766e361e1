/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* An origin of one side. */
struct part {
    const struct ttm_report_origin *origin;
    struct ttm_held held;
    bool is_later;
    bool is_short;       /* names are compared by their last part, in all of them or in none */
    const char *program; /* the file that was run, which may have another name; NULL: not known */
};

static int compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* The name alone: "step" of "Model.step", as Python before 3.11 has it. */
static const char *last_part(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot ? dot + 1 : name;
}

/* A comprehension has a frame of its own before Python 3.12, and then none any more. */
static bool is_comprehension(const char *function)
{
    const char *name = last_part(function);

    return strcmp(name, "<listcomp>") == 0 || strcmp(name, "<dictcomp>") == 0 ||
           strcmp(name, "<setcomp>") == 0;
}

/* The first frame from '*at' on that every Python has, which is left behind; NULL: none. */
static const struct ttm_frame_words *next_frame(const struct ttm_origin_words *words, uint32_t *at)
{
    while (*at < words->python_count && is_comprehension(words->python[*at].function))
        (*at)++;
    return *at < words->python_count ? &words->python[(*at)++] : NULL;
}

/* "" for the program itself. */
static const char *file_of(const struct part *part, const struct ttm_frame_words *frame)
{
    const char *name = ttm_base_name(frame->file);

    return part->program && strcmp(name, part->program) == 0 ? "" : name;
}

static int compare_frames(const struct part *x, const struct ttm_frame_words *a,
                          const struct part *y, const struct ttm_frame_words *b)
{
    const int order = x->is_short ? strcmp(last_part(a->function), last_part(b->function))
                                  : strcmp(a->function, b->function);

    return order != 0 ? order : strcmp(file_of(x, a), file_of(y, b));
}

static int compare_native(const struct ttm_origin_words *a, const struct ttm_origin_words *b)
{
    int order = compare_numbers(a->native_count, b->native_count);

    for (uint32_t i = 0; order == 0 && i < a->native_count; i++)
        order = strcmp(a->native[i], b->native[i]);
    return order;
}

/* Functions and files without their folders; lines move. */
static int compare_stacks(const struct part *x_part, const struct part *y_part)
{
    const struct ttm_origin_words *a = &x_part->origin->words, *b = &y_part->origin->words;
    uint32_t at = 0, other_at = 0;
    int order = 0;

    if (a->python_count == 0 && b->python_count == 0)
        return compare_native(a, b);
    while (order == 0) {
        const struct ttm_frame_words *x = next_frame(a, &at), *y = next_frame(b, &other_at);
        if (!x || !y)
            return compare_numbers(x != NULL, y != NULL);
        order = compare_frames(x_part, x, y_part, y);
    }
    return order;
}

static int compare_parts(const struct part *x, const struct part *y)
{
    const struct ttm_report_origin *a = x->origin, *b = y->origin;
    int order = compare_numbers(a->region, b->region);

    if (order == 0)
        order = compare_numbers(a->kind, b->kind);
    if (order == 0)
        order = strcmp(a->words.operation, b->words.operation);
    return order != 0 ? order : compare_stacks(x, y);
}

/* Alike ones side by side; the later side's first, its largest before all. */
static int by_origin(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    int order = compare_parts(x, y);

    if (order == 0)
        order = (int)y->is_later - (int)x->is_later;
    return order != 0 ? order : compare_numbers(y->held.footprint_bytes, x->held.footprint_bytes);
}

static int by_growth(const void *a, const void *b)
{
    const struct ttm_diff_row *x = a, *y = b;
    const int64_t p = ttm_diff_growth(x), q = ttm_diff_growth(y);

    if (p != q)
        return p < q ? 1 : -1;
    return compare_numbers(y->to.footprint_bytes, x->to.footprint_bytes);
}

static size_t count_origins(const struct ttm_report *report)
{
    size_t count = 0;

    for (uint32_t i = 0; i < report->process_count; i++)
        count += report->processes[i].origin_count;
    return count;
}

/* Whether functions are told with the classes and functions that they are in: since 3.11. */
static bool has_qualified_names(const struct ttm_report *report)
{
    for (uint32_t p = 0; p < report->process_count; p++) {
        const struct ttm_report_process *process = &report->processes[p];
        for (uint32_t i = 0; i < process->origin_count; i++) {
            const struct ttm_origin_words *words = &process->origins[i].words;
            for (uint32_t f = 0; f < words->python_count; f++) {
                if (strchr(words->python[f].function, '.'))
                    return true;
            }
        }
    }
    return false;
}

/* The file that all stacks begin in which reach so far: NULL if there are several, or none. */
static const char *program_of(const struct ttm_report *report)
{
    const char *program = NULL;

    for (uint32_t p = 0; p < report->process_count; p++) {
        const struct ttm_report_process *process = &report->processes[p];
        for (uint32_t i = 0; i < process->origin_count; i++) {
            const struct ttm_origin_words *words = &process->origins[i].words;
            if (words->python_count == 0)
                continue;
            const struct ttm_frame_words *first = &words->python[words->python_count - 1];
            if (strcmp(first->function, "<module>") != 0)
                continue;
            const char *name = ttm_base_name(first->file);
            if (program && strcmp(program, name) != 0)
                return NULL;
            program = name;
        }
    }
    return program;
}

static size_t add_side(const struct ttm_diff_side *side, const struct part *like,
                       struct part *parts)
{
    size_t count = 0;

    for (uint32_t p = 0; p < side->report->process_count; p++) {
        const struct ttm_report_process *process = &side->report->processes[p];
        for (uint32_t i = 0; i < process->origin_count; i++) {
            const struct ttm_report_origin *origin = &process->origins[i];
            const struct ttm_held held =
                side->moment < 0 ? origin->remaining : origin->moments[side->moment];
            if (held.count == 0)
                continue;
            parts[count] = *like;
            parts[count].origin = origin;
            parts[count++].held = held;
        }
    }
    return count;
}

/* The most that circular buffers take of the devices of a side, if they add up to so much. */
static uint64_t cbs_of(const struct ttm_diff_side *side, uint64_t bytes)
{
    uint64_t sum = 0;

    for (uint32_t p = 0; p < side->report->process_count; p++)
        sum += ttm_report_cb_taken(&side->report->processes[p], bytes);
    return sum < bytes ? sum : bytes;
}

static void add_up(const struct ttm_diff_side *from, const struct ttm_diff_side *to,
                   struct ttm_diff *diff)
{
    uint64_t cbs_grown = 0, cbs_shrunk = 0;

    for (uint32_t i = 0; i < diff->count; i++) {
        const int64_t growth = ttm_diff_growth(&diff->rows[i]);
        const bool is_cb = diff->rows[i].origin->region == TTM_REGION_CB;
        if (growth > 0)
            *(is_cb ? &cbs_grown : &diff->grown_bytes) += (uint64_t)growth;
        else
            *(is_cb ? &cbs_shrunk : &diff->shrunk_bytes) += (uint64_t)-growth;
    }
    diff->grown_bytes += cbs_of(to, cbs_grown);
    diff->shrunk_bytes += cbs_of(from, cbs_shrunk);
}

int ttm_diff_make(const struct ttm_diff_side *from, const struct ttm_diff_side *to,
                  struct ttm_diff *ret)
{
    const size_t most = count_origins(from->report) + count_origins(to->report);
    struct part *parts = calloc(most + 1, sizeof(parts[0]));
    struct ttm_diff_row *rows = calloc(most + 1, sizeof(rows[0]));

    *ret = (struct ttm_diff){0};
    if (!parts || !rows) {
        free(parts);
        free(rows);
        return -ENOMEM;
    }
    const bool is_short = has_qualified_names(from->report) != has_qualified_names(to->report);
    const char *before = program_of(from->report), *after = program_of(to->report);
    const bool has_both = before && after;
    struct part like = {.is_short = is_short, .program = has_both ? before : NULL};
    size_t count = add_side(from, &like, parts);
    like.is_later = true;
    like.program = has_both ? after : NULL;
    count += add_side(to, &like, parts + count);
    qsort(parts, count, sizeof(parts[0]), by_origin);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || compare_parts(&parts[i - 1], &parts[i]) != 0)
            rows[ret->count++].origin = parts[i].origin;
        struct ttm_diff_row *row = &rows[ret->count - 1];
        ttm_held_add(parts[i].is_later ? &row->to : &row->from, &parts[i].held);
    }
    free(parts);
    qsort(rows, ret->count, sizeof(rows[0]), by_growth);
    ret->rows = rows;
    add_up(from, to, ret);
    return 0;
}

void ttm_diff_done(struct ttm_diff *diff)
{
    free(diff->rows);
    *diff = (struct ttm_diff){0};
}
