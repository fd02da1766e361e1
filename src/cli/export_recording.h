/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_recording - a copy of a recording that ends in good order, also of one that is being
 * written: all that is in it by now.
 */
#ifndef TTM_CLI_EXPORT_RECORDING_H
#define TTM_CLI_EXPORT_RECORDING_H

/* 'output' is a path, or "-" for stdout. Returns what to exit with, after saying what went wrong. */
int ttm_export_recording(const char *path, const char *output);

#endif /* TTM_CLI_EXPORT_RECORDING_H */
