/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An origin is, until stacks are recorded, what a process's allocations share:
 * devices, region and kind.
 */
#include "cli/dump_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* What remains of one site. */
struct origin {
    uint32_t site;
    size_t first; /* of its sizes in the sorted list */
    uint64_t count;
    uint64_t bytes;
    uint64_t footprint_bytes;
    uint64_t oldest_ns;
    uint64_t youngest_ns;
};

static void put_totals(struct ttm_json *json, const struct ttm_totals *t)
{
    ttm_json_put_u64(json, "allocs", t->births);
    ttm_json_put_u64(json, "frees", t->ends);
    ttm_json_put_u64(json, "remaining", t->count);
    ttm_json_put_u64(json, "remaining_bytes", t->bytes);
    ttm_json_put_u64(json, "remaining_footprint_bytes", t->footprint_bytes);
    ttm_json_put_u64(json, "peak_bytes", t->peak_bytes);
    ttm_json_put_u64(json, "peak_footprint_bytes", t->peak_footprint_bytes);
}

static void put_regions(struct ttm_json *json, const struct ttm_device_totals *totals)
{
    ttm_json_key(json, "regions");
    ttm_json_object_begin(json);
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
        ttm_json_key(json, ttm_region_name(r));
        ttm_json_object_begin(json);
        put_totals(json, &totals->region[r]);
        if (r ==
            TTM_REGION_CB) { /* the original protocol knows no program cache: both are the same */
            ttm_json_put_u64(json, "resident_bytes", totals->region[r].bytes);
            ttm_json_put_u64(json, "registered_bytes", totals->region[r].bytes);
        }
        if (r == TTM_REGION_KERNEL) {
            ttm_json_put_u64(json, "application_bytes",
                             totals->kernel_bytes[TTM_KERNEL_APPLICATION]);
            ttm_json_put_u64(json, "fabric_bytes", totals->kernel_bytes[TTM_KERNEL_FABRIC]);
            ttm_json_put_u64(json, "dispatch_bytes", totals->kernel_bytes[TTM_KERNEL_DISPATCH]);
        }
        ttm_json_object_end(json);
    }
    ttm_json_object_end(json);
}

static void put_devices(struct ttm_json *json, const struct ttm_answer *answer,
                        const struct ttm_dump_choice *choice,
                        const struct ttm_answer_process *process)
{
    ttm_json_key(json, "devices");
    ttm_json_array_begin(json);
    for (size_t i = 0; i < process->device_count; i++) {
        const struct ttm_process_device_row *own = &process->devices[i];
        const struct ttm_device_row *device = ttm_answer_device(answer, own->device_id);
        if (!ttm_device_filter_has(&choice->devices, own->device_id))
            continue;
        ttm_json_object_begin(json);
        ttm_json_put_u64(json, "id", own->device_id);
        ttm_json_put_string(json, "arch", ttm_arch_name(device ? device->arch : 0));
        put_regions(json, &own->totals);
        ttm_json_object_end(json);
    }
    ttm_json_array_end(json);
}

static bool is_chosen(const struct ttm_dump_choice *choice, const struct ttm_answer_site *site)
{
    for (uint16_t i = 0; i < site->device_count; i++) {
        if (ttm_device_filter_has(&choice->devices, site->devices[i]))
            return true;
    }
    return false;
}

static int compare_origins(const void *a, const void *b)
{
    const struct origin *x = a;
    const struct origin *y = b;

    if (x->footprint_bytes != y->footprint_bytes)
        return x->footprint_bytes < y->footprint_bytes ? 1 : -1;
    return x->site < y->site ? -1 : x->site > y->site;
}

static void put_device_ids(struct ttm_json *json, const struct ttm_answer_site *site)
{
    ttm_json_key(json, "device_ids");
    ttm_json_array_begin(json);
    for (uint16_t i = 0; i < site->device_count; i++)
        ttm_json_u64(json, site->devices[i]);
    ttm_json_array_end(json);
}

/* The size of one life, for counting how often each occurs at a site. */
struct sized {
    uint32_t site;
    uint64_t bytes;
};

