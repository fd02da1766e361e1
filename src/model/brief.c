/* SPDX-License-Identifier: Apache-2.0 */
#include "model/brief.h"

#include "wire/life_row.h"

bool ttm_brief_site_of(const struct ttm_process *proc, uint32_t number, struct ttm_brief_site *ret)
{
    const struct ttm_site *site = ttm_site_table_get(&proc->sites, number);

    if (site->region >= TTM_REGION_CB || (site->flags & (TTM_SITE_ALIAS | TTM_SITE_CORES)))
        return false;
    *ret = (struct ttm_brief_site){
        .number = number,
        .device_set = site->device_set,
        .region = site->region,
    };
    return true;
}

bool ttm_brief_has_room(const struct ttm_registry *reg, const struct ttm_process *proc, uint32_t n)
{
    return reg->lives + n < TTM_LIVES_MAX && proc->lives.store.live + n < TTM_PROCESS_LIVES_MAX &&
           ttm_quota_allows(&proc->user->allocations, n);
}

static void settle(struct ttm_totals *totals, const struct ttm_brief_run *run)
{
    const uint64_t most_bytes = totals->bytes + (uint64_t)run->most_bytes;
    const uint64_t most_footprint_bytes =
        totals->footprint_bytes + (uint64_t)run->most_footprint_bytes;

    if (totals->peak_holds == 0 && most_bytes > totals->peak_bytes)
        totals->peak_bytes = most_bytes;
    if (totals->peak_holds == 0 && most_footprint_bytes > totals->peak_footprint_bytes)
        totals->peak_footprint_bytes = most_footprint_bytes;
    const uint32_t ends = run->events - run->births;
    totals->births += run->births;
    totals->ends += ends; /* freed by their owner */
    totals->count += (uint64_t)run->births - ends;
    totals->bytes += (uint64_t)run->bytes;
    totals->footprint_bytes += (uint64_t)run->footprint_bytes;
}

void ttm_brief_settle_run(struct ttm_registry *reg, struct ttm_process *proc,
                          struct ttm_brief_run *run, uint8_t region)
{
    if (run->events == 0)
        return;
    const struct ttm_device_set set = ttm_device_sets_get(&reg->sets, run->device_set);
    for (uint16_t i = 0; i < set.count; i++) {
        settle(ttm_brief_own(proc, set.devices[i], region), run);
        settle(ttm_brief_all(reg, set.devices[i], region), run);
    }
    *run = (struct ttm_brief_run){.device_set = run->device_set};
}

void ttm_brief_settle_all(struct ttm_registry *reg, struct ttm_process *proc,
                          struct ttm_brief_runs *runs)
{
    for (unsigned region = 0; region < TTM_REGION_CB; region++)
        ttm_brief_settle_run(reg, proc, &runs->region[region], (uint8_t)region);
    runs->is_any_open = false;
}
