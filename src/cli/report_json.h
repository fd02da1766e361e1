/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_json - a report as JSON; tt-mem-report(1) documents the keys.
 */
#ifndef TTM_CLI_REPORT_JSON_H
#define TTM_CLI_REPORT_JSON_H

#include "base/json.h"
#include "base/text.h"
#include "cli/report_choice.h"

/* Returns 0 or -ENOMEM. */
int ttm_report_json(const struct ttm_report *report, const struct ttm_report_choice *choice,
                    struct ttm_text *out);

/* The key "findings" of a process and what belongs to it. */
void ttm_report_findings_json(struct ttm_json *json, const struct ttm_report_process *process);

/* How far a recording can be trusted. */
void ttm_recording_json(struct ttm_json *json, const char *key,
                        const struct ttm_recording_info *info);

#endif /* TTM_CLI_REPORT_JSON_H */
