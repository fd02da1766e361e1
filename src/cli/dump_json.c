/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An origin of the dump is what allocations of a process share that people care
 * about: where they come from, devices, region and kind. Several sites may make one.
 */
#include "cli/dump_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/classify.h"
#include "base/json.h"
#include "cli/completeness.h"
#include "cli/native_names.h"
#include "cli/runtime.h"
#include "cli/words_json.h"

/* What remains of one origin. Views are listed, and add nothing. */
struct origin {
    uint32_t site; /* one of its sites */
    size_t first;  /* of its sizes in the sorted list */
    uint64_t allocs;
    uint64_t frees;
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
        if (r == TTM_REGION_CB) {
            ttm_json_put_u64(json, "resident_bytes", totals->cb.resident_bytes);
            ttm_json_put_u64(json, "registered_bytes", totals->cb.registered_bytes);
            ttm_json_put_u64(json, "peak_resident_bytes", totals->cb.peak_resident_bytes);
            ttm_json_put_u64(json, "peak_registered_bytes", totals->cb.peak_registered_bytes);
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

/* The runtime tells the bytes of some regions, and nothing else. */
static void put_runtime_regions(struct ttm_json *json, const struct ttm_device_totals *totals)
{
    static const char *const unknown[] = {"remaining_footprint_bytes", "peak_bytes",
                                          "peak_footprint_bytes"};

    ttm_json_key(json, "regions");
    ttm_json_object_begin(json);
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
        if (!ttm_runtime_counts(r))
            continue;
        ttm_json_key(json, ttm_region_name(r));
        ttm_json_object_begin(json);
        ttm_json_put_null(json, "allocs");
        ttm_json_put_null(json, "frees");
        ttm_json_put_null(json, "remaining");
        ttm_json_put_u64(json, "remaining_bytes", totals->region[r].bytes);
        for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
            ttm_json_put_null(json, unknown[i]);
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
        if (ttm_runtime_is_source(process))
            put_runtime_regions(json, &own->totals);
        else
            put_regions(json, &own->totals);
        ttm_json_object_end(json);
    }
    ttm_json_array_end(json);
}

static bool is_view(const struct ttm_answer_site *site)
{
    return site->flags & TTM_SITE_ALIAS;
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

/* What tells origins apart. */
static int compare_sites(const struct ttm_answer_site *x, const struct ttm_answer_site *y)
{
    if (x->origin != y->origin)
        return x->origin < y->origin ? -1 : 1;
    if (x->region != y->region)
        return x->region < y->region ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (is_view(x) != is_view(y))
        return is_view(x) ? 1 : -1;
    if (x->device_count != y->device_count)
        return x->device_count < y->device_count ? -1 : 1;
    return memcmp(x->devices, y->devices, x->device_count * sizeof(x->devices[0]));
}

/* In the order of sites. */
struct place {
    const struct ttm_answer_site *site;
};

static int compare_places(const void *a, const void *b)
{
    const struct ttm_answer_site *x = ((const struct place *)a)->site;
    const struct ttm_answer_site *y = ((const struct place *)b)->site;
    const int order = compare_sites(x, y);

    return order != 0 ? order : x < y ? -1 : x > y;
}

/*
 * Gives each site the number of its origin, and each origin its first site and its
 * counts. Returns the number of origins, or -ENOMEM.
 */
static long group_sites(const struct ttm_answer_process *process, uint32_t *origin_of_site,
                        struct origin *origins)
{
    const size_t n = process->site_count;
    struct place *sorted = malloc((n + 1) * sizeof(sorted[0]));
    long count = 0;

    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        sorted[i].site = &process->sites[i];
    qsort(sorted, n, sizeof(sorted[0]), compare_places);
    for (size_t i = 0; i < n; i++) {
        const uint32_t site = (uint32_t)(sorted[i].site - process->sites);
        if (i == 0 || compare_sites(sorted[i - 1].site, sorted[i].site) != 0)
            origins[count++] = (struct origin){.site = site, .youngest_ns = UINT64_MAX};
        origin_of_site[site] = (uint32_t)(count - 1);
        origins[count - 1].allocs += sorted[i].site->births;
        origins[count - 1].frees += sorted[i].site->ends;
    }
    free(sorted);
    return count;
}

/* The size of one life, for counting how often each occurs at an origin. */
struct sized {
    uint32_t origin;
    uint64_t bytes;
};

static int compare_sized(const void *a, const void *b)
{
    const struct sized *x = a;
    const struct sized *y = b;

    if (x->origin != y->origin)
        return x->origin < y->origin ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* All lives by origin and size, or NULL when memory is short. */
static struct sized *sort_sizes(const struct ttm_answer_process *process,
                                const uint32_t *origin_of_site)
{
    struct sized *sizes = malloc((process->live_count + 1) * sizeof(sizes[0]));

    if (!sizes)
        return NULL;
    for (size_t i = 0; i < process->live_count; i++)
        sizes[i] = (struct sized){origin_of_site[process->lives[i].site], process->lives[i].bytes};
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

/* As far as it follows from the region and the kind. */
static enum ttm_class class_of(const struct ttm_answer_site *site)
{
    if (site->region == TTM_REGION_CB)
        return TTM_CLASS_CIRCULAR_BUFFER;
    if (site->region == TTM_REGION_KERNEL)
        return TTM_CLASS_KERNEL;
    return ttm_is_buffer_of_program(site->region, site->kind) ? TTM_CLASS_PROGRAM_CACHE
                                                              : TTM_CLASS_UNSURE;
}

/* Whether something grows its past tells, which a recording has. */
static void put_class(struct ttm_json *json, const struct ttm_answer_site *site)
{
    const enum ttm_class class = class_of(site);
    const char *why = "", *advice = "";

    if (class == TTM_CLASS_UNSURE) {
        why = "one moment does not tell whether it grows";
        advice = "record it and see tt-mem report, which judges by its past";
    } else if (class == TTM_CLASS_PROGRAM_CACHE) {
        why = "programs in the program cache keep it";
        advice = "meant to stay while the programs are used again; device.clear_program_cache() "
                 "gives it back";
    }
    ttm_json_put_string(json, "class", ttm_class_name(class));
    ttm_json_put_bool(json, "suspect", false);
    ttm_json_put_null(json, "cause");
    ttm_json_put_string(json, "why", why);
    ttm_json_put_string(json, "advice", advice);
}

static void put_empty_array(struct ttm_json *json, const char *key)
{
    ttm_json_key(json, key);
    ttm_json_array_begin(json);
    ttm_json_array_end(json);
}

/* ["ttnn::matmul", …] */
static void put_native(struct ttm_json *json, struct ttm_native_names *names, const char *lines)
{
    ttm_json_key(json, "native");
    ttm_json_array_begin(json);
    while (*lines) {
        const size_t n = strcspn(lines, "\n");
        ttm_json_string(json, ttm_native_names_of(names, lines, n));
        lines += n + (lines[n] == '\n');
    }
    ttm_json_array_end(json);
}

static const struct ttm_answer_origin unknown_origin = {
    .context = "", .name = "", .thread = "", .operation = "", .python = "", .native = ""};

/* Of a site or a failure, by the index that it has; one that says nothing when it is not known. */
static const struct ttm_answer_origin *origin_of(const struct ttm_answer_process *process,
                                                 uint32_t index)
{
    const struct ttm_answer_origin *origin = ttm_answer_origin(process, index);

    return origin ? origin : &unknown_origin;
}

static void put_origin(struct ttm_json *json, const struct ttm_answer *answer,
                       const struct ttm_answer_process *process, const struct origin *origin,
                       const struct sized *sizes, struct ttm_native_names *names)
{
    const struct ttm_answer_site *site = &process->sites[origin->site];
    const struct ttm_answer_origin *from = origin_of(process, site->origin);
    const uint64_t now_ns = answer->moment.time_ns;

    ttm_json_object_begin(json);
    ttm_lines_json(json, "python", from->python);
    put_native(json, names, from->native);
    ttm_json_put_string(json, "operation", from->operation);
    ttm_json_put_string(json, "name", from->name);
    ttm_json_put_string(json, "context", from->context);
    ttm_json_put_string(json, "thread", from->thread);
    put_device_ids(json, site);
    ttm_json_put_string(json, "region", ttm_region_name(site->region));
    if (site->region == TTM_REGION_KERNEL)
        ttm_json_put_string(json, "kind", ttm_kernel_kind_name(site->kind));
    ttm_json_put_u64(json, "allocs", origin->allocs);
    ttm_json_put_u64(json, "frees", origin->frees);
    if (is_view(site))
        ttm_json_put_bool(json, "view", true);
    ttm_json_put_u64(json, "remaining", is_view(site) ? 0 : origin->count);
    ttm_json_put_u64(json, "remaining_bytes", origin->bytes);
    ttm_json_put_u64(json, "remaining_footprint_bytes", origin->footprint_bytes);
    ttm_json_put_u64(json, "first_ns", now_ns - origin->oldest_ns);
    ttm_json_put_u64(json, "last_ns", now_ns - origin->youngest_ns);
    put_sizes(json, sizes + origin->first, is_view(site) ? 0 : (size_t)origin->count);
    put_class(json, site);
    put_empty_array(json, "holders");
    ttm_json_put_string(json, "holders_search", "not_asked");
    ttm_json_object_end(json);
}

static void put_banks(struct ttm_json *json, const struct ttm_answer_site *site)
{
    if (site->banks == 0)
        ttm_json_put_null(json, "banks");
    else
        ttm_json_put_u64(json, "banks", site->banks);
}

static void put_buffer(struct ttm_json *json, const struct ttm_answer_process *process,
                       const struct ttm_life_row *life, uint32_t place)
{
    const struct ttm_answer_site *site = &process->sites[life->site];
    const struct ttm_answer_origin *from = origin_of(process, site->origin);

    ttm_json_object_begin(json);
    ttm_json_put_u64(json, "id", life->id);
    put_device_ids(json, site);
    ttm_json_put_string(json, "region", ttm_region_name(site->region));
    ttm_json_put_u64(json, "address", life->address);
    ttm_json_put_u64(json, "bytes", life->bytes);
    ttm_json_put_u64(json, "footprint_bytes", life->footprint_bytes);
    put_banks(json, site);
    ttm_json_put_u64(json, "age_ns", life->age_ns);
    ttm_json_put_u64(json, "origin", place);
    ttm_json_put_string(json, "name", from->name);
    ttm_json_put_string(json, "context", from->context);
    if (site->flags & TTM_SITE_PROGRAM)
        ttm_json_put_u64(json, "program", life->id);
    if (is_view(site))
        ttm_json_put_bool(json, "view", true);
    ttm_json_object_end(json);
}

static void put_buffers(struct ttm_json *json, const struct ttm_dump_choice *choice,
                        const struct ttm_answer_process *process, const uint32_t *origin_of_site,
                        const uint32_t *place_of_origin)
{
    ttm_json_key(json, "buffers");
    ttm_json_array_begin(json);
    for (size_t i = 0; i < process->live_count; i++) {
        const struct ttm_life_row *life = &process->lives[i];
        if (is_chosen(choice, &process->sites[life->site]))
            put_buffer(json, process, life, place_of_origin[origin_of_site[life->site]]);
    }
    ttm_json_array_end(json);
}

static void sum_origins(const struct ttm_answer_process *process, const uint32_t *origin_of_site,
                        struct origin *origins, size_t count)
{
    for (size_t i = 0; i < process->live_count; i++) {
        const struct ttm_life_row *life = &process->lives[i];
        struct origin *origin = &origins[origin_of_site[life->site]];
        origin->count++;
        if (!is_view(&process->sites[life->site])) {
            origin->bytes += life->bytes;
            origin->footprint_bytes += life->footprint_bytes;
        }
        if (life->age_ns > origin->oldest_ns)
            origin->oldest_ns = life->age_ns;
        if (life->age_ns < origin->youngest_ns)
            origin->youngest_ns = life->age_ns;
    }
    for (size_t i = 1; i < count; i++)
        origins[i].first = origins[i - 1].first + (size_t)origins[i - 1].count;
}

/* Which origins are listed, and where; failures refer to them too. */
struct places {
    struct origin *origins; /* largest first */
    size_t count;
    uint32_t *origin_of_site;
    uint32_t *place_of_origin; /* by the number in 'origin_of_site'; UINT32_MAX: not listed */
};

static void places_done(struct places *places)
{
    free(places->origins);
    free(places->origin_of_site);
    free(places->place_of_origin);
}

/* Returns 0 or -ENOMEM. Release it in any case. */
static int find_places(const struct ttm_dump_choice *choice,
                       const struct ttm_answer_process *process, struct places *ret)
{
    const size_t n = process->site_count + 1;
    uint32_t place = 0;

    *ret = (struct places){
        .origins = calloc(n, sizeof(ret->origins[0])),
        .origin_of_site = calloc(n, sizeof(ret->origin_of_site[0])),
        .place_of_origin = calloc(n, sizeof(ret->place_of_origin[0])),
    };
    if (!ret->origins || !ret->origin_of_site || !ret->place_of_origin)
        return -ENOMEM;
    const long count = group_sites(process, ret->origin_of_site, ret->origins);
    if (count < 0)
        return -ENOMEM;
    ret->count = (size_t)count;
    sum_origins(process, ret->origin_of_site, ret->origins, ret->count);
    qsort(ret->origins, ret->count, sizeof(ret->origins[0]), compare_origins);
    for (size_t i = 0; i < ret->count; i++) {
        const struct origin *origin = &ret->origins[i];
        const bool is_listed =
            origin->count > 0 && is_chosen(choice, &process->sites[origin->site]);
        ret->place_of_origin[ret->origin_of_site[origin->site]] = is_listed ? place++ : UINT32_MAX;
    }
    return 0;
}

static bool is_listed(const struct places *places, const struct origin *origin)
{
    return places->place_of_origin[places->origin_of_site[origin->site]] != UINT32_MAX;
}

/* Origins, largest first, and the buffers that refer to them by place. */
static int put_lives(struct ttm_json *json, const struct ttm_answer *answer,
                     const struct ttm_dump_choice *choice, const struct ttm_answer_process *process,
                     const struct places *places, struct ttm_native_names *names)
{
    struct sized *sizes = sort_sizes(process, places->origin_of_site);

    if (!sizes)
        return -ENOMEM;
    ttm_json_key(json, "origins");
    ttm_json_array_begin(json);
    for (size_t i = 0; i < places->count; i++) {
        if (is_listed(places, &places->origins[i]))
            put_origin(json, answer, process, &places->origins[i], sizes, names);
    }
    ttm_json_array_end(json);
    put_buffers(json, choice, process, places->origin_of_site, places->place_of_origin);
    free(sizes);
    return 0;
}

static void put_marks(struct ttm_json *json, const struct ttm_answer_process *process)
{
    ttm_json_key(json, "marks");
    ttm_json_array_begin(json);
    for (size_t i = 0; i < process->mark_count; i++) {
        ttm_json_object_begin(json);
        ttm_json_put_string(json, "name", process->marks[i].name);
        ttm_json_put_u64(json, "time_ns", process->marks[i].time_ns);
        ttm_json_object_end(json);
    }
    ttm_json_array_end(json);
}

/* The largest listed origin that is the owner; null when it holds nothing any more. */
static void put_owner_place(struct ttm_json *json, const struct ttm_answer_process *process,
                            const struct places *places, const struct ttm_owner *owner,
                            uint8_t region)
{
    for (size_t i = 0; i < places->count; i++) {
        const struct origin *origin = &places->origins[i];
        const struct ttm_answer_site *site = &process->sites[origin->site];
        if (site->origin != owner->origin || site->region != region || !is_listed(places, origin))
            continue;
        ttm_json_put_u64(json, "origin",
                         places->place_of_origin[places->origin_of_site[origin->site]]);
        return;
    }
    ttm_json_put_null(json, "origin");
}

static void put_owners(struct ttm_json *json, const struct ttm_answer_process *process,
                       const struct places *places, const struct ttm_failure_row *row)
{
    ttm_json_key(json, "owners");
    ttm_json_array_begin(json);
    for (uint32_t i = 0; i < row->owner_count; i++) {
        const struct ttm_owner *owner = &row->owners[i];
        ttm_json_object_begin(json);
        put_owner_place(json, process, places, owner, ttm_failure_held_region(row));
        ttm_json_put_u64(json, "count", owner->count);
        ttm_json_put_u64(json, "bytes", owner->bytes);
        ttm_json_put_u64(json, "footprint_bytes", owner->footprint_bytes);
        ttm_json_object_end(json);
    }
    ttm_json_array_end(json);
}

static void put_failures(struct ttm_json *json, const struct ttm_answer_process *process,
                         const struct places *places, struct ttm_native_names *names)
{
    ttm_json_key(json, "failures");
    ttm_json_array_begin(json);
    for (size_t i = 0; i < process->failure_count; i++) {
        const struct ttm_failure_row *row = &process->failures[i];
        const struct ttm_answer_origin *from = origin_of(process, row->origin);
        ttm_json_object_begin(json);
        ttm_json_put_string(json, "kind", ttm_failure_kind_name(row->kind));
        ttm_json_put_u64(json, "time_ns", row->time_ns);
        ttm_json_put_u64(json, "device_id", row->device_id);
        ttm_json_put_string(json, "region", ttm_region_name(row->region));
        ttm_json_put_u64(json, "wanted_bytes", row->wanted_bytes);
        ttm_json_put_u64(json, "bank_wanted_bytes", row->bank_wanted_bytes);
        ttm_json_put_u64(json, "free_bytes", row->bank_free_bytes);
        ttm_json_put_u64(json, "largest_free_bytes", row->bank_largest_bytes);
        ttm_json_put_string(json, "verdict", ttm_shortage_name(ttm_failure_shortage(row)));
        ttm_lines_json(json, "python", from->python);
        put_native(json, names, from->native);
        ttm_json_put_string(json, "operation", from->operation);
        ttm_json_put_string(json, "context", from->context);
        put_owners(json, process, places, row);
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
    put_finding(json, "untracked", row->untracked,
                "events that the program had no room to keep track of");
    put_finding(json, "notes_left_out", row->notes_left_out,
                "no room for more names, contexts and stacks: later ones are missing");
    ttm_json_array_end(json);
}

static int put_process(struct ttm_json *json, const struct ttm_answer *answer,
                       const struct ttm_dump_choice *choice,
                       const struct ttm_answer_process *process)
{
    const struct ttm_process_row *row = &process->row;
    const bool is_complete = ttm_completeness_is_live_set_exact(row);

    ttm_json_object_begin(json);
    ttm_json_put_i64(json, "pid", row->pid);
    ttm_json_put_string(json, "command", row->command);
    ttm_json_put_string(json, "source", ttm_source_name(row->source));
    if (ttm_runtime_is_source(process))
        ttm_json_put_null(json, "start_ns");
    else
        ttm_json_put_u64(json, "start_ns", row->start_ns);
    ttm_json_put_null(json, "end_ns");
    ttm_json_put_string(json, "end", "running");
    ttm_json_put_null(json, "exit_code");
    ttm_json_put_null(json, "signal");
    ttm_json_put_bool(json, "complete", is_complete);
    ttm_json_put_bool(json, "history_complete", ttm_completeness_is_history_whole(row));
    ttm_json_put_string(json, "why_incomplete", ttm_completeness_why(row));
    ttm_json_put_u64(json, "unknown_frees", row->unknown_frees);
    ttm_json_put_u64(json, "lost_events", row->lost_events);
    put_devices(json, answer, choice, process);
    ttm_native_names_choose(choice->names, row->pid);
    struct places places;
    int r = find_places(choice, process, &places);
    if (r == 0)
        r = put_lives(json, answer, choice, process, &places, choice->names);
    put_marks(json, process);
    put_findings(json, row);
    if (r == 0)
        put_failures(json, process, &places, choice->names);
    places_done(&places);
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
    ttm_json_put_bool(&json, "server", !ttm_runtime_is_alone(answer));
    ttm_json_object_end(&json);
    ttm_text_append(out, "\n");
    return r < 0 || ttm_text_failed(out) ? -ENOMEM : 0;
}
