/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger - what one process of a recording did, counted as it is read.
 *
 * Records go in one after the other, in one pass; at the end the ledger has totals
 * and peaks of each device, and of each cell what it allocated, what remains of it
 * and what it held at the peaks. A cell is what lives have in common: origin,
 * devices, region, kind and session. Time is O(1) a record, amortised; memory follows what is
 * live and the number of cells, never the length of the recording.
 *
 * One thread, no I/O, no clock, no logging.
 */
#ifndef TTM_ANALYSIS_LEDGER_H
#define TTM_ANALYSIS_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/addresses.h"
#include "analysis/groups.h"
#include "analysis/notebook.h"
#include "analysis/seats.h"
#include "analysis/spread.h"
#include "base/u64_map.h"
#include "model/cb_map.h"
#include "recording/recorded.h"

/* What a cell held when a version was current that has passed since. */
struct ttm_saved {
    uint64_t version;
    struct ttm_held held;
};

#define TTM_MOMENTS 2      /* marks at which a ledger is asked what was live */
#define TTM_MOMENT_SLOTS 3 /* the first of two marks may need another place, see take_moments() */

struct ttm_size_count {
    uint64_t bytes;
    uint64_t count;
};

/* What remains of a cell: live at the end, or ended with its device or process only. */
struct ttm_remaining {
    struct ttm_held held;
    uint64_t first_ns; /* births */
    uint64_t last_ns;
    uint64_t first_birth; /* likewise, counted in births of the process */
    uint64_t last_birth;
    struct ttm_spread times;
    struct ttm_spread births;
    struct ttm_size_count *sizes;
    uint32_t size_count;
    struct ttm_u64_map size_places;
};

/*
 * From the opening of devices to their close: a story of its own, as nothing stays beyond it.
 * There is one after the other of each set of devices.
 */
struct ttm_ledger_session {
    bool is_closed;
    bool is_blended;       /* there were too many: the later ones are in it too */
    bool is_early;         /* it ends where the judgement begins, see ttm_ledger_judge_after() */
    uint32_t early;        /* + 1: the early one that goes on in this; 0: none */
    uint64_t first_births; /* of the process until it began */
    uint64_t births;       /* and until it was closed, or all; likewise the visits and the times */
    uint64_t visits;
    uint64_t first_ns;
    uint64_t last_ns;
};

#define TTM_LEDGER_REOPENED 4096 /* sessions that are told apart, besides the first of each set */

/*
 * Cells that differ in name, context, thread or native stack alone: the same code that
 * does the same, in one session. Whether it leaks is asked of all of them together.
 */
struct ttm_kin {
    /* In visits of the process: it comes from one line to another, or passes a mark. */
    uint64_t last_visit;
    uint64_t visits;      /* of this code */
    uint64_t longest_gap; /* between two visits that followed each other */
    uint64_t given_back;  /* how much the process had given back until its first birth */
    uint64_t work;        /* and then until its last */
    /* In births of its own: */
    uint32_t births;
    uint32_t live;
    uint32_t most;       /* that were live together */
    uint32_t most_birth; /* at which it came to that */
    /* What is not looked at with each birth: */
    uint64_t code;        /* tells lines and their operations apart; 0: not known */
    uint64_t first_birth; /* counted in births of the process */
    uint64_t first_visit;
    uint64_t remaining_ranks; /* the sum of the numbers of what remains */
    uint32_t function;        /* number of a note, 0: not known */
    uint32_t spot;            /* the first kin of the same line, whoever called its function */
    uint32_t before;          /* + 1: whose turn it was in its thread before its last; 0: none's */
    uint32_t session;
    uint32_t separated;  /* visits that a mark or another phase separates from the one before */
    uint32_t last_mark;  /* how many marks there were at its last visit, */
    uint64_t last_phase; /* and its phase */
};

/* A thread that allocates. */
struct ttm_ledger_thread {
    uint32_t note; /* 0: not known */
    uint32_t kin;  /* + 1: the last that made a buffer in it; 0: none */
    uint64_t births;
};

