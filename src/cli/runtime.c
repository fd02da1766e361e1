/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/runtime.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "telemetry/process.h"

/*
 * Whether the answer's row of that process leaves it to the runtime: made by us, or of a
 * process in which tracking is off, of which a server forgets what it holds.
 */
static bool is_open(const struct ttm_answer_process *process)
{
    return ttm_runtime_is_source(process) || (process->row.is_disabled && process->live_count == 0);
}

static struct ttm_answer_process *find_process(const struct ttm_answer *answer, int32_t pid)
{
    for (size_t i = 0; i < answer->process_count; i++) {
        if (answer->processes[i].row.pid == pid)
            return &answer->processes[i];
    }
    return NULL;
}

static struct ttm_answer_process *add_process(struct ttm_answer *answer,
                                              const struct ttm_upstream_process *counted)
{
    /* An answer that is complete does not grow by itself any more, so its arrays fit exactly. */
    void *grown =
        realloc(answer->processes, (answer->process_count + 1) * sizeof(answer->processes[0]));
    struct ttm_process process;

    if (!grown)
        return NULL;
    answer->processes = grown;
    struct ttm_answer_process *added = &answer->processes[answer->process_count];
    *added = (struct ttm_answer_process){
        .row = {.index = (uint32_t)answer->process_count,
                .pid = counted->pid,
                .source = TTM_SOURCE_RUNTIME},
    };
    const bool is_read = ttm_process_read(ttm_machine_root(), counted->pid, &process) == 0;
    added->row.uid = is_read ? process.uid : 0;
    (void)snprintf(added->row.command, sizeof(added->row.command), "%s",
                   is_read && process.command[0] ? process.command : counted->name);
    answer->process_count++;
    return added;
}

/* The process's totals on that device, made when there are none. */
static struct ttm_device_totals *totals_on(struct ttm_answer_process *process, uint16_t device_id)
{
    for (size_t i = 0; i < process->device_count; i++) {
        if (process->devices[i].device_id == device_id)
            return &process->devices[i].totals;
    }
    void *grown =
        realloc(process->devices, (process->device_count + 1) * sizeof(process->devices[0]));
    if (!grown)
        return NULL;
    process->devices = grown;
    struct ttm_process_device_row *row = &process->devices[process->device_count++];
    *row = (struct ttm_process_device_row){
        .process_index = process->row.index,
        .device_id = device_id,
    };
    return &row->totals;
}

int ttm_runtime_add_device(struct ttm_answer *answer, const struct ttm_machine_device *device)
{
    if (ttm_answer_device(answer, (unsigned)device->metal_id))
        return 0;
    void *grown = realloc(answer->devices, (answer->device_count + 1) * sizeof(answer->devices[0]));
    if (!grown)
        return -ENOMEM;
    answer->devices = grown;
    size_t at = answer->device_count++;
    for (; at > 0 && answer->devices[at - 1].id > device->metal_id; at--)
        answer->devices[at] = answer->devices[at - 1];
    answer->devices[at] = (struct ttm_device_row){.id = (uint16_t)device->metal_id};
    for (unsigned arch = 0; arch < TTM_ARCH_COUNT; arch++) {
        if (strcmp(ttm_arch_name(arch), device->arch) == 0)
            answer->devices[at].arch = (uint8_t)arch;
    }
    memcpy(answer->devices[at].capacity_bytes, device->capacity_bytes,
           sizeof(device->capacity_bytes));
    (void)snprintf(answer->devices[at].board, sizeof(answer->devices[at].board), "%s",
                   device->board);
    return 0;
}

static int merge_process(struct ttm_answer *answer, const struct ttm_machine_device *device,
                         const struct ttm_upstream_process *counted)
{
    struct ttm_answer_process *process = find_process(answer, counted->pid);

    if (!process)
        process = add_process(answer, counted);
    if (process) {
        process->row.source = TTM_SOURCE_RUNTIME;
        process->row.has_lives = false;
    }
    struct ttm_device_totals *totals =
        process ? totals_on(process, (uint16_t)device->metal_id) : NULL;
    if (!totals)
        return -ENOMEM;
    for (unsigned r = 0; r < TTM_UPSTREAM_REGION_COUNT; r++)
        totals->region[ttm_machine_region(r)].bytes += counted->totals.bytes[r];
    return ttm_runtime_add_device(answer, device);
}