static int compare_sized(const void *a, const void *b)
{
    const struct sized *x = a;
    const struct sized *y = b;

    if (x->site != y->site)
        return x->site < y->site ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* All lives by site and size, or NULL when memory is short. */
static struct sized *sort_sizes(const struct ttm_answer_process *process)
{
    struct sized *sizes = malloc((process->live_count + 1) * sizeof(sizes[0]));

    if (!sizes)
        return NULL;
    for (size_t i = 0; i < process->live_count; i++)
        sizes[i] = (struct sized){process->lives[i].site, process->lives[i].bytes};
    qsort(sizes, process->live_count, sizeof(sizes[0]), compare_sized);
    return sizes;
}

/* { "131072": 10 }: how often each size remains; 'sizes' are the site's, in order. */
static void put_sizes(struct ttm_json *json, const struct sized *sizes, size_t n)
{
    ttm_json_key(json, "sizes");
    ttm_json_object_begin(json);
    for (size_t i = 0, next; i < n; i = next) {
        char key[24];
        for (next = i + 1; next < n && sizes[next].bytes == sizes[i].bytes; next++)
            ;
        (void)snprintf(key, sizeof(key), "%llu", (unsigned long long)sizes[i].bytes);
        ttm_json_put_u64(json, key, next - i);
    }
    ttm_json_object_end(json);
}

static const char *class_of(const struct ttm_answer_site *site)
{
    return site->region == TTM_REGION_CB       ? "circular_buffer"
           : site->region == TTM_REGION_KERNEL ? "kernel"
                                               : "unsure";
}

static void put_empty_array(struct ttm_json *json, const char *key)
{
    ttm_json_key(json, key);
    ttm_json_array_begin(json);
    ttm_json_array_end(json);
}

static void put_origin(struct ttm_json *json, const struct ttm_answer *answer,
                       const struct ttm_answer_process *process, const struct origin *origin,
                       const struct sized *sizes)
{
    const struct ttm_answer_site *site = &process->sites[origin->site];
    const uint64_t now_ns = answer->moment.time_ns;

    ttm_json_object_begin(json);
    put_empty_array(json, "python");
    put_empty_array(json, "native");
    ttm_json_put_string(json, "operation", "");
    ttm_json_put_string(json, "name", "");
    ttm_json_put_string(json, "context", "");
    ttm_json_put_string(json, "thread", "");
    put_device_ids(json, site);
    ttm_json_put_string(json, "region", ttm_region_name(site->region));
    if (site->region == TTM_REGION_KERNEL)
        ttm_json_put_string(json, "kind", ttm_kernel_kind_name(site->kind));
    ttm_json_put_u64(json, "allocs", site->births);
    ttm_json_put_u64(json, "frees", site->ends);
    ttm_json_put_u64(json, "remaining", origin->count);
    ttm_json_put_u64(json, "remaining_bytes", origin->bytes);
    ttm_json_put_u64(json, "remaining_footprint_bytes", origin->footprint_bytes);
    ttm_json_put_u64(json, "first_ns", now_ns - origin->oldest_ns);
    ttm_json_put_u64(json, "last_ns", now_ns - origin->youngest_ns);
    put_sizes(json, sizes + origin->first, (size_t)origin->count);
    ttm_json_put_string(json, "class", class_of(site));
    ttm_json_put_bool(json, "suspect", false);
    ttm_json_put_null(json, "cause");
    ttm_json_put_string(json, "why", "");
    ttm_json_put_string(json, "advice", "");
    put_empty_array(json, "holders");
    ttm_json_object_end(json);
}

static void put_buffers(struct ttm_json *json, const struct ttm_dump_choice *choice,
                        const struct ttm_answer_process *process, const uint32_t *place_of_site)
{
    ttm_json_key(json, "buffers");
    ttm_json_array_begin(json);
    for (size_t i = 0; i < process->live_count; i++) {
        const struct ttm_life_row *life = &process->lives[i];
        const struct ttm_answer_site *site = &process->sites[life->site];
        if (!is_chosen(choice, site))
            continue;
        ttm_json_object_begin(json);
        ttm_json_put_u64(json, "id", life->id);
        put_device_ids(json, site);
        ttm_json_put_string(json, "region", ttm_region_name(site->region));
        ttm_json_put_u64(json, "address", life->address);
        ttm_json_put_u64(json, "bytes", life->bytes);
        ttm_json_put_u64(json, "footprint_bytes", life->footprint_bytes);
        ttm_json_put_u64(json, "age_ns", life->age_ns);
        ttm_json_put_u64(json, "origin", place_of_site[life->site]);
        ttm_json_put_string(json, "name", "");
        ttm_json_put_string(json, "context", "");
        ttm_json_object_end(json);
    }
    ttm_json_array_end(json);
}

static void sum_origins(const struct ttm_answer_process *process, struct origin *origins)
{
    for (size_t i = 0; i < process->site_count; i++)
        origins[i] = (struct origin){.site = (uint32_t)i, .youngest_ns = UINT64_MAX};
    for (size_t i = 0; i < process->live_count; i++) {
        const struct ttm_life_row *life = &process->lives[i];
        struct origin *origin = &origins[life->site];
        origin->count++;
        origin->bytes += life->bytes;
        origin->footprint_bytes += life->footprint_bytes;
        if (life->age_ns > origin->oldest_ns)
            origin->oldest_ns = life->age_ns;
        if (life->age_ns < origin->youngest_ns)
            origin->youngest_ns = life->age_ns;
    }
    for (size_t i = 1; i < process->site_count; i++)
        origins[i].first = origins[i - 1].first + (size_t)origins[i - 1].count;
}

/* Origins, largest first, and the buffers that refer to them by place. */
static int put_lives(struct ttm_json *json, const struct ttm_answer *answer,
                     const struct ttm_dump_choice *choice, const struct ttm_answer_process *process)
{
    const size_t n = process->site_count;
    struct origin *origins = calloc(n ? n : 1, sizeof(origins[0]));
    uint32_t *place_of_site = calloc(n ? n : 1, sizeof(place_of_site[0]));
    struct sized *sizes = sort_sizes(process);
    uint32_t place = 0;
    const int r = origins && place_of_site && sizes ? 0 : -ENOMEM;

    if (r == 0) {
        sum_origins(process, origins);
        qsort(origins, n, sizeof(origins[0]), compare_origins);
    }
    ttm_json_key(json, "origins");
    ttm_json_array_begin(json);
    for (size_t i = 0; r == 0 && i < n; i++) {
        if (origins[i].count == 0 || !is_chosen(choice, &process->sites[origins[i].site]))
            continue;
        place_of_site[origins[i].site] = place++;
        put_origin(json, answer, process, &origins[i], sizes);
    }
    ttm_json_array_end(json);
    if (r == 0)
        put_buffers(json, choice, process, place_of_site);
    free(origins);
    free(place_of_site);
    free(sizes);
    return r;
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

static void put_findings(struct ttm_json *json, const struct ttm_process_row *row)
{
    ttm_json_key(json, "findings");
    ttm_json_array_begin(json);
    put_finding(json, "replaced", row->replaced,
                "allocated again at the same address without a free between");
    put_finding(json, "ambiguous_free", row->ambiguous_frees,
                "a free that names no region fitted several; the newest was taken");
    put_finding(json, "unknown_free", row->unknown_frees,
                "a free of something that was not allocated while tracking was on");
    put_finding(json, "refused", row->refused, "messages with values that no device has");
    ttm_json_array_end(json);
}

static int put_process(struct ttm_json *json, const struct ttm_answer *answer,
                       const struct ttm_dump_choice *choice,
                       const struct ttm_answer_process *process)
{
    const struct ttm_process_row *row = &process->row;
    const bool is_tracked = row->source == TTM_SOURCE_TRACKED; /* its losses are made good */
    const bool is_complete =
        row->unknown_frees == 0 && row->refused == 0 && (is_tracked || row->lost_events == 0);
    const bool is_history_complete = is_complete && row->lost_events == 0;

    ttm_json_object_begin(json);
    ttm_json_put_i64(json, "pid", row->pid);
    ttm_json_put_string(json, "command", row->command);
    ttm_json_put_string(json, "source", ttm_source_name(row->source));
    ttm_json_put_u64(json, "start_ns", row->start_ns);
    ttm_json_put_null(json, "end_ns");
    ttm_json_put_string(json, "end", "running");
    ttm_json_put_null(json, "exit_code");
    ttm_json_put_null(json, "signal");
    ttm_json_put_bool(json, "complete", is_complete);
    ttm_json_put_bool(json, "history_complete", is_history_complete);
    ttm_json_put_string(json, "why_incomplete",
                        row->unknown_frees > 0
                            ? "it freed what it had allocated before tracking began"
                        : row->refused > 0     ? "some of its messages made no sense"
                        : row->lost_events > 0 ? "some of its events were lost"
                                               : "");
    ttm_json_put_u64(json, "unknown_frees", row->unknown_frees);
    ttm_json_put_u64(json, "lost_events", row->lost_events);
    put_devices(json, answer, choice, process);
    const int r = put_lives(json, answer, choice, process);
    put_empty_array(json, "marks");
    put_findings(json, row);
    put_empty_array(json, "failures");
    ttm_json_object_end(json);
    return r;
}

int ttm_dump_json(const struct ttm_answer *answer, const struct ttm_dump_choice *choice,
                  struct ttm_text *out)
{
    struct ttm_json json;
    int r = 0;

    ttm_json_init(&json, out);
    ttm_json_object_begin(&json);
    ttm_json_put_string(&json, "schema", "tt-mem/dump/1");
    ttm_json_put_u64(&json, "time_ns", answer->moment.time_ns);
    ttm_json_key(&json, "processes");
    ttm_json_array_begin(&json);
    for (size_t i = 0; r == 0 && i < answer->process_count; i++) {
        if (ttm_dump_has_process(choice, &answer->processes[i]))
            r = put_process(&json, answer, choice, &answer->processes[i]);
    }
    ttm_json_array_end(&json);
    ttm_json_object_end(&json);
    ttm_text_append(out, "\n");
    return r < 0 || ttm_text_failed(out) ? -ENOMEM : 0;
}
