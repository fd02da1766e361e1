/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keepers - what kept the allocations of an origin alive, if the program was asked
 * (tt-mem run --holders), from the notes of a recording.
 *
 * One thread, no I/O.
 */
#ifndef TTM_ANALYSIS_KEEPERS_H
#define TTM_ANALYSIS_KEEPERS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/arena.h"
#include "analysis/classify.h"
#include "analysis/notebook.h"
#include "base/u64_map.h"
#include "wire/keepers.h"

struct ttm_keepers {
    bool is_known;            /* the program was asked; there may be none all the same */
    bool is_unfinished;       /* the search stopped at a limit; there may be more holders */
    uint8_t cause;            /* enum ttm_cause */
    uint16_t round;           /* the search; roots of two rounds cannot be compared */
    uint32_t count;           /* of 'texts' and 'roots' */
    const char *const *texts; /* the most telling first */
    const uint32_t *roots;    /* the object that each text is about; 0 where it is not known */
};

/* "done", "unfinished" or "not_asked", as JSON has it. */
const char *ttm_keepers_search_name(const struct ttm_keepers *keepers);

/* Where the notes of keepers are, by the number of their origin. */
struct ttm_keepers_index {
    const struct ttm_notebook *notes;
    struct ttm_u64_map places;
};

/* Returns 0 or -ENOMEM; _done in any case. */
int ttm_keepers_index_init(struct ttm_keepers_index *index, const struct ttm_notebook *notes,
                           uint64_t seed);
void ttm_keepers_index_done(struct ttm_keepers_index *index);

/* Those of an origin; 'ret' stays as it is when none were noted. Texts are in 'arena'. */
void ttm_keepers_find(const struct ttm_keepers_index *index, uint32_t origin,
                      struct ttm_arena *arena, struct ttm_keepers *ret);

/* In place of the general advice, where it is known what keeps it. */
void ttm_keepers_advise(const struct ttm_keepers *keepers, char advice[TTM_VERDICT_TEXT]);

#endif /* TTM_ANALYSIS_KEEPERS_H */
