/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_template - the page that a report is put into, from src/cli/page/ by scripts/embed-page.
 */
#ifndef TTM_CLI_PAGE_TEMPLATE_H
#define TTM_CLI_PAGE_TEMPLATE_H

/* Before and after the data; each ends with NUL. */
extern const unsigned char ttm_page_head[];
extern const unsigned char ttm_page_tail[];

#endif /* TTM_CLI_PAGE_TEMPLATE_H */
