/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_summary - what 'tt-mem run' says when its program has ended, as text.
 *
 * Made of plain data, to fit one screen of the terminal.
 */
#ifndef TTM_CLI_RUN_SUMMARY_H
#define TTM_CLI_RUN_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "cli/child.h"
#include "cli/program.h"
#include "cli/terminal.h"
#include "model/departed.h"

struct ttm_report;

struct ttm_run_summary {
    const char *command; /* as it was typed */
    struct ttm_child_end end;
    enum ttm_program program;
    uint64_t fd_limit; /* how many files it may have open */
    bool is_untracked; /* what was wrong has been said when it started */
    const struct ttm_departed *departed;
    /*
     * Where the processes reported, when that was not to us (see cli/watched.h): of what
     * remained only the sums are known, of allocations and frees nothing.
     */
    const char *server;
    bool is_server_gone;             /* before the end */
    const struct ttm_report *report; /* of its recording, NULL: there is none */
    const char *leak_verdict;        /* of --fail-on-leak, NULL: it was not asked for */
    const char *recording;           /* where it is, NULL: there is none */
    uint64_t recording_bytes;
    const char *recording_stopped; /* why, before the end; NULL: it has all */
};

void ttm_run_summary_text(const struct ttm_run_summary *summary,
                          const struct ttm_terminal *terminal, struct ttm_text *out);

#endif /* TTM_CLI_RUN_SUMMARY_H */
