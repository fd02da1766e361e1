/* SPDX-License-Identifier: Apache-2.0 */
/*
 * life_marks - which of the lives of a view somebody has seen since.
 *
 * A bit for each place. A life keeps its place while it lives; so a mark on the
 * place of a life that came later says that the one the view has there is gone,
 * and whoever looks for those that were not seen need not look at it either.
 *
 * One thread, no I/O, no clock.
 */
#ifndef TTM_MODEL_LIFE_MARKS_H
#define TTM_MODEL_LIFE_MARKS_H

#include "model/life_store.h"

struct ttm_life_marks {
    uint64_t *words;
    uint32_t chunk_count;
};

/* None is marked. Returns 0 or -ENOMEM. */
int ttm_life_marks_init(struct ttm_life_marks *marks, const struct ttm_life_view *view);
void ttm_life_marks_done(struct ttm_life_marks *marks);

/* 'ref' names a life of the store now; one that the view cannot have is fine. */
void ttm_life_marks_set(struct ttm_life_marks *marks, uint32_t ref);

/* As ttm_life_view_next(), of those that are not marked. */
const struct ttm_life *ttm_life_marks_next(const struct ttm_life_marks *marks,
                                           struct ttm_life_view *view, uint64_t *at);

#endif /* TTM_MODEL_LIFE_MARKS_H */
