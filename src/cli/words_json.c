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

/* ["decode.py:28:cache_kv", …] */
static void put_python(struct ttm_json *json, const struct ttm_origin_words *words,
                       bool has_full_paths)
{
    struct ttm_text frame;

    ttm_text_init(&frame);
    ttm_json_key(json, "python");
    ttm_json_array_begin(json);
    for (uint32_t i = 0; i < words->python_count; i++) {
        const struct ttm_frame_words *f = &words->python[i];
        ttm_text_clear(&frame);
        ttm_text_format(&frame, "%s:%u:%s", has_full_paths ? f->file : ttm_base_name(f->file),
                        f->line, f->function);
        ttm_json_string(json, ttm_text_string(&frame));
    }
    ttm_json_array_end(json);
    json->out->failed |= ttm_text_failed(&frame);
    ttm_text_done(&frame);
}

void ttm_words_json(struct ttm_json *json, const struct ttm_origin_words *words,
                    bool has_full_paths)
{
    put_python(json, words, has_full_paths);
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
