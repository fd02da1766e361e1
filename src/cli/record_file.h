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
 * Finishes it. Where it is comes in '*ret_path', to be freed, or NULL; its size in
 * '*ret_bytes'. NULL is fine. Returns 0 or a negative errno that has stopped it or kept
 * it from being finished, which was said in one line, here or when it happened.
 */
int ttm_record_file_close(struct ttm_recorder *recorder, char **ret_path, uint64_t *ret_bytes);

#endif /* TTM_CLI_RECORD_FILE_H */
