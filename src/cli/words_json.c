/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/words_json.h"

#include <string.h>

void ttm_lines_json(struct ttm_json *json, const char *key, const char *lines)
{
    struct ttm_text line;

    ttm_text_init(&line);
    ttm_json_key(json, key);
    ttm_json_array_begin(json);
    while (*lines) {
        const size_t n = strcspn(lines, "\n");
        ttm_text_clear(&line);
        ttm_text_append_bytes(&line, lines, n);
        ttm_json_string(json, ttm_text_string(&line));
        lines += n + (lines[n] == '\n');
    }
    ttm_json_array_end(json);
    json->out->failed |= ttm_text_failed(&line);
    ttm_text_done(&line);
}

/* ["decode.py:28:cache_kv", …]; a native function whose line is not known stands alone. */
static void put_frames(struct ttm_json *json, const char *key, struct ttm_stack_words stack,
                       bool has_full_paths)
{
    struct ttm_text frame;

    ttm_text_init(&frame);
    ttm_json_key(json, key);
    ttm_json_array_begin(json);
    for (uint32_t i = 0; i < stack.count; i++) {
        const struct ttm_frame_words *f = &stack.frames[i];
        ttm_text_clear(&frame);
        if (f->file[0] != '\0')
            ttm_text_format(&frame, "%s:%u:", has_full_paths ? f->file : ttm_base_name(f->file),
                            f->line);
        ttm_text_append(&frame, f->function);
        ttm_json_string(json, ttm_text_string(&frame));
    }
    ttm_json_array_end(json);
    json->out->failed |= ttm_text_failed(&frame);
    ttm_text_done(&frame);
}

void ttm_words_json(struct ttm_json *json, const struct ttm_origin_words *words,
                    bool has_full_paths)
{
    put_frames(json, "python", (struct ttm_stack_words){words->python, words->python_count},
               has_full_paths);
    put_frames(json, "user_frames", ttm_origin_users_stack(words), has_full_paths);
    ttm_json_key(json, "native");
    ttm_json_array_begin(json);
    for (uint32_t i = 0; i < words->native_count; i++)
        ttm_json_string(json, words->native[i]);
    ttm_json_array_end(json);
    ttm_json_put_string(json, "operation", words->operation);
    ttm_json_put_string(json, "name", words->name);
    ttm_json_put_string(json, "context", words->context);
    ttm_json_put_string(json, "thread", words->thread);
}
