/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words_json - where an allocation comes from, as keys of a JSON object.
 */
#ifndef TTM_CLI_WORDS_JSON_H
#define TTM_CLI_WORDS_JSON_H

#include "analysis/origin_words.h"
#include "base/json.h"

/* The keys python, native, operation, name, context and thread. */
void ttm_words_json(struct ttm_json *json, const struct ttm_origin_words *words,
                    bool has_full_paths);

/* A key whose array has the lines of 'lines', as an answer has its frames. */
void ttm_lines_json(struct ttm_json *json, const char *key, const char *lines);

#endif /* TTM_CLI_WORDS_JSON_H */
