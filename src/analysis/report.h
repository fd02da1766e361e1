/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report - what a recording shows, as plain data: read once, nothing else needed.
 *
 * All times are those of the recording's monotonic clock, but for 'wall' ones; the
 * report has the offset between both. One thread.
 */
#ifndef TTM_ANALYSIS_REPORT_H
#define TTM_ANALYSIS_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/arena.h"
#include "analysis/classify.h"
#include "analysis/keepers.h"
#include "analysis/ledger.h"
#include "analysis/origin_words.h"
#include "recording/recording.h"
#include "wire/shortage.h"
#include "wire/totals.h"

#define TTM_REPORT_BARS 24

/* What remained of an origin in one session of its devices. */
struct ttm_report_stay {
    uint32_t session; /* index */
    struct ttm_held held;
};

/* See analysis/ledger.h; in births of the process. */
struct ttm_report_session {
    uint64_t first;
    uint64_t last;
};

struct ttm_report_origin {
    struct ttm_origin_words words;
    const uint16_t *devices; /* ascending */
    uint16_t device_count;
    uint8_t region;
    uint8_t kind;
    bool is_suppressed; /* a suspect, but for analysis/suppressions.h */
    uint64_t allocs;
    uint64_t born_bytes; /* footprints of all that were allocated */
    uint64_t frees;
    uint64_t replaced;
    uint64_t lifetime_ns;                /* of all that were freed */
    struct ttm_held late;                /* freed only after the last birth of the process */
    struct ttm_held remaining;           /* on each device, of all sessions */
    struct ttm_held judged;              /* of that: what its verdict is true of */
    const struct ttm_report_stay *stays; /* which it is made of */
    uint32_t stay_count;
    struct ttm_held peak; /* at the peak of its region, on the device with most of it */
    struct ttm_held moments[TTM_MOMENTS];
    uint64_t first_ns; /* births: of what remains, else of all */
    uint64_t last_ns;
    const struct ttm_size_count *sizes; /* of what remains, ascending */
    uint32_t size_count;
    uint64_t bars[TTM_REPORT_BARS]; /* births over the run: of what remains, else of all */
    struct ttm_verdict verdict;     /* of all code like it */
    struct ttm_keepers keepers;     /* of what remains */
};

/* What an origin held at some moment. */
struct ttm_report_share {
    uint32_t origin; /* index */
    struct ttm_held held;
};

struct ttm_report_region {
    uint64_t allocs;
    uint64_t frees;
    struct ttm_held remaining;
    struct ttm_held at_mark; /* at the first of the moments */
    uint64_t peak_bytes;
    uint64_t peak_footprint_bytes;
    uint64_t peak_ns;
    uint64_t capacity_bytes;               /* 0: not known */
    const struct ttm_report_share *shares; /* at the peak, largest first */
    uint32_t share_count;
    /* For drawing; NULL when it was not asked for or nothing is known. */
    const struct ttm_course *course; /* of the footprint; of CBs what is resident, if known */
    const struct ttm_bank *bank;     /* what remains, as it lay there last */
};

struct ttm_report_device {
    uint16_t id;
    uint8_t arch;
    uint32_t group; /* those of one number have all but their names in common */
    uint32_t bank_count[TTM_REGION_COUNT]; /* 0: not known */
    const char *board;
    struct ttm_report_region region[TTM_REGION_COUNT];
    struct ttm_cb_totals cbs;     /* once closed: what was there before */
    uint64_t mark_resident_bytes; /* of them, at the first of the moments */
    uint64_t mark_registered_bytes;
    bool has_cbs; /* still: a device that was closed has none */
    uint64_t kernel_bytes[TTM_KERNEL_KIND_COUNT];
};

struct ttm_report_failure {
    struct ttm_recorded_failure failure;
    struct ttm_origin_words words; /* of who wanted it */
    uint64_t time_ns;
    uint16_t device_id;
    enum ttm_shortage shortage;
    bool is_last;   /* of its kind: those at this place, of this region and verdict; */
    uint64_t alike; /* there were so many of it up to this one, */
    uint64_t first_ns;
    const struct ttm_report_share *owners;
    uint32_t owner_count;
};

/* An address that was used more than once. */
struct ttm_report_address {
    struct ttm_reused used;
    const uint16_t *devices; /* ascending */
    uint16_t device_count;
};

#define TTM_REPORT_ADDRESSES 16 /* as many as screens and JSON show */

