/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_text - a report for people: one screen, the worst first.
 */
#ifndef TTM_CLI_REPORT_TEXT_H
#define TTM_CLI_REPORT_TEXT_H

#include "base/text.h"
#include "cli/report_choice.h"
#include "cli/terminal.h"

/* 'path' is the file as it was given. Returns 0 or -ENOMEM. */
int ttm_report_text(const struct ttm_report *report, const struct ttm_report_choice *choice,
                    const char *path, const struct ttm_terminal *terminal, struct ttm_text *out);

/*
 * What remains of the process with the most suspects, by origin, in about so many
 * rows: for a screen that has its own head. 'path' is NULL when the recording is not kept.
 * Returns 0 or -ENOMEM.
 */
int ttm_report_remains_text(const struct ttm_report *report, const char *path,
                            const struct ttm_terminal *terminal, size_t rows, struct ttm_text *out);

/* Whether that has more to say than a list of what remains: suspects, or a cause of several. */
bool ttm_report_has_findings(const struct ttm_report *report);

#endif /* TTM_CLI_REPORT_TEXT_H */
