/* SPDX-License-Identifier: Apache-2.0 */
/*
 * histogram - the most common sizes, and the ages, of what is allocated.
 *
 * Sizes are rounded to whole KB for grouping.
 */
#ifndef TTM_CLI_HISTOGRAM_H
#define TTM_CLI_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "cli/terminal.h"

#define TTM_AGE_GROUPS 7

struct ttm_size_group {
    uint64_t kb;
    uint64_t count;
    uint64_t bytes;
};

struct ttm_histogram {
    struct ttm_size_group *groups; /* open addressing by kb; count 0 is empty */
    size_t group_count;
    size_t room;
    uint64_t count;
    uint64_t bytes;
    uint64_t ages[TTM_AGE_GROUPS];
    bool failed; /* memory was short */
    uint64_t seed;
};

/* Programs whose sizes are counted do not know 'seed'. */
void ttm_histogram_init(struct ttm_histogram *histogram, uint64_t seed);
void ttm_histogram_done(struct ttm_histogram *histogram);
void ttm_histogram_add(struct ttm_histogram *histogram, uint64_t bytes, uint64_t age_ns);

/* 'count' of one size, whose ages are not known. */
void ttm_histogram_add_many(struct ttm_histogram *histogram, uint64_t bytes, uint64_t count);

/* Sorts the groups, most common first; nothing can be added any more. Returns how many there are. */
size_t ttm_histogram_sort(struct ttm_histogram *histogram);

/* The ten most common sizes, beside the ages if they are known. */
void ttm_histogram_text(struct ttm_histogram *histogram, const struct ttm_terminal *terminal,
                        struct ttm_text *out);

/* The most common sizes in one line, as many as fit: "8 KB 40 buffers 93 % · 16 KB 2 buffers 7 %". */
void ttm_histogram_line(struct ttm_histogram *histogram, const struct ttm_terminal *terminal,
                        size_t columns, struct ttm_text *out);

#endif /* TTM_CLI_HISTOGRAM_H */
