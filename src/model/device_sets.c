/* SPDX-License-Identifier: Apache-2.0 */
#include "model/device_sets.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void ttm_device_sets_init(struct ttm_device_sets *sets)
{
    sets->sets = NULL;
    sets->count = 0;
    for (uint16_t i = 0; i < TTM_DEVICE_COUNT; i++)
        sets->single[i] = i;
}

void ttm_device_sets_done(struct ttm_device_sets *sets)
{
    for (uint32_t i = 0; i < sets->count; i++)
        free((void *)sets->sets[i].devices);
    free(sets->sets);
    ttm_device_sets_init(sets);
}

struct ttm_device_set ttm_device_sets_get(const struct ttm_device_sets *sets, uint32_t number)
{
    if (number < TTM_DEVICE_COUNT)
        return (struct ttm_device_set){.devices = &sets->single[number], .count = 1};
    if (number - TTM_DEVICE_COUNT < sets->count)
        return sets->sets[number - TTM_DEVICE_COUNT];
    return (struct ttm_device_set){0};
}

/* Adds a set that is not there yet; 'devices' is sorted. */
static int add(struct ttm_device_sets *sets, const uint16_t *devices, uint16_t count)
{
    if (sets->count == TTM_DEVICE_SETS_MAX)
        return -ENOSPC;
    struct ttm_device_set *grown = realloc(sets->sets, (sets->count + 1) * sizeof(grown[0]));
    if (!grown)
        return -ENOMEM;
    sets->sets = grown;
    uint16_t *copy = malloc(count * sizeof(copy[0]));
    if (!copy)
        return -ENOMEM;
    memcpy(copy, devices, count * sizeof(copy[0]));
    sets->sets[sets->count++] = (struct ttm_device_set){.devices = copy, .count = count};
    return 0;
}

int ttm_device_sets_intern(struct ttm_device_sets *sets, const uint16_t *devices, uint32_t count,
                           uint32_t *ret_number)
{
    bool is_member[TTM_DEVICE_COUNT] = {0};
    uint16_t sorted[TTM_DEVICE_COUNT];
    uint16_t n = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (devices[i] >= TTM_DEVICE_COUNT)
            return -EINVAL;
        is_member[devices[i]] = true;
    }
    for (uint16_t i = 0; i < TTM_DEVICE_COUNT; i++) {
        if (is_member[i])
            sorted[n++] = i;
    }
    if (n == 0)
        return -EINVAL;
    if (n == 1) {
        *ret_number = sorted[0];
        return 0;
    }
    for (uint32_t i = 0; i < sets->count; i++) {
        if (sets->sets[i].count == n &&
            memcmp(sets->sets[i].devices, sorted, n * sizeof(sorted[0])) == 0) {
            *ret_number = TTM_DEVICE_COUNT + i;
            return 0;
        }
    }
    const int r = add(sets, sorted, n);
    if (r < 0)
        return r;
    *ret_number = TTM_DEVICE_COUNT + sets->count - 1;
    return 0;
}
