/* SPDX-License-Identifier: Apache-2.0 */
#include "model/departed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/life_row.h"

void ttm_departed_init(struct ttm_departed *departed, uint64_t seed)
{
    *departed = (struct ttm_departed){0};
    ttm_remains_set_init(&departed->remains, seed);
    ttm_origin_book_init(&departed->origins, seed);
    ttm_device_sets_init(&departed->sets, seed);
}

void ttm_departed_done(struct ttm_departed *departed)
{
    free(departed->processes);
    free(departed->devices);
    ttm_remains_set_done(&departed->remains);
    ttm_origin_book_done(&departed->origins);
    ttm_device_sets_done(&departed->sets);
    ttm_departed_init(departed, departed->remains.seed);
}

/* Room for one more element in an array that has a power of two of places, or none; or NULL. */
static void *grow(void *array, uint32_t count, size_t element_size)
{
    if (count & (count - 1))
        return array;
    return realloc(array, (count ? (size_t)count * 2 : 1) * element_size);
}

/* ---- devices ---- */

struct ttm_departed_device *ttm_departed_device_of(struct ttm_departed *departed, uint16_t id)
{
    uint32_t at = 0;

    while (at < departed->device_count && departed->devices[at].id < id)
        at++;
    if (at < departed->device_count && departed->devices[at].id == id)
        return &departed->devices[at];
    struct ttm_departed_device *grown =
        grow(departed->devices, departed->device_count, sizeof(grown[0]));
    if (!grown)
        return NULL;
    departed->devices = grown;
    memmove(&grown[at + 1], &grown[at], (departed->device_count - at) * sizeof(grown[0]));
    departed->device_count++;
    grown[at] = (struct ttm_departed_device){.id = id};
    return &grown[at];
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/*
 * Circular buffers lie in a core for as long as their process may run there. Those of one that
 * has ended are no more than those of a device that was closed.
 */
static struct ttm_device_totals without_cbs(const struct ttm_device_totals *own)
{
    struct ttm_device_totals left = *own;
    struct ttm_totals *cb = &left.region[TTM_REGION_CB];

    cb->closed_count += cb->count;
    cb->closed_bytes += cb->bytes;
    cb->closed_footprint_bytes += cb->footprint_bytes;
    cb->count = cb->bytes = cb->footprint_bytes = 0;
    left.cb.registered_bytes = left.cb.resident_bytes = 0;
    return left;
}

static void add_totals(struct ttm_device_totals *sum, const struct ttm_device_totals *own,
                       const struct ttm_device_totals *all)
{
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
        struct ttm_totals *t = &sum->region[r];
        t->count += own->region[r].count;
        t->bytes += own->region[r].bytes;
        t->footprint_bytes += own->region[r].footprint_bytes;
        t->births += own->region[r].births;
        t->ends += own->region[r].ends;
        t->closed_count += own->region[r].closed_count;
        t->closed_bytes += own->region[r].closed_bytes;
        t->closed_footprint_bytes += own->region[r].closed_footprint_bytes;
        t->peak_bytes = larger(t->peak_bytes, all->region[r].peak_bytes);
        t->peak_footprint_bytes =
            larger(t->peak_footprint_bytes, all->region[r].peak_footprint_bytes);
    }
    for (unsigned k = 0; k < TTM_KERNEL_KIND_COUNT; k++)
        sum->kernel_bytes[k] += own->kernel_bytes[k];
    sum->cb.registered_bytes += own->cb.registered_bytes;
    sum->cb.resident_bytes += own->cb.resident_bytes;
    sum->cb.peak_registered_bytes =
        larger(sum->cb.peak_registered_bytes, all->cb.peak_registered_bytes);
    sum->cb.peak_resident_bytes = larger(sum->cb.peak_resident_bytes, all->cb.peak_resident_bytes);
}

static void add_device(struct ttm_departed *departed, const struct ttm_device *known,
                       const struct ttm_process_device *own, bool is_running)
{
    struct ttm_departed_device *device = ttm_departed_device_of(departed, own->id);
    const struct ttm_device_totals totals = is_running ? own->totals : without_cbs(&own->totals);

    if (!device) {
        departed->is_short = true;
        return;
    }
    device->arch = known->arch;
    memcpy(device->capacity_bytes, known->capacity_bytes, sizeof(device->capacity_bytes));
    memcpy(device->board, known->board, sizeof(device->board));
    add_totals(&device->totals, &totals, &known->totals);
}

/* ---- what remained ---- */

/* The origins and device sets of a process as 'departed' numbers them: looked up once for each. */
struct translation {
    struct ttm_departed *departed;
    const struct ttm_process *proc;
    const struct ttm_device_sets *sets; /* the registry's */
    struct ttm_u64_map numbers;
    struct ttm_u64_map set_numbers;
};

