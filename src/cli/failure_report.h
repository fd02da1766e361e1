/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failure_report - tells of allocations that fail, while the program runs.
 *
 * Called in the server's thread, or in the one that listens to a server elsewhere: it
 * collects what the registry has and hands the text to the log, whose own thread writes
 * it. The first failure of each kind is told of at once; one that fails in the same way
 * again and again, once a second. Both have a limit. What was held back is counted, and
 * the last of it told of when its process ends.
 */
#ifndef TTM_CLI_FAILURE_REPORT_H
#define TTM_CLI_FAILURE_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/terminal.h"
#include "wire/origin_row.h"

#define TTM_FAILURE_REPORTS_MAX 20   /* from here on, only what is of a new kind */
#define TTM_FAILURE_KINDS_MAX 20     /* which are known */
#define TTM_FAILURE_PROCESSES_MAX 16 /* of which failures are held back at a time */

struct ttm_process;
struct ttm_registry;

/* Failures of a process since the last that was told of. */
struct ttm_failures_held {
    const struct ttm_process *process; /* only to know it by */
    uint64_t count;
    struct ttm_failure_row last;
};

struct ttm_failure_reporter {
    struct ttm_terminal terminal;
    uint64_t kinds[TTM_FAILURE_KINDS_MAX]; /* hashes, of those that were told of */
    uint32_t kind_count;
    uint64_t last_ns; /* the newest failure that was told of */
    uint32_t told;
    bool is_silent;     /* it was said that no more are told of */
    bool is_unrecorded; /* no report will have the others */
    struct ttm_failures_held held[TTM_FAILURE_PROCESSES_MAX];
    uint32_t held_count;
};

void ttm_failure_reporter_init(struct ttm_failure_reporter *reporter,
                               const struct ttm_terminal *terminal);

/* As ttm_failure_fn; 'context' is the reporter. */
void ttm_failure_report(void *context, const struct ttm_registry *reg,
                        const struct ttm_process *process, const struct ttm_failure_row *failure);

/*
 * Of a process that reports elsewhere, whose lives 'reg' does not have: who held the memory is what
 * the failure says. 'missed': how many came before it that were not heard of.
 */
void ttm_failure_report_heard(struct ttm_failure_reporter *reporter, const struct ttm_registry *reg,
                              const struct ttm_process *process,
                              const struct ttm_failure_row *failure, uint64_t missed);

/* Before the process is forgotten: tells of its last failure, if that was held back. */
void ttm_failure_report_end(struct ttm_failure_reporter *reporter, const struct ttm_registry *reg,
                            const struct ttm_process *process);

#endif /* TTM_CLI_FAILURE_REPORT_H */
