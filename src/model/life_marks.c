/* SPDX-License-Identifier: Apache-2.0 */
#include "model/life_marks.h"

#include <errno.h>
#include <stdlib.h>

#define CHUNK_WORDS (2048 / 64) /* a reference is the number of a chunk and a slot below 2048 */

int ttm_life_marks_init(struct ttm_life_marks *marks, const struct ttm_life_view *view)
{
    *marks = (struct ttm_life_marks){.chunk_count = view->chunk_count};
    if (view->chunk_count == 0)
        return 0;
    marks->words = calloc((size_t)view->chunk_count * CHUNK_WORDS, sizeof(marks->words[0]));
    if (marks->words)
        return 0;
    marks->chunk_count = 0;
    return -ENOMEM;
}

void ttm_life_marks_done(struct ttm_life_marks *marks)
{
    free(marks->words);
    *marks = (struct ttm_life_marks){0};
}

void ttm_life_marks_set(struct ttm_life_marks *marks, uint32_t ref)
{
    if (ref / 64 < marks->chunk_count * CHUNK_WORDS)
        marks->words[ref / 64] |= UINT64_C(1) << ref % 64;
}

/* The first place at or after '*at' that is not marked. */
static uint64_t next_unmarked(const struct ttm_life_marks *marks, uint64_t at)
{
    const uint64_t count = (uint64_t)marks->chunk_count * CHUNK_WORDS;
    uint64_t word = at / 64;

    if (word >= count)
        return at;
    uint64_t unmarked = ~marks->words[word] & ~UINT64_C(0) << at % 64;
    while (unmarked == 0 && ++word < count)
        unmarked = ~marks->words[word];
    return word * 64 + (unmarked != 0 ? (uint64_t)__builtin_ctzll(unmarked) : 0);
}

const struct ttm_life *ttm_life_marks_next(const struct ttm_life_marks *marks,
                                           struct ttm_life_view *view, uint64_t *at)
{
    const struct ttm_life *life;

    do {
        *at = next_unmarked(marks, *at);
        life = ttm_life_view_next(view, at);
        /* The view goes on to the next life it has, which may be one that is marked. */
    } while (life && (marks->words[(*at - 1) / 64] >> (*at - 1) % 64 & 1) != 0);
    return life;
}
