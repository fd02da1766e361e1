/* SPDX-License-Identifier: Apache-2.0 */
/*
 * root_cause - one object that holds what several lines allocated.
 *
 * An exception that somebody keeps holds the variables of all its frames; each is an origin of its
 * own, and one line of code is to be changed for all of them. Found from the holders that the
 * program named (tt-mem run --holders). One thread, no I/O.
 */
#ifndef TTM_ANALYSIS_ROOT_CAUSE_H
#define TTM_ANALYSIS_ROOT_CAUSE_H

#include <stdint.h>

#include "analysis/report.h"

#define TTM_ROOT_CAUSE_TEXT 320 /* a holder, and a few words */

struct ttm_root_cause {
    uint8_t cause;                  /* enum ttm_cause */
    char text[TTM_ROOT_CAUSE_TEXT]; /* "traceback of ValueError, held by list ERRORS in module m" */
    char advice[TTM_VERDICT_TEXT];
    uint32_t first; /* of its origins in 'origins' below, the largest first */
    uint32_t count;
    struct ttm_held held; /* the sum of what remains of its origins */
};

struct ttm_root_causes {
    struct ttm_root_cause *list; /* the largest first */
    uint32_t count;
    uint32_t *origins;   /* indices of the process's origins, those of one cause side by side */
    uint32_t *of_origin; /* number of its cause, from 1 on; 0: none */
};

/*
 * Of those origins that are chosen and of which something remains: suspects, and what an exception
 * or a cycle holds, for which nobody asked. Each cause has two lines of code at least. Returns 0 or
 * -ENOMEM; _done in any case.
 */
int ttm_root_causes_find(const struct ttm_report_process *process, ttm_report_choose_fn choose,
                         const void *arg, struct ttm_root_causes *ret);
void ttm_root_causes_done(struct ttm_root_causes *causes);

#endif /* TTM_ANALYSIS_ROOT_CAUSE_H */
