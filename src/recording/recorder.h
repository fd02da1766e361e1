/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorder - writes what happens into .ttmem files, without waiting for a disk.
 *
 * It belongs to the thread that made it (the server's loop). That thread encodes
 * into blocks (recording/encoder.h) and hands full ones to a thread of the
 * recorder's own, which compresses and writes them. A bounded number of blocks may
 * wait; when the disk is slower than that, a block is lost, which is counted, and
 * the file goes on with a section that has all that a reader has to know.
 *
 * Call ttm_recorder_tick() at least when ttm_recorder_timeout_ms() says so: it
 * flushes once a second, begins the next file of a rotation, and tells of errors.
 */
#ifndef TTM_RECORDING_RECORDER_H
#define TTM_RECORDING_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "recording/encoder.h"
#include "recording/rotation.h"

struct ttm_recorder;

struct ttm_recorder_options {
    const char *path;                  /* one file, see recording/output.h; or */
    const char *folder;                /* files that rotate */
    struct ttm_rotation_limits limits; /* of a folder; zeros: the defaults */
    uint64_t now_ns;                   /* monotonic */
    uint64_t now_wall_ns;
    uint64_t seed;           /* any number that tracked programs do not know */
    uint32_t section_events; /* 0: the default */
    bool is_patient;         /* no thread: it waits for the disk, and nothing is ever lost */
};

/*
 * The file is there when this returns. Returns 0 or a negative errno, which tells
 * why it cannot be written.
 */
int ttm_recorder_open(const struct ttm_recorder_options *options, struct ttm_recorder **ret);

/* Where it writes: of one file, not of a folder. Borrowed. */
const char *ttm_recorder_path(const struct ttm_recorder *rec);

/* What is told to it: see recording/encoder.h. After an error of the disk it is told in vain. */
struct ttm_encoder *ttm_recorder_encoder(struct ttm_recorder *rec);

/*
 * Returns 0; 1 when events were lost since it last said so, because the disk is
 * too slow; a negative errno, once, when the recording has stopped for good (a
 * full disk: -ENOSPC). What was written until then can be read.
 */
int ttm_recorder_tick(struct ttm_recorder *rec, uint64_t now_ns, uint64_t now_wall_ns);

/* Milliseconds until the next tick, -1 for none: as epoll_wait() wants it. */
int ttm_recorder_timeout_ms(const struct ttm_recorder *rec, uint64_t now_ns);

/* Hands over what there is, as at the end of a process or before a signal ends us. */
void ttm_recorder_flush(struct ttm_recorder *rec);

struct ttm_recorder_status {
    uint64_t bytes;       /* written, in all files */
    uint64_t lost_events; /* because the disk was too slow */
    uint32_t files;
    int error;          /* what has stopped it, or 0 */
    bool is_error_said; /* by ttm_recorder_tick() */
};

void ttm_recorder_status(const struct ttm_recorder *rec, struct ttm_recorder_status *ret);

/*
 * Writes everything, finishes the file and waits for the disk. NULL is fine.
 * Returns 0 or the error that has stopped the recording, also when it was told
 * before. '*ret_path' (may be NULL) is where the last file is, to be freed; NULL
 * when there is none.
 */
int ttm_recorder_close(struct ttm_recorder *rec, char **ret_path);

#endif /* TTM_RECORDING_RECORDER_H */
