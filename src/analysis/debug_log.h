/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debug_log - a recording as the text that TT_BUFFER_DEBUG_LOG asks for.
 *
 * Records go in one after the other, blocks come out as text, in the order of their times:
 * a recording has events as the server read them, and the text tells seconds only. So
 * blocks are held back for a while. A life on several devices is a block for each. Circular
 * buffers and kernels are no buffers and have none.
 *
 * One thread, no I/O; the local time is the one of the environment. Memory follows the
 * origins and what is live.
 */
#ifndef TTM_ANALYSIS_DEBUG_LOG_H
#define TTM_ANALYSIS_DEBUG_LOG_H

#include <stdint.h>

#include "analysis/origin_words.h"
#include "base/text.h"
#include "recording/recorded.h"

struct ttm_debug_log;

/* 'seed': any number that whoever wrote the recording does not know. NULL: memory is short. */
struct ttm_debug_log *ttm_debug_log_new(const struct ttm_frame_namer *namer, uint64_t seed);

/* NULL is fine. */
void ttm_debug_log_free(struct ttm_debug_log *log);

/*
 * Takes the next record, and appends to 'out' what is due. What is told again at the
 * beginning of another file is known already. 'wall_offset_ns' is the recording's. Returns 0
 * or -ENOMEM.
 */
int ttm_debug_log_take(struct ttm_debug_log *log, const struct ttm_recorded *record,
                       int64_t wall_offset_ns, struct ttm_text *out);

/* Appends what was held back. */
void ttm_debug_log_flush(struct ttm_debug_log *log, struct ttm_text *out);

#endif /* TTM_ANALYSIS_DEBUG_LOG_H */
