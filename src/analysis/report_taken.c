/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sums of what is taken of a device at a time. What one session left is not there in the
 * next, so a sum is of what was there at the end of a session, and the largest of them counts.
 * Circular buffers of cached programs share their addresses: they count for no more than they
 * took at their peak.
 */
#include "analysis/report.h"

#include "wire/region.h"

uint64_t ttm_report_cb_taken(const struct ttm_report_process *process, uint64_t bytes)
{
    uint64_t most = 0;

    /* An origin counts once for all devices that are alike, and so do these. */
    for (uint32_t i = 0; i < process->device_count; i++) {
        uint32_t first = 0;
        while (process->devices[first].group != process->devices[i].group)
            first++;
        most += first == i ? ttm_report_cb_peak(&process->devices[i]) : 0;
    }
    return most > 0 && most < bytes ? most : bytes;
}

typedef bool (*counts_fn)(const struct ttm_verdict *verdict);

static bool is_suspect(const struct ttm_verdict *verdict)
{
    return verdict->is_suspect;
}

static bool is_suspect_or_cache(const struct ttm_verdict *verdict)
{
    return verdict->is_suspect || verdict->is_growing_cache;
}

static bool is_unsure(const struct ttm_verdict *verdict)
{
    return verdict->class == TTM_CLASS_UNSURE;
}

static bool is_on(const struct ttm_report_origin *origin, const struct ttm_report_device *device)
{
    for (uint16_t d = 0; d < origin->device_count; d++) {
        if (origin->devices[d] == device->id)
            return true;
    }
    return false;
}

/* What of an origin was there, at last, when the process had so many births. */
static uint64_t stayed_at(const struct ttm_report_process *process,
                          const struct ttm_report_origin *origin, uint64_t births)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < origin->stay_count; i++) {
        const struct ttm_report_session *session = &process->sessions[origin->stays[i].session];
        if (session->first < births && births <= session->last)
            sum += origin->stays[i].held.footprint_bytes;
    }
    return sum;
}

/* What those of a process that count took of one of its devices when a session was at its end. */
static uint64_t taken_at(const struct ttm_report_process *process,
                         const struct ttm_report_device *device, counts_fn counts, uint64_t births)
{
    const uint64_t most = ttm_report_cb_peak(device);
    uint64_t sum = 0, cbs = 0;

    for (uint32_t o = 0; o < process->origin_count; o++) {
        const struct ttm_report_origin *origin = &process->origins[o];
        if (counts(&origin->verdict) && is_on(origin, device))
            *(origin->region == TTM_REGION_CB ? &cbs : &sum) += stayed_at(process, origin, births);
    }
    return sum + (most > 0 && most < cbs ? most : cbs);
}

static uint64_t taken_of(const struct ttm_report_process *process,
                         const struct ttm_report_device *device, counts_fn counts)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < process->session_count; i++) {
        const uint64_t taken = taken_at(process, device, counts, process->sessions[i].last);
        most = taken > most ? taken : most;
    }
    return most;
}

static uint64_t taken_at_worst(const struct ttm_report *report, counts_fn counts)
{
    uint64_t sums[TTM_DEVICE_COUNT] = {0}, worst = 0;

    for (uint32_t p = 0; p < report->process_count; p++) {
        const struct ttm_report_process *process = &report->processes[p];
        for (uint32_t i = 0; i < process->device_count; i++)
            sums[process->devices[i].id] += taken_of(process, &process->devices[i], counts);
    }
    for (unsigned device = 0; device < TTM_DEVICE_COUNT; device++)
        worst = sums[device] > worst ? sums[device] : worst;
    return worst;
}

uint64_t ttm_report_most_judged(const struct ttm_report_process *process,
                                ttm_report_choose_fn choose, const void *arg)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < process->session_count; i++) {
        uint64_t sum = 0, cbs = 0;
        for (uint32_t o = 0; o < process->origin_count; o++) {
            const struct ttm_report_origin *origin = &process->origins[o];
            if (choose(arg, origin))
                *(origin->region == TTM_REGION_CB ? &cbs : &sum) +=
                    stayed_at(process, origin, process->sessions[i].last);
        }
        sum += ttm_report_cb_taken(process, cbs);
        most = sum > most ? sum : most;
    }
    return most;
}

uint64_t ttm_report_leaked_bytes(const struct ttm_report *report)
{
    return taken_at_worst(report, is_suspect);
}

uint64_t ttm_report_leaked_or_cached_bytes(const struct ttm_report *report)
{
    return taken_at_worst(report, is_suspect_or_cache);
}

uint64_t ttm_report_unsure_bytes(const struct ttm_report *report)
{
    return taken_at_worst(report, is_unsure);
}