/* What was freed since the last birth of the process: at the end, what was freed at its end. */
struct ttm_late {
    struct ttm_held held;
    uint64_t births;     /* of the process when this began to be counted */
    uint64_t last_birth; /* of these */
    uint64_t first_ns;
    uint64_t last_ns;
};

struct ttm_cell {
    uint32_t origin;  /* number of a note, 0: none */
    uint32_t devices; /* as in the recording */
    uint8_t region;
    uint8_t kind;
    bool is_program;
    uint32_t set; /* of the groups */
    uint32_t session;
    uint32_t kin;
    uint32_t thread; /* index */
    uint64_t line;   /* the code of the kin, in its context */
    uint64_t phase;  /* the outermost context; 0: none */
    struct ttm_held now;
    uint64_t allocs;
    uint64_t born_bytes; /* footprints of all that were allocated */
    uint64_t frees;
    uint64_t replaced;
    uint64_t unheard;     /* gone when asked after */
    uint64_t lifetime_ns; /* of all that were freed */
    uint64_t first_ns;    /* births */
    uint64_t last_ns;
    uint64_t thread_last; /* birth, counted in those of the thread */
    uint64_t thread_first;
    uint64_t lowest_address;
    uint64_t highest_address;
    struct ttm_spread times;
    struct ttm_saved *peaks; /* for each group of the set */
    struct ttm_saved moments[TTM_MOMENT_SLOTS];
    struct ttm_late late;
    struct ttm_remaining remaining;
};

struct ttm_ledger_owner {
    uint32_t cell;
    struct ttm_held held;
};

#define TTM_OWNERS 8
#define TTM_LEDGER_FAILURES 64

/*
 * Failures are of one kind that differ in size and time alone. Where there are too many to
 * keep, the first and the last of each kind are.
 */
struct ttm_ledger_failure {
    struct ttm_recorded_failure failure;
    uint64_t time_ns;
    uint16_t device; /* the first, of a mesh */
    bool is_last;    /* of its kind, */
    uint64_t alike;  /* of which there were so many up to this one, */
    uint64_t first_ns;
    uint32_t owner_count;
    struct ttm_ledger_owner owners[TTM_OWNERS]; /* largest first */
};

struct ttm_ledger_mark {
    uint64_t time_ns;
    const char *name;
};

#define TTM_LEDGER_MARKS 65536

/* Where the judgement begins; see ttm_ledger_judge_after(). */
struct ttm_ledger_judging {
    const char *mark; /* borrowed; NULL: not at a mark */
    bool has_warmup;  /* at a time: */
    uint64_t warmup_ns;
    int64_t wall_offset_ns; /* of the recording */
};

struct ttm_live; /* one live allocation */

