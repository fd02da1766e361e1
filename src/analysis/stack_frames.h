/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack_frames - call stacks as tools draw them, and a table that has each frame once.
 *
 * One thread, no I/O.
 */
#ifndef TTM_ANALYSIS_STACK_FRAMES_H
#define TTM_ANALYSIS_STACK_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/origin_words.h"

/* More frames than a stack can have: those of Python or native ones, and the operation. */
#define TTM_STACK_FRAMES_MAX (TTM_NATIVE_FRAMES_MAX + TTM_PYTHON_FRAMES_MAX + 2)

/* One frame of a stack. */
struct ttm_stack_frame {
    char *name;       /* "cache_kv (decode.py:28)", without what the formats cannot bear */
    const char *file; /* borrowed from the words; NULL: none */
    uint32_t line;
};

/*
 * Outermost first: the user's lines, or the native frames where there are none, then the
 * operation. With 'has_insides' the native functions that the user's native code called stand
 * before the operation. Returns how many, one at least, or -ENOMEM.
 */
int ttm_stack_frames_read(const struct ttm_origin_words *words, bool has_insides,
                          struct ttm_stack_frame ret[TTM_STACK_FRAMES_MAX]);

/* A native frame; its name is NULL when memory is short. */
struct ttm_stack_frame ttm_stack_frame_native(const char *name);

void ttm_stack_frames_done(struct ttm_stack_frame *frames, uint32_t count);

/* The frames of all stacks, each once. */
struct ttm_frame_table {
    struct ttm_stack_frame *frames;
    uint32_t count;
    uint32_t room;
    uint32_t *index; /* open addressing, frame + 1 */
    uint32_t index_size;
};

/* A table that is all zero is empty. Takes the frame's name over. Returns its number or -ENOMEM. */
long ttm_frame_table_add(struct ttm_frame_table *table, struct ttm_stack_frame *frame);

void ttm_frame_table_done(struct ttm_frame_table *table);

#endif /* TTM_ANALYSIS_STACK_FRAMES_H */
