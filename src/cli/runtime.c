/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/runtime.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "telemetry/process.h"

static struct ttm_answer_process *find_process(struct ttm_answer *answer, int32_t pid)
{
    for (size_t i = 0; i < answer->process_count; i++) {
        const struct ttm_process_row *row = &answer->processes[i].row;
        if (row->pid == pid && row->source == TTM_SOURCE_RUNTIME)
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

static int add_device(struct ttm_answer *answer, const struct ttm_machine_device *device)
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
    struct ttm_device_totals *totals =
        process ? totals_on(process, (uint16_t)device->metal_id) : NULL;
    if (!totals)
        return -ENOMEM;
    for (unsigned r = 0; r < TTM_UPSTREAM_REGION_COUNT; r++)
        totals->region[ttm_machine_region(r)].bytes += counted->totals.bytes[r];
    return add_device(answer, device);
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
            if (!counted->is_stale && !ttm_machine_tracked(machine, counted->pid))
                r = merge_process(answer, device, counted);
        }
    }
    return r;
}
