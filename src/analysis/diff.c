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
};

static int compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* Functions and files without their folders; lines move. */
static int compare_stacks(const struct ttm_origin_words *a, const struct ttm_origin_words *b)
{
    int order = compare_numbers(a->python_count, b->python_count);

    for (uint32_t i = 0; order == 0 && i < a->python_count; i++) {
        order = strcmp(a->python[i].function, b->python[i].function);
        if (order == 0)
            order = strcmp(ttm_base_name(a->python[i].file), ttm_base_name(b->python[i].file));
    }
    if (order != 0 || a->python_count > 0)
        return order;
    order = compare_numbers(a->native_count, b->native_count);
    for (uint32_t i = 0; order == 0 && i < a->native_count; i++)
        order = strcmp(a->native[i], b->native[i]);
    return order;
}

static int compare_origins(const struct ttm_report_origin *a, const struct ttm_report_origin *b)
{
    int order = compare_numbers(a->region, b->region);

    if (order == 0)
        order = compare_numbers(a->kind, b->kind);
    if (order == 0)
        order = compare_numbers(a->is_alias, b->is_alias);
    if (order == 0)
        order = strcmp(a->words.operation, b->words.operation);
    return order != 0 ? order : compare_stacks(&a->words, &b->words);
}

/* Alike ones side by side; the later side's first, its largest before all. */
static int by_origin(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    int order = compare_origins(x->origin, y->origin);

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

static size_t add_side(const struct ttm_diff_side *side, bool is_later, struct part *parts)
{
    size_t count = 0;

    for (uint32_t p = 0; p < side->report->process_count; p++) {
        const struct ttm_report_process *process = &side->report->processes[p];
        for (uint32_t i = 0; i < process->origin_count; i++) {
            const struct ttm_report_origin *origin = &process->origins[i];
            const struct ttm_held held =
                side->moment < 0 ? origin->remaining : origin->moments[side->moment];
            if (held.count > 0)
                parts[count++] = (struct part){origin, held, is_later};
        }
    }
    return count;
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
    size_t count = add_side(from, false, parts);
    count += add_side(to, true, parts + count);
    qsort(parts, count, sizeof(parts[0]), by_origin);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || compare_origins(parts[i - 1].origin, parts[i].origin) != 0)
            rows[ret->count++].origin = parts[i].origin;
        struct ttm_diff_row *row = &rows[ret->count - 1];
        ttm_held_add(parts[i].is_later ? &row->to : &row->from, &parts[i].held);
    }
    free(parts);
    qsort(rows, ret->count, sizeof(rows[0]), by_growth);
    ret->rows = rows;
    return 0;
}

void ttm_diff_done(struct ttm_diff *diff)
{
    free(diff->rows);
    *diff = (struct ttm_diff){0};
}
