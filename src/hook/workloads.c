/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/workloads.h"

#include <stdlib.h>

#include "hook/making.h"
#include "hook/ptr_map.h"
#include "hook/tracking.h"

#define MAP_BITS 15
#define NEAR_BITS 10

/* Nearly all workloads have one program, and the map leads to it. Of several it leads here. */
struct workload {
    uint32_t count, capacity;
    struct ttm_program *programs[]; /* they live longer: the workload's end comes first */
};

TTM_PTR_MAP(known, MAP_BITS);
/*
 * Those with one program, as far as each lies where it is looked for first: four pages instead of
 * the many of the map above, whose places the processor soon forgets. Of a hundred workloads some five
 * find their place taken.
 */
TTM_PTR_MAP(near, NEAR_BITS);

/* What the map has is a program, or with this bit set a struct workload. */
#define SEVERAL ((uintptr_t)1)

static struct workload *workload_in(void *value)
{
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it was a pointer
    return (uintptr_t)value & SEVERAL ? (struct workload *)((uintptr_t)value - SEVERAL) : NULL;
}

/* A copy with room for one more. 'value' is what the map has, which is not NULL. */
static struct workload *grown(void *value)
{
    const struct workload *old = workload_in(value);
    const uint32_t count = old ? old->count : 1;
    struct workload *larger =
        malloc(sizeof(*larger) + (size_t)count * 2 * sizeof(struct ttm_program *));

    if (!larger)
        return NULL;
    larger->capacity = count * 2;
    larger->count = count;
    for (uint32_t i = 0; i < count; i++)
        larger->programs[i] = old ? old->programs[i] : value;
    return larger;
}

static void forget(const void *impl)
{
    (void)ttm_ptr_map_remove(&near, impl);
    free(workload_in(ttm_ptr_map_remove(&known, impl)));
}

static void add(const void *impl, struct ttm_program *program)
{
    void *value = ttm_ptr_map_find(&known, impl);
    struct workload *workload = workload_in(value);

    if (!value) {
        /* One for which there is no room is not heard. */
        if (ttm_ptr_map_add(&known, impl, program) == 0)
            (void)ttm_ptr_map_add_first(&near, impl, ttm_program_dispatch_of(program));
        return;
    }
    if (!workload || workload->count == workload->capacity) {
        struct workload *larger = grown(value);

        if (!larger)
            return;
        forget(impl);
        if (ttm_ptr_map_add(&known, impl, (char *)larger + SEVERAL) < 0) {
            free(larger);
            return;
        }
        workload = larger;
    }
    workload->programs[workload->count++] = program;
}

void ttm_workloads_add(const struct ttm_runtime *runtime, const void *impl, const void *program,
                       const void *range)
{
    const int saved_errno = ttm_event_begin();
    struct ttm_program *known_program = ttm_programs_meet(runtime, program);
    struct ttm_mesh_range where;

    if (known_program) {
        if (runtime->metal->mesh_range(runtime, range, &where))
            ttm_program_narrow(known_program, runtime, &where);
        add(impl, known_program);
    }
    ttm_event_end(saved_errno);
}

static __attribute__((noinline)) void dispatch_several(const struct workload *workload,
                                                       bool is_tracking)
{
    for (uint32_t i = 0; i < workload->count; i++)
        ttm_program_dispatch(workload->programs[i], is_tracking);
}

__attribute__((hot)) struct ttm_dispatch *ttm_workloads_dispatch_of(const void *impl)
{
    return ttm_ptr_map_find_first(&near, impl);
}

void ttm_workloads_dispatch(const void *impl)
{
    const bool is_tracking = ttm_event_enter();
    void *value = ttm_ptr_map_find(&known, impl);

    ttm_making_end();
    /* Nothing of this changes errno. */
    if (__builtin_expect(((uintptr_t)value & SEVERAL) != 0, 0))
        dispatch_several(workload_in(value), is_tracking);
    else if (__builtin_expect(value != NULL, 1))
        ttm_program_dispatch(value, is_tracking);
    ttm_gate_leave();
}

void ttm_workloads_end(const void *impl)
{
    const int saved_errno = ttm_event_begin();

    forget(impl);
    ttm_event_end(saved_errno);
}

void ttm_workloads_after_fork(void)
{
    ttm_making_end();
    ttm_ptr_map_after_fork(&known);
    ttm_ptr_map_after_fork(&near);
}
