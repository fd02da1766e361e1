/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger_cells - the cells of a ledger: what all lives of one origin, set of devices, region
 * and kind have in common is kept once. Private to ledger*.c.
 */
#ifndef TTM_ANALYSIS_LEDGER_CELLS_H
#define TTM_ANALYSIS_LEDGER_CELLS_H

#include <stdbool.h>

#include "analysis/ledger.h"
#include "wire/life_row.h"

/*
 * The index of the set that a number stands for, -ENOMEM when memory is short; device 0 for one
 * that was never said.
 */
int ttm_ledger_set(struct ttm_ledger *ledger, uint32_t number);

/*
 * A set of devices was closed: what is born there from now on is another session's. Returns 0 or
 * -ENOMEM.
 */
int ttm_ledger_close_session(struct ttm_ledger *ledger, uint32_t set, uint64_t time_ns);

/*
 * What was allocated so far is not judged: each set of devices goes on in a session of its own for
 * evidence, which is closed together with the early one. Returns 0 or -ENOMEM.
 */
int ttm_ledger_begin_judging(struct ttm_ledger *ledger, uint64_t time_ns);

/* After the last record. */
void ttm_ledger_end_sessions(struct ttm_ledger *ledger);

/* Looks for the cell of a life, and adds it if there is none. Returns 0 or -ENOMEM. */
int ttm_ledger_find_cell(struct ttm_ledger *ledger, const struct ttm_recorded_life *life,
                         uint32_t *ret);

static inline bool ttm_cell_is_of(const struct ttm_cell *cell, const struct ttm_recorded_life *life)
{
    return cell->origin == life->origin && cell->devices == life->devices &&
           cell->region == life->region && cell->kind == life->kind &&
           cell->is_program == ((life->flags & TTM_SITE_PROGRAM) != 0);
}

/* Whether lives that are born now can be of it. */
static inline bool ttm_cell_is_current(const struct ttm_ledger *ledger, const struct ttm_cell *cell)
{
    return ledger->groups.sets[cell->set].session == cell->session + 1;
}

/* The same, or it was so until the judgement began: its devices have not been closed since. */
static inline bool ttm_cell_is_open(const struct ttm_ledger *ledger, const struct ttm_cell *cell)
{
    return ttm_cell_is_current(ledger, cell) ||
           ledger->sessions[ledger->groups.sets[cell->set].session - 1].early == cell->session + 1;
}

/* As ttm_ledger_find_cell(); most allocations are like the one before. */
static inline int ttm_ledger_cell(struct ttm_ledger *ledger, const struct ttm_recorded_life *life,
                                  uint32_t *ret)
{
    if (ledger->cell_count > 0 && ttm_cell_is_of(&ledger->cells[ledger->last_cell], life) &&
        ttm_cell_is_current(ledger, &ledger->cells[ledger->last_cell])) {
        *ret = ledger->last_cell;
        return 0;
    }
    return ttm_ledger_find_cell(ledger, life, ret);
}

#endif /* TTM_ANALYSIS_LEDGER_CELLS_H */
