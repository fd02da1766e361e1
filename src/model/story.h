/* SPDX-License-Identifier: Apache-2.0 */
/*
 * story - what happened in a process that is not a life: its marks, and the
 * allocations that could not be made. The newest of each are kept.
 *
 * One thread, no I/O, no clock.
 */
#ifndef TTM_MODEL_STORY_H
#define TTM_MODEL_STORY_H

#include <stdint.h>

#include "wire/origin_row.h"

#define TTM_MARKS_MAX 1024
#define TTM_FAILURES_MAX 64

struct ttm_mark {
    uint64_t time_ns; /* monotonic */
    char *name;
};

struct ttm_story {
    struct ttm_mark *marks;           /* a ring; NULL before the first */
    uint64_t mark_count;              /* ever */
    struct ttm_failure_row *failures; /* likewise; their times are monotonic here */
    uint64_t failure_count;
};

void ttm_story_init(struct ttm_story *story);
void ttm_story_done(struct ttm_story *story);

/* Return 0 or -ENOMEM. */
int ttm_story_add_mark(struct ttm_story *story, uint64_t time_ns, const char *name);
int ttm_story_add_failure(struct ttm_story *story, const struct ttm_failure_row *failure);

/* What is kept, oldest first: from 0 to the number that is returned. */
uint32_t ttm_story_marks(const struct ttm_story *story);
const struct ttm_mark *ttm_story_mark(const struct ttm_story *story, uint32_t i);
uint32_t ttm_story_failures(const struct ttm_story *story);
const struct ttm_failure_row *ttm_story_failure(const struct ttm_story *story, uint32_t i);

#endif /* TTM_MODEL_STORY_H */
