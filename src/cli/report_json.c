/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/root_cause.h"
#include "base/json.h"
#include "cli/words_json.h"
#include "wire/origin_row.h"
#include "wire/region.h"

/* What one process is written with. */
struct sheet {
    struct ttm_json *json;
    const struct ttm_report *report;
    const struct ttm_report_choice *choice;
    const struct ttm_report_process *process;
    uint32_t *place_of_origin; /* among those that are written, UINT32_MAX: not written */
};

static void put_share(const struct sheet *sheet, const struct ttm_report_share *share)
{
    struct ttm_json *json = sheet->json;
    const uint32_t place = sheet->place_of_origin[share->origin];

    ttm_json_object_begin(json);
    if (place == UINT32_MAX)
        ttm_json_put_null(json, "origin");
    else
        ttm_json_put_u64(json, "origin", place);
    ttm_json_put_u64(json, "count", share->held.count);
    ttm_json_put_u64(json, "bytes", share->held.bytes);
    ttm_json_put_u64(json, "footprint_bytes", share->held.footprint_bytes);
    ttm_json_object_end(json);
}

static void put_shares(const struct sheet *sheet, const char *key,
                       const struct ttm_report_share *shares, uint32_t count)
{
    ttm_json_key(sheet->json, key);
    ttm_json_array_begin(sheet->json);
    for (uint32_t i = 0; i < count; i++)
        put_share(sheet, &shares[i]);
    ttm_json_array_end(sheet->json);
}

static bool is_on_device(const struct ttm_report_origin *origin, uint16_t device)
{
    for (uint16_t i = 0; i < origin->device_count; i++) {
        if (origin->devices[i] == device)
            return true;
    }
    return false;
}

static void put_kernels(const struct sheet *sheet, const struct ttm_report_device *device)
{
    const struct ttm_report_process *process = sheet->process;
    uint64_t bytes[TTM_KERNEL_KIND_COUNT] = {0};

    /* A device has them of the end alone; at a mark its origins tell. */
    for (uint32_t i = 0; i < process->origin_count; i++) {
        const struct ttm_report_origin *origin = &process->origins[i];
        if (origin->region == TTM_REGION_KERNEL && is_on_device(origin, device->id))
            bytes[origin->kind] += origin->moments[0].bytes;
    }
    if (sheet->choice->at != TTM_AT_MARK)
        memcpy(bytes, device->kernel_bytes, sizeof(bytes));
    ttm_json_put_u64(sheet->json, "application_bytes", bytes[TTM_KERNEL_APPLICATION]);
    ttm_json_put_u64(sheet->json, "fabric_bytes", bytes[TTM_KERNEL_FABRIC]);
    ttm_json_put_u64(sheet->json, "dispatch_bytes", bytes[TTM_KERNEL_DISPATCH]);
}

static void put_region(const struct sheet *sheet, const struct ttm_report_device *device,
                       unsigned r)
{
    const struct ttm_report_region *region = &device->region[r];
    const bool is_at_mark = sheet->choice->at == TTM_AT_MARK;
    const struct ttm_held *held = is_at_mark ? &region->at_mark : &region->remaining;
    struct ttm_json *json = sheet->json;

    ttm_json_key(json, ttm_region_name(r));
    ttm_json_object_begin(json);
    ttm_json_put_u64(json, "allocs", region->allocs);
    ttm_json_put_u64(json, "frees", region->frees);
    ttm_json_put_u64(json, "remaining", held->count);
    ttm_json_put_u64(json, "remaining_bytes", held->bytes);
    ttm_json_put_u64(json, "remaining_footprint_bytes", held->footprint_bytes);
    ttm_json_put_u64(json, "peak_bytes", region->peak_bytes);
    ttm_json_put_u64(json, "peak_footprint_bytes", region->peak_footprint_bytes);
    if (region->allocs > 0)
        ttm_json_put_u64(json, "peak_ns", ttm_report_wall(sheet->report, region->peak_ns));
    else
        ttm_json_put_null(json, "peak_ns");
    put_shares(sheet, "peak_origins", region->shares, region->share_count);
    if (region->capacity_bytes > 0)
        ttm_json_put_u64(json, "capacity_bytes", region->capacity_bytes);
    else
        ttm_json_put_null(json, "capacity_bytes");
    if (r == TTM_REGION_CB) {
        ttm_json_put_u64(json, "resident_bytes",
                         is_at_mark ? device->mark_resident_bytes : device->cbs.resident_bytes);
        ttm_json_put_u64(json, "registered_bytes",
                         is_at_mark ? device->mark_registered_bytes : device->cbs.registered_bytes);
        ttm_json_put_u64(json, "peak_resident_bytes", device->cbs.peak_resident_bytes);
        ttm_json_put_u64(json, "peak_registered_bytes", device->cbs.peak_registered_bytes);
    }
    if (r == TTM_REGION_KERNEL)
        put_kernels(sheet, device);
    ttm_json_object_end(json);
}

