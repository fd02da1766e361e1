/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger_failures - which of the allocations that failed a ledger keeps, and who held the memory.
 *
 * Part of the ledger: its thread, its rules. A program may fail in one way again and again;
 * what it does besides must not be lost among that, nor its last failure.
 */
#ifndef TTM_ANALYSIS_LEDGER_FAILURES_H
#define TTM_ANALYSIS_LEDGER_FAILURES_H

#include "wire/shortage.h"

struct ttm_ledger;
struct ttm_ledger_failure;
struct ttm_recorded_failure;

/*
 * Keeps a copy, with those who held the memory, in place of another one when there is no more
 * room, and counts it to its kind. Returns 0 or -ENOMEM.
 */
int ttm_ledger_keep_failure(struct ttm_ledger *ledger, const struct ttm_ledger_failure *failure);

/* Why it did not fit. */
enum ttm_shortage ttm_ledger_failure_shortage(const struct ttm_recorded_failure *failure);

#endif /* TTM_ANALYSIS_LEDGER_FAILURES_H */
