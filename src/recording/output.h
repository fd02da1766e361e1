/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output - one .ttmem file while it is written: where, in which order, how it ends.
 *
 * A FILE that is not there yet is written in place. One that is there stays until
 * the new one is whole: that is written beside it, as FILE with ".new-<pid>" before
 * its suffix, and takes its name when it is finished. After a crash the unfinished
 * file is therefore always there, readable, and no older one is lost. What is no
 * regular file (/dev/null) is written as it is.
 *
 * The file is locked (flock) while it is written. Used by the recorder's thread.
 */
#ifndef TTM_RECORDING_OUTPUT_H
#define TTM_RECORDING_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

struct ttm_block;
struct ttm_output;
struct ttm_packer;

/* Returns 0 or a negative errno. */
int ttm_output_open(const char *path, uint64_t file_id, struct ttm_output **ret);

/* The same in a folder of rotating files, under a new name for that moment. */
int ttm_output_open_in(const char *folder, uint64_t wall_ns, uint64_t file_id,
                       struct ttm_output **ret);

/* NULL is fine. A file that was not finished stays as it is. */
void ttm_output_free(struct ttm_output *out);

/*
 * Returns 0 or a negative errno; after an error the file ends with the last whole
 * block, and nothing more is to be written.
 */
int ttm_output_write(struct ttm_output *out, struct ttm_packer *packer, struct ttm_block *block);

/*
 * Writes the index and the end, waits for the disk and gives the file its name.
 * Returns 0 or a negative errno.
 */
int ttm_output_finish(struct ttm_output *out, struct ttm_packer *packer);

uint64_t ttm_output_bytes(const struct ttm_output *out);

/* Where it is now. Borrowed. */
const char *ttm_output_path(const struct ttm_output *out);

#endif /* TTM_RECORDING_OUTPUT_H */
