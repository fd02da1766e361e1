/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain_file - opens a file whose path somebody else chose.
 *
 * A program chooses the paths of its source files and modules. Opening such a path could
 * wait for ever (a FIFO) or have an effect (a watchdog, a tape). So a file is found first,
 * which asks nothing of it, and opened only once it is known to be a regular one. The rights of
 * the caller are checked by the kernel when the file is opened. Needs /proc.
 */
#ifndef TTM_BASE_PLAIN_FILE_H
#define TTM_BASE_PLAIN_FILE_H

#include <sys/stat.h>

/*
 * Finds a regular file without opening it; 'ret' describes it. Links are followed. Returns an
 * fd (O_PATH) for ttm_plain_file_open_found() and close(), -EINVAL for a file of another kind,
 * or another negative errno.
 */
int ttm_plain_file_find(const char *path, struct stat *ret);

/* Opens for reading what was found, which stays the caller's. Returns an fd or a negative errno. */
int ttm_plain_file_open_found(int found);

/* Both in one. Returns an fd that is open for reading, or a negative errno. */
int ttm_plain_file_open(const char *path, struct stat *ret);

#endif /* TTM_BASE_PLAIN_FILE_H */
