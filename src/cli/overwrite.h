/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overwrite - files that a command does not write over.
 */
#ifndef TTM_CLI_OVERWRITE_H
#define TTM_CLI_OVERWRITE_H

/*
 * Whether 'output' may be written while 'input' is read: it may not be the same file.
 * 'what' names the input ("log"). Returns TTM_EXIT_OK; or says why not and returns what
 * to exit with.
 */
int ttm_overwrite_input(const char *output, const char *input, const char *what);

/*
 * Whether a recording may take the place of 'output': of one that is no recording it may
 * not, unless it is empty; of a device or a folder never. Returns TTM_EXIT_OK; or says why not and returns what to exit
 * with.
 */
int ttm_overwrite_other(const char *output);

#endif /* TTM_CLI_OVERWRITE_H */
