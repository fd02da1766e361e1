/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/histogram.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"

#define SIZES_SHOWN 10
#define BAR_COLUMNS 14

static const struct {
    uint64_t below_ns;
    const char *label;
} ages[TTM_AGE_GROUPS] = {
    {TTM_NS_PER_S, "< 1 s"},        {10 * TTM_NS_PER_S, "< 10 s"},
    {60 * TTM_NS_PER_S, "< 1 min"}, {600 * TTM_NS_PER_S, "< 10 min"},
    {3600 * TTM_NS_PER_S, "< 1 h"}, {36000 * TTM_NS_PER_S, "< 10 h"},
    {UINT64_MAX, "> 10 h"},
};

void ttm_histogram_init(struct ttm_histogram *histogram, uint64_t seed)
{
    *histogram = (struct ttm_histogram){.seed = seed};
}

void ttm_histogram_done(struct ttm_histogram *histogram)
{
    free(histogram->groups);
    ttm_histogram_init(histogram, histogram->seed);
}

static struct ttm_size_group *find(uint64_t seed, struct ttm_size_group *groups, size_t room,
                                   uint64_t kb)
{
    size_t at = (size_t)ttm_hash_u64(kb ^ seed) & (room - 1);

    while (groups[at].count != 0 && groups[at].kb != kb)
        at = (at + 1) & (room - 1);
    return &groups[at];
}

static bool grow(struct ttm_histogram *histogram)
{
    const size_t room = histogram->room ? histogram->room * 2 : 64;
    struct ttm_size_group *groups = calloc(room, sizeof(groups[0]));

    if (!groups)
        return false;
    for (size_t i = 0; i < histogram->room; i++) {
        if (histogram->groups[i].count != 0)
            *find(histogram->seed, groups, room, histogram->groups[i].kb) = histogram->groups[i];
    }
    free(histogram->groups);
    histogram->groups = groups;
    histogram->room = room;
    return true;
}

void ttm_histogram_add_many(struct ttm_histogram *histogram, uint64_t bytes, uint64_t count)
{
    if (count == 0)
        return;
    if (histogram->group_count * 2 >= histogram->room && !grow(histogram)) {
        histogram->failed = true;
        return;
    }
    const uint64_t kb = (bytes + 512) / 1024;
    struct ttm_size_group *group = find(histogram->seed, histogram->groups, histogram->room, kb);
    if (group->count == 0)
        histogram->group_count++;
    group->kb = kb;
    group->count += count;
    group->bytes += bytes * count;
    histogram->count += count;
    histogram->bytes += bytes * count;
}

void ttm_histogram_add(struct ttm_histogram *histogram, uint64_t bytes, uint64_t age_ns)
{
    ttm_histogram_add_many(histogram, bytes, 1);
    for (size_t i = 0; i < TTM_AGE_GROUPS; i++) {
        if (age_ns < ages[i].below_ns || i + 1 == TTM_AGE_GROUPS) {
            histogram->ages[i]++;
            break;
        }
    }
}

static int compare_groups(const void *a, const void *b)
{
    const struct ttm_size_group *x = a;
    const struct ttm_size_group *y = b;

    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return x->kb < y->kb ? 1 : x->kb > y->kb ? -1 : 0;
}

size_t ttm_histogram_sort(struct ttm_histogram *histogram)
{
    if (histogram->room > 0)
        qsort(histogram->groups, histogram->room, sizeof(histogram->groups[0]), compare_groups);
    return histogram->group_count;
}

static double share_of(const struct ttm_histogram *histogram, const struct ttm_size_group *group)
{
    return histogram->bytes > 0 ? 100.0 * (double)group->bytes / (double)histogram->bytes : 0;
}

static bool has_ages(const struct ttm_histogram *histogram)
{
    for (size_t i = 0; i < TTM_AGE_GROUPS; i++) {
        if (histogram->ages[i] > 0)
            return true;
    }
    return false;
}

static void put_size(const struct ttm_histogram *histogram, const struct ttm_size_group *group,
                     const struct ttm_terminal *terminal, struct ttm_text *out)
{
    char label[TTM_NUMBER_SIZE], count[TTM_NUMBER_SIZE];

    ttm_text_format(
        out, "  %9s KB  %9s %-8s ", group->kb == 0 ? "< 1" : ttm_format_count(group->kb, label),
        ttm_format_count(group->count, count), group->count == 1 ? "buffer" : "buffers");
    ttm_terminal_bar(terminal, out, group->count, histogram->groups[0].count, BAR_COLUMNS);
    ttm_text_format(out, " %3.0f %%", share_of(histogram, group));
}

void ttm_histogram_line(struct ttm_histogram *histogram, const struct ttm_terminal *terminal,
                        size_t columns, struct ttm_text *out)
{
    const size_t sizes = ttm_histogram_sort(histogram);
    char label[TTM_NUMBER_SIZE], count[TTM_NUMBER_SIZE], one[96];
    size_t used = 0;

    for (size_t i = 0; i < sizes; i++) {
        const struct ttm_size_group *group = &histogram->groups[i];
        const int length =
            snprintf(one, sizeof(one), "%s KB %s %s %.0f %%",
                     group->kb == 0 ? "< 1" : ttm_format_count(group->kb, label),
                     ttm_format_count(group->count, count),
                     group->count == 1 ? "buffer" : "buffers", share_of(histogram, group));
        if (i > 0 && used + 3 + (size_t)length > columns)
            return;
        ttm_text_append(out, i > 0 ? ttm_terminal_dot(terminal) : "");
        ttm_text_append(out, one);
        used += (size_t)length + (i > 0 ? 3 : 0);
    }
}

void ttm_histogram_text(struct ttm_histogram *histogram, const struct ttm_terminal *terminal,
                        struct ttm_text *out)
{
    const size_t sizes = ttm_histogram_sort(histogram);
    const size_t shown = sizes < SIZES_SHOWN ? sizes : SIZES_SHOWN;
    size_t age = 0;
    char count[TTM_NUMBER_SIZE];

    ttm_terminal_colour(terminal, out, TTM_BOLD);
    ttm_text_append(out, "Most Common Buffer Sizes           (share of bytes)");
    ttm_text_append(out, has_ages(histogram) ? "       Ages\n" : "\n");
    ttm_terminal_colour(terminal, out, TTM_PLAIN);
    for (size_t i = 0; i < shown || age < TTM_AGE_GROUPS; i++) {
        while (age < TTM_AGE_GROUPS && histogram->ages[age] == 0)
            age++;
        if (i >= shown && age == TTM_AGE_GROUPS)
            break;
        if (i < shown)
            put_size(histogram, &histogram->groups[i], terminal, out);
        if (age < TTM_AGE_GROUPS) {
            ttm_text_format(out, "%*s%-9s %9s", i < shown ? 5 : 60, "", ages[age].label,
                            ttm_format_count(histogram->ages[age], count));
            age++;
        }
        ttm_text_append(out, "\n");
    }
}
