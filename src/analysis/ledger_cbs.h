/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger_cbs - the circular buffers of a ledger, summed over the cores they share.
 *
 * Programs lie on each other in L1, so nothing is added up as events come in: sums are
 * made before a state that lasted changes, and at the end. Private to ledger*.c.
 */
#ifndef TTM_ANALYSIS_LEDGER_CBS_H
#define TTM_ANALYSIS_LEDGER_CBS_H

#include "analysis/ledger.h"

/* Before what is known changes: sums if the state lasted. Returns 0 or -ENOMEM, as all of these. */
int ttm_ledger_cbs_settle(struct ttm_ledger *ledger, uint64_t time_ns);

/* A circular buffer with memory of its own. What cannot be placed on cores counts without them. */
int ttm_ledger_cbs_birth(struct ttm_ledger *ledger, const struct ttm_recorded_life *life,
                         const struct ttm_group_set *set, bool *ret_is_placed);

/* So many bytes more, or less, whose cores are not known. */
void ttm_ledger_cbs_coreless(struct ttm_ledger *ledger, const struct ttm_group_set *set,
                             uint64_t bytes);

/* A program was sent to the devices of the set. */
void ttm_ledger_cbs_dispatch(struct ttm_ledger *ledger, const struct ttm_group_set *set,
                             uint64_t program, uint64_t time_ns);

/* Something has changed. */
void ttm_ledger_cbs_change(struct ttm_ledger *ledger, uint64_t time_ns);

/* The first that goes with its device or process: what is there now is what remains. */
int ttm_ledger_cbs_close(struct ttm_ledger *ledger);

/* The mark that was asked for: the programs there now are those of it. */
void ttm_ledger_cbs_mark(struct ttm_ledger *ledger);

/* Before a circular buffer comes or goes, and at the end: sums those of the mark. */
int ttm_ledger_cbs_sum_mark(struct ttm_ledger *ledger);

int ttm_ledger_cbs_sum(struct ttm_ledger *ledger);

/* In ledger.c: what a region of a group has from now on, if drawings are wanted. */
int ttm_ledger_draw(const struct ttm_ledger *ledger, struct ttm_group_region *region,
                    uint64_t time_ns, uint64_t bytes);

#endif /* TTM_ANALYSIS_LEDGER_CBS_H */
