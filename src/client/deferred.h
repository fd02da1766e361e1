/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deferred - what signal handlers report while their thread is in the middle of an
 * event. It is kept in their order until that event is done.
 *
 * It belongs to one thread and its handlers, which may interrupt each other at any
 * instruction. A few reports have their place from the start; for more, which a
 * handler that frees a whole table brings, pages are taken from the kernel and kept.
 */
#ifndef TTM_CLIENT_DEFERRED_H
#define TTM_CLIENT_DEFERRED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/happening.h"

#define TTM_DEFERRED_AT_HAND 8
/* Each twice as large as the one before: 2^22 reports in all. */
#define TTM_DEFERRED_CHUNKS 16

/* All zero: none. */
struct ttm_deferred_places {
    struct ttm_happening at_hand[TTM_DEFERRED_AT_HAND];
    struct ttm_happening *_Atomic chunks[TTM_DEFERRED_CHUNKS];
};

/* Short, for a thread looks at it with every event. */
struct ttm_deferred {
    struct ttm_deferred_places *places; /* its owner's */
    _Atomic uint32_t count;             /* atomic for handlers that interrupt handlers */
};

/* Returns whether there was room: false when the kernel has no more memory. errno is kept. */
bool ttm_deferred_add(struct ttm_deferred *deferred, const struct ttm_happening *report);

/*
 * Hands out what is there, in order: start with '*at' 0. Returns NULL when that was all, and they
 * are forgotten; a handler may add more until then. Not for handlers.
 */
const struct ttm_happening *ttm_deferred_next(struct ttm_deferred *deferred, uint32_t *at);

/* Gives the pages back. One without places is fine. */
void ttm_deferred_done(struct ttm_deferred *deferred);

#endif /* TTM_CLIENT_DEFERRED_H */
