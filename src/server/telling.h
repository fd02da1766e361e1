/* SPDX-License-Identifier: Apache-2.0 */
/*
 * telling - a tracked process says all that is live in it, because the server is new to
 * it or events were lost.
 *
 * From the question until what was live here and was not told has been swept. The state
 * is in struct ttm_tracked; telling.c has the argument why it is exact. The loop thread.
 */
#ifndef TTM_SERVER_TELLING_H
#define TTM_SERVER_TELLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/u64_set.h"
#include "server/tracked.h"

/*
 * Frames TOLD and TOLD_END. Return 0; 1 when the frame has more than a turn has time for, and is to
 * be given again; -EBADMSG.
 */
int ttm_telling_take(struct ttm_session *session, const uint8_t *payload, size_t length);
int ttm_telling_take_end(struct ttm_session *session, const uint8_t *payload, size_t length);

/*
 * An end was read from a ring, of a life that was known or not. It is remembered while the birth may
 * still come; when there are too many to remember, a telling makes it good.
 */
void ttm_telling_ended(struct ttm_tracked *tracked, uint64_t serial, bool was_known);

/* Whether an end of a known life has to be remembered too: its birth may not have been by a record. */
static inline bool ttm_telling_remembers(const struct ttm_tracked *tracked)
{
    return tracked->is_telling || tracked->passed - tracked->told_pass < 2;
}

/* Whether the end of that life was read, so that its birth is not believed any more. */
static inline bool ttm_telling_has_ended(const struct ttm_tracked *tracked, uint64_t serial)
{
    return ttm_u64_set_has(&tracked->ended, serial) ||
           ttm_u64_set_has(&tracked->ended_before, serial);
}

/* What is known of its lives may be wrong: it is to be asked. */
void ttm_telling_need(struct ttm_tracked *tracked);

/* Losses are known, and peaks held, before what was written after them is taken in. */
void ttm_telling_count_losses(struct ttm_tracked *tracked);

/* A loss since the last telling: once every ring was read again, the process is asked. */
void ttm_telling_watch_losses(struct ttm_tracked *tracked);

/* Whether the rings were read for what waits in the connection, which is to be taken before they are again. */
bool ttm_telling_comes_first(const struct ttm_tracked *tracked);

/* Sweeps a slice, if it has come to that. */
void ttm_telling_go_on(struct ttm_tracked *tracked);

/* All that was in the rings at one moment has been read, and no telling is under way. */
void ttm_telling_pass(struct ttm_tracked *tracked);

/* The frees that are remembered go, with their memory. */
void ttm_telling_forget_frees(struct ttm_tracked *tracked);

/* What is being told is of no account any more. */
void ttm_telling_stop(struct ttm_tracked *tracked);

#endif /* TTM_SERVER_TELLING_H */
