/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_making - what the parts of making a report share. Private to report*.c.
 */
#ifndef TTM_ANALYSIS_REPORT_MAKING_H
#define TTM_ANALYSIS_REPORT_MAKING_H

#include <stdint.h>

#include "analysis/ledger.h"
#include "analysis/report.h"

/* A cell with its words, on the way to an origin. */
struct named {
    const struct ttm_cell *cell;
    uint32_t index; /* of the cell */
    struct ttm_origin_words words;
    uint32_t origin;
};

struct making {
    const struct ttm_ledger *ledger;
    const struct ttm_report_options *options;
    struct ttm_report *report;
    struct ttm_report_process *process;
    struct named *named;      /* of each cell that is left */
    uint32_t *origin_of_cell; /* UINT32_MAX: none */
    uint64_t first_users_ns;  /* first birth with a line of the user's */
    uint32_t process_total;
    uint64_t mark_ns; /* of the first mark at which a process is judged; UINT64_MAX: none */
    uint64_t l1_base; /* the lowest address of L1 that anything has */
};

static inline int compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* Says of each origin what it is, from the cells that it is made of. Returns 0 or -ENOMEM. */
int ttm_report_classify(struct making *making, uint32_t count);

#endif /* TTM_ANALYSIS_REPORT_MAKING_H */