static void put_devices(const struct sheet *sheet)
{
    struct ttm_json *json = sheet->json;

    ttm_json_key(json, "devices");
    ttm_json_array_begin(json);
    for (uint32_t i = 0; i < sheet->process->device_count; i++) {
        const struct ttm_report_device *device = &sheet->process->devices[i];
        if (!ttm_device_filter_has(&sheet->choice->devices, device->id))
            continue;
        ttm_json_object_begin(json);
        ttm_json_put_u64(json, "id", device->id);
        ttm_json_put_string(json, "arch", ttm_arch_name(device->arch));
        ttm_json_put_string(json, "board", device->board);
        ttm_json_key(json, "regions");
        ttm_json_object_begin(json);
        for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
            if (sheet->choice->region < 0 || sheet->choice->region == (int)r)
                put_region(sheet, device, r);
        }
        ttm_json_object_end(json);
        ttm_json_object_end(json);
    }
    ttm_json_array_end(json);
}

static void put_sizes(struct ttm_json *json, const struct ttm_report_origin *origin)
{
    ttm_json_key(json, "sizes");
    ttm_json_object_begin(json);
    for (uint32_t i = 0; i < origin->size_count; i++) {
        char key[24];
        (void)snprintf(key, sizeof(key), "%llu", (unsigned long long)origin->sizes[i].bytes);
        ttm_json_put_u64(json, key, origin->sizes[i].count);
    }
    ttm_json_object_end(json);
}

static void put_verdict(struct ttm_json *json, const struct ttm_report_origin *origin)
{
    const struct ttm_verdict *verdict = &origin->verdict;
    const char *cause = ttm_cause_name(origin->keepers.cause);

    ttm_json_put_string(json, "class", ttm_class_name(verdict->class));
    ttm_json_put_bool(json, "suspect", verdict->is_suspect);
    if (origin->is_suppressed)
        ttm_json_put_bool(json, "suppressed", true);
    if (cause)
        ttm_json_put_string(json, "cause", cause);
    else
        ttm_json_put_null(json, "cause");
    ttm_json_put_string(json, "why", verdict->why);
    ttm_json_put_string(json, "advice", verdict->advice);
    ttm_json_key(json, "holders");
    ttm_json_array_begin(json);
    for (uint32_t i = 0; i < origin->keepers.count; i++)
        ttm_json_string(json, origin->keepers.texts[i]);
    ttm_json_array_end(json);
    ttm_json_put_string(json, "holders_search", ttm_keepers_search_name(&origin->keepers));
}

static void put_origin(const struct sheet *sheet, const struct ttm_report_origin *origin)
{
    const struct ttm_held held = ttm_report_held(sheet->choice, origin);
    struct ttm_json *json = sheet->json;

    ttm_json_object_begin(json);
    ttm_words_json(json, &origin->words, sheet->choice->has_full_paths);
    ttm_json_key(json, "device_ids");
    ttm_json_array_begin(json);
    for (uint16_t i = 0; i < origin->device_count; i++)
        ttm_json_u64(json, origin->devices[i]);
    ttm_json_array_end(json);
    ttm_json_put_string(json, "region", ttm_region_name(origin->region));
    if (origin->region == TTM_REGION_KERNEL)
        ttm_json_put_string(json, "kind", ttm_kernel_kind_name(origin->kind));
    ttm_json_put_u64(json, "allocs", origin->allocs);
    ttm_json_put_u64(json, "frees", origin->frees);
    ttm_json_put_u64(json, "late_frees", origin->late.count);
    ttm_json_put_u64(json, "replaced", origin->replaced);
    ttm_json_put_u64(json, "remaining", held.count);
    ttm_json_put_u64(json, "remaining_bytes", held.bytes);
    ttm_json_put_u64(json, "remaining_footprint_bytes", held.footprint_bytes);
    ttm_json_put_u64(json, "first_ns", ttm_report_wall(sheet->report, origin->first_ns));
    ttm_json_put_u64(json, "last_ns", ttm_report_wall(sheet->report, origin->last_ns));
    if (origin->frees > 0)
        ttm_json_put_u64(json, "mean_lifetime_ns", origin->lifetime_ns / origin->frees);
    else
        ttm_json_put_null(json, "mean_lifetime_ns");
    put_sizes(json, origin);
    ttm_json_key(json, "births");
    ttm_json_array_begin(json);
    for (uint32_t i = 0; i < TTM_REPORT_BARS; i++)
        ttm_json_u64(json, origin->bars[i]);
    ttm_json_array_end(json);
    put_verdict(json, origin);
    ttm_json_object_end(json);
}

