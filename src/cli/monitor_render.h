/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monitor_render - totals per device at one moment: a screen, JSON or CSV.
 */
#ifndef TTM_CLI_MONITOR_RENDER_H
#define TTM_CLI_MONITOR_RENDER_H

#include "base/text.h"
#include "cli/terminal.h"
#include "query/answer.h"
#include "wire/request.h"

void ttm_monitor_text(const struct ttm_answer *answer, const struct ttm_device_filter *devices,
                      const struct ttm_terminal *terminal, struct ttm_text *out);

/* One document, "tt-mem/monitor/1", on one line. */
void ttm_monitor_json(const struct ttm_answer *answer, const struct ttm_device_filter *devices,
                      struct ttm_text *out);

void ttm_monitor_csv_header(struct ttm_text *out);

/* A row for each device and region. */
void ttm_monitor_csv(const struct ttm_answer *answer, const struct ttm_device_filter *devices,
                     struct ttm_text *out);

#endif /* TTM_CLI_MONITOR_RENDER_H */
