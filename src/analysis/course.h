/* SPDX-License-Identifier: Apache-2.0 */
/*
 * course - how a number went over time, in fixed memory.
 *
 * A million changes become at most TTM_COURSE_SPANS spans of equal length, which double
 * as time goes on. A span keeps the smallest and the largest value that held in it, so
 * no peak and no dip is lost however short it was, and the value at its end. Adding is
 * O(1) amortised. One thread, no I/O, no clock.
 */
#ifndef TTM_ANALYSIS_COURSE_H
#define TTM_ANALYSIS_COURSE_H

#include <stdint.h>

#include "analysis/arena.h"

#define TTM_COURSE_SPANS 1024u /* even: two become one */

struct ttm_course_span {
    uint64_t min;
    uint64_t max;
    uint64_t last;
};

struct ttm_course {
    uint64_t start_ns;
    uint8_t shift;  /* a span is 2^shift ns long */
    uint32_t count; /* spans so far; the value at the end of the last one holds on */
    struct ttm_course_span spans[TTM_COURSE_SPANS];
};

/* Returns NULL only when memory is short. The value is 0 from 'start_ns' on. */
struct ttm_course *ttm_course_new(uint64_t start_ns);

/* NULL is fine, of which it makes NULL; so it does when memory is short. */
struct ttm_course *ttm_course_copy(const struct ttm_course *course);

/* NULL is fine. */
void ttm_course_free(struct ttm_course *course);

/* From that time on it is 'value'. A time before the last one counts as the last one. */
void ttm_course_put(struct ttm_course *course, uint64_t time_ns, uint64_t value);

/* Two spans become one until there are at most 'count', which is 1 at least. */
void ttm_course_thin(struct ttm_course *course, uint32_t count);

/* A copy that lives as long as the arena; NULL for NULL, or when memory is short. */
struct ttm_course *ttm_course_keep(const struct ttm_course *course, struct ttm_arena *arena);

#endif /* TTM_ANALYSIS_COURSE_H */
