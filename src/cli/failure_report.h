/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failure_report - tells of allocations that fail, while the program runs.
 *
 * Called in the server's thread: it collects what the registry has and hands the
 * text to the log, whose own thread writes it. A program that fails again and again
 * is told of once a second, and a limited number of times.
 */
#ifndef TTM_CLI_FAILURE_REPORT_H
#define TTM_CLI_FAILURE_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/terminal.h"

#define TTM_FAILURE_REPORTS_MAX 20

struct ttm_failure_row;
struct ttm_process;
struct ttm_registry;

struct ttm_failure_reporter {
    struct ttm_terminal terminal;
    uint64_t last_ns; /* the newest failure that was told of */
    uint32_t told;
    uint64_t skipped; /* since the last that was told of */
    bool is_silent;   /* it was said that no more are told of */
};

void ttm_failure_reporter_init(struct ttm_failure_reporter *reporter,
                               const struct ttm_terminal *terminal);

/* As ttm_failure_fn; 'context' is the reporter. */
void ttm_failure_report(void *context, const struct ttm_registry *reg,
                        const struct ttm_process *process, const struct ttm_failure_row *failure);

#endif /* TTM_CLI_FAILURE_REPORT_H */
