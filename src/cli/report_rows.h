/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_rows - the origins of a screen, those that it shows alike in one row.
 *
 * Sixteen weights that were given names of their own are sixteen origins; a screen has one
 * line of code to show for them.
 */
#ifndef TTM_CLI_REPORT_ROWS_H
#define TTM_CLI_REPORT_ROWS_H

#include <stdint.h>

#include "cli/report_choice.h"

struct ttm_report_row {
    const struct ttm_report_origin *origin; /* the first, and largest, of them */
    uint32_t place;                         /* of that one among the origins */
    uint32_t origins;                       /* in this row */
    uint32_t names;                         /* of these, with another name than the first */
    struct ttm_held held;                   /* of all, at the moment that was chosen */
    struct ttm_held judged;                 /* of what remains: what their verdicts are true of */
    uint64_t bars[TTM_REPORT_BARS];
    uint32_t cause;             /* see cli/report_causes.h; 0: none */
    uint32_t number;            /* among the rows, before those of a cause were put together */
    uint64_t block_bytes;       /* what all rows of its cause hold, else what it holds */
    uint64_t first_ns, last_ns; /* births of the oldest and the youngest that remain */
};

/*
 * Rows of the origins in 'order': those of one kind together, suspects first of what remains, the
 * largest first; or with 'is_folded' false a row for each, in that order. What held nothing at the
 * moment that was chosen is left out. Returns 0 or -ENOMEM; free(*ret).
 */
int ttm_report_rows(const struct ttm_report_choice *choice,
                    const struct ttm_report_origin *const *order, uint32_t count, bool is_folded,
                    struct ttm_report_row **ret, uint32_t *ret_count);

/* Those of a process that were chosen, likewise. */
int ttm_report_rows_of(const struct ttm_report_choice *choice,
                       const struct ttm_report_process *process, struct ttm_report_row **ret,
                       uint32_t *ret_count);

/* How many rows of what remains are suspects. Returns 0 or -ENOMEM. */
int ttm_report_suspects(const struct ttm_report_choice *choice,
                        const struct ttm_report_process *process, uint32_t *ret);

/* How many are not among those that were chosen. Returns 0 or -ENOMEM. */
int ttm_report_suspects_hidden(const struct ttm_report_choice *choice,
                               const struct ttm_report_process *process, uint32_t *ret);

#endif /* TTM_CLI_REPORT_ROWS_H */
