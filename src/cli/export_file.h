/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_file - where 'tt-mem export' writes to, whatever the format.
 */
#ifndef TTM_CLI_EXPORT_FILE_H
#define TTM_CLI_EXPORT_FILE_H

#include <stddef.h>

/* Writes all there is to 'fd'. Returns 0 or a negative errno. */
typedef int (*ttm_export_fn)(int fd, void *arg);

/*
 * Has 'write' write to the file at 'output', which is made or emptied first, or to stdout if it
 * is "-". The file may as well be a pipe or a device, so it is never removed, also not when it
 * could not be written to its end. Returns TTM_EXIT_OK; or says why not in one line, as of a full
 * disk or a pipe that nobody reads any longer, and returns what to exit with.
 */
int ttm_export_file(const char *output, ttm_export_fn write, void *arg);

/* For such as write bytes: all of them. Returns 0 or a negative errno. */
int ttm_export_bytes(int fd, const void *bytes, size_t length);

#endif /* TTM_CLI_EXPORT_FILE_H */
