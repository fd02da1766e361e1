/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suppressions - origins that are known and not to be called suspects.
 *
 * A file as the sanitizers have it: lines "leak:PATTERN", '#' for comments. A pattern is
 * looked for in the file, the function and the operation of each frame of an origin,
 * in its name and context; '*' stands for anything, '^' and '$' for the ends.
 */
#ifndef TTM_ANALYSIS_SUPPRESSIONS_H
#define TTM_ANALYSIS_SUPPRESSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/report.h"

struct ttm_suppression {
    char *pattern;
    uint64_t matches; /* suspects that it has cleared */
};

struct ttm_suppressions {
    struct ttm_suppression *list;
    uint32_t count;
};

/*
 * Reads a file. Returns 0; -EBADMSG with the number of the first line that is none in
 * '*ret_line'; another negative errno.
 */
int ttm_suppressions_read(const char *path, struct ttm_suppressions *ret, unsigned *ret_line);

/* Fine for one that was never read. */
void ttm_suppressions_done(struct ttm_suppressions *suppressions);

/* Clears the suspects that match. Returns how many. */
uint32_t ttm_suppressions_apply(struct ttm_suppressions *suppressions, struct ttm_report *report);

/* Whether the pattern fits the text. */
bool ttm_suppression_fits(const char *pattern, const char *text);

#endif /* TTM_ANALYSIS_SUPPRESSIONS_H */
