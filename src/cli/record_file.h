/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_file - the recording that a command makes: opened, closed, told of.
 */
#ifndef TTM_CLI_RECORD_FILE_H
#define TTM_CLI_RECORD_FILE_H

#include <stdint.h>

struct ttm_recorder;

/* A file, or a folder of files that rotate. Returns NULL after saying why in one line. */
struct ttm_recorder *ttm_record_file_open(const char *path);
struct ttm_recorder *ttm_record_folder_open(const char *folder);

/*
 * Finishes it; what went wrong is said in one line. Returns where it is, to be
 * freed, or NULL; its size in '*ret_bytes'.
 */
char *ttm_record_file_close(struct ttm_recorder *recorder, uint64_t *ret_bytes);

#endif /* TTM_CLI_RECORD_FILE_H */
