/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/origin_text.h"

#include <string.h>

#include "wire/origin.h"

/* "decode.py:28:cache_kv" as people read it: "decode.py:28 cache_kv"; and a file without folders. */
static void put_frame(struct ttm_text *out, const char *lines, struct ttm_native_names *names)
{
    char frame[256];
    size_t n = strcspn(lines, "\n");

    if (ttm_native_names_put(names, lines, n, out))
        return;
    if (lines[0] == '/') {
        const char *file = (const char *)memrchr(lines, '/', n) + 1;
        n -= (size_t)(file - lines);
        lines = file;
    }
    n = n < sizeof(frame) - 1 ? n : sizeof(frame) - 1;
    memcpy(frame, lines, n);
    frame[n] = '\0';
    char *function = strrchr(frame, ':');
    if (function)
        *function = ' ';
    ttm_text_append_safe(out, frame);
}

/* One more word, with what stands around it. */
static void put_word(struct ttm_text *out, const char **separator, const char *before,
                     const char *word, const char *after)
{
    if (word[0] == '\0')
        return;
    ttm_text_append(out, *separator);
    ttm_text_append(out, before);
    ttm_text_append_safe(out, word);
    ttm_text_append(out, after);
    *separator = " ";
}

void ttm_origin_brief_text(struct ttm_text *out, const struct ttm_origin_brief *words,
                           struct ttm_native_names *names)
{
    const char *separator = "";

    if (words->place[0] != '\0') {
        put_frame(out, words->place, names);
        separator = " ";
    }
    put_word(out, &separator, "(", words->operation, ")");
    put_word(out, &separator, "\"", words->name, "\"");
    put_word(out, &separator, "in ", words->context, "");
}

void ttm_origin_text(struct ttm_text *out, const struct ttm_answer_origin *origin,
                     struct ttm_native_names *names)
{
    if (!origin)
        return;
    const struct ttm_origin_brief words = {
        .place = origin->python[0] != '\0' ? origin->python : ttm_users_native_line(origin->native),
        .operation = origin->operation,
        .name = origin->name,
        .context = origin->context,
    };
    ttm_origin_brief_text(out, &words, names);
    if (!ttm_origin_brief_are_empty(&words))
        ttm_text_append(out, " ");
}
