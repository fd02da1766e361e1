/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/flame.h"

#include <errno.h>
#include <stdio.h>

#include "analysis/stack_frames.h"
#include "base/json.h"

static uint64_t weight_of(const struct ttm_report_origin *origin,
                          const struct ttm_flame_options *options)
{
    if (options->of == TTM_FLAME_ALLOCATED)
        return options->is_count ? origin->allocs : origin->born_bytes;
    const struct ttm_held *held =
        options->of == TTM_FLAME_PEAK ? &origin->peak : &origin->remaining;
    return options->is_count ? held->count : held->footprint_bytes;
}

int ttm_flame_folded(const struct ttm_report *report, const struct ttm_flame_options *options,
                     struct ttm_text *out)
{
    struct ttm_stack_frame frames[TTM_STACK_FRAMES_MAX];

    for (uint32_t p = 0; p < report->process_count; p++) {
        const struct ttm_report_process *process = &report->processes[p];
        for (uint32_t i = 0; i < process->origin_count; i++) {
            const struct ttm_report_origin *origin = &process->origins[i];
            const uint64_t weight = weight_of(origin, options);
            const int count = weight > 0 ? ttm_stack_frames_read(&origin->words, true, frames) : 0;
            if (count < 0)
                return count;
            if (count == 0)
                continue;
            ttm_text_format(out, "pid %d;%s", process->pid, ttm_region_name(origin->region));
            for (int k = 0; k < count; k++)
                ttm_text_format(out, ";%s", frames[k].name);
            ttm_text_format(out, " %llu\n", (unsigned long long)weight);
            ttm_stack_frames_done(frames, (uint32_t)count);
        }
    }
    return ttm_text_failed(out) ? -ENOMEM : 0;
}

/* ---- speedscope ---- */

static int put_stack(struct ttm_json *json, struct ttm_frame_table *shared,
                     const struct ttm_origin_words *words)
{
    struct ttm_stack_frame frames[TTM_STACK_FRAMES_MAX];
    const int count = ttm_stack_frames_read(words, true, frames);
    int r = count < 0 ? count : 0;

    ttm_json_array_begin(json);
    for (int i = 0; i < count; i++) {
        const long number = ttm_frame_table_add(shared, &frames[i]);
        if (number < 0)
            r = (int)number;
        else
            ttm_json_u64(json, (uint64_t)number);
    }
    ttm_json_array_end(json);
    return r;
}

static bool is_in(const struct ttm_report_origin *origin, unsigned region,
                  const struct ttm_flame_options *options)
{
    return origin->region == region && weight_of(origin, options) > 0;
}

static int put_profile(struct ttm_json *json, struct ttm_frame_table *shared,
                       const struct ttm_report_process *process, unsigned region,
                       const struct ttm_flame_options *options)
{
    uint64_t sum = 0;
    char name[64];
    int r = 0;

    for (uint32_t i = 0; i < process->origin_count; i++)
        sum += is_in(&process->origins[i], region, options)
                   ? weight_of(&process->origins[i], options)
                   : 0;
    if (sum == 0)
        return 0;
    (void)snprintf(name, sizeof(name), "%s of pid %d", ttm_region_name(region), process->pid);
    ttm_json_object_begin(json);
    ttm_json_put_string(json, "type", "sampled");
    ttm_json_put_string(json, "name", name);
    ttm_json_put_string(json, "unit", options->is_count ? "none" : "bytes");
    ttm_json_put_u64(json, "startValue", 0);
    ttm_json_put_u64(json, "endValue", sum);
    ttm_json_key(json, "samples");
    ttm_json_array_begin(json);
    for (uint32_t i = 0; r == 0 && i < process->origin_count; i++) {
        if (is_in(&process->origins[i], region, options))
            r = put_stack(json, shared, &process->origins[i].words);
    }
    ttm_json_array_end(json);
    ttm_json_key(json, "weights");
    ttm_json_array_begin(json);
    for (uint32_t i = 0; i < process->origin_count; i++) {
        if (is_in(&process->origins[i], region, options))
            ttm_json_u64(json, weight_of(&process->origins[i], options));
    }
    ttm_json_array_end(json);
    ttm_json_object_end(json);
    return r;
}

static void put_shared(struct ttm_json *json, const struct ttm_frame_table *shared)
{
    ttm_json_key(json, "shared");
    ttm_json_object_begin(json);
    ttm_json_key(json, "frames");
    ttm_json_array_begin(json);
    for (uint32_t i = 0; i < shared->count; i++) {
        ttm_json_object_begin(json);
        ttm_json_put_string(json, "name", shared->frames[i].name);
        if (shared->frames[i].file) {
            ttm_json_put_string(json, "file", shared->frames[i].file);
            ttm_json_put_u64(json, "line", shared->frames[i].line);
        }
        ttm_json_object_end(json);
    }
    ttm_json_array_end(json);
    ttm_json_object_end(json);
}

int ttm_flame_speedscope(const struct ttm_report *report, const struct ttm_flame_options *options,
                         struct ttm_text *out)
{
    struct ttm_frame_table shared = {0};
    struct ttm_json json;
    int r = 0;

    ttm_json_init(&json, out);
    ttm_json_object_begin(&json);
    ttm_json_put_string(&json, "$schema", "https://www.speedscope.app/file-format-schema.json");
    ttm_json_put_string(&json, "exporter", "tt-mem " TTM_VERSION);
    ttm_json_put_u64(&json, "activeProfileIndex", 0);
    ttm_json_key(&json, "profiles");
    ttm_json_array_begin(&json);
    for (uint32_t p = 0; p < report->process_count; p++) {
        for (unsigned region = 0; r == 0 && region < TTM_REGION_COUNT; region++)
            r = put_profile(&json, &shared, &report->processes[p], region, options);
    }
    ttm_json_array_end(&json);
    put_shared(&json, &shared);
    ttm_json_object_end(&json);
    ttm_text_append(out, "\n");
    ttm_frame_table_done(&shared);
    return r < 0 || ttm_text_failed(out) ? -ENOMEM : 0;
}