static bool is_tracked(const struct ttm_answer *answer, int32_t pid)
{
    const struct ttm_answer_process *process = find_process(answer, pid);

    return process && !is_open(process);
}

int ttm_runtime_merge(const struct ttm_machine *machine, struct ttm_answer *answer)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < machine->upstream.count; i++) {
        const struct ttm_upstream_file *file = &machine->upstream.files[i];
        const struct ttm_machine_device *device = ttm_machine_of_file(machine, file);
        if (!device || device->metal_id < 0)
            continue;
        for (size_t p = 0; r == 0 && p < file->process_count; p++) {
            const struct ttm_upstream_process *counted = &file->processes[p];
            if (!counted->is_stale && !is_tracked(answer, counted->pid) &&
                !ttm_machine_tracked(machine, counted->pid))
                r = merge_process(answer, device, counted);
        }
    }
    return r;
}

/* ---- looking ---- */

static bool has_untracked(const struct ttm_upstream *upstream, const struct ttm_answer *answer)
{
    for (size_t i = 0; i < upstream->count; i++) {
        const struct ttm_upstream_file *file = &upstream->files[i];
        for (size_t p = 0; p < file->process_count; p++) {
            if (!file->processes[p].is_stale && !is_tracked(answer, file->processes[p].pid))
                return true;
        }
    }
    return false;
}

int ttm_runtime_add(struct ttm_runtime *runtime, struct ttm_answer *answer)
{
    struct ttm_machine *machine = &runtime->machine;

    ttm_upstream_done(&machine->upstream);
    int r = ttm_upstream_read(ttm_machine_root(), &machine->upstream);
    if (r < 0 || !has_untracked(&machine->upstream, answer))
        return r;
    /* Servers are asked after the files were read: who was counted then may be tracked by now. */
    r = ttm_machine_renew(ttm_machine_root(), machine);
    return r < 0 ? r : ttm_runtime_merge(machine, answer);
}

int ttm_runtime_alone(struct ttm_runtime *runtime, struct ttm_answer *ret)
{
    ttm_answer_init(ret);
    ret->moment.time_ns = ttm_clock_wall_ns();
    return ttm_runtime_add(runtime, ret);
}

void ttm_runtime_done(struct ttm_runtime *runtime)
{
    ttm_machine_done(&runtime->machine);
}

/* ---- what an answer has of it ---- */

bool ttm_runtime_is_alone(const struct ttm_answer *answer)
{
    return answer->moment.uptime_ns == 0;
}

bool ttm_runtime_counts(unsigned region)
{
    for (unsigned r = 0; r < TTM_UPSTREAM_REGION_COUNT; r++) {
        if (ttm_machine_region(r) == region)
            return true;
    }
    return false;
}

uint64_t ttm_runtime_bytes(const struct ttm_answer *answer, unsigned device_id, unsigned region)
{
    uint64_t sum = 0;

    for (size_t p = 0; p < answer->process_count; p++) {
        const struct ttm_answer_process *process = &answer->processes[p];
        for (size_t d = 0; ttm_runtime_is_source(process) && d < process->device_count; d++) {
            if (process->devices[d].device_id == device_id)
                sum += process->devices[d].totals.region[region].bytes;
        }
    }
    return sum;
}

uint64_t ttm_runtime_used(const struct ttm_answer_process *process,
                          const struct ttm_device_totals *totals, unsigned region)
{
    return ttm_runtime_is_source(process) ? totals->region[region].bytes
                                          : ttm_device_used(totals, region);
}

bool ttm_runtime_has_any(const struct ttm_answer *answer)
{
    for (size_t p = 0; p < answer->process_count; p++) {
        if (ttm_runtime_is_source(&answer->processes[p]))
            return true;
    }
    return false;
}
