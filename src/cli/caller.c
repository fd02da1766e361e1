/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/caller.h"

#include <string.h>

static bool is_same_function(const struct ttm_frame_words *a, const struct ttm_frame_words *b)
{
    return strcmp(a->file, b->file) == 0 && strcmp(a->function, b->function) == 0;
}

/* How many of the innermost frames both have. */
static uint32_t common_frames(const struct ttm_stack_words *a, const struct ttm_stack_words *b)
{
    uint32_t n = 0;

    while (n < a->count && n < b->count && a->frames[n].line == b->frames[n].line &&
           is_same_function(&a->frames[n], &b->frames[n]))
        n++;
    return n;
}

/* "<listcomp>", "<lambda>": whatever it is in says more. */
static bool is_nameless(const struct ttm_frame_words *frame)
{
    return frame->function[0] == '<';
}

struct ttm_caller ttm_caller_find(const struct ttm_stack_words *stack, ttm_stack_at_fn other,
                                  const void *arg, uint32_t count)
{
    struct ttm_caller ret = {0};
    uint32_t depth = 0;

    for (uint32_t i = 0; i < count && stack->count > 0; i++) {
        const struct ttm_stack_words words = other(arg, i);
        const uint32_t n = common_frames(stack, &words);
        if (n > depth && n < stack->count)
            depth = n;
    }
    if (depth == 0)
        return ret;
    uint32_t at = depth;
    while (at < stack->count && is_nameless(&stack->frames[at]))
        at++;
    if (at == stack->count)
        at = depth;
    ret.frame = &stack->frames[at];
    for (uint32_t i = 0; i < count && !ret.needs_line; i++) {
        const struct ttm_stack_words words = other(arg, i);
        ret.needs_line = common_frames(stack, &words) == depth && at < words.count &&
                         is_same_function(&words.frames[at], ret.frame);
    }
    return ret;
}

/* "step" of "nn::Model<float, 2>::step": C++ names are long. */
static const char *without_scopes(const char *function)
{
    const char *name = function;
    unsigned depth = 0;

    for (const char *c = function; *c; c++) {
        depth += *c == '<' || *c == '(';
        depth -= depth > 0 && (*c == '>' || *c == ')');
        if (depth == 0 && c[0] == ':' && c[1] == ':' && c[2] != '\0')
            name = c + 2;
    }
    return name;
}

void ttm_caller_text(struct ttm_text *out, const struct ttm_terminal *terminal, bool is_long,
                     const struct ttm_caller *caller)
{
    const struct ttm_frame_words *frame = caller->frame;

    ttm_text_append(out, terminal->has_utf8 ? " ← " : " < ");
    if (is_long && frame->line > 0) {
        ttm_text_append_safe(out, ttm_base_name(frame->file));
        ttm_text_format(out, ":%u ", frame->line);
    }
    ttm_text_append_safe(out, is_long ? frame->function : without_scopes(frame->function));
    if (!is_long && caller->needs_line && frame->line > 0)
        ttm_text_format(out, ":%u", frame->line);
}
