/* SPDX-License-Identifier: Apache-2.0 */
/*
 * classify - what an origin is, whether it is a suspect, and the evidence in words.
 *
 * Pure: from counts to a verdict. Growing is what leaks do: births that come back
 * all through the run and are not given back. Time is counted in what the process
 * does rather than seconds, so that neither a slow start nor a long sleep at the
 * end changes the verdict: in births, and in visits, which is how often the process
 * came from one line of code that allocates to another. The end is that of a session:
 * of the process, or before when the device was closed.
 */
#ifndef TTM_ANALYSIS_CLASSIFY_H
#define TTM_ANALYSIS_CLASSIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/spread.h"

enum ttm_class {
    TTM_CLASS_UNSURE,
    TTM_CLASS_SYSTEM,
    TTM_CLASS_PROGRAM_CACHE,
    TTM_CLASS_CIRCULAR_BUFFER,
    TTM_CLASS_KERNEL,
    TTM_CLASS_STEADY,
    TTM_CLASS_GROWING,
    TTM_CLASS_TEMPORARY,
    TTM_CLASS_COUNT
};

/* "growing", "program_cache". */
const char *ttm_class_name(enum ttm_class class);

#define TTM_LOOP_VISITS 3 /* that make a loop */

/* What is known of code that allocates; counts are of all its lives. */
struct ttm_evidence {
    uint8_t region;
    bool is_program;     /* a part of a program, or its binary */
    bool is_device_open; /* allocated by opening a device */
    bool has_origin;
    bool have_others;   /* others of the process have lines of the user's */
    bool is_creation;   /* makes a tensor from data rather than from other tensors */
    bool is_conversion; /* gives a tensor another form, as is done while weights are loaded */
    bool is_unknown;    /* nothing tells which of these it is, or whether it computes */
    bool is_blended;    /* of many sessions of a device that are not told apart */
    bool has_successor; /* code that was new allocated after its last birth */
    bool is_followed;   /* the same, and the program came back to it: another loop */
    bool is_alone;      /* while it came, the program did nothing but load */
    /* Of the last round of its loop: */
    bool has_returned; /* the loop went on when this code came no more */
    bool is_fed;       /* others made a tensor from data */
    bool is_computing; /* others computed */
    bool is_logged;    /* known from a text log alone, */
    bool is_untimed;   /* which has no times: those below tell the order */
    bool is_native;    /* of a program that has shown no Python and no operation of ttnn */
    bool is_l1_base;   /* all of it at the lowest address of L1 that anything has */
    uint16_t device_count;
    uint64_t allocs;
    uint64_t frees;
    uint64_t replaced;
    uint64_t remaining;
    uint64_t late;            /* freed only after the last birth of the process */
    uint64_t kept_by_threads; /* of what remains: born up to the end of a thread of its own */
    uint64_t lifetime_ns;     /* of all that were freed */
    /* In visits of the process: */
    uint64_t visits; /* of this code */
    uint64_t first_visit;
    uint64_t last_visit;
    uint64_t longest_gap; /* between two that followed each other */
    uint64_t all_visits;  /* of the process */
    uint64_t work; /* buffers that the process gave back between its first birth and its last */
    /* In births of this code: */
    uint64_t since_most;      /* that came after it had held most */
    uint64_t remaining_ranks; /* the sum of the numbers of what remains, from 0 on */
    /* In births of the process: */
    uint64_t births;      /* of the process, all */
    uint64_t first_birth; /* of this code */
    uint64_t last_birth;  /* of what remains, else of what was freed late; likewise the times */
    const struct ttm_spread *remaining_births;
    /* In nanoseconds: */
    uint64_t first_ns; /* of what remains */
    uint64_t last_ns;
    uint64_t run_first_ns;
    uint64_t run_last_ns;
};

#define TTM_VERDICT_TEXT 240

struct ttm_verdict {
    enum ttm_class class;
    bool is_suspect;
    bool is_over;                  /* it grew, in a loop that is over */
    bool is_growing_cache;         /* of what the program cache keeps: it grows, which is no leak */
    char why[TTM_VERDICT_TEXT];    /* one sentence */
    char advice[TTM_VERDICT_TEXT]; /* one sentence */
};

void ttm_classify(const struct ttm_evidence *evidence, struct ttm_verdict *ret);

/* What was allocated before the leak check begins is neither suspect nor unsure. */
void ttm_verdict_clear(const struct ttm_evidence *evidence, struct ttm_verdict *verdict);

#endif /* TTM_ANALYSIS_CLASSIFY_H */
