/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame - call stacks with their weights, for tools that draw flame graphs.
 *
 * "folded" is one line a stack, outermost frame first, as flamegraph.pl, inferno and
 * speedscope read it; the other is speedscope's own format, a profile for each process
 * and region. Pure: from a report to text.
 */
#ifndef TTM_ANALYSIS_FLAME_H
#define TTM_ANALYSIS_FLAME_H

#include "analysis/report.h"
#include "base/text.h"

enum ttm_flame_of { TTM_FLAME_REMAINING, TTM_FLAME_PEAK, TTM_FLAME_ALLOCATED };

struct ttm_flame_options {
    enum ttm_flame_of of;
    bool is_count; /* how many, rather than how much */
};

/* Both return 0 or -ENOMEM. */
int ttm_flame_folded(const struct ttm_report *report, const struct ttm_flame_options *options,
                     struct ttm_text *out);
int ttm_flame_speedscope(const struct ttm_report *report, const struct ttm_flame_options *options,
                         struct ttm_text *out);

#endif /* TTM_ANALYSIS_FLAME_H */