static void put_marks(const struct sheet *sheet)
{
    struct ttm_json *json = sheet->json;

    ttm_json_key(json, "marks");
    ttm_json_array_begin(json);
    for (uint32_t i = 0; i < sheet->process->mark_count; i++) {
        const struct ttm_ledger_mark *mark = &sheet->process->marks[i];
        ttm_json_object_begin(json);
        ttm_json_put_string(json, "name", mark->name);
        ttm_json_put_u64(json, "time_ns", ttm_report_wall(sheet->report, mark->time_ns));
        ttm_json_object_end(json);
    }
    ttm_json_array_end(json);
}

static void put_finding(struct ttm_json *json, const char *kind, uint64_t count, const char *text)
{
    if (count == 0)
        return;
    ttm_json_object_begin(json);
    ttm_json_put_string(json, "kind", kind);
    ttm_json_put_u64(json, "count", count);
    ttm_json_put_string(json, "text", text);
    ttm_json_object_end(json);
}

void ttm_report_findings_json(struct ttm_json *json, const struct ttm_report_process *process)
{
    const struct ttm_extent *put = &process->overlap[0], *lay = &process->overlap[1];
    uint64_t replaced = 0;
    char text[200];

    for (uint32_t i = 0; i < process->origin_count; i++)
        replaced += process->origins[i].replaced;
    if (process->counters.replaced > replaced)
        replaced = process->counters.replaced;
    (void)snprintf(text, sizeof(text),
                   "allocated where something else was still allocated; the first in %s: "
                   "0x%llx-0x%llx on 0x%llx-0x%llx",
                   ttm_region_name(process->overlap_region), (unsigned long long)put->start,
                   (unsigned long long)put->end, (unsigned long long)lay->start,
                   (unsigned long long)lay->end);
    ttm_json_key(json, "findings");
    ttm_json_array_begin(json);
    put_finding(json, "replaced", replaced,
                "allocated again at the same address without a free between");
    put_finding(json, "ambiguous_free", process->counters.ambiguous_frees,
                "a free that names no region fitted several; the newest was taken");
    put_finding(json, "overlap", process->overlaps, text);
    put_finding(json, "unknown_free", process->counters.unknown_frees,
                "a free of something that was not allocated while tracking was on");
    put_finding(json, "refused", process->counters.refused,
                process->is_logged ? "places of the log that cannot be read"
                                   : "messages with values that no device has");
    put_finding(json, "untracked", process->counters.untracked,
                "events that the program had no room to keep track of");
    put_finding(json, "notes_left_out", process->counters.notes_left_out,
                "no room for more names, contexts and stacks: later ones are missing");
    ttm_json_array_end(json);
}

static void put_failures(const struct sheet *sheet)
{
    struct ttm_json *json = sheet->json;

    ttm_json_key(json, "failures");
    ttm_json_array_begin(json);
    for (uint32_t i = 0; i < sheet->process->failure_count; i++) {
        const struct ttm_report_failure *failure = &sheet->process->failures[i];
        const struct ttm_recorded_failure *f = &failure->failure;
        ttm_json_object_begin(json);
        ttm_json_put_string(json, "kind", ttm_failure_kind_name(f->kind));
        ttm_json_put_u64(json, "time_ns", ttm_report_wall(sheet->report, failure->time_ns));
        ttm_json_put_u64(json, "device_id", failure->device_id);
        ttm_json_put_string(json, "region", ttm_region_name(f->region));
        ttm_json_put_u64(json, "wanted_bytes", f->wanted_bytes);
        ttm_json_put_u64(json, "bank_wanted_bytes", f->bank_wanted_bytes);
        ttm_json_put_u64(json, "free_bytes", f->bank_free_bytes);
        ttm_json_put_u64(json, "largest_free_bytes", f->bank_largest_bytes);
        ttm_json_put_string(json, "verdict", ttm_shortage_name(failure->shortage));
        ttm_words_json(json, &failure->words, sheet->choice->has_full_paths);
        put_shares(sheet, "owners", failure->owners, failure->owner_count);
        ttm_json_object_end(json);
    }
    ttm_json_array_end(json);
}

