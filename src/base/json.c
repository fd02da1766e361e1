/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <inttypes.h>

void ttm_json_init(struct ttm_json *json, struct ttm_text *out)
{
    *json = (struct ttm_json){.out = out};
}

/* Called before every value: writes the comma that separates it from the one before. */
static void separate(struct ttm_json *json)
{
    if (json->needs_comma && !json->after_key)
        ttm_text_append(json->out, ",");
    json->needs_comma = true;
    json->after_key = false;
}

static void open_with(struct ttm_json *json, const char *bracket)
{
    separate(json);
    ttm_text_append(json->out, bracket);
    json->needs_comma = false;
}

static void close_with(struct ttm_json *json, const char *bracket)
{
    ttm_text_append(json->out, bracket);
    json->needs_comma = true;
}

void ttm_json_object_begin(struct ttm_json *json)
{
    open_with(json, "{");
}

void ttm_json_object_end(struct ttm_json *json)
{
    close_with(json, "}");
}

void ttm_json_array_begin(struct ttm_json *json)
{
    open_with(json, "[");
}

void ttm_json_array_end(struct ttm_json *json)
{
    close_with(json, "]");
}

static void append_quoted(struct ttm_text *out, const char *string)
{
    ttm_text_append(out, "\"");
    while (*string) {
        const char c = *string;
        const size_t n = ttm_utf8_length(string);
        const uint32_t control = n > 0 ? ttm_utf8_control(string) : 0;

        if (n == 0)
            ttm_text_append(out, "\\ufffd");
        else if (c == '"' || c == '\\')
            ttm_text_format(out, "\\%c", c);
        else if (control != 0)
            ttm_text_format(out, "\\u%04x", control);
        else
            ttm_text_append_bytes(out, string, n);
        string += n ? n : 1;
    }
    ttm_text_append(out, "\"");
}

void ttm_json_key(struct ttm_json *json, const char *key)
{
    separate(json);
    append_quoted(json->out, key);
    ttm_text_append(json->out, ":");
    json->after_key = true;
}

void ttm_json_string(struct ttm_json *json, const char *value)
{
    separate(json);
    append_quoted(json->out, value);
}

void ttm_json_u64(struct ttm_json *json, uint64_t value)
{
    separate(json);
    ttm_text_format(json->out, "%" PRIu64, value);
}

void ttm_json_i64(struct ttm_json *json, int64_t value)
{
    separate(json);
    ttm_text_format(json->out, "%" PRId64, value);
}

void ttm_json_bool(struct ttm_json *json, bool value)
{
    separate(json);
    ttm_text_append(json->out, value ? "true" : "false");
}

void ttm_json_null(struct ttm_json *json)
{
    separate(json);
    ttm_text_append(json->out, "null");
}

void ttm_json_put_string(struct ttm_json *json, const char *key, const char *value)
{
    ttm_json_key(json, key);
    ttm_json_string(json, value);
}

void ttm_json_put_u64(struct ttm_json *json, const char *key, uint64_t value)
{
    ttm_json_key(json, key);
    ttm_json_u64(json, value);
}

void ttm_json_put_i64(struct ttm_json *json, const char *key, int64_t value)
{
    ttm_json_key(json, key);
    ttm_json_i64(json, value);
}

void ttm_json_put_bool(struct ttm_json *json, const char *key, bool value)
{
    ttm_json_key(json, key);
    ttm_json_bool(json, value);
}

void ttm_json_put_null(struct ttm_json *json, const char *key)
{
    ttm_json_key(json, key);
    ttm_json_null(json);
}

void ttm_json_put_decimal(struct ttm_json *json, const char *key, uint64_t value, unsigned decimals)
{
    ttm_json_key(json, key);
    separate(json);
    ttm_text_append_decimal(json->out, value, decimals);
}
