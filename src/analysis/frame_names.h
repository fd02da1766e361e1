/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame_names - the functions of native frames, looked up in the files of their modules.
 *
 * What analysis/origin_words.h asks for names. A module that is gone or another one by
 * now is not guessed about. One thread; files are opened when the first name is asked for.
 */
#ifndef TTM_ANALYSIS_FRAME_NAMES_H
#define TTM_ANALYSIS_FRAME_NAMES_H

#include "analysis/origin_words.h"

struct ttm_symbol;
struct ttm_symbols;

/* NULL for 'symbols' names nothing. Borrowed by what is returned. */
struct ttm_frame_namer ttm_frame_names(struct ttm_symbols *symbols);

/*
 * "ttnn::zeros"; where lines are known "decode.c:28 cache_kv", and with what it was inlined
 * into "decode.c:28 cache_kv ← main".
 */
void ttm_frame_name_put(const struct ttm_symbol *symbol, struct ttm_text *name);

#endif /* TTM_ANALYSIS_FRAME_NAMES_H */
