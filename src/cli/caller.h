/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caller - of a line that several come through, who called it: the frame that tells one
 * call stack from the others.
 *
 * A helper that makes all tensors is one line; who called it is what people want to know.
 */
#ifndef TTM_CLI_CALLER_H
#define TTM_CLI_CALLER_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/origin_words.h"
#include "base/text.h"
#include "cli/terminal.h"

struct ttm_caller {
    const struct ttm_frame_words *frame; /* NULL: no other stack has the innermost line */
    bool needs_line;                     /* its function alone does not tell it apart */
};

typedef struct ttm_stack_words (*ttm_stack_at_fn)(const void *arg, uint32_t i);

/* 'other' is asked for each of 'count' stacks; this one may be among them. */
struct ttm_caller ttm_caller_find(const struct ttm_stack_words *stack, ttm_stack_at_fn other,
                                  const void *arg, uint32_t count);

/* " ← load", where the line is needed " ← load:9"; with 'is_long' " ← p.py:9 load". */
void ttm_caller_text(struct ttm_text *out, const struct ttm_terminal *terminal, bool is_long,
                     const struct ttm_caller *caller);

#endif /* TTM_CLI_CALLER_H */
