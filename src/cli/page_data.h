/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_data - what the page of a report draws, as compact JSON of bounded size.
 *
 * Times are nanoseconds since the first that was heard of a process. What there are too
 * many of is cut, worst first, and counted. docs/html.md has the keys.
 */
#ifndef TTM_CLI_PAGE_DATA_H
#define TTM_CLI_PAGE_DATA_H

#include "analysis/report.h"
#include "base/text.h"
#include "cli/source_line.h"

/* Of all processes together: */
#define TTM_PAGE_ORIGINS 1500
#define TTM_PAGE_MARKS 1000
#define TTM_PAGE_SPANS 60000 /* of all courses */
#define TTM_PAGE_SOURCES 1000
/* Of one: */
#define TTM_PAGE_PROCESSES 64
#define TTM_PAGE_SIZES 24 /* of an origin */
#define TTM_PAGE_TEXT 300 /* bytes of a name or a line */

/* 'sources' may be NULL: no source lines. Returns 0 or -ENOMEM. */
int ttm_page_data(const struct ttm_report *report, const char *path,
                  struct ttm_source_lines *sources, struct ttm_text *out);

#endif /* TTM_CLI_PAGE_DATA_H */
