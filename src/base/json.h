/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json - a streaming writer that can only write well-formed JSON text.
 *
 * Commas and quoting are its business; nesting is the caller's. Strings are
 * made valid UTF-8 (a broken byte becomes U+FFFD).
 */
#ifndef TTM_BASE_JSON_H
#define TTM_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

struct ttm_json {
    struct ttm_text *out; /* borrowed */
    bool needs_comma;
    bool after_key;
};

void ttm_json_init(struct ttm_json *json, struct ttm_text *out);

void ttm_json_object_begin(struct ttm_json *json);
void ttm_json_object_end(struct ttm_json *json);
void ttm_json_array_begin(struct ttm_json *json);
void ttm_json_array_end(struct ttm_json *json);
void ttm_json_key(struct ttm_json *json, const char *key);

void ttm_json_string(struct ttm_json *json, const char *value);
void ttm_json_u64(struct ttm_json *json, uint64_t value);
void ttm_json_i64(struct ttm_json *json, int64_t value);
void ttm_json_bool(struct ttm_json *json, bool value);
void ttm_json_null(struct ttm_json *json);

/* Key and value in one call, for the common case. */
void ttm_json_put_string(struct ttm_json *json, const char *key, const char *value);
void ttm_json_put_u64(struct ttm_json *json, const char *key, uint64_t value);
void ttm_json_put_i64(struct ttm_json *json, const char *key, int64_t value);
void ttm_json_put_bool(struct ttm_json *json, const char *key, bool value);
void ttm_json_put_null(struct ttm_json *json, const char *key);

/* value / 10^decimals, exactly and without trailing zeros: 54312 with 3 decimals is 54.312. */
void ttm_json_put_decimal(struct ttm_json *json, const char *key, uint64_t value,
                          unsigned decimals);

#endif /* TTM_BASE_JSON_H */
