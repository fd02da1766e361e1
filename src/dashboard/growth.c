/* SPDX-License-Identifier: Apache-2.0 */
#include "dashboard/growth.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

void ttm_growth_done(struct ttm_growth *growth)
{
    free(growth->things);
    ttm_u64_map_done(&growth->index);
    *growth = (struct ttm_growth){0};
}

static struct ttm_growth_thing *find(const struct ttm_growth *growth, uint64_t key)
{
    uint32_t at;

    return ttm_u64_map_find(&growth->index, key, &at) ? &growth->things[at] : NULL;
}

static struct ttm_growth_thing *add(struct ttm_growth *growth, uint64_t key)
{
    if (growth->count == growth->room) {
        const size_t room = growth->room ? growth->room * 2 : 16;
        void *grown = realloc(growth->things, room * sizeof(growth->things[0]));
        if (!grown)
            return NULL;
        growth->things = grown;
        growth->room = room;
    }
    if (ttm_u64_map_add(&growth->index, key, (uint32_t)growth->count) < 0)
        return NULL;
    struct ttm_growth_thing *thing = &growth->things[growth->count++];
    *thing = (struct ttm_growth_thing){.key = key};
    return thing;
}

int ttm_growth_tell(struct ttm_growth *growth, uint64_t key, uint64_t time_ns, uint64_t bytes)
{
    struct ttm_growth_thing *thing = find(growth, key);

    if (!thing)
        thing = add(growth, key);
    if (!thing)
        return -ENOMEM;
    thing->told_ns = time_ns;
    thing->bytes = bytes;
    if (thing->sample_count > 0 &&
        time_ns - thing->samples[thing->sample_count - 1].time_ns < TTM_GROWTH_SPACING_NS)
        return 0;
    if (thing->sample_count == TTM_GROWTH_SAMPLES) {
        memmove(&thing->samples[0], &thing->samples[1],
                (TTM_GROWTH_SAMPLES - 1) * sizeof(thing->samples[0]));
        thing->sample_count--;
    }
    thing->samples[thing->sample_count].time_ns = time_ns;
    thing->samples[thing->sample_count++].bytes = bytes;
    return 0;
}

void ttm_growth_sweep(struct ttm_growth *growth, uint64_t time_ns)
{
    for (size_t i = 0; i < growth->count;) {
        uint32_t at;
        if (growth->things[i].told_ns == time_ns) {
            i++;
            continue;
        }
        (void)ttm_u64_map_take(&growth->index, growth->things[i].key, &at);
        growth->count--;
        if (i == growth->count)
            break;
        /* The last one fills the gap; its entry is taken and put again, which needs no memory. */
        growth->things[i] = growth->things[growth->count];
        (void)ttm_u64_map_take(&growth->index, growth->things[i].key, &at);
        if (ttm_u64_map_add(&growth->index, growth->things[i].key, (uint32_t)i) < 0)
            growth->things[i].told_ns = 0; /* it is found no more: the next turn drops it */
    }
}

bool ttm_growth_rate(const struct ttm_growth *growth, uint64_t key, int64_t *ret_bytes_per_s)
{
    const struct ttm_growth_thing *thing = find(growth, key);

    if (!thing || thing->sample_count == 0)
        return false;
    const uint64_t spent_ns = thing->told_ns - thing->samples[0].time_ns;
    if (spent_ns < TTM_NS_PER_S)
        return false;
    const double more = (double)thing->bytes - (double)thing->samples[0].bytes;
    *ret_bytes_per_s = (int64_t)(more * (double)TTM_NS_PER_S / (double)spent_ns);
    return true;
}
