/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tail_origins - what 'tt-mem tail' was told of the origins of events.
 */
#ifndef TTM_CLI_TAIL_ORIGINS_H
#define TTM_CLI_TAIL_ORIGINS_H

#include <stddef.h>
#include <stdint.h>

#include "base/u64_map.h"
#include "query/answer.h"

/* Zero-initialised. */
struct ttm_tail_origins {
    struct ttm_u64_map places; /* by process id and number: index + 1 */
    struct ttm_answer_origin *origins;
    uint32_t count;
    uint32_t room;
};

void ttm_tail_origins_done(struct ttm_tail_origins *known);

/*
 * Takes the payload of TTM_FRAME_ORIGIN. Returns 0 or -EBADMSG; where memory is short the
 * origin is not known.
 */
int ttm_tail_origins_add(struct ttm_tail_origins *known, const uint8_t *payload, size_t length);

/* NULL: not known. */
const struct ttm_answer_origin *ttm_tail_origins_find(const struct ttm_tail_origins *known,
                                                      int32_t pid, uint32_t number);

#endif /* TTM_CLI_TAIL_ORIGINS_H */
