/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff - what grew between two moments, by origin.
 *
 * The moments are the ends of two recordings, or two marks of one. Origins are matched
 * by the functions of their stack, operation and region: lines may have moved between
 * two releases of a program. Python 3.11 and later tell a method with its class; where
 * one recording has such names and the other has none, their last parts are compared.
 * Frames of comprehensions, which 3.12 has no more, do not count. Nor does the name of
 * the file that was run, where each recording has one. One thread.
 */
#ifndef TTM_ANALYSIS_DIFF_H
#define TTM_ANALYSIS_DIFF_H

#include "analysis/report.h"

/* A moment of a report: what remains, or what was live at one of the marks asked for. */
struct ttm_diff_side {
    const struct ttm_report *report;
    int moment; /* -1: what remains */
};

struct ttm_diff_row {
    const struct ttm_report_origin *origin; /* of the later moment, if it is there */
    struct ttm_held from;
    struct ttm_held to;
};

struct ttm_diff {
    struct ttm_diff_row *rows; /* what grew most first, what shrank most last */
    uint32_t count;
    /* Sums of what grew and what shrank; circular buffers, which share addresses, as they lay. */
    uint64_t grown_bytes;
    uint64_t shrunk_bytes;
};

static inline int64_t ttm_diff_growth(const struct ttm_diff_row *row)
{
    return (int64_t)row->to.footprint_bytes - (int64_t)row->from.footprint_bytes;
}

/* Origins that held nothing at both moments are left out. Returns 0 or -ENOMEM. */
int ttm_diff_make(const struct ttm_diff_side *from, const struct ttm_diff_side *to,
                  struct ttm_diff *ret);

void ttm_diff_done(struct ttm_diff *diff);

#endif /* TTM_ANALYSIS_DIFF_H */
