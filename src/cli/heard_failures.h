/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heard_failures - allocations that fail in processes which report to a server elsewhere.
 *
 * The server tells of a failure behind the row of its process: the device, origins that
 * were not told yet, and the failure (docs/wire-format.md). What is needed to tell people
 * is kept here: of each process its origins, of each device its banks. One thread's.
 */
#ifndef TTM_CLI_HEARD_FAILURES_H
#define TTM_CLI_HEARD_FAILURES_H

#include <stdint.h>

#include "cli/failure_report.h"
#include "cli/terminal.h"

struct ttm_frame;
struct ttm_heard_process;

/* All zero is fine: nothing is told then. */
struct ttm_heard_failures {
    struct ttm_registry *reg; /* our processes, without lives; NULL: memory was short */
    struct ttm_failure_reporter reporter;
    struct ttm_heard_process *speaker; /* whom the row before was about; NULL: none of ours */
    uint64_t failures;                 /* of it, by that row */
};

void ttm_heard_failures_init(struct ttm_heard_failures *heard, const struct ttm_terminal *terminal);

/* All its processes have ended. */
void ttm_heard_failures_done(struct ttm_heard_failures *heard);

/* One of ours. NULL when memory is short. Release with ttm_heard_process_end(). */
struct ttm_heard_process *ttm_heard_process_new(struct ttm_heard_failures *heard, int32_t pid);

/* Tells of its last failure, if that was held back, and forgets it. NULL is fine. */
void ttm_heard_process_end(struct ttm_heard_failures *heard, struct ttm_heard_process *process);

/* A row came that says so many failures of that process, which may be NULL. */
void ttm_heard_failures_row(struct ttm_heard_failures *heard, struct ttm_heard_process *process,
                            uint64_t failures);

/* A frame behind the row; of others nothing is taken. Returns 0 or -EBADMSG. */
int ttm_heard_failures_take(struct ttm_heard_failures *heard, const struct ttm_frame *frame);

#endif /* TTM_CLI_HEARD_FAILURES_H */