struct ttm_ledger {
    uint32_t process;
    struct ttm_recorded_process seen; /* 'command' is its own */
    char *command;
    bool has_ended;
    struct ttm_recorded_process_end end;
    uint64_t first_ns; /* of what was heard of it */
    uint64_t last_ns;
    struct ttm_notebook notes;
    struct ttm_recorded_device *devices; /* 'board' is in 'texts' */
    uint32_t device_count;
    struct ttm_groups groups;
    struct ttm_device_sets cb_sets;
    struct ttm_cb_map cbs;
    bool are_cbs_changed;
    uint64_t cbs_changed_ns; /* the last time */
    bool are_cbs_closed;     /* they go with their device or process, and remain */
    uint64_t cb_program;     /* the one that was laid out last, and what it takes */
    uint64_t cb_program_bytes;
    uint64_t cbs_summed_ns;
    uint64_t cbs_interval_ns;
    uint32_t cb_sums;
    bool is_mark_unsummed; /* its circular buffers are to be summed before one comes or goes */
    struct ttm_cell *cells;
    uint32_t cell_count;
    uint32_t cell_room;
    uint32_t *cell_index; /* open addressing, cell + 1 */
    uint32_t cell_index_size;
    uint32_t last_cell;
    struct ttm_live *lives; /* by slot */
    uint32_t live_room;
    uint64_t births;
    uint64_t told; /* of these, born before they were heard of */
    struct ttm_kin *kins;
    uint32_t kin_count;
    struct ttm_u64_map kin_places;
    struct ttm_ledger_session *sessions;
    uint32_t session_count;
    uint32_t reopened;                 /* of these, not the first of their set */
    struct ttm_ledger_thread *threads; /* the first is the first that has allocated */
    uint32_t thread_count;
    uint64_t last_line;    /* 0: none, or a mark has passed since */
    uint32_t marks_ever;   /* more than are kept */
    uint64_t visit;        /* goes up as another line allocates */
    uint32_t visit_births; /* buffers born in it so far */
    uint32_t visit_live;   /* of these, live */
    bool is_turning;       /* one line makes one buffer after the other: each is a visit */
    /* Frees of what had outlived its visit, and visits of which nothing was left: work, not loading. */
    uint64_t given_back;
    struct ttm_addresses addresses;
    struct ttm_ledger_mark *marks;
    uint32_t mark_count;
    /* Where the judgement begins, see ttm_ledger_judge_after(). */
    struct ttm_ledger_judging judging;
    bool is_judging;     /* it has begun, */
    uint64_t judging_ns; /* at this time */
    uint64_t start_ns;   /* of the process; 0: not known */
    struct ttm_ledger_failure *failures;
    uint32_t failure_count;
    uint64_t failures_ever;
    struct ttm_recorded_counters counters;
    uint64_t lost_events;                  /* told one by one */
    bool is_loss_open;                     /* what was lost is not made good yet */
    uint64_t odd;                          /* records that refer to what was never said */
    const char *moment_names[TTM_MOMENTS]; /* borrowed; NULL: not asked for */
    /* By slot: 0 and 1 are of the marks of these names, 2 is of the first one as well. */
    uint32_t moment_slots;                     /* in use */
    uint64_t moment_version[TTM_MOMENT_SLOTS]; /* 1: has not come */
    uint64_t moment_ns[TTM_MOMENT_SLOTS];
    uint64_t moment_births[TTM_MOMENT_SLOTS]; /* until then */
    uint32_t newest_slot;                     /* of the first mark: the last that came, */
    int paired_slot;        /* and the last before the last of the second mark; -1: none */
    bool keeps_drawings;    /* courses, and seats of what remains */
    struct ttm_seats seats; /* of what remains */
    struct ttm_arena texts;
    uint64_t seed;
};

/* 'seed': any number that whoever wrote the recording does not know. */
void ttm_ledger_init(struct ttm_ledger *ledger, uint32_t process, uint64_t seed);
void ttm_ledger_done(struct ttm_ledger *ledger);

/*
 * Before the first record: what was live at marks is wanted, of the last one of each name. Of two, the
 * first is the last before the second, if there is one. 'names' are borrowed; NULL: none.
 */
void ttm_ledger_ask(struct ttm_ledger *ledger, const char *const names[TTM_MOMENTS]);

/*
 * Before the first record: only what the process allocates after the first mark of a name, or after
 * a time since its start, is judged. Zeroed: all of it.
 */
void ttm_ledger_judge_after(struct ttm_ledger *ledger, const struct ttm_ledger_judging *judging);

/* Whether a mark that was asked for has come, and when. */
bool ttm_ledger_moment(const struct ttm_ledger *ledger, uint32_t moment, uint64_t *ret_ns);

/* A record of this process. Returns 0 or -ENOMEM, after which the ledger is of no use. */
int ttm_ledger_take(struct ttm_ledger *ledger, const struct ttm_recorded *record);

/* After the last record: what is still live remains. Returns 0 or -ENOMEM. */
int ttm_ledger_finish(struct ttm_ledger *ledger);

/* What a cell held at the peak of its region in a group of its set, by place in the set. */
struct ttm_held ttm_cell_at_peak(const struct ttm_ledger *ledger, const struct ttm_cell *cell,
                                 uint32_t place);

/* What a cell held at a mark that was asked for; nothing when there was none. */
struct ttm_held ttm_cell_at_moment(const struct ttm_ledger *ledger, const struct ttm_cell *cell,
                                   uint32_t moment);

/* What the recording tells of a device, or NULL. */
const struct ttm_recorded_device *ttm_ledger_device(const struct ttm_ledger *ledger, uint16_t id);

#endif /* TTM_ANALYSIS_LEDGER_H */
