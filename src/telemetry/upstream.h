/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upstream - what TT-Metal itself counts, in /dev/shm/tt_device_<id>_memory.
 *
 * TT-Metal keeps one such file for each chip that was ever opened, with what is
 * allocated on it and by which process: requested bytes, of the thread that opened
 * the device alone. The files stay when programs end, and those that were killed
 * stay counted, so an entry is believed only while its process lives.
 *
 * Reads with pread() and never maps a file: it may shrink at any time. Nothing is
 * written and nobody is reaped. Any user may put anything there; every number is
 * bounded before it is used.
 */
#ifndef TTM_TELEMETRY_UPSTREAM_H
#define TTM_TELEMETRY_UPSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TTM_UPSTREAM_FILE_SIZE 8576
#define TTM_UPSTREAM_CHIPS 16
#define TTM_UPSTREAM_PROCESSES 64
#define TTM_UPSTREAM_NAME_SIZE 64
#define TTM_UPSTREAM_FILES_MAX 1024
/* No chip has nearly as much; a larger number is one that ran below zero, or a lie. */
#define TTM_UPSTREAM_BYTES_MAX (1ull << 40)

/* In the order of the file. */
enum ttm_upstream_region {
    TTM_UPSTREAM_DRAM,
    TTM_UPSTREAM_L1,
    TTM_UPSTREAM_L1_SMALL,
    TTM_UPSTREAM_TRACE,
    TTM_UPSTREAM_CB,
    TTM_UPSTREAM_REGION_COUNT
};

/* Requested bytes. 'is_absurd': some number could not be true, and all of them are 0 here. */
struct ttm_upstream_totals {
    bool is_absurd;
    uint64_t bytes[TTM_UPSTREAM_REGION_COUNT];
};

struct ttm_upstream_chip {
    uint32_t id; /* TT-Metal's, in the program that made the entry */
    bool is_remote;
    struct ttm_upstream_totals totals;
};

struct ttm_upstream_process {
    int32_t pid; /* in the pid namespace of that process */
    bool is_stale;
    uint64_t time_ns; /* of its last change: since the epoch or since boot, by TT-Metal's version */
    struct ttm_upstream_totals totals;
    char name[TTM_UPSTREAM_NAME_SIZE];
};

struct ttm_upstream_file {
    uint64_t unique_id; /* the chip's, from the file's name */
    uint32_t version;
    uint32_t references; /* programs attached; those that were killed count for ever */
    uint64_t asic_id;
    int32_t device_id;                 /* TT-Metal's, in the program that attached last */
    struct ttm_upstream_totals totals; /* of all chips and processes, ended ones included */
    struct ttm_upstream_chip chips[TTM_UPSTREAM_CHIPS];
    size_t chip_count;
    struct ttm_upstream_process processes[TTM_UPSTREAM_PROCESSES];
    size_t process_count;
    size_t broken_count; /* entries of processes that cannot be */
};

/* Sorted by 'unique_id'. */
struct ttm_upstream {
    struct ttm_upstream_file *files;
    size_t count;
    size_t denied_count;  /* of other users */
    size_t unknown_count; /* of a version that is not known here */
    size_t broken_count;  /* too short, no file, or not yet filled in */
};

/*
 * The bytes of one file. Returns 0; -EAGAIN when it is not filled in yet;
 * -EPROTONOSUPPORT for a version or layout that is not known; -EBADMSG when it is
 * too short. 'unique_id' is left 0.
 */
int ttm_upstream_decode(const uint8_t *buf, size_t len, struct ttm_upstream_file *ret);

/*
 * All files below 'root'; entries whose process has ended are marked stale. Returns
 * 0, also when there are none, or -ENOMEM. Release with ttm_upstream_done() in any
 * case.
 */
int ttm_upstream_read(const char *root, struct ttm_upstream *ret);
void ttm_upstream_done(struct ttm_upstream *upstream);

/* One moment by three clocks, in nanoseconds. */
struct ttm_upstream_moment {
    uint64_t wall_ns;
    uint64_t monotonic_ns;
    uint64_t boot_ns;
};

/*
 * Whether an entry is older than the process that has its pid now, which started
 * 'start_ns' after boot: then it was another process's. An entry without a time, or
 * with one in the future, is believed.
 */
bool ttm_upstream_is_stale(const struct ttm_upstream_process *process, uint64_t start_ns,
                           const struct ttm_upstream_moment *now);

/* What the processes that live hold together. */
void ttm_upstream_live(const struct ttm_upstream_file *file, struct ttm_upstream_totals *ret);

/*
 * What is counted for the chip and for no process: of programs with
 * TT_METAL_SHM_TRACKING_DISABLED, of a 65th process, or left behind by one that was
 * killed. Nobody can tell which, so it is not to be added to anything.
 */
void ttm_upstream_unclaimed(const struct ttm_upstream_file *file, struct ttm_upstream_totals *ret);

#endif /* TTM_TELEMETRY_UPSTREAM_H */
