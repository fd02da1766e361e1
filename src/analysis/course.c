/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/course.h"

#include <stdlib.h>

#define SHIFT_FIRST 10 /* about a microsecond */
#define SHIFT_MAX 63

struct ttm_course *ttm_course_new(uint64_t start_ns)
{
    struct ttm_course *course = calloc(1, sizeof(*course));

    if (!course)
        return NULL;
    course->start_ns = start_ns;
    course->shift = SHIFT_FIRST;
    course->count = 1;
    return course;
}

struct ttm_course *ttm_course_copy(const struct ttm_course *course)
{
    struct ttm_course *copy = course ? malloc(sizeof(*copy)) : NULL;

    if (copy)
        *copy = *course;
    return copy;
}

void ttm_course_free(struct ttm_course *course)
{
    free(course);
}

static void double_spans(struct ttm_course *course)
{
    const uint32_t count = (course->count + 1) / 2;

    for (size_t i = 0; i < count; i++) {
        const struct ttm_course_span a = course->spans[2 * i];
        const struct ttm_course_span b = 2 * i + 1 < course->count ? course->spans[2 * i + 1] : a;
        course->spans[i] = (struct ttm_course_span){
            .min = a.min < b.min ? a.min : b.min,
            .max = a.max > b.max ? a.max : b.max,
            .last = b.last,
        };
    }
    course->count = count;
    course->shift++;
}

void ttm_course_put(struct ttm_course *course, uint64_t time_ns, uint64_t value)
{
    const uint64_t past = time_ns > course->start_ns ? time_ns - course->start_ns : 0;

    while (past >> course->shift >= TTM_COURSE_SPANS && course->shift < SHIFT_MAX)
        double_spans(course);
    const uint64_t at = past >> course->shift;
    /* What held before holds until now, and so at the beginning of this span too. */
    while (course->count <= at) {
        const uint64_t held = course->spans[course->count - 1].last;
        course->spans[course->count++] = (struct ttm_course_span){held, held, held};
    }
    struct ttm_course_span *span = &course->spans[course->count - 1];
    if (value < span->min)
        span->min = value;
    if (value > span->max)
        span->max = value;
    span->last = value;
}

void ttm_course_thin(struct ttm_course *course, uint32_t count)
{
    while (course->count > count && course->shift < SHIFT_MAX)
        double_spans(course);
}

struct ttm_course *ttm_course_keep(const struct ttm_course *course, struct ttm_arena *arena)
{
    struct ttm_course *copy = course ? ttm_arena_take(arena, 1, sizeof(*copy)) : NULL;

    if (copy)
        *copy = *course;
    return copy;
}
