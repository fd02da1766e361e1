/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page - a report as one HTML page that needs nothing else: no network, no other file.
 *
 * The page is a fixed text, written by hand in src/cli/page/, with the report as JSON in
 * its middle. Whatever text came from a program is data there and nothing else: it can
 * end neither the JSON nor the element that holds it.
 */
#ifndef TTM_CLI_PAGE_H
#define TTM_CLI_PAGE_H

#include "analysis/report.h"
#include "base/text.h"
#include "cli/source_line.h"

/*
 * The report has to have drawings. 'path' is the recording's. 'sources' may be NULL: no source
 * lines. Returns 0 or -ENOMEM.
 */
int ttm_page_write(const struct ttm_report *report, const char *path,
                   struct ttm_source_lines *sources, struct ttm_text *out);

#endif /* TTM_CLI_PAGE_H */
