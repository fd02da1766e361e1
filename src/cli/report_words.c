/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report_words.h"

#include <stdio.h>
#include <string.h>

#include "base/older_headers.h"
#include "wire/region.h"

uint64_t ttm_report_span_ns(const struct ttm_report *report,
                            const struct ttm_report_process *process)
{
    const uint64_t end_ns = ttm_report_wall(report, process->last_ns);
    const bool has_start = process->start_wall_ns > 0 && process->start_wall_ns < end_ns;

    return has_start ? end_ns - process->start_wall_ns : process->last_ns - process->first_ns;
}

char *ttm_report_end_words(const struct ttm_report *report,
                           const struct ttm_report_process *process, char ret[TTM_END_WORDS_SIZE])
{
    const struct ttm_recording_info *info = &report->info;
    const char *name = process->has_ended && process->end.how == TTM_PROCESS_SIGNALLED
                           ? sigabbrev_np(process->end.code)
                           : NULL;

    if (!process->has_ended)
        (void)snprintf(ret, TTM_END_WORDS_SIZE, "%s",
                       info->is_being_written ? "still running"
                       : info->is_finished    ? "running on"
                                              : "its end is not known");
    else if (process->end.how == TTM_PROCESS_EXITED)
        (void)snprintf(ret, TTM_END_WORDS_SIZE, "exit %d", process->end.code);
    else if (name)
        (void)snprintf(ret, TTM_END_WORDS_SIZE, "killed by SIG%s", name);
    else if (process->end.how == TTM_PROCESS_SIGNALLED)
        (void)snprintf(ret, TTM_END_WORDS_SIZE, "killed by signal %d", process->end.code);
    else
        (void)snprintf(ret, TTM_END_WORDS_SIZE, "nobody knows how");
    return ret;
}

struct ttm_report_amounts ttm_report_amounts(const struct ttm_report_device *device,
                                             unsigned region)
{
    const struct ttm_report_region *row = &device->region[region];
    const struct ttm_cb_totals *cbs = &device->cbs;
    const bool is_resident = cbs->peak_resident_bytes > 0;
    const uint64_t there = is_resident ? cbs->resident_bytes : cbs->registered_bytes;

    if (region != TTM_REGION_CB)
        return (struct ttm_report_amounts){row->remaining.footprint_bytes,
                                           row->peak_footprint_bytes};
    return (struct ttm_report_amounts){device->has_cbs ? there : 0, ttm_report_cb_peak(device)};
}

void ttm_report_put_parts(struct ttm_text *out, uint64_t parts, uint64_t tensors)
{
    char number[TTM_NUMBER_SIZE];

    if (parts > 0)
        ttm_text_format(out, "%s %s of cached programs%s", ttm_format_count(parts, number),
                        parts == 1 ? "circular buffer or kernel" : "circular buffers and kernels",
                        tensors > 0 ? ", and " : "");
    if (tensors > 0)
        ttm_text_format(out, "%s %s that %s", ttm_format_count(tensors, number),
                        tensors == 1 ? "tensor" : "tensors",
                        parts > 0 ? "they keep" : "cached programs keep");
}