static void put_addresses(const struct sheet *sheet)
{
    const struct ttm_reused *list[TTM_REPORT_ADDRESSES];
    const uint32_t count = ttm_report_addresses(sheet->choice, sheet->process, list);
    struct ttm_json *json = sheet->json;

    ttm_json_key(json, "reused_addresses");
    ttm_json_array_begin(json);
    for (uint32_t i = 0; i < count; i++) {
        const struct ttm_reused *reused = list[i];
        ttm_json_object_begin(json);
        ttm_json_put_u64(json, "address", reused->address);
        ttm_json_put_string(json, "region", ttm_region_name(reused->region));
        ttm_json_put_u64(json, "allocs", reused->births);
        ttm_json_put_u64(json, "frees", reused->frees);
        ttm_json_put_u64(json, "smallest_bytes", reused->smallest_bytes);
        ttm_json_put_u64(json, "largest_bytes", reused->largest_bytes);
        ttm_json_object_end(json);
    }
    ttm_json_array_end(json);
}

static void put_end(const struct sheet *sheet)
{
    const struct ttm_report_process *process = sheet->process;
    const struct ttm_recording_info *info = &sheet->report->info;
    struct ttm_json *json = sheet->json;
    const bool is_exit = process->has_ended && process->end.how == TTM_PROCESS_EXITED;
    const bool is_signal = process->has_ended && process->end.how == TTM_PROCESS_SIGNALLED;
    const bool is_running = !process->has_ended && (info->is_finished || info->is_being_written);

    if (process->has_ended)
        ttm_json_put_u64(json, "end_ns", ttm_report_wall(sheet->report, process->last_ns));
    else
        ttm_json_put_null(json, "end_ns");
    ttm_json_put_string(json, "end",
                        is_exit      ? "exited"
                        : is_signal  ? "signalled"
                        : is_running ? "running"
                                     : "vanished");
    if (is_exit)
        ttm_json_put_i64(json, "exit_code", process->end.code);
    else
        ttm_json_put_null(json, "exit_code");
    if (is_signal)
        ttm_json_put_i64(json, "signal", process->end.code);
    else
        ttm_json_put_null(json, "signal");
}

static int put_origins(struct sheet *sheet)
{
    const struct ttm_report_choice *choice = sheet->choice;
    uint32_t count = 0;
    const struct ttm_report_origin **order =
        ttm_report_order(choice, sheet->process, false, &count);

    if (!order)
        return -ENOMEM;
    if (choice->top > 0 && count > choice->top)
        count = (uint32_t)choice->top;
    for (uint32_t i = 0; i < sheet->process->origin_count; i++)
        sheet->place_of_origin[i] = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++)
        sheet->place_of_origin[order[i] - sheet->process->origins] = i;
    put_devices(sheet);
    ttm_json_key(sheet->json, "origins");
    ttm_json_array_begin(sheet->json);
    for (uint32_t i = 0; i < count; i++)
        put_origin(sheet, order[i]);
    ttm_json_array_end(sheet->json);
    free(order);
    return 0;
}

static bool is_written(const void *arg, const struct ttm_report_origin *origin)
{
    const struct sheet *sheet = arg;

    return sheet->place_of_origin[origin - sheet->process->origins] != UINT32_MAX;
}

