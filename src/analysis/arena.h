/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena - memory that is given back all at once.
 *
 * What an analysis hands out is many small pieces with one end. A failure is
 * remembered, so that callers may check once, at the end. One thread.
 */
#ifndef TTM_ANALYSIS_ARENA_H
#define TTM_ANALYSIS_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct ttm_arena_chunk;

struct ttm_arena {
    struct ttm_arena_chunk *chunks; /* the newest first */
    bool failed;
};

void ttm_arena_init(struct ttm_arena *arena);
void ttm_arena_done(struct ttm_arena *arena);

/* Zeroed memory for 'count' things of 'size', aligned for any; NULL when memory is short. */
void *ttm_arena_take(struct ttm_arena *arena, size_t count, size_t size);

/* A copy with a NUL behind it; "" when memory is short. */
const char *ttm_arena_text(struct ttm_arena *arena, const char *bytes, size_t length);

#endif /* TTM_ANALYSIS_ARENA_H */
