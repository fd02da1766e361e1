/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin_text - where an allocation comes from, in one line for people.
 */
#ifndef TTM_CLI_ORIGIN_TEXT_H
#define TTM_CLI_ORIGIN_TEXT_H

#include "base/text.h"
#include "cli/native_names.h"
#include "model/origin_brief.h"
#include "query/answer.h"

/*
 * 'model.py:88 load_layer (ttnn.to_device) "weights" in model_init'; nothing where nothing is known.
 * Without 'names', which may be NULL, a native place is the module and the offset.
 */
void ttm_origin_brief_text(struct ttm_text *out, const struct ttm_origin_brief *words,
                           struct ttm_native_names *names);

/* The same with a space behind it; nothing for NULL. */
void ttm_origin_text(struct ttm_text *out, const struct ttm_answer_origin *origin,
                     struct ttm_native_names *names);

#endif /* TTM_CLI_ORIGIN_TEXT_H */
