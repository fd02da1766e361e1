/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/programs.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "client/guest.h"
#include "hook/devices.h"
#include "hook/ptr_map.h"
#include "hook/tracking.h"

#define MAP_BITS 16

struct ttm_program {
    struct ttm_dispatch dispatch;
    const void *device; /* that it was laid out for last */
    struct ttm_mesh_range range;
    bool has_range;
    uint16_t *chips;
    uint32_t chip_count;
    struct ttm_parts parts;
    bool is_told[TTMEM_REGIONS];
};

TTM_PTR_MAP(known, MAP_BITS);

/* Guards the contents of all records, and that each program is told of by one thread at a time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct ttm_program *ttm_programs_find(const void *impl)
{
    return ttm_ptr_map_find(&known, impl);
}

struct ttm_program *ttm_programs_meet(const struct ttm_runtime *runtime, const void *impl)
{
    struct ttm_program *program = ttm_programs_find(impl);
    uint64_t id;

    if (program || !runtime->metal->program_id(runtime, impl, &id))
        return program;
    program = aligned_alloc(_Alignof(struct ttm_program), sizeof(*program));
    if (!program)
        return NULL;
    memset(program, 0, sizeof(*program));
    program->dispatch.program =
        id + 1; /* the runtime counts from 0, which libttmem takes for none */
    /* Two threads never make the same program known, as it is compiled by one. */
    if (ttm_ptr_map_add(&known, impl, program) < 0) {
        free(program);
        return ttm_programs_find(impl);
    }
    return program;
}

static void untell(struct ttm_program *program, uint8_t region)
{
    if (program->is_told[region])
        ttmem_program_free(program->dispatch.program, region);
    program->is_told[region] = false;
}

static void tell_part(const struct ttm_program *program, const struct ttm_part *part,
                      uint32_t devices, uint64_t number)
{
    const struct ttmem_core_range *ranges = &program->parts.ranges[part->first_range];
    const bool is_kernel = part->source == TTM_PART_KERNEL;
    const uint64_t all_bytes = part->core_bytes * part->cores;

    /* A kernel is one binary, which lies in each of its cores. */
    ttmem_alloc(&(struct ttmem_allocation){
        .id = number,
        .address = part->address,
        .bytes = is_kernel ? part->core_bytes : all_bytes,
        .footprint_bytes = all_bytes,
        .program = program->dispatch.program,
        .devices = devices,
        .cores = ttmem_cores(ranges, part->range_count),
        .region = ttm_part_region(part->source),
        .kind = part->kind,
        .flags = TTMEM_GUEST_ALLOCATION,
    });
}

/* Where dispatches of it are noted; what 'span' says follows from 'cells', which stays as it is. */
static void set_span(struct ttm_program *program, struct ttm_device_span span)
{
    struct ttm_dispatch *dispatch = &program->dispatch;
    struct ttm_device_cell *cells = span.count > 0 ? ttmem_guest_cells() : NULL;

    if (cells)
        atomic_store_explicit(&dispatch->cells, cells, memory_order_relaxed);
    /* Another than the cell can have counted: it is not the latest there. */
    atomic_store_explicit(&dispatch->noted, UINT32_MAX, memory_order_relaxed);
    /* release, both: pair with the acquire in ttm_dispatch_note() and ttm_program_dispatch(). */
    atomic_store_explicit(&dispatch->span, span, memory_order_release);
    atomic_store_explicit(&dispatch->cell, span.count == 1 ? &cells[span.first] : NULL,
                          memory_order_release);
}

