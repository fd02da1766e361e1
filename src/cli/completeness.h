/* SPDX-License-Identifier: Apache-2.0 */
/*
 * completeness - how far what is shown of a process can be trusted, in words.
 */
#ifndef TTM_CLI_COMPLETENESS_H
#define TTM_CLI_COMPLETENESS_H

#include <stdbool.h>

#include "wire/totals.h"

/* What is live is known exactly. */
bool ttm_completeness_is_live_set_exact(const struct ttm_process_row *row);

/* No event was lost or missed either. */
bool ttm_completeness_is_history_whole(const struct ttm_process_row *row);

/* The weightiest reason why not, "" when there is none. */
const char *ttm_completeness_why(const struct ttm_process_row *row);

#endif /* TTM_CLI_COMPLETENESS_H */
