/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/origin_text.h"

#include <string.h>

/* "decode.py:28:cache_kv" as people read it: "decode.py:28 cache_kv". */
static void put_frame(struct ttm_text *out, const char *lines)
{
    char frame[256];
    size_t n = strcspn(lines, "\n");

    n = n < sizeof(frame) - 1 ? n : sizeof(frame) - 1;
    memcpy(frame, lines, n);
    frame[n] = '\0';
    char *function = strrchr(frame, ':');
    if (function)
        *function = ' ';
    ttm_text_append_safe(out, frame);
    ttm_text_append(out, " ");
}

void ttm_origin_text(struct ttm_text *out, const struct ttm_answer_origin *origin)
{
    if (!origin)
        return;
    if (origin->python[0] != '\0')
        put_frame(out, origin->python);
    else if (origin->native[0] != '\0')
        put_frame(out, origin->native);
    if (origin->operation[0] != '\0') {
        ttm_text_append(out, "(");
        ttm_text_append_safe(out, origin->operation);
        ttm_text_append(out, ") ");
    }
    if (origin->name[0] != '\0') {
        ttm_text_append(out, "\"");
        ttm_text_append_safe(out, origin->name);
        ttm_text_append(out, "\" ");
    }
    if (origin->context[0] != '\0') {
        ttm_text_append(out, "in ");
        ttm_text_append_safe(out, origin->context);
        ttm_text_append(out, " ");
    }
}
