/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rotation - the files of 'tt-mem serve --record DIR': their names, and which go.
 *
 * tt-mem-20260930T081500Z.ttmem, by the time at which it was begun (UTC), so that
 * names sort as times do; a second one of the same second gets "-1" and so on.
 * Only files of that form are ever removed, and never one that is being written.
 */
#ifndef TTM_RECORDING_ROTATION_H
#define TTM_RECORDING_ROTATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TTM_ROTATION_NAME_SIZE 64

struct ttm_rotation_limits {
    uint64_t file_bytes;  /* a new file is begun above this; 0: 64 MiB */
    uint64_t file_age_ns; /* or when it is older than this; 0: 24 hours */
    uint64_t total_bytes; /* the oldest are removed above this; 0: 1 GiB */
};

/* Puts the defaults in place of zeros. */
void ttm_rotation_limits_fill(struct ttm_rotation_limits *limits);

/* The n-th name for that moment. */
void ttm_rotation_name(uint64_t wall_ns, unsigned n, char ret[TTM_ROTATION_NAME_SIZE]);

/* Whether it is a name that ttm_rotation_name() gives. */
bool ttm_rotation_is_name(const char *name);

/*
 * Removes the oldest files of the folder until the rest is within 'total_bytes'.
 * 'keep' (a name, may be NULL) and files that someone is writing stay. Returns how
 * many were removed, or a negative errno.
 */
int ttm_rotation_trim(const char *folder, uint64_t total_bytes, const char *keep);

#endif /* TTM_RECORDING_ROTATION_H */
