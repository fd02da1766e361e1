/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/seed.h"
#include "base/u64_map.h"

static bool is_same_text(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static bool is_same_frame(const struct ttm_frame_words *a, const struct ttm_frame_words *b)
{
    return a->line == b->line && is_same_text(a->file, b->file) &&
           is_same_text(a->function, b->function);
}

/* The first from there on that is not the same as the one before: a recursion is one, if deep. */
static uint32_t skip_like(const struct ttm_stack_words *stack, uint32_t i)
{
    while (i > 0 && i < stack->count && is_same_frame(&stack->frames[i - 1], &stack->frames[i]))
        i++;
    return i;
}

static bool has_same_frames(const struct ttm_origin_words *a, const struct ttm_origin_words *b)
{
    const struct ttm_stack_words x = ttm_origin_users_stack(a), y = ttm_origin_users_stack(b);
    uint32_t i = 0, j = 0;

    while (i < x.count && j < y.count) {
        if (!is_same_frame(&x.frames[i], &y.frames[j]))
            return false;
        i = skip_like(&x, i + 1);
        j = skip_like(&y, j + 1);
    }
    if (i < x.count || j < y.count)
        return false;
    /* Native stacks are not shown beside others, and are as deep as a recursion is. */
    if (a->python_count == 0 && a->native_count != b->native_count)
        return false;
    for (i = 0; a->python_count == 0 && i < a->native_count; i++) {
        if (!is_same_text(a->native[i], b->native[i]))
            return false;
    }
    return true;
}

/* Whether both would be shown by the same row, but for their numbers. */
static bool is_alike(const struct ttm_report_origin *a, const struct ttm_report_origin *b)
{
    return a->region == b->region && a->verdict.class == b->verdict.class &&
           a->verdict.is_suspect == b->verdict.is_suspect && a->device_count == b->device_count &&
           memcmp(a->devices, b->devices, a->device_count * sizeof(a->devices[0])) == 0 &&
           is_same_text(a->words.operation, b->words.operation) &&
           is_same_text(a->words.context, b->words.context) &&
           has_same_frames(&a->words, &b->words);
}

static uint64_t hash_of(const struct ttm_report_origin *origin)
{
    const struct ttm_origin_words *words = &origin->words;
    const struct ttm_stack_words stack = ttm_origin_users_stack(words);
    uint64_t hash = (uint64_t)origin->region << 8 | (uint64_t)origin->verdict.class;

    hash = ttm_hash_text(hash, words->operation);
    for (uint32_t i = 0; i < stack.count; i = skip_like(&stack, i + 1))
        hash = ttm_hash_text(hash ^ stack.frames[i].line, stack.frames[i].function);
    for (uint32_t i = 0; words->python_count == 0 && i < words->native_count; i++)
        hash = ttm_hash_text(hash, words->native[i]);
    return hash;
}

static void join(struct ttm_report_row *row, const struct ttm_report_origin *origin,
                 const struct ttm_held *held)
{
    row->origins++;
    row->names += !is_same_text(row->origin->words.name, origin->words.name);
    ttm_held_add(&row->held, held);
    ttm_held_add(&row->judged, &origin->judged);
    for (uint32_t i = 0; i < TTM_REPORT_BARS; i++)
        row->bars[i] += origin->bars[i];
    if (row->origins == 1 || origin->first_ns < row->first_ns)
        row->first_ns = origin->first_ns;
    if (origin->last_ns > row->last_ns)
        row->last_ns = origin->last_ns;
}

/* The row that the origin belongs to; NULL: it is the first of its kind. */
static struct ttm_report_row *find_row(const struct ttm_u64_map *first, struct ttm_report_row *rows,
                                       const struct ttm_report_origin *origin, uint64_t hash)
{
    uint32_t at;

    if (!ttm_u64_map_find(first, hash, &at))
        return NULL;
    const struct ttm_report_origin *leader = rows[at].origin;
    return leader && is_alike(leader, origin) ? &rows[at] : NULL;
}

/* What takes most first, else as the origins were. */
static int by_size(const void *a, const void *b)
{
    const struct ttm_report_row *first = a, *second = b;
    const uint64_t bytes = first->held.footprint_bytes, other = second->held.footprint_bytes;

    if (bytes != other)
        return bytes > other ? -1 : 1;
    return first->place < second->place ? -1 : first->place > second->place;
}

static void sort(struct ttm_report_row *rows, uint32_t count, bool is_suspects_first)
{
    uint32_t suspects = 0;

    while (is_suspects_first && suspects < count && rows[suspects].origin->verdict.is_suspect)
        suspects++;
    qsort(rows, suspects, sizeof(rows[0]), by_size);
    qsort(rows + suspects, count - suspects, sizeof(rows[0]), by_size);
}

int ttm_report_rows(const struct ttm_report_choice *choice,
                    const struct ttm_report_origin *const *order, uint32_t count, bool is_folded,
                    struct ttm_report_row **ret, uint32_t *ret_count)
{
    struct ttm_report_row *rows = calloc((size_t)count + 1, sizeof(*rows));
    struct ttm_u64_map first; /* hash: row */
    uint32_t used = 0;
    int r = rows ? 0 : -ENOMEM;

    ttm_u64_map_init(&first, ttm_seed_random());
    for (uint32_t i = 0; r == 0 && i < count; i++) {
        const struct ttm_held held = ttm_report_held(choice, order[i]);
        const uint64_t hash = is_folded ? hash_of(order[i]) : i;
        if (held.count == 0)
            continue;
        struct ttm_report_row *row = is_folded ? find_row(&first, rows, order[i], hash) : NULL;
        if (!row) {
            r = is_folded ? ttm_u64_map_add(&first, hash, used) : 0;
            r = r == -EEXIST ? 0 : r; /* two kinds with one hash: the second is not folded */
            row = &rows[used++];
            row->origin = order[i];
            row->place = i;
        }
        join(row, order[i], &held);
    }
    ttm_u64_map_done(&first);
    if (r < 0) {
        free(rows);
        return r;
    }
    if (is_folded)
        sort(rows, used, choice->at == TTM_AT_REMAINING);
    *ret = rows;
    *ret_count = used;
    return 0;
}

int ttm_report_rows_of(const struct ttm_report_choice *choice,
                       const struct ttm_report_process *process, struct ttm_report_row **ret,
                       uint32_t *ret_count)
{
    uint32_t origins = 0;
    const struct ttm_report_origin **order =
        ttm_report_order(choice, process, choice->at == TTM_AT_REMAINING, &origins);
    const int r =
        order ? ttm_report_rows(choice, order, origins, !choice->is_unfolded, ret, ret_count)
              : -ENOMEM;

    free(order);
    return r;
}

int ttm_report_suspects(const struct ttm_report_choice *choice,
                        const struct ttm_report_process *process, uint32_t *ret)
{
    struct ttm_report_choice left = *choice;
    struct ttm_report_row *rows = NULL;
    uint32_t count = 0;

    left.at = TTM_AT_REMAINING;
    const int r = ttm_report_rows_of(&left, process, &rows, &count);
    if (r < 0)
        return r;
    *ret = 0;
    while (*ret < count && rows[*ret].origin->verdict.is_suspect)
        (*ret)++;
    free(rows);
    return 0;
}

int ttm_report_suspects_hidden(const struct ttm_report_choice *choice,
                               const struct ttm_report_process *process, uint32_t *ret)
{
    const struct ttm_report_choice all = {
        .devices.is_all = true, .region = -1, .is_unfolded = choice->is_unfolded};
    uint32_t shown = 0, there = 0;

    *ret = 0;
    if (!ttm_report_is_narrowed(choice))
        return 0;
    int r = ttm_report_suspects(choice, process, &shown);
    if (r == 0)
        r = ttm_report_suspects(&all, process, &there);
    *ret = there > shown ? there - shown : 0;
    return r;
}
