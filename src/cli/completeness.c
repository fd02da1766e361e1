/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/completeness.h"

#include "wire/region.h"

bool ttm_completeness_is_live_set_exact(const struct ttm_process_row *row)
{
    /* The losses of a tracked process are made good: it is asked for what is live. */
    const bool has_lost = row->source != TTM_SOURCE_TRACKED && row->lost_events > 0;

    return row->source != TTM_SOURCE_RUNTIME && row->unknown_frees == 0 && row->refused == 0 &&
           row->untracked == 0 && !row->is_disabled && !row->is_behind && !has_lost &&
           row->trouble[0] == '\0';
}

bool ttm_completeness_is_history_whole(const struct ttm_process_row *row)
{
    return ttm_completeness_is_live_set_exact(row) && row->lost_events == 0 && !row->has_gap;
}

const char *ttm_completeness_why(const struct ttm_process_row *row)
{
    if (row->source == TTM_SOURCE_RUNTIME)
        return "TT-Metal's own count: one thread, requested bytes";
    return row->trouble[0] != '\0'  ? row->trouble
           : row->is_disabled       ? "tracking is switched off in it"
           : row->unknown_frees > 0 ? (row->source == TTM_SOURCE_TRACKED
                                           ? "it freed what was not allocated, or freed it twice"
                                           : "it freed what it had allocated before tracking began")
           : row->refused > 0       ? "some of its messages made no sense"
           : row->untracked > 0     ? "it had no room to keep track of some of its allocations"
           : row->is_behind         ? "it has still to tell the server what it holds"
           : row->lost_events > 0   ? "some of its events were lost; peaks may have been higher"
           : row->has_gap           ? "it was not listened to from its start without a break"
                                    : "";
}
