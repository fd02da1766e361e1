/* SPDX-License-Identifier: Apache-2.0 */
#include "model/story.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void ttm_story_init(struct ttm_story *story)
{
    *story = (struct ttm_story){0};
}

void ttm_story_done(struct ttm_story *story)
{
    for (uint32_t i = 0; i < ttm_story_marks(story); i++)
        free(story->marks[i].name);
    free(story->marks);
    free(story->failures);
    ttm_story_init(story);
}

int ttm_story_add_mark(struct ttm_story *story, uint64_t time_ns, const char *name)
{
    if (!story->marks)
        story->marks = calloc(TTM_MARKS_MAX, sizeof(story->marks[0]));
    char *copy = story->marks ? strdup(name) : NULL;
    if (!copy)
        return -ENOMEM;
    struct ttm_mark *mark = &story->marks[story->mark_count++ % TTM_MARKS_MAX];
    free(mark->name);
    *mark = (struct ttm_mark){.time_ns = time_ns, .name = copy};
    return 0;
}

int ttm_story_add_failure(struct ttm_story *story, const struct ttm_failure_row *failure)
{
    if (!story->failures)
        story->failures = calloc(TTM_FAILURES_MAX, sizeof(story->failures[0]));
    if (!story->failures)
        return -ENOMEM;
    story->failures[story->failure_count++ % TTM_FAILURES_MAX] = *failure;
    return 0;
}

static uint32_t kept(uint64_t count, uint32_t max)
{
    return count < max ? (uint32_t)count : max;
}

uint32_t ttm_story_marks(const struct ttm_story *story)
{
    return kept(story->mark_count, TTM_MARKS_MAX);
}

const struct ttm_mark *ttm_story_mark(const struct ttm_story *story, uint32_t i)
{
    return &story->marks[(story->mark_count - ttm_story_marks(story) + i) % TTM_MARKS_MAX];
}

uint32_t ttm_story_failures(const struct ttm_story *story)
{
    return kept(story->failure_count, TTM_FAILURES_MAX);
}

const struct ttm_failure_row *ttm_story_failure(const struct ttm_story *story, uint32_t i)
{
    return &story->failures[(story->failure_count - ttm_story_failures(story) + i) %
                            TTM_FAILURES_MAX];
}