/* Of what remains; at other moments there are none. */
static int put_root_causes(const struct sheet *sheet)
{
    struct ttm_root_causes causes = {0};
    struct ttm_json *json = sheet->json;
    int r = 0;

    if (sheet->choice->at == TTM_AT_REMAINING)
        r = ttm_root_causes_find(sheet->process, is_written, sheet, &causes);
    ttm_json_key(json, "root_causes");
    ttm_json_array_begin(json);
    for (uint32_t i = 0; r == 0 && i < causes.count; i++) {
        const struct ttm_root_cause *cause = &causes.list[i];
        ttm_json_object_begin(json);
        ttm_json_put_string(json, "cause", ttm_cause_name(cause->cause));
        ttm_json_put_string(json, "text", cause->text);
        ttm_json_put_string(json, "advice", cause->advice);
        ttm_json_key(json, "origins");
        ttm_json_array_begin(json);
        for (uint32_t k = 0; k < cause->count; k++)
            ttm_json_u64(json, sheet->place_of_origin[causes.origins[cause->first + k]]);
        ttm_json_array_end(json);
        ttm_json_put_u64(json, "remaining", cause->held.count);
        ttm_json_put_u64(json, "remaining_bytes", cause->held.bytes);
        ttm_json_put_u64(json, "remaining_footprint_bytes", cause->held.footprint_bytes);
        ttm_json_object_end(json);
    }
    ttm_json_array_end(json);
    ttm_root_causes_done(&causes);
    return r;
}

static int put_process(struct sheet *sheet)
{
    const struct ttm_report_process *process = sheet->process;
    struct ttm_json *json = sheet->json;

    sheet->place_of_origin = malloc((process->origin_count + 1) * sizeof(uint32_t));
    if (!sheet->place_of_origin)
        return -ENOMEM;
    ttm_json_object_begin(json);
    ttm_json_put_i64(json, "pid", process->pid);
    ttm_json_put_string(json, "command", process->command);
    ttm_json_put_string(json, "source", ttm_source_name(process->source));
    ttm_json_put_bool(json, "imported", process->is_logged);
    ttm_json_put_bool(json, "timed", !process->is_untimed);
    ttm_json_put_u64(json, "start_ns",
                     process->start_wall_ns ? process->start_wall_ns
                                            : ttm_report_wall(sheet->report, process->first_ns));
    put_end(sheet);
    ttm_json_put_bool(json, "complete", process->is_complete);
    ttm_json_put_bool(json, "history_complete", process->is_history_complete);
    ttm_json_put_string(json, "why_incomplete", process->why_incomplete);
    ttm_json_put_u64(json, "unknown_frees", process->counters.unknown_frees);
    ttm_json_put_u64(json, "lost_events", process->counters.lost_events);
    int r = put_origins(sheet);
    if (r == 0)
        r = put_root_causes(sheet);
    put_marks(sheet);
    ttm_report_findings_json(json, process);
    put_failures(sheet);
    put_addresses(sheet);
    ttm_json_object_end(json);
    free(sheet->place_of_origin);
    return r;
}

void ttm_recording_json(struct ttm_json *json, const char *key,
                        const struct ttm_recording_info *info)
{
    ttm_json_key(json, key);
    ttm_json_object_begin(json);
    ttm_json_put_bool(json, "finished", info->is_finished);
    ttm_json_put_bool(json, "being_written", info->is_being_written);
    ttm_json_put_bool(json, "complete", info->is_complete);
    ttm_json_put_u64(json, "damaged_blocks", info->damaged_blocks);
    ttm_json_put_u64(json, "skipped_blocks", info->skipped_blocks);
    ttm_json_put_u64(json, "lost_events", info->lost_events);
    ttm_json_put_u64(json, "torn_bytes", info->torn_bytes);
    ttm_json_object_end(json);
}

int ttm_report_json(const struct ttm_report *report, const struct ttm_report_choice *choice,
                    struct ttm_text *out)
{
    struct ttm_json json;
    int r = 0;

    ttm_json_init(&json, out);
    ttm_json_object_begin(&json);
    ttm_json_put_string(&json, "schema", "tt-mem/report/1");
    ttm_json_put_string(&json, "at",
                        choice->at == TTM_AT_PEAK   ? "peak"
                        : choice->at == TTM_AT_MARK ? choice->mark
                                                    : "remaining");
    ttm_recording_json(&json, "recording", &report->info);
    ttm_json_key(&json, "processes");
    ttm_json_array_begin(&json);
    for (uint32_t i = 0; r == 0 && i < report->process_count; i++) {
        struct sheet sheet = {
            .json = &json, .report = report, .choice = choice, .process = &report->processes[i]};
        if (ttm_report_has_process(choice, sheet.process))
            r = put_process(&sheet);
    }
    ttm_json_array_end(&json);
    ttm_json_object_end(&json);
    ttm_text_append(out, "\n");
    return r < 0 || ttm_text_failed(out) ? -ENOMEM : 0;
}
