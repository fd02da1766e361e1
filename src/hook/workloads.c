/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/workloads.h"

#include <stdlib.h>

#include "hook/ptr_map.h"
#include "hook/tracking.h"

#define MAP_BITS 15

struct workload {
    uint32_t count, capacity;
    struct ttm_program *programs[]; /* they live longer: the workload's end comes first */
};

TTM_PTR_MAP(known, MAP_BITS);

static struct workload *grown(const struct workload *old)
{
    const uint32_t count = old ? old->count : 0;
    const uint32_t capacity = count ? count * 2 : 1; /* nearly all have one program */
    struct workload *larger =
        malloc(sizeof(*larger) + (size_t)capacity * sizeof(struct ttm_program *));

    if (!larger)
        return NULL;
    larger->capacity = capacity;
    larger->count = count;
    for (uint32_t i = 0; i < count; i++)
        larger->programs[i] = old->programs[i];
    return larger;
}

static void add(const void *impl, struct ttm_program *program)
{
    struct workload *workload = ttm_ptr_map_find(&known, impl);

    if (!workload || workload->count == workload->capacity) {
        struct workload *larger = grown(workload);

        if (!larger)
            return;
        free(ttm_ptr_map_remove(&known, impl));
        if (ttm_ptr_map_add(&known, impl, larger) < 0) {
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

__attribute__((hot)) void ttm_workloads_dispatch(const void *impl)
{
    ttm_event_enter();
    const struct workload *workload = ttm_ptr_map_find(&known, impl);

    for (uint32_t i = 0; workload && i < workload->count; i++)
        ttm_program_dispatch(workload->programs[i]);
    ttm_gate_leave(); /* nothing of this changes errno */
}

void ttm_workloads_end(const void *impl)
{
    const int saved_errno = ttm_event_begin();

    free(ttm_ptr_map_remove(&known, impl));
    ttm_event_end(saved_errno);
}

void ttm_workloads_after_fork(void)
{
    ttm_ptr_map_after_fork(&known);
}
