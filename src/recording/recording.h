/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording - reads a .ttmem file: finished, torn, damaged, or still being written.
 *
 * One thread. It reads forward block by block and holds one block and what is live.
 * A damaged block is passed over and so is what cannot be understood without it;
 * reading goes on with the next section, after a record of the gap. It never
 * guesses: what it hands out has been checked, and ttm_recording_info says what is
 * missing.
 */
#ifndef TTM_RECORDING_RECORDING_H
#define TTM_RECORDING_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

#include "recording/recorded.h"

struct ttm_recording;

/*
 * Returns 0; -EBADMSG for a file that is no recording; -ENOTSUP for one of a
 * version that this program cannot read; another negative errno.
 */
int ttm_recording_open(const char *path, struct ttm_recording **ret);

/* The same from a file that is open. On success the recording owns 'fd'. */
int ttm_recording_open_fd(int fd, struct ttm_recording **ret);

/* NULL is fine. */
void ttm_recording_close(struct ttm_recording *rec);

/*
 * Returns 1 with the next record, borrowed until the next call. 0 when there is no
 * more: for good once info.is_finished, else until the file grows. -EBADMSG, once
 * for each damaged place, after which the next call goes on behind it; -ENOMEM and
 * errors of the disk, after which the next call tries again.
 */
int ttm_recording_next(struct ttm_recording *rec, const struct ttm_recorded **ret);

/*
 * Goes to the last section that begins at or before that time, else to the first:
 * what is told from there on includes everything that was live then, with true
 * birth times. Told lives come in the course of the next records, all of them once
 * info.is_exact. Returns 0 or a negative errno.
 */
int ttm_recording_seek(struct ttm_recording *rec, uint64_t time_ns);

struct ttm_recording_info {
    bool is_complete;        /* finished, and nothing of it is missing */
    bool is_finished;        /* its writer has ended it in good order */
    bool is_being_written;   /* by someone, now */
    bool is_exact;           /* what is live is exactly known, as of the last record */
    bool is_head_damaged;    /* the first bytes of the file */
    uint64_t blocks;         /* read */
    uint64_t damaged_blocks; /* or places where there may have been more than one */
    uint64_t skipped_blocks; /* that cannot be understood without a missing one */
    uint64_t lost_events;    /* known to be missing */
    uint64_t torn_bytes;     /* at the end, of a block that is not whole */
    uint64_t offset;         /* how far it has been read */
    uint64_t size_bytes;
    uint32_t owner_uid;     /* whose file it is */
    uint64_t last_ns;       /* the latest time so far */
    int64_t wall_offset_ns; /* wall clock = time + this */
};

/* What is known by now; all of it once ttm_recording_next() has returned 0. */
void ttm_recording_info(struct ttm_recording *rec, struct ttm_recording_info *ret);

#endif /* TTM_RECORDING_RECORDING_H */
