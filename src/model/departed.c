/* SPDX-License-Identifier: Apache-2.0 */
#include "model/departed.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "wire/life_row.h"

#define INDEX_SIZE ((size_t)2 * TTM_DEPARTED_REMAINS_MAX) /* a power of two */

_Static_assert((INDEX_SIZE & (INDEX_SIZE - 1)) == 0, "places are found by masking");

void ttm_departed_init(struct ttm_departed *departed)
{
    *departed = (struct ttm_departed){0};
    ttm_origin_table_init(&departed->origins);
}

void ttm_departed_done(struct ttm_departed *departed)
{
    free(departed->processes);
    free(departed->devices);
    free(departed->remains);
    free(departed->index);
    free(departed->open);
    ttm_origin_table_done(&departed->origins);
    ttm_departed_init(departed);
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

static void add_totals(struct ttm_device_totals *sum, const struct ttm_device_totals *own,
                       const struct ttm_device_totals *all)
{
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
        struct ttm_totals *t = &sum->region[r];
        t->count += own->region[r].count + own->region[r].closed_count;
        t->bytes += own->region[r].bytes + own->region[r].closed_bytes;
        t->footprint_bytes +=
            own->region[r].footprint_bytes + own->region[r].closed_footprint_bytes;
        t->births += own->region[r].births;
        t->ends += own->region[r].ends;
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
                       const struct ttm_process_device *own)
{
    struct ttm_departed_device *device = ttm_departed_device_of(departed, own->id);

    if (!device) {
        departed->is_short = true;
        return;
    }
    device->arch = known->arch;
    memcpy(device->capacity_bytes, known->capacity_bytes, sizeof(device->capacity_bytes));
    memcpy(device->board, known->board, sizeof(device->board));
    add_totals(&device->totals, &own->totals, &known->totals);
}

/* ---- what remained ---- */

static bool is_alike(const struct ttm_remains *a, const struct ttm_remains *b)
{
    return a->bytes == b->bytes && a->footprint_bytes == b->footprint_bytes &&
           a->device_set == b->device_set && a->origin == b->origin && a->region == b->region &&
           a->kind == b->kind;
}

static uint64_t hash_of(const struct ttm_remains *r)
{
    const uint64_t where = (uint64_t)r->device_set << 16 | (uint64_t)r->region << 8 | r->kind;

    return ttm_hash_u64(ttm_hash_u64(r->bytes ^ where) ^ r->footprint_bytes ^
                        (uint64_t)r->origin << 40);
}

/* The place in the index that has it, or the empty one where it belongs. */
static uint32_t *find_place(const struct ttm_departed *departed, const struct ttm_remains *wanted)
{
    size_t at = hash_of(wanted) & (INDEX_SIZE - 1);

    /* It ends: there are twice as many places as remains. */
    while (departed->index[at] != 0 &&
           !is_alike(&departed->remains[departed->index[at] - 1], wanted))
        at = (at + 1) & (INDEX_SIZE - 1);
    return &departed->index[at];
}

static void leave_out(struct ttm_departed *departed, const struct ttm_remains *remains)
{
    departed->others.remaining++;
    departed->others.remaining_footprint_bytes += remains->footprint_bytes * remains->device_count;
}

static void add_remains(struct ttm_departed *departed, const struct ttm_remains *remains)
{
    if (!departed->index) {
        departed->index = calloc(INDEX_SIZE, sizeof(departed->index[0]));
        if (!departed->index) {
            departed->is_short = true;
            leave_out(departed, remains);
            return;
        }
    }
    uint32_t *place = find_place(departed, remains);
    if (*place != 0) {
        departed->remains[*place - 1].count++;
        return;
    }
    struct ttm_remains *grown =
        departed->remains_count < TTM_DEPARTED_REMAINS_MAX
            ? grow(departed->remains, departed->remains_count, sizeof(grown[0]))
            : NULL;
    if (!grown) {
        leave_out(departed, remains);
        return;
    }
    departed->remains = grown;
    grown[departed->remains_count++] = *remains;
    *place = departed->remains_count;
}

/* ---- origins ---- */

static bool says_the_same(const struct ttm_origin *a, const struct ttm_origin *b)
{
    for (unsigned i = 0; i < TTM_ORIGIN_TEXTS; i++) {
        /* Threads and what lies below the Python line make no difference to a reader. */
        const bool is_detail =
            i == TTM_ORIGIN_THREAD || (i == TTM_ORIGIN_NATIVE && a->text[TTM_ORIGIN_PYTHON][0]);
        if (!is_detail && strcmp(a->text[i], b->text[i]) != 0)
            return false;
    }
    return true;
}

/* The number here of an origin of the process; 0 when it is not known or there are too many. */
static uint32_t own_origin(struct ttm_departed *departed, const struct ttm_process *proc,
                           uint32_t number)
{
    const struct ttm_origin *theirs =
        number != 0 ? ttm_origin_table_find(&proc->origins, number) : NULL;

    if (!theirs)
        return 0;
    for (uint32_t i = 0; i < departed->origins.count; i++) {
        if (says_the_same(departed->origins.origins[i], theirs))
            return departed->origins.origins[i]->number;
    }
    if (departed->origins.count == TTM_DEPARTED_ORIGINS_MAX)
        return 0;
    struct ttm_origin own = *theirs;
    own.number = departed->origins.count + 1;
    return ttm_origin_table_add(&departed->origins, &own) == 0 ? own.number : 0;
}

/* ---- lives ---- */

static void add_life(struct ttm_departed *departed, const struct ttm_registry *reg,
                     const struct ttm_site *site, uint32_t origin, const struct ttm_life *life,
                     struct ttm_departed_sums *sums)
{
    const struct ttm_device_set set = ttm_device_sets_get(&reg->sets, site->device_set);
    const uint64_t footprint_bytes = life->footprint_bytes * set.count;
    struct ttm_remains remains = {
        .bytes = life->bytes,
        .footprint_bytes = life->footprint_bytes,
        .count = 1,
        .region = site->region,
        .kind = site->kind,
        .device_count = set.count,
        .device_set = site->device_set,
        .origin = origin,
    };

    if (set.count == 0 || (site->flags & TTM_SITE_ALIAS))
        return;
    sums->remaining++;
    sums->remaining_footprint_bytes += footprint_bytes;
    if (site->flags & TTM_SITE_PROGRAM) {
        sums->program_parts++;
        sums->program_footprint_bytes += footprint_bytes;
        return;
    }
    for (uint16_t i = 0; i < set.count && i < TTM_REMAINS_DEVICES; i++)
        remains.devices[i] = set.devices[i];
    remains.last_device = set.devices[set.count - 1];
    add_remains(departed, &remains);
}

static void add_lives(struct ttm_departed *departed, const struct ttm_registry *reg,
                      const struct ttm_process *proc, struct ttm_departed_sums *sums)
{
    /* Of each site: its origin here and 1, or 0 before it was looked for. */
    uint32_t *origins = calloc(proc->sites.count + 1, sizeof(origins[0]));
    struct ttm_life_view view;
    const struct ttm_life *life;
    uint64_t at = 0;

    if (!origins || ttm_life_view_take(&proc->lives.store, &view) < 0) {
        departed->is_short = true;
        free(origins);
        return;
    }
    while ((life = ttm_life_view_next(&view, &at))) {
        const struct ttm_site *site = ttm_site_table_get(&proc->sites, life->site);
        if (origins[life->site] == 0)
            origins[life->site] = own_origin(departed, proc, site->origin) + 1;
        add_life(departed, reg, site, origins[life->site] - 1, life, sums);
    }
    (void)ttm_life_view_release(&view, UINT32_MAX);
    free(origins);
}

static struct ttm_departed_open *find_open(struct ttm_departed *departed,
                                           const struct ttm_process *proc)
{
    for (uint32_t i = 0; i < departed->open_count; i++) {
        if (departed->open[i].process == proc)
            return &departed->open[i];
    }
    return NULL;
}

void ttm_departed_add_closed(struct ttm_departed *departed, const struct ttm_registry *reg,
                             const struct ttm_process *proc, const struct ttm_ended *ended)
{
    struct ttm_departed_open *open = find_open(departed, proc);

    if (!open) {
        struct ttm_departed_open *grown =
            grow(departed->open, departed->open_count, sizeof(grown[0]));
        if (!grown) {
            departed->is_short = true;
            return;
        }
        departed->open = grown;
        open = &grown[departed->open_count++];
        *open = (struct ttm_departed_open){.process = proc};
    }
    add_life(departed, reg, &ended->site, own_origin(departed, proc, ended->site.origin),
             &ended->life, &open->sums);
}

/* ---- processes ---- */

static void add_sums(struct ttm_departed_sums *all, const struct ttm_departed_sums *own)
{
    all->births += own->births;
    all->ends += own->ends;
    all->remaining += own->remaining;
    all->remaining_footprint_bytes += own->remaining_footprint_bytes;
    all->program_parts += own->program_parts;
    all->program_footprint_bytes += own->program_footprint_bytes;
    all->lost_events += own->lost_events;
    all->unknown_frees += own->unknown_frees;
    all->replaced += own->replaced;
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
    return proc->device_count > 0 || proc->sites.count > 0 || proc->counters.lost_events > 0 ||
           proc->runtime[0] != '\0' || proc->trouble[0] != '\0';
}

void ttm_departed_add(struct ttm_departed *departed, const struct ttm_registry *reg,
                      const struct ttm_process *proc, bool is_running)
{
    struct ttm_departed_process process = {.pid = proc->info.pid, .is_running = is_running};
    struct ttm_departed_open *open = find_open(departed, proc);

    if (!is_of_interest(proc))
        return;
    if (open) {
        process.sums = open->sums;
        *open = departed->open[--departed->open_count];
    }
    process.sums.lost_events = proc->counters.lost_events;
    process.sums.unknown_frees = proc->counters.unknown_frees;
    process.sums.replaced = proc->counters.replaced;
    memcpy(process.command, proc->info.command, sizeof(process.command));
    memcpy(process.trouble, proc->trouble, sizeof(process.trouble));
    for (uint32_t i = 0; i < proc->sites.count; i++) {
        if (proc->sites.sites[i].flags & TTM_SITE_ALIAS)
            continue;
        process.sums.births += proc->sites.counts[i].births;
        process.sums.ends += proc->sites.counts[i].ends;
    }
    for (uint32_t i = 0; i < proc->device_count; i++)
        add_device(departed, reg->devices[proc->devices[i].id], &proc->devices[i]);
    add_lives(departed, reg, proc, &process.sums);
    departed->inexact_count += proc->counters.is_inexact;
    ttm_departed_put_process(departed, &process);
}
