/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/page.h"

#include <errno.h>
#include <string.h>

#include "cli/page_data.h"
#include "cli/page_template.h"

/*
 * In JSON '<' stands inside strings only, where \u003c is the same. Without it there is no
 * "</script" and no "<!--", and so no end of the element that holds the data.
 */
static void append_harmless(struct ttm_text *out, const char *json)
{
    for (;;) {
        const size_t length = strcspn(json, "<");
        ttm_text_append_bytes(out, json, length);
        if (json[length] == '\0')
            return;
        ttm_text_append(out, "\\u003c");
        json += length + 1;
    }
}

int ttm_page_write(const struct ttm_report *report, const char *path,
                   struct ttm_source_lines *sources, struct ttm_text *out)
{
    struct ttm_text data;

    ttm_text_init(&data);
    int r = ttm_page_data(report, path, sources, &data);
    if (r == 0) {
        ttm_text_append(out, (const char *)ttm_page_head);
        append_harmless(out, ttm_text_string(&data));
        ttm_text_append(out, (const char *)ttm_page_tail);
    }
    ttm_text_done(&data);
    return r < 0 || ttm_text_failed(out) ? -ENOMEM : 0;
}
