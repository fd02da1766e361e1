/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/layouts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hook/allocators.h"
#include "hook/gate.h"
#include "hook/keepers.h"
#include "hook/programs.h"
#include "hook/tracking.h"

#define CORE_LIMIT 64u /* coordinates; beyond it, what we read is no range of cores */

/* What this thread hears while the runtime lays out a program. */
static __thread struct {
    bool is_open;
    enum ttm_part_source source;
    const void *device; /* the first chip that was told of; the others have the same */
    struct ttm_parts parts;
} heard __attribute__((tls_model("initial-exec")));

static void listen_for(enum ttm_part_source source)
{
    const int saved_errno = ttm_event_begin();

    ttm_parts_done(&heard.parts);
    heard.is_open = true;
    heard.source = source;
    heard.device = NULL;
    errno = saved_errno;
}

static void stop_listening(void)
{
    heard.is_open = false;
    ttm_parts_done(&heard.parts);
    ttm_gate_leave();
}

static void before_cbs(const struct ttm_runtime *runtime, void *program, void *device)
{
    (void)runtime, (void)program, (void)device;
    listen_for(TTM_PART_CB);
}

static void before_dfbs(const struct ttm_runtime *runtime, void *program, void *device)
{
    (void)runtime, (void)program, (void)device;
    listen_for(TTM_PART_DFB);
}

static void before_scratchpads(const struct ttm_runtime *runtime, void *program, void *device)
{
    (void)runtime, (void)program, (void)device;
    listen_for(TTM_PART_SCRATCHPAD);
}

/* It returns early, and says nothing, when the program is laid out already. */
static void after_layout(const struct ttm_runtime *runtime, void *impl, void *device)
{
    const int saved_errno = errno;

    if (heard.parts.count > 0) {
        struct ttm_program *program = ttm_programs_meet(runtime, impl);

        if (program)
            ttm_program_lay_out(program, runtime, device, heard.source, &heard.parts);
    }
    stop_listening();
    errno = saved_errno;
}

static void failed_layout(const struct ttm_runtime *runtime, void *program, void *device)
{
    (void)runtime, (void)program, (void)device;
    stop_listening();
}

void ttm_layouts_cb(const struct ttm_runtime *runtime, const void *core_ranges, uint64_t address,
                    uint64_t bytes, bool is_global, const void *device)
{
    const int saved_errno = errno;

    if (!heard.is_open || heard.source != TTM_PART_CB || is_global)
        return;
    if (!heard.device)
        heard.device = device;
    if (heard.device != device)
        return;
    struct ttm_core_set *cores = malloc(sizeof(*cores)); /* large for somebody else's stack */
    if (cores && runtime->metal->core_set(runtime, core_ranges, cores))
        (void)ttm_parts_add(
            &heard.parts,
            &(struct ttm_part){.address = address, .core_bytes = bytes, .source = TTM_PART_CB},
            cores);
    free(cores);
    errno = saved_errno;
}

void ttm_layouts_dfb(const void *allocator, uint64_t address, uint64_t bytes)
{
    const int saved_errno = errno;
    uint64_t range[4]; /* it begins with its CoreRange: x, y of both corners */

    if (!heard.is_open || heard.source != TTM_PART_DFB)
        return;
    memcpy(range, allocator, sizeof(range));
    if (range[2] < range[0] || range[3] < range[1] || range[2] >= CORE_LIMIT ||
        range[3] >= CORE_LIMIT)
        return;
    struct ttm_core_set *cores = malloc(sizeof(*cores));
    if (cores) {
        cores->count = 1;
        cores->ranges[0] = (struct ttmem_core_range){.start_x = (uint8_t)range[0],
                                                     .start_y = (uint8_t)range[1],
                                                     .end_x = (uint8_t)range[2],
                                                     .end_y = (uint8_t)range[3]};
        (void)ttm_parts_add(
            &heard.parts,
            &(struct ttm_part){.address = address, .core_bytes = bytes, .source = TTM_PART_DFB},
            cores);
    }
    free(cores);
    errno = saved_errno;
}

struct scratchpads {
    struct ttm_program *program;
    uint64_t base;
    uint32_t alignment;
};

