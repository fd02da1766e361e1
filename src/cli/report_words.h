/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_words - what is said of a process in the same words on every screen and page.
 */
#ifndef TTM_CLI_REPORT_WORDS_H
#define TTM_CLI_REPORT_WORDS_H

#include "analysis/report.h"

/* From its start, or from what was first heard of it, to the last that was heard. */
uint64_t ttm_report_span_ns(const struct ttm_report *report,
                            const struct ttm_report_process *process);

#define TTM_END_WORDS_SIZE 64

/* "exit 0", "killed by SIGSEGV", "still running". */
char *ttm_report_end_words(const struct ttm_report *report,
                           const struct ttm_report_process *process, char ret[TTM_END_WORDS_SIZE]);

/* What tables and charts tell of a region of a device. */
struct ttm_report_amounts {
    uint64_t now_bytes;
    uint64_t peak_bytes;
};

/*
 * Circular buffers share memory: they count as they lie in the cores, not as all programs have
 * them, and are gone once the device is closed. Of other regions it is what remains.
 */
struct ttm_report_amounts ttm_report_amounts(const struct ttm_report_device *device,
                                             unsigned region);

/*
 * "6 circular buffers and kernels of cached programs, and 2 tensors that they keep": what the program
 * cache has is never called a buffer, as it is nobody's to free. One of the counts is not 0.
 */
void ttm_report_put_parts(struct ttm_text *out, uint64_t parts, uint64_t tensors);

#endif /* TTM_CLI_REPORT_WORDS_H */
