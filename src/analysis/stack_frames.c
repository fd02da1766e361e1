/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/stack_frames.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

/* A copy for formats in which ';' separates frames and a line ends a stack. NULL: out of memory. */
static char *clean_name(const char *name)
{
    struct ttm_text safe;

    ttm_text_init(&safe);
    ttm_text_append_safe(&safe, name);
    char *copy = ttm_text_failed(&safe) ? NULL : strdup(ttm_text_string(&safe));
    ttm_text_done(&safe);
    for (char *c = copy; c && *c; c++) {
        if (*c == ';')
            *c = ':';
    }
    return copy;
}

static char *line_name(const struct ttm_frame_words *frame)
{
    char *name = NULL;

    if (frame->file[0] == '\0')
        return clean_name(frame->function);
    if (asprintf(&name, "%s (%s:%u)", frame->function, ttm_base_name(frame->file), frame->line) < 0)
        return NULL;
    char *clean = clean_name(name);
    free(name);
    return clean;
}

void ttm_stack_frames_done(struct ttm_stack_frame *frames, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        free(frames[i].name);
}

/* The native frames that are drawn beside the lines of the user's: the innermost so many. */
static uint32_t native_frames_of(const struct ttm_origin_words *words, bool has_insides)
{
    if (words->python_count > 0)
        return 0;
    if (words->native_lines.count == 0)
        return words->native_count;
    return has_insides ? words->native_place : 0;
}

int ttm_stack_frames_read(const struct ttm_origin_words *words, bool has_insides,
                          struct ttm_stack_frame ret[TTM_STACK_FRAMES_MAX])
{
    uint32_t count = 0;

    const struct ttm_stack_words stack = ttm_origin_users_stack(words);

    for (uint32_t i = stack.count; i-- > 0;) {
        const struct ttm_frame_words *frame = &stack.frames[i];
        ret[count++] = (struct ttm_stack_frame){
            line_name(frame), frame->file[0] != '\0' ? frame->file : NULL, frame->line};
    }
    for (uint32_t i = native_frames_of(words, has_insides); i-- > 0;)
        ret[count++] = (struct ttm_stack_frame){.name = clean_name(words->native[i])};
    if (words->operation[0] != '\0')
        ret[count++] = (struct ttm_stack_frame){.name = clean_name(words->operation)};
    if (count == 0)
        ret[count++] = (struct ttm_stack_frame){.name = strdup("(origin not known)")};
    for (uint32_t i = 0; i < count; i++) {
        if (!ret[i].name) {
            ttm_stack_frames_done(ret, count);
            return -ENOMEM;
        }
    }
    return (int)count;
}

struct ttm_stack_frame ttm_stack_frame_native(const char *name)
{
    return (struct ttm_stack_frame){.name = clean_name(name)};
}

static uint64_t hash_frame(const struct ttm_stack_frame *frame)
{
    return ttm_hash_text(ttm_hash_text(frame->line, frame->name), frame->file ? frame->file : "");
}

static bool is_same(const struct ttm_stack_frame *a, const struct ttm_stack_frame *b)
{
    return a->line == b->line && strcmp(a->name, b->name) == 0 &&
           strcmp(a->file ? a->file : "", b->file ? b->file : "") == 0;
}

static int grow(struct ttm_frame_table *table)
{
    const uint32_t room = table->room ? table->room * 2 : 256;
    struct ttm_stack_frame *frames = realloc(table->frames, room * sizeof(frames[0]));

    if (!frames)
        return -ENOMEM;
    table->frames = frames;
    uint32_t *index = calloc((size_t)room * 2, sizeof(index[0]));
    if (!index)
        return -ENOMEM;
    free(table->index);
    table->index = index;
    table->index_size = room * 2;
    table->room = room;
    for (uint32_t i = 0; i < table->count; i++) {
        uint64_t at = hash_frame(&table->frames[i]) & (table->index_size - 1);
        while (index[at])
            at = (at + 1) & (table->index_size - 1);
        index[at] = i + 1;
    }
    return 0;
}

long ttm_frame_table_add(struct ttm_frame_table *table, struct ttm_stack_frame *frame)
{
    if (table->count == table->room && grow(table) < 0) {
        free(frame->name);
        return -ENOMEM;
    }
    uint64_t at = hash_frame(frame) & (table->index_size - 1);
    for (; table->index[at]; at = (at + 1) & (table->index_size - 1)) {
        if (is_same(&table->frames[table->index[at] - 1], frame)) {
            free(frame->name);
            return table->index[at] - 1;
        }
    }
    table->frames[table->count] = *frame;
    table->index[at] = ++table->count;
    return table->count - 1;
}

void ttm_frame_table_done(struct ttm_frame_table *table)
{
    ttm_stack_frames_done(table->frames, table->count);
    free(table->frames);
    free(table->index);
    *table = (struct ttm_frame_table){0};
}
