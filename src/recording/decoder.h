/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decoder - turns blocks back into what happened.
 *
 * It believes nothing: what cannot be is -EBADMSG. What it hands out fits
 * together: each life is born once and ends at most once, also across a part of
 * the recording that is missing. There, what is still live afterwards goes on,
 * what is not has ended unheard, and a gap says how much is not known.
 *
 * One thread; no file, no clock. Its memory follows what is live.
 */
#ifndef TTM_RECORDING_DECODER_H
#define TTM_RECORDING_DECODER_H

#include <stdbool.h>
#include <stdint.h>

#include "recording/recorded.h"

struct ttm_block;
struct ttm_decoder;

/* Returns NULL only when memory is short. 'seed': any number that the file's writer does not know. */
struct ttm_decoder *ttm_decoder_new(uint64_t seed);

/* NULL is fine. */
void ttm_decoder_free(struct ttm_decoder *dec);

/* Forgets everything: the next section is a beginning, and nothing before it is missing. */
void ttm_decoder_restart(struct ttm_decoder *dec);

/* A block could not be read: what follows it makes no sense before the next section. */
void ttm_decoder_lose(struct ttm_decoder *dec);

/*
 * The next block, borrowed until ttm_decoder_next() has returned 0 or an error.
 * Returns 0, or -ENODATA when it needs one that is missing; it is passed over then.
 */
int ttm_decoder_begin(struct ttm_decoder *dec, const struct ttm_block *block);

/*
 * Returns 1 with the next record, borrowed until the next call; 0 at the end of
 * the block; -EBADMSG, -ENOMEM: the rest of the block is lost.
 */
int ttm_decoder_next(struct ttm_decoder *dec, const struct ttm_recorded **ret);

/* Whether what is live is exactly known: a section's telling is complete, and nothing lost since. */
bool ttm_decoder_is_exact(const struct ttm_decoder *dec);

/* Live allocations of all processes. */
uint32_t ttm_decoder_live(const struct ttm_decoder *dec);

/* The sum of all gaps so far, one at the end that no section follows not included. */
uint64_t ttm_decoder_lost_events(const struct ttm_decoder *dec);

#endif /* TTM_RECORDING_DECODER_H */