/* Tells of everything in a region, in place of what was told before. */
static void tell(struct ttm_program *program, uint8_t region)
{
    uint64_t number = 0;

    if (!ttm_tracking_is_on())
        return;
    untell(program, region);
    if (program->chip_count == 0)
        return;
    const uint32_t devices = ttmem_devices(program->chips, program->chip_count);
    for (uint32_t i = 0; i < program->parts.count; i++) {
        const struct ttm_part *part = &program->parts.items[i];

        if (ttm_part_region(part->source) == region && part->core_bytes && part->cores)
            tell_part(program, part, devices, number++);
    }
    program->is_told[region] = number > 0;
    if (region != TTMEM_CB)
        return;
    const struct ttm_device_span none = {0};
    const struct ttm_device_span span = number > 0 ? ttmem_guest_span(devices) : none;
    /* relaxed: who dispatches a program does so after it was laid out, on the same thread. */
    atomic_store_explicit(&program->dispatch.devices, devices, memory_order_relaxed);
    atomic_store_explicit(&program->dispatch.is_scattered, number > 0 && span.count == 0,
                          memory_order_relaxed);
    set_span(program, span);
    if (number > 0 && atomic_load_explicit(&program->dispatch.order, memory_order_relaxed))
        ttmem_program_dispatch(program->dispatch.program, devices);
}

static void set_chips(struct ttm_program *program, const struct ttm_chips *chips)
{
    uint16_t *copy = reallocarray(program->chips, chips->count, sizeof(*copy));

    if (!copy)
        return;
    memcpy(copy, chips->ids, chips->count * sizeof(*copy));
    program->chips = copy;
    program->chip_count = chips->count;
}

/* Finds out on which chips the program runs. */
static void place(struct ttm_program *program, const struct ttm_runtime *runtime)
{
    static struct ttm_chips all, some; /* under the lock: large for somebody else's stack */

    if (!ttm_devices_behind(runtime, program->device, &all))
        return;
    if (program->has_range &&
        runtime->metal->chips_within(runtime, program->device, &program->range, &all, &some))
        set_chips(program, &some);
    else
        set_chips(program, &all);
}

void ttm_program_lay_out(struct ttm_program *program, const struct ttm_runtime *runtime,
                         const void *device, enum ttm_part_source source, struct ttm_parts *parts)
{
    pthread_mutex_lock(&lock);
    (void)ttm_parts_remove(&program->parts, source);
    ttm_parts_move(&program->parts, parts);
    program->device = device;
    place(program, runtime);
    tell(program, ttm_part_region(source));
    pthread_mutex_unlock(&lock);
}

void ttm_programs_free_cbs(const void *impl)
{
    const int saved_errno = ttm_event_begin();
    struct ttm_program *program = ttm_programs_find(impl);

    if (program) {
        pthread_mutex_lock(&lock);
        if (ttm_parts_remove(&program->parts, TTM_PART_CB))
            tell(program, TTMEM_CB);
        pthread_mutex_unlock(&lock);
    }
    ttm_event_end(saved_errno);
}

void ttm_program_narrow(struct ttm_program *program, const struct ttm_runtime *runtime,
                        const struct ttm_mesh_range *range)
{
    pthread_mutex_lock(&lock);
    program->range = *range;
    program->has_range = true;
    if (program->parts.count > 0 && program->device) { /* it was laid out before */
        const uint32_t before = program->chip_count;

        place(program, runtime);
        if (program->chip_count != before) {
            tell(program, TTMEM_CB);
            tell(program, TTMEM_KERNEL);
        }
    }
    pthread_mutex_unlock(&lock);
}

void ttm_program_dispatch(struct ttm_program *program, bool is_tracking)
{
    /* relaxed: a number to sort by. */
    atomic_store_explicit(&program->dispatch.order, ttm_dispatch_next(), memory_order_relaxed);
    if (__builtin_expect(!is_tracking, 0))
        return;
    /* acquire: pairs with the release in set_span(). */
    const struct ttm_device_span span =
        atomic_load_explicit(&program->dispatch.span, memory_order_acquire);
    if (__builtin_expect(span.count > 0, 1))
        ttmem_guest_dispatch(atomic_load_explicit(&program->dispatch.cells, memory_order_relaxed),
                             span, program->dispatch.program);
    else if (atomic_load_explicit(&program->dispatch.is_scattered, memory_order_relaxed))
        ttmem_program_dispatch(
            program->dispatch.program,
            atomic_load_explicit(&program->dispatch.devices, memory_order_relaxed));
}

bool ttm_program_has(struct ttm_program *program, enum ttm_part_source source)
{
    bool is_there = false;

    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < program->parts.count && !is_there; i++)
        is_there = program->parts.items[i].source == source;
    pthread_mutex_unlock(&lock);
    return is_there;
}

