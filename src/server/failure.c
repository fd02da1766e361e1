/* SPDX-License-Identifier: Apache-2.0 */
#include "server/failure.h"

#include <stdbool.h>
#include <string.h>

#include "model/holders.h"
#include "model/registry.h"

#define WINDOW_NS UINT64_C(1000000000)
#define PASS_SITES 16 /* a pass costs as much as so many sites, however few there are */
#define SITES_PER_WINDOW (1u << 18) /* at most some 16 ms */

/* Whether nothing but failures came in since the last one, which was about the same memory. */
static bool is_as_before(const struct ttm_failure_watch *watch, const struct ttm_process *process,
                         const struct ttm_failure_row *failure)
{
    return watch->events != 0 && process->counters.events == watch->events + 1 &&
           process->lives.store.live == watch->lives &&
           failure->device_id == watch->last.device_id &&
           ttm_failure_held_region(failure) == ttm_failure_held_region(&watch->last);
}

/* Whether this second has time for a pass. A pass that is longer than a whole second's share has one. */
static bool has_time(struct ttm_failure_watch *watch, uint32_t sites, uint64_t now_ns)
{
    if (now_ns - watch->window_ns >= WINDOW_NS) {
        watch->window_ns = now_ns;
        watch->visited = 0;
    }
    if (watch->visited > 0 && watch->visited + sites > SITES_PER_WINDOW)
        return false;
    watch->visited += (uint64_t)sites + PASS_SITES;
    return true;
}

void ttm_failure_find_owners(struct ttm_failure_watch *watch, const struct ttm_registry *reg,
                             const struct ttm_process *process, uint64_t now_ns,
                             struct ttm_failure_row *failure)
{
    struct ttm_holders holders;

    failure->owner_count = 0;
    if (is_as_before(watch, process, failure)) {
        failure->owner_count = watch->last.owner_count;
        memcpy(failure->owners, watch->last.owners, sizeof(failure->owners));
        watch->events++;
        return;
    }
    watch->events = 0;
    if (!has_time(watch, process->sites.count, now_ns) ||
        ttm_holders_find(reg, process, failure->device_id, ttm_failure_held_region(failure),
                         &holders) < 0)
        return;
    failure->owner_count = holders.count;
    memcpy(failure->owners, holders.largest, sizeof(failure->owners));
    watch->events = process->counters.events;
    watch->lives = process->lives.store.live;
    watch->last = *failure;
}
