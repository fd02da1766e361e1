/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording_file - the recording that a command reads: which, whether it can be read,
 * how far it is, and what is missing in it, in words.
 */
#ifndef TTM_CLI_RECORDING_FILE_H
#define TTM_CLI_RECORDING_FILE_H

#include "analysis/report.h"

/* The newest *.ttmem of the working folder, to be freed; NULL when there is none. */
char *ttm_recording_newest(void);

/*
 * Opens and reads 'path', with a progress bar on a terminal once it takes longer than
 * a second. Returns TTM_EXIT_OK; or says why not and returns what to exit with, as when
 * the file is so damaged that nothing is left to read. The report is the caller's to
 * release in any case.
 */
int ttm_recording_report(const char *path, const struct ttm_report_options *options,
                         struct ttm_report *ret);

/* Says why a recording could not be read, and returns what to exit with. */
int ttm_recording_failed(const char *path, int r);

/*
 * Of a recording that was read to its end: returns TTM_EXIT_OK if it is whole or something
 * could be read of it; else says that nothing is left, and returns what to exit with.
 */
int ttm_recording_check(const char *path, const struct ttm_recording_info *info);

/* Says on standard error what is missing in it, for who writes no text that could say so. */
void ttm_recording_caution(const char *path, const struct ttm_recording_info *info);

/* What is missing in the recording, one line without its end, "" when nothing is. */
void ttm_recording_flaws(const struct ttm_recording_info *info, struct ttm_text *out);

#endif /* TTM_CLI_RECORDING_FILE_H */