static uint32_t translate(struct translation *translation, uint32_t origin)
{
    struct ttm_departed *departed = translation->departed;
    uint32_t number;

    if (origin == 0)
        return 0;
    if (ttm_u64_map_find(&translation->numbers, origin, &number))
        return number;
    const struct ttm_origin *known = ttm_origin_table_find(&translation->proc->origins, origin);
    number = known ? ttm_origin_book_add(&departed->origins, known) : 0;
    if (ttm_u64_map_add(&translation->numbers, origin, number) < 0)
        departed->is_short = true;
    return number;
}

/* Returns 0, or a negative errno when the set cannot be kept. */
static int translate_set(struct translation *translation, uint32_t number, uint32_t *ret)
{
    struct ttm_departed *departed = translation->departed;
    const struct ttm_device_set set = ttm_device_sets_get(translation->sets, number);

    *ret = number;
    if (number < TTM_DEVICE_COUNT || ttm_u64_map_find(&translation->set_numbers, number, ret))
        return 0;
    const int r = ttm_device_sets_intern(&departed->sets, set.devices, set.count, ret);
    if (r < 0 || ttm_u64_map_add(&translation->set_numbers, number, *ret) < 0)
        departed->is_short = true;
    return r;
}

static void add_remains(struct translation *translation, const struct ttm_remains *remains,
                        struct ttm_departed_sums *sums)
{
    struct ttm_remains own = *remains;

    sums->remaining += own.count;
    sums->remaining_footprint_bytes += ttm_remains_taken(&own);
    if (own.is_program_part) {
        sums->program_parts += own.count;
        if (ttm_is_buffer_of_program(own.region, own.kind))
            sums->program_buffers += own.count;
        sums->program_footprint_bytes += ttm_remains_taken(&own);
    } else {
        own.origin = translate(translation, remains->origin);
        if (translate_set(translation, remains->device_set, &own.device_set) < 0) {
            translation->departed->remains.others += own.count;
            translation->departed->remains.others_footprint_bytes += ttm_remains_taken(&own);
            return;
        }
    }
    ttm_remains_add(&translation->departed->remains, &own);
}

static void add_lives(struct translation *translation, const struct ttm_registry *reg,
                      struct ttm_departed_sums *sums)
{
    const struct ttm_process *proc = translation->proc;
    struct ttm_life_view view;
    const struct ttm_life *life;
    uint64_t at = 0;

    if (ttm_life_view_take(&proc->lives.store, &view) < 0) {
        translation->departed->is_short = true;
        return;
    }
    while ((life = ttm_life_view_next(&view, &at))) {
        const struct ttm_site *site = ttm_site_table_get(&proc->sites, life->site);
        if (site->flags & TTM_SITE_ALIAS)
            continue;
        const struct ttm_remains remains = ttm_remains_of(&reg->sets, site, life);
        add_remains(translation, &remains, sums);
    }
    (void)ttm_life_view_release(&view, UINT32_MAX);
}

/* What its devices were closed on. */
static void add_closed(struct translation *translation, struct ttm_departed_sums *sums)
{
    const struct ttm_remains_set *closed = &translation->proc->closed;
    struct ttm_remains_set *all = &translation->departed->remains;

    for (uint32_t i = 0; i < closed->count; i++) {
        add_remains(translation, &closed->list[i], sums);
        sums->closed += closed->list[i].count;
    }
    all->others += closed->others;
    all->others_footprint_bytes += closed->others_footprint_bytes;
    all->program_parts += closed->program_parts;
    all->program_buffers += closed->program_buffers;
    all->program_footprint_bytes += closed->program_footprint_bytes;
    sums->remaining += closed->others + closed->program_parts;
    sums->remaining_footprint_bytes +=
        closed->others_footprint_bytes + closed->program_footprint_bytes;
    sums->program_parts += closed->program_parts;
    sums->program_buffers += closed->program_buffers;
    sums->program_footprint_bytes += closed->program_footprint_bytes;
    sums->closed += closed->others;
}

/* ---- processes ---- */

static void add_sums(struct ttm_departed_sums *all, const struct ttm_departed_sums *own)
{
    all->events += own->events;
    all->births += own->births;
    all->ends += own->ends;
    all->remaining += own->remaining;
    all->remaining_footprint_bytes += own->remaining_footprint_bytes;
    all->program_parts += own->program_parts;
    all->program_buffers += own->program_buffers;
    all->program_footprint_bytes += own->program_footprint_bytes;
    all->closed += own->closed;
    all->lost_events += own->lost_events;
    all->unknown_frees += own->unknown_frees;
    all->replaced += own->replaced;
    all->refused += own->refused;
    all->untracked += own->untracked;
    all->notes_left_out += own->notes_left_out;
    all->failures += own->failures;
}

