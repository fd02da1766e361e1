/* SPDX-License-Identifier: Apache-2.0 */
#include "server/early_ends.h"

#include <errno.h>
#include <stdlib.h>

void ttm_early_ends_init(struct ttm_early_ends *early, uint64_t seed, struct ttm_quota *quota)
{
    *early = (struct ttm_early_ends){.quota = quota};
    for (uint32_t i = 0; i < 2; i++)
        ttm_u64_map_init(&early->ages[i].places, seed);
}

static void empty(struct ttm_early_ends *early, struct ttm_early_age *age)
{
    if (age->room == 0)
        return;
    ttm_quota_subtract(early->quota, age->count);
    ttm_u64_map_done(&age->places);
    free(age->ends);
    age->ends = NULL;
    age->count = age->room = 0;
}

void ttm_early_ends_done(struct ttm_early_ends *early)
{
    empty(early, &early->ages[0]);
    empty(early, &early->ages[1]);
}

int ttm_early_ends_add(struct ttm_early_ends *early, uint64_t serial,
                       const struct ttm_early_end *end)
{
    struct ttm_early_age *age = &early->ages[0];

    if (age->count == TTM_EARLY_ENDS_MAX || !ttm_quota_allows(early->quota, 1))
        return -ENOSPC;
    if (age->count == age->room) {
        const uint32_t room = age->room ? age->room * 2 : 64;
        struct ttm_early_end *grown = realloc(age->ends, room * sizeof(grown[0]));
        if (!grown)
            return -ENOMEM;
        age->ends = grown;
        age->room = room;
    }
    const int r = ttm_u64_map_add(&age->places, serial, age->count);
    if (r == 0) {
        age->ends[age->count++] = *end;
        ttm_quota_add(early->quota, 1);
    }
    return r == -EEXIST ? 0 : r; /* a process that ends a life twice is not worth a word */
}

bool ttm_early_ends_take(struct ttm_early_ends *early, uint64_t serial, struct ttm_early_end *ret)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct ttm_early_age *age = &early->ages[i];
        uint32_t place;
        if (age->count > 0 && ttm_u64_map_take(&age->places, serial, &place)) {
            *ret = age->ends[place];
            return true;
        }
    }
    return false;
}

bool ttm_early_ends_has(const struct ttm_early_ends *early, uint64_t serial)
{
    uint32_t place;

    return ttm_u64_map_find(&early->ages[0].places, serial, &place) ||
           ttm_u64_map_find(&early->ages[1].places, serial, &place);
}

void ttm_early_ends_age(struct ttm_early_ends *early)
{
    empty(early, &early->ages[1]);
    const struct ttm_early_age emptied = early->ages[1];
    early->ages[1] = early->ages[0];
    early->ages[0] = emptied;
}
