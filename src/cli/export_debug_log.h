/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_debug_log - 'tt-mem export --format debug-log'.
 */
#ifndef TTM_CLI_EXPORT_DEBUG_LOG_H
#define TTM_CLI_EXPORT_DEBUG_LOG_H

/* Writes the recording at 'path' to 'output', "-" for stdout. Returns what to exit with. */
int ttm_export_debug_log(const char *path, const char *output);

#endif /* TTM_CLI_EXPORT_DEBUG_LOG_H */