struct ttm_report_process {
    int32_t pid;
    uint32_t uid; /* as the recording says; 0 in one that was imported */
    uint8_t source;
    bool is_logged;  /* imported from a text log, */
    bool is_untimed; /* which has no times: those here tell the order */
    const char *command;
    uint64_t start_wall_ns; /* 0: not known */
    uint64_t first_ns;
    uint64_t last_ns;
    bool has_ended;
    struct ttm_recorded_process_end end;
    bool is_complete;
    bool is_history_complete;
    bool is_unjudged; /* it ended before its judgement began, see 'after_mark' and 'has_warmup' */
    bool has_missed;  /* it allocated or freed what the numbers here do not have */
    bool is_cut;      /* a part of what was heard of it is not in the recording, or damaged */
    const char *why_incomplete;
    struct ttm_recorded_counters counters;
    uint64_t allocs; /* of all devices, a life once */
    uint64_t frees;
    struct ttm_report_device *devices;
    uint32_t device_count;
    struct ttm_report_origin *origins; /* largest remaining footprint first */
    uint32_t origin_count;
    const struct ttm_report_session *sessions;
    uint32_t session_count;
    const struct ttm_ledger_mark *marks;
    uint32_t mark_count;
    struct ttm_report_failure *failures;
    uint32_t failure_count;
    uint64_t failures_ever;
    uint64_t overlaps;
    struct ttm_extent overlap[2]; /* the first: what was put, and what lay there */
    uint8_t overlap_region;
    const struct ttm_report_address *addresses; /* the most used first */
    uint32_t address_count;
    bool has_moment[TTM_MOMENTS];
    uint64_t moment_ns[TTM_MOMENTS];
};

struct ttm_report {
    struct ttm_report_process *processes; /* in order of appearance */
    uint32_t process_count;
    struct ttm_recording_info info;
    uint64_t records;
    uint64_t gaps;
    uint32_t suppressed;    /* suspects that are known, see analysis/suppressions.h */
    struct ttm_arena arena; /* all of it */
};

struct ttm_report_options {
    const char *moments[TTM_MOMENTS]; /* names of marks, NULL: none; see ttm_ledger_ask() */
    bool wants_drawings;              /* courses and banks */
    const char *after_mark;           /* judge only what comes after it; NULL: no mark */
    bool has_warmup;                  /* judge only what comes so long after the process began: */
    uint64_t warmup_ns;
    struct ttm_frame_namer namer;
    /* Called now and then while it is read; may be NULL. */
    void (*progress)(void *arg, uint64_t offset, uint64_t size);
    void *progress_arg;
    uint64_t seed; /* any number that the file's writer does not know */
};

/*
 * Reads all of it. What is damaged is left out and said so. Returns 0; -ENOMEM or
 * an error of the disk, and then there is no report.
 */
int ttm_report_read(struct ttm_recording *recording, const struct ttm_report_options *options,
                    struct ttm_report *ret);

/* The most that circular buffers took of a device at a time; 0: not known. */
static inline uint64_t ttm_report_cb_peak(const struct ttm_report_device *device)
{
    return device->cbs.peak_resident_bytes > 0 ? device->cbs.peak_resident_bytes
                                               : device->cbs.peak_registered_bytes;
}

/*
 * What circular buffers of a process whose sizes add up to so much take of its devices at most:
 * those of cached programs share their addresses.
 */
uint64_t ttm_report_cb_taken(const struct ttm_report_process *process, uint64_t bytes);

/*
 * What suspects take of the device that has most of it, of all processes together: at a time,
 * not the sum of what one session after the other left.
 */
uint64_t ttm_report_leaked_bytes(const struct ttm_report *report);

/* The same with what a program cache that keeps growing has. */
uint64_t ttm_report_leaked_or_cached_bytes(const struct ttm_report *report);

/* The same of what may be a leak or meant. */
uint64_t ttm_report_unsure_bytes(const struct ttm_report *report);

typedef bool (*ttm_report_choose_fn)(const void *arg, const struct ttm_report_origin *origin);

/*
 * Of what the verdicts of those that are chosen are true of: the most that was there at a time. It is
 * less than what was judged where one session after the other left some.
 */
uint64_t ttm_report_most_judged(const struct ttm_report_process *process,
                                ttm_report_choose_fn choose, const void *arg);

/* Fine for a report that was never read. */
void ttm_report_done(struct ttm_report *report);

/* The wall clock at a time of the recording. */
static inline uint64_t ttm_report_wall(const struct ttm_report *report, uint64_t time_ns)
{
    return time_ns + (uint64_t)report->info.wall_offset_ns;
}

#endif /* TTM_ANALYSIS_REPORT_H */