void ttm_departed_put_process(struct ttm_departed *departed,
                              const struct ttm_departed_process *process)
{
    struct ttm_departed_process *grown =
        departed->process_count < TTM_DEPARTED_PROCESSES_MAX
            ? grow(departed->processes, departed->process_count, sizeof(grown[0]))
            : NULL;

    add_sums(&departed->sums, &process->sums);
    departed->running_count += process->is_running;
    if (!grown) {
        departed->processes_left_out++;
        return;
    }
    departed->processes = grown;
    grown[departed->process_count++] = *process;
}

/* Whether it ever did anything that a reader would want to know. */
static bool is_of_interest(const struct ttm_process *proc)
{
    const bool has_missed = proc->runtime[0] != '\0' && proc->counters.has_gap;

    return has_missed || proc->device_count > 0 || proc->sites.count > 0 ||
           proc->counters.lost_events > 0 || proc->counters.untracked > 0 ||
           ttm_process_refused(&proc->counters) > 0 || proc->story.failure_count > 0 ||
           proc->counters.server_trouble || (proc->trouble[0] != '\0' && proc->opening[0] == '\0');
}

void ttm_departed_put_runtime(struct ttm_departed *departed, const char *runtime,
                              const char *opening, bool is_off)
{
    /* One that failed to open a device says more than one that opened none. */
    if (runtime[0] == '\0' || departed->opening[0] != '\0')
        return;
    (void)snprintf(departed->runtime, sizeof(departed->runtime), "%s", runtime);
    (void)snprintf(departed->opening, sizeof(departed->opening), "%s", opening);
    departed->is_runtime_off = is_off;
}

void ttm_departed_add(struct ttm_departed *departed, const struct ttm_registry *reg,
                      const struct ttm_process *proc, bool is_running)
{
    struct ttm_departed_process process = {
        .pid = proc->info.pid,
        .is_running = is_running,
        .sums = {.lost_events = proc->counters.lost_events,
                 .unknown_frees = proc->counters.unknown_frees,
                 .replaced = proc->counters.replaced,
                 .refused = ttm_process_refused(&proc->counters),
                 .untracked = proc->counters.untracked,
                 .notes_left_out = proc->counters.notes_left_out,
                 .failures = proc->story.failure_count},
    };
    struct translation translation = {.departed = departed, .proc = proc, .sets = &reg->sets};

    if (!is_of_interest(proc)) {
        ttm_departed_put_runtime(departed, proc->runtime, proc->opening,
                                 proc->counters.is_disabled);
        departed->off_count += proc->runtime[0] != '\0' && proc->counters.is_disabled;
        return;
    }
    memcpy(process.command, proc->info.command, sizeof(process.command));
    memcpy(process.trouble, proc->trouble, sizeof(process.trouble));
    if (process.trouble[0] == '\0' && proc->counters.server_trouble)
        (void)snprintf(process.trouble, sizeof(process.trouble), "%s",
                       proc->counters.server_trouble);
    for (uint32_t i = 0; i < proc->sites.count; i++) {
        if (proc->sites.sites[i].flags & TTM_SITE_ALIAS)
            continue;
        process.sums.births += proc->sites.counts[i].births;
        process.sums.ends += proc->sites.counts[i].ends;
    }
    for (uint32_t i = 0; i < proc->device_count; i++)
        add_device(departed, reg->devices[proc->devices[i].id], &proc->devices[i], is_running);
    ttm_u64_map_init(&translation.numbers, reg->seed);
    ttm_u64_map_init(&translation.set_numbers, reg->seed);
    add_lives(&translation, reg, &process.sums);
    add_closed(&translation, &process.sums);
    ttm_u64_map_done(&translation.numbers);
    ttm_u64_map_done(&translation.set_numbers);
    departed->inexact_count += proc->counters.is_inexact;
    departed->gap_count += proc->counters.has_gap;
    departed->off_count += proc->counters.is_disabled;
    ttm_departed_put_process(departed, &process);
}

const char *ttm_departed_trouble(const struct ttm_departed *departed)
{
    for (uint32_t i = 0; i < departed->process_count; i++) {
        if (departed->processes[i].trouble[0] != '\0')
            return departed->processes[i].trouble;
    }
    return NULL;
}

bool ttm_departed_has_missed(const struct ttm_departed *departed)
{
    return departed->gap_count > 0 || departed->off_count > 0 || departed->sums.untracked > 0 ||
           departed->sums.refused > 0;
}

bool ttm_departed_is_inexact(const struct ttm_departed *departed)
{
    return departed->inexact_count > 0 || departed->off_count > 0 || departed->sums.untracked > 0 ||
           departed->sums.refused > 0 || ttm_departed_trouble(departed);
}

bool ttm_departed_has_news(const struct ttm_departed *departed)
{
    if (departed->process_count == 0 && departed->processes_left_out == 0)
        return false;
    return departed->sums.events > 0 || departed->sums.births > 0 || departed->sums.remaining > 0 ||
           departed->device_count > 0 || !ttm_departed_trouble(departed);
}
