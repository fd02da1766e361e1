/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/failure_report.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/u64_set.h"
#include "cli/failure_text.h"
#include "model/registry.h"
#include "wire/life_row.h"

void ttm_failure_reporter_init(struct ttm_failure_reporter *reporter,
                               const struct ttm_terminal *terminal)
{
    *reporter = (struct ttm_failure_reporter){.terminal = *terminal};
}

/* ---- what there is to say ---- */

static struct ttm_origin_brief words_of(const struct ttm_process *process, uint32_t number)
{
    const struct ttm_origin *origin = ttm_origin_table_find(&process->origins, number);

    return ttm_origin_brief_of(number != 0 ? origin : NULL);
}

/* Programs that have circular buffers on the device, and what those take. */
static void find_programs(const struct ttm_registry *reg, const struct ttm_process *process,
                          uint16_t device, struct ttm_failure_view *view)
{
    const uint16_t slot = process->slots ? process->slots[device] : 0;
    struct ttm_cb_sums sums = {0};
    struct ttm_u64_set programs;

    ttm_u64_set_init(&programs, reg->seed);
    for (uint32_t i = 0; i < process->cbs.count; i++) {
        const struct ttm_cb *cb = &process->cbs.cbs[i];
        const struct ttm_device_set set = ttm_device_sets_get(&reg->sets, cb->device_set);
        for (uint16_t d = 0; d < set.count; d++) {
            if (set.devices[d] == device)
                (void)ttm_u64_set_add(&programs, cb->program);
        }
    }
    (void)ttm_cb_map_sum(&process->cbs, &reg->sets, device, NULL, 0, &sums);
    view->program_count = (uint32_t)programs.count;
    view->cb_bytes = sums.registered_bytes;
    if (slot != 0)
        view->cb_bytes += process->devices[slot - 1].totals.cb.coreless_bytes;
    ttm_u64_set_done(&programs);
}

/* The operations that made them; several origins may be of one. */
static void find_operations(const struct ttm_registry *reg, const struct ttm_process *process,
                            uint16_t device, struct ttm_failure_view *view)
{
    struct ttm_holders holders;

    if (ttm_holders_find(reg, process, device, TTM_REGION_CB, &holders) < 0)
        return;
    for (uint32_t i = 0; i < holders.count; i++) {
        const char *operation = words_of(process, holders.largest[i].origin).operation;
        bool is_new = operation[0] != '\0' && view->operation_count < TTM_FAILURE_OPERATIONS_MAX;
        for (uint32_t n = 0; is_new && n < view->operation_count; n++)
            is_new = strcmp(view->operations[n], operation) != 0;
        if (is_new)
            view->operations[view->operation_count++] = operation;
    }
}

static void look(const struct ttm_failure_reporter *reporter, const struct ttm_registry *reg,
                 const struct ttm_process *process, struct ttm_failure_view *view)
{
    const struct ttm_failure_row *failure = view->failure;
    const uint8_t region = ttm_failure_held_region(failure);
    const struct ttm_device *device = reg->devices[failure->device_id];

    view->pid = reg->process_count > 1 ? process->info.pid : 0;
    view->where = words_of(process, failure->origin);
    if (device && device->bank_count[region] > 0) {
        view->bank_count = device->bank_count[region];
        view->bank_bytes = device->capacity_bytes[region] / view->bank_count;
    }
    (void)ttm_holders_find(reg, process, failure->device_id, region, &view->holders);
    for (uint32_t i = 0; i < view->holders.count; i++)
        view->holder_words[i] = words_of(process, view->holders.largest[i].origin);
    (void)ttm_bank_map_draw(reg, process, failure->device_id, region, view->bank_count,
                            ttm_failure_map_cells(&reporter->terminal), &view->map);
    for (uint32_t i = 0; i < view->map.lowest_count; i++)
        view->lowest_words[i] = words_of(process, view->map.lowest[i].origin);
    if (region == TTM_REGION_L1) {
        find_programs(reg, process, failure->device_id, view);
        find_operations(reg, process, failure->device_id, view);
    }
}

/* ---- saying it ---- */

/* Whether this one is told of; says so when it is the first that is not any more. */
static bool take_turn(struct ttm_failure_reporter *reporter, uint64_t time_ns)
{
    if (reporter->is_silent)
        return false;
    /* An older one, of another thread, is of the same second. */
    if (reporter->told > 0 && (time_ns < reporter->last_ns + TTM_NS_PER_S)) {
        reporter->skipped++;
        return false;
    }
    if (reporter->told == TTM_FAILURE_REPORTS_MAX) {
        reporter->is_silent = true;
        ttm_log("%s more failures, see the report", ttm_terminal_ellipsis(&reporter->terminal));
        return false;
    }
    reporter->last_ns = time_ns;
    reporter->told++;
    return true;
}

void ttm_failure_report(void *context, const struct ttm_registry *reg,
                        const struct ttm_process *process, const struct ttm_failure_row *failure)
{
    struct ttm_failure_reporter *reporter = context;
    struct ttm_failure_view view = {.failure = failure};
    struct ttm_text whole, out;
    char number[TTM_NUMBER_SIZE];

    if (!take_turn(reporter, failure->time_ns))
        return;
    ttm_text_init(&whole);
    ttm_text_init(&out);
    if (reporter->skipped > 0)
        ttm_text_format(&whole, "tt-mem: %s more %s since\n",
                        ttm_format_count(reporter->skipped, number),
                        reporter->skipped == 1 ? "failure" : "failures");
    reporter->skipped = 0;
    look(reporter, reg, process, &view);
    ttm_failure_text(&view, &reporter->terminal, &whole);
    ttm_terminal_fit(&reporter->terminal, &whole, &out);
    if (!ttm_text_failed(&whole) && !ttm_text_failed(&out))
        ttm_log_text(ttm_text_string(&out), out.length);
    ttm_text_done(&whole);
    ttm_text_done(&out);
}
