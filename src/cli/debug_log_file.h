/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debug_log_file - the log that TT_BUFFER_DEBUG_LOG asks for, written while a server runs.
 *
 * A thread of its own reads the recording that the server makes, as far as it has come, and
 * appends its blocks to the log. So neither the tracked program nor the server's loop ever
 * waits for a symbol or a disk, and nothing is lost however far behind it is.
 */
#ifndef TTM_CLI_DEBUG_LOG_FILE_H
#define TTM_CLI_DEBUG_LOG_FILE_H

#include <stdbool.h>

struct ttm_debug_log_file;
struct ttm_recording;

#define TTM_DEBUG_LOG_PATH "/tmp/tt_buffer_debug.log"

/* What the environment's TT_BUFFER_DEBUG_LOG asks for: a path, NULL for none. */
const char *ttm_debug_log_wish(void);

/*
 * Opens the log to append to it: a plain file of this user's own, reached by no link and of
 * no second name, made if need be for this user alone. Returns NULL after saying why
 * not in one line.
 */
struct ttm_debug_log_file *ttm_debug_log_file_open(const char *path);

/*
 * Follows the recording at 'path', which is there; or the files of 'folder' as they come, which
 * are removed when they have been read if the folder 'is_spool'. Returns 0, or a negative errno after saying so in one line.
 */
int ttm_debug_log_file_follow(struct ttm_debug_log_file *log, const char *path);
int ttm_debug_log_file_follow_folder(struct ttm_debug_log_file *log, const char *folder,
                                     bool is_spool);

/* Writes what is left, once the recording has been finished. NULL is fine. */
void ttm_debug_log_file_close(struct ttm_debug_log_file *log);

/* Writes all of a recording to 'fd'. Returns 0 or a negative errno. */
int ttm_debug_log_copy(struct ttm_recording *recording, int fd);

#endif /* TTM_CLI_DEBUG_LOG_FILE_H */
