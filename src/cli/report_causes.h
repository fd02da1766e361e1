/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_causes - objects that hold what several lines allocated, above the rows of a report.
 * Private to report_*.c.
 */
#ifndef TTM_CLI_REPORT_CAUSES_H
#define TTM_CLI_REPORT_CAUSES_H

#include "analysis/root_cause.h"
#include "cli/report_rows.h"
#include "cli/report_sheet.h"

/*
 * Gives rows the number of the cause that several have. Those suspects then follow each other, at
 * the place of one that is as large as all of them.
 */
void ttm_report_causes_order(const struct ttm_report_process *process,
                             const struct ttm_root_causes *causes, struct ttm_report_row *rows,
                             uint32_t count);

/* A finding for each cause of several rows, with their numbers. */
void ttm_report_causes(struct sheet *sheet, const struct ttm_root_causes *causes,
                       const struct ttm_report_row *rows, uint32_t count);

#endif /* TTM_CLI_REPORT_CAUSES_H */