/* The runtime puts each above all that its cores have, aligned, in the order of the kernels. */
static void take_scratchpad(uint32_t bytes, const struct ttm_core_set *cores, void *context)
{
    const struct scratchpads *where = context;
    uint64_t address = where->base;
    uint64_t end = where->program ? ttm_program_end_on(where->program, cores) : 0;

    if (end > address)
        address = end;
    end = ttm_parts_end_on(&heard.parts, cores);
    if (end > address)
        address = end;
    address = (address + where->alignment - 1) / where->alignment * where->alignment;
    (void)ttm_parts_add(
        &heard.parts,
        &(struct ttm_part){.address = address, .core_bytes = bytes, .source = TTM_PART_SCRATCHPAD},
        cores);
}

static void after_scratchpads(const struct ttm_runtime *runtime, void *impl, void *device)
{
    const int saved_errno = errno;
    struct scratchpads where = {.program = ttm_programs_find(impl), .alignment = 1};
    const void *allocator;

    /* Called at each dispatch; the layout of a program does not change. */
    if (!where.program || !ttm_program_has(where.program, TTM_PART_SCRATCHPAD)) {
        if (runtime->metal->allocator_of(runtime, device, &allocator) &&
            runtime->metal->l1_base(runtime, allocator, &where.base) &&
            runtime->metal->alignment(runtime, allocator, &where.alignment))
            (void)runtime->metal->each_scratchpad(runtime, impl, take_scratchpad, &where);
    }
    errno = saved_errno;
    after_layout(runtime, impl, device);
}

static void before_check(const struct ttm_runtime *runtime, void *program, void *device)
{
    (void)runtime, (void)program, (void)device;
    errno = ttm_event_begin(); /* the event goes on */
}

static void after_check(const struct ttm_runtime *runtime, void *program, void *device)
{
    (void)runtime, (void)program, (void)device;
    ttm_gate_leave();
}

static void tell_clash(const struct ttm_runtime *runtime, const void *impl, const void *device)
{
    struct ttmem_failed_allocation failure = {.region = TTMEM_CB, .kind = TTMEM_CB_CLASH};
    struct ttm_program *program = ttm_programs_find(impl);
    const void *allocator;

    if (!program || !runtime->metal->allocator_of(runtime, device, &allocator) ||
        !runtime->metal->room(runtime, allocator, TTMEM_L1, &failure.bank_free_bytes,
                              &failure.bank_largest_bytes))
        return;
    struct ttm_allocator *known = ttm_allocators_meet(allocator);
    if (!known || !ttm_allocator_describe(known, runtime, allocator, device))
        return;
    ttm_program_extent(program, &failure.wanted_bytes, &failure.bank_wanted_bytes);
    failure.devices = ttm_allocator_devices(known);
    failure.allocator = ttm_allocator_number(known);
    ttmem_failure(&failure);
    ttm_keepers_after_failure();
}

static void failed_check(const struct ttm_runtime *runtime, void *program, void *device)
{
    const int saved_errno = errno;

    if (ttm_tracking_is_on())
        tell_clash(runtime, program, device);
    ttm_gate_leave();
    errno = saved_errno;
}

static void take_kernel(const struct ttm_kernel_facts *kernel, void *context)
{
    (void)ttm_parts_add(context,
                        &(struct ttm_part){.core_bytes = kernel->bytes,
                                           .source = TTM_PART_KERNEL,
                                           .kind = kernel->kind},
                        &kernel->cores);
}

void ttm_layouts_kernels(const struct ttm_runtime *runtime, const void *impl, const void *device,
                         uint64_t build_key)
{
    const int saved_errno = ttm_event_begin();
    struct ttm_parts kernels = {0};

    if (runtime->metal->each_kernel(runtime, impl, device, build_key, take_kernel, &kernels) &&
        kernels.count > 0) {
        struct ttm_program *program = ttm_programs_meet(runtime, impl);

        if (program)
            ttm_program_lay_out(program, runtime, device, TTM_PART_KERNEL, &kernels);
    }
    ttm_parts_done(&kernels);
    ttm_event_end(saved_errno);
}

const struct ttm_guard ttm_layout_of_cbs = {before_cbs, after_layout, failed_layout};
const struct ttm_guard ttm_layout_of_dfbs = {before_dfbs, after_layout, failed_layout};
const struct ttm_guard ttm_layout_of_scratchpads = {before_scratchpads, after_scratchpads,
                                                    failed_layout};
const struct ttm_guard ttm_layout_check = {before_check, after_check, failed_check};
