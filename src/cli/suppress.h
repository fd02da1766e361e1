/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suppress - the file of suspects that are known, read for a command.
 */
#ifndef TTM_CLI_SUPPRESS_H
#define TTM_CLI_SUPPRESS_H

#include "analysis/suppressions.h"

/*
 * NULL is fine: none. Returns TTM_EXIT_OK; after saying what is wrong, TTM_EXIT_FAILED when it
 * cannot be read and TTM_EXIT_USAGE when it is no such file.
 */
int ttm_suppress_read(const char *path, struct ttm_suppressions *ret);

/* Clears the suspects of a report that the file knows. Returns the same. */
int ttm_suppress_suspects(const char *path, struct ttm_report *report);

#endif /* TTM_CLI_SUPPRESS_H */
