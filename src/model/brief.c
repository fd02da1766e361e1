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
    return reg->lives + n < TTM_LIVES_MAX && proc->lives.store.live + n < TTM_PROCESS_LIVES_MAX;
}

void ttm_brief_add_many(struct ttm_registry *reg, struct ttm_process *proc,
                        const struct ttm_brief_site *site, const struct ttm_brief_life *life)
{
    const struct ttm_device_set set = ttm_device_sets_get(&reg->sets, site->device_set);

    for (uint16_t i = 0; i < set.count; i++) {
        ttm_brief_add(ttm_brief_own(proc, set.devices[i], site->region), life);
        ttm_brief_add(ttm_brief_all(reg, set.devices[i], site->region), life);
    }
}

void ttm_brief_take_many(struct ttm_registry *reg, struct ttm_process *proc,
                         const struct ttm_brief_site *site, const struct ttm_brief_life *life)
{
    const struct ttm_device_set set = ttm_device_sets_get(&reg->sets, site->device_set);

    for (uint16_t i = 0; i < set.count; i++) {
        ttm_brief_take(ttm_brief_own(proc, set.devices[i], site->region), life);
        ttm_brief_take(ttm_brief_all(reg, set.devices[i], site->region), life);
    }
}
