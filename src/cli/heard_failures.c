/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/heard_failures.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/seed.h"
#include "model/registry.h"
#include "wire/frame.h"
#include "wire/origin_row.h"
#include "wire/totals.h"

struct ttm_heard_process {
    struct ttm_process *process;
    uint64_t failures; /* up to the last that came, those that did not come included */
};

void ttm_heard_failures_init(struct ttm_heard_failures *heard, const struct ttm_terminal *terminal)
{
    *heard = (struct ttm_heard_failures){.reg = ttm_registry_new(ttm_seed_random())};
    ttm_failure_reporter_init(&heard->reporter, terminal);
    heard->reporter.is_unrecorded = true;
}

void ttm_heard_failures_done(struct ttm_heard_failures *heard)
{
    ttm_registry_free(heard->reg);
    *heard = (struct ttm_heard_failures){0};
}

struct ttm_heard_process *ttm_heard_process_new(struct ttm_heard_failures *heard, int32_t pid)
{
    const struct ttm_process_info info = {.pid = pid};
    struct ttm_heard_process *process = heard->reg ? calloc(1, sizeof(*process)) : NULL;

    if (process && ttm_registry_add_process(heard->reg, &info, &process->process) < 0) {
        free(process);
        return NULL;
    }
    return process;
}

void ttm_heard_process_end(struct ttm_heard_failures *heard, struct ttm_heard_process *process)
{
    struct ttm_departure departure;

    if (!process)
        return;
    ttm_failure_report_end(&heard->reporter, heard->reg, process->process);
    ttm_registry_end_process(heard->reg, process->process, &departure);
    while (ttm_registry_reclaim(heard->reg))
        continue;
    if (heard->speaker == process)
        heard->speaker = NULL;
    free(process);
}

void ttm_heard_failures_row(struct ttm_heard_failures *heard, struct ttm_heard_process *process,
                            uint64_t failures)
{
    heard->speaker = process;
    heard->failures = failures;
}

/* ---- behind the row ---- */

static int take_device(struct ttm_heard_failures *heard, const struct ttm_frame *frame)
{
    struct ttm_device_row row;

    if (ttm_device_row_decode(frame->payload, frame->length, &row) < 0)
        return -EBADMSG;
    struct ttm_device *device = ttm_registry_device(heard->reg, row.id);
    if (!device)
        return 0; /* then its banks are not told */
    memcpy(device->capacity_bytes, row.capacity_bytes, sizeof(device->capacity_bytes));
    memcpy(device->bank_count, row.bank_count, sizeof(device->bank_count));
    return 0;
}

static int take_origin(struct ttm_heard_failures *heard, const struct ttm_frame *frame)
{
    struct ttm_origin_texts texts;
    struct ttm_origin_row row;

    if (ttm_origin_row_decode(frame->payload, frame->length, &texts, &row) < 0)
        return -EBADMSG;
    const struct ttm_origin origin = {
        .number = row.number,
        .text = {[TTM_ORIGIN_CONTEXT] = row.context,
                 [TTM_ORIGIN_NAME] = row.name,
                 [TTM_ORIGIN_THREAD] = row.thread,
                 [TTM_ORIGIN_OPERATION] = row.operation,
                 [TTM_ORIGIN_PYTHON] = row.python,
                 [TTM_ORIGIN_NATIVE] = row.native},
    };
    /* Without room for it, nothing is said of from where. */
    (void)ttm_origin_table_add(&heard->speaker->process->origins, &origin);
    return 0;
}

static int take_failure(struct ttm_heard_failures *heard, const struct ttm_frame *frame)
{
    struct ttm_heard_process *process = heard->speaker;
    struct ttm_failure_row row;

    if (ttm_failure_row_decode(frame->payload, frame->length, &row) < 0)
        return -EBADMSG;
    /* At the end of a process its last one comes in any case. */
    if (heard->failures <= process->failures)
        return 0;
    const uint64_t missed = heard->failures - process->failures - 1;
    process->failures = heard->failures;
    ttm_failure_report_heard(&heard->reporter, heard->reg, process->process, &row, missed);
    return 0;
}

int ttm_heard_failures_take(struct ttm_heard_failures *heard, const struct ttm_frame *frame)
{
    if (!heard->speaker)
        return 0;
    switch (frame->type) {
    case TTM_FRAME_DEVICE:
        return take_device(heard, frame);
    case TTM_FRAME_ORIGIN:
        return take_origin(heard, frame);
    case TTM_FRAME_FAILURE:
        return take_failure(heard, frame);
    default:
        return 0;
    }
}