uint64_t ttm_program_end_on(struct ttm_program *program, const struct ttm_core_set *cores)
{
    pthread_mutex_lock(&lock);
    const uint64_t end = ttm_parts_end_on(&program->parts, cores);
    pthread_mutex_unlock(&lock);
    return end;
}

void ttm_program_extent(struct ttm_program *program, uint64_t *ret_bytes, uint64_t *ret_core_bytes)
{
    *ret_bytes = *ret_core_bytes = 0;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < program->parts.count; i++) {
        const struct ttm_part *part = &program->parts.items[i];

        if (part->source == TTM_PART_KERNEL)
            continue;
        *ret_bytes += part->core_bytes * part->cores;
        if (part->address + part->core_bytes > *ret_core_bytes)
            *ret_core_bytes = part->address + part->core_bytes;
    }
    pthread_mutex_unlock(&lock);
}

static void release(struct ttm_program *program)
{
    ttm_parts_done(&program->parts);
    free(program->chips);
    free(program);
}

void ttm_programs_end(const void *impl)
{
    const int saved_errno = ttm_event_begin();
    struct ttm_program *program = ttm_ptr_map_remove(&known, impl);

    if (program) {
        pthread_mutex_lock(&lock);
        if (ttm_tracking_is_on() && (program->is_told[TTMEM_CB] || program->is_told[TTMEM_KERNEL]))
            ttmem_program_end(program->dispatch.program);
        release(program);
        pthread_mutex_unlock(&lock);
    }
    ttm_event_end(saved_errno);
}

static bool is_on_chip(const struct ttm_program *program, uint16_t id)
{
    for (uint32_t i = 0; i < program->chip_count; i++) {
        if (program->chips[i] == id)
            return true;
    }
    return false;
}

static void forget_parts(struct ttm_program *program)
{
    ttm_parts_done(&program->parts);
    memset(program->is_told, 0, sizeof(program->is_told));
    /* relaxed: see tell(). */
    set_span(program, (struct ttm_device_span){0});
    atomic_store_explicit(&program->dispatch.is_scattered, false, memory_order_relaxed);
    atomic_store_explicit(&program->dispatch.order, 0, memory_order_relaxed);
}

void ttm_programs_close_chip(uint16_t id)
{
    uint32_t cursor = 0;
    const void *impl;
    struct ttm_program *program;

    pthread_mutex_lock(&lock);
    while ((program = ttm_ptr_map_next(&known, &cursor, &impl))) {
        if (!is_on_chip(program, id))
            continue;
        forget_parts(program); /* libttmem ends them with the chip */
    }
    pthread_mutex_unlock(&lock);
}

static int by_dispatch(const void *a, const void *b)
{
    const uint64_t first = (*(struct ttm_program *const *)a)->dispatch.order;
    const uint64_t second = (*(struct ttm_program *const *)b)->dispatch.order;

    return first < second ? -1 : first > second;
}

static void tell_anew(struct ttm_program *program)
{
    memset(program->is_told, 0, sizeof(program->is_told));
    tell(program, TTMEM_CB);
    tell(program, TTMEM_KERNEL);
}

void ttm_programs_tell_all(void)
{
    struct ttm_program **all;
    uint32_t cursor = 0, count = 0;
    const void *impl;

    all = calloc((size_t)1 << MAP_BITS, sizeof(struct ttm_program *));
    if (!all)
        return;
    pthread_mutex_lock(&lock);
    for (struct ttm_program *program = ttm_ptr_map_next(&known, &cursor, &impl); program;
         program = ttm_ptr_map_next(&known, &cursor, &impl))
        all[count++] = program;
    qsort(all, count, sizeof(struct ttm_program *), by_dispatch);
    for (uint32_t i = 0; i < count; i++)
        tell_anew(all[i]);
    pthread_mutex_unlock(&lock);
    free(all);
}

void ttm_programs_after_fork(void)
{
    uint32_t cursor = 0;
    const void *impl;
    struct ttm_program *program;

    pthread_mutex_init(&lock, NULL);
    ttm_ptr_map_after_fork(&known);
    while ((program = ttm_ptr_map_next(&known, &cursor, &impl)))
        forget_parts(program);
}
