/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SETS_MAX 65536

void ttm_groups_init(struct ttm_groups *groups)
{
    *groups = (struct ttm_groups){0};
}

void ttm_groups_done(struct ttm_groups *groups)
{
    for (uint32_t i = 0; i < groups->set_count; i++) {
        free(groups->sets[i].groups);
        free(groups->sets[i].devices);
    }
    for (uint32_t i = 0; i < groups->count; i++) {
        for (unsigned r = 0; r < TTM_REGION_COUNT; r++)
            ttm_course_free(groups->groups[i].region[r].course);
    }
    free(groups->sets);
    free(groups->groups);
    *groups = (struct ttm_groups){0};
}

int ttm_groups_find(const struct ttm_groups *groups, uint32_t number)
{
    for (uint32_t i = 0; i < groups->set_count; i++) {
        if (groups->sets[i].number == number)
            return (int)i;
    }
    return -ENOENT;
}

/* Each group has courses of its own, also those that it begins with. Returns 0 or -ENOMEM. */
static int own_courses(struct ttm_group *group)
{
    int r = 0;

    for (unsigned i = 0; i < TTM_REGION_COUNT; i++) {
        struct ttm_group_region *region = &group->region[i];
        const bool is_kept = region->course != NULL;
        region->course = ttm_course_copy(region->course);
        if (is_kept && !region->course)
            r = -ENOMEM;
    }
    return r;
}

/* The new group begins as 'like', or with nothing. Returns its index or -ENOMEM. */
static int add_group(struct ttm_groups *groups, const struct ttm_group *like, uint16_t device)
{
    const struct ttm_group begin = like ? *like : (struct ttm_group){0};
    struct ttm_group *grown = realloc(groups->groups, (groups->count + 1) * sizeof(grown[0]));

    if (!grown)
        return -ENOMEM;
    groups->groups = grown;
    grown[groups->count] = begin;
    grown[groups->count].first_device = device;
    const int r = own_courses(&grown[groups->count]);
    const int index = (int)groups->count++;
    return r < 0 ? r : index;
}

static int append_group(struct ttm_group_set *set, uint32_t group)
{
    uint32_t *grown = realloc(set->groups, (set->group_count + 1) * sizeof(grown[0]));

    if (!grown)
        return -ENOMEM;
    set->groups = grown;
    grown[set->group_count++] = group;
    return 0;
}

static bool has_group(const struct ttm_group_set *set, uint32_t group)
{
    for (uint32_t i = 0; i < set->group_count; i++) {
        if (set->groups[i] == group)
            return true;
    }
    return false;
}

/* Of the devices of 'group', those with a mark get a group of their own. */
static int split_group(struct ttm_groups *groups, uint32_t group, const uint8_t *is_marked,
                       ttm_groups_split_fn split, void *arg)
{
    int twin = -1;

    for (uint32_t d = 0; d < TTM_DEVICE_COUNT; d++) {
        if (groups->of_device[d] != group + 1 || !is_marked[d])
            continue;
        if (twin < 0)
            twin = add_group(groups, &groups->groups[group], (uint16_t)d);
        if (twin < 0)
            return twin;
        groups->of_device[d] = (uint16_t)(twin + 1);
    }
    for (uint32_t d = 0; d < TTM_DEVICE_COUNT; d++) {
        if (groups->of_device[d] == group + 1) {
            groups->groups[group].first_device = (uint16_t)d;
            break;
        }
    }
    for (uint32_t i = 0; i < groups->set_count; i++) {
        if (has_group(&groups->sets[i], group) &&
            append_group(&groups->sets[i], (uint32_t)twin) < 0)
            return -ENOMEM;
    }
    return split(arg, group, (uint32_t)twin);
}

/* Whether all devices of the group have a mark. */
static bool is_within(const struct ttm_groups *groups, uint32_t group, const uint8_t *is_marked)
{
    for (uint32_t d = 0; d < TTM_DEVICE_COUNT; d++) {
        if (groups->of_device[d] == group + 1 && !is_marked[d])
            return false;
    }
    return true;
}

/* Makes the marked devices a union of groups, and lists those. */
static int cover(struct ttm_groups *groups, struct ttm_group_set *set, const uint8_t *is_marked,
                 ttm_groups_split_fn split, void *arg)
{
    int fresh = -1, r = 0;

    for (uint16_t i = 0; i < set->device_count && r == 0; i++) {
        const uint16_t d = set->devices[i];
        const uint32_t known = groups->of_device[d];
        if (known == 0) {
            if (fresh < 0)
                fresh = add_group(groups, NULL, d);
            if (fresh < 0)
                return fresh;
            groups->of_device[d] = (uint16_t)(fresh + 1);
        } else if (!is_within(groups, known - 1, is_marked)) {
            r = split_group(groups, known - 1, is_marked, split, arg);
        }
    }
    for (uint16_t i = 0; i < set->device_count && r == 0; i++) {
        const uint32_t group = groups->of_device[set->devices[i]] - 1u;
        if (!has_group(set, group))
            r = append_group(set, group);
    }
    return r;
}

int ttm_groups_add(struct ttm_groups *groups, uint32_t number, const uint16_t *devices,
                   uint32_t count, ttm_groups_split_fn split, void *arg)
{
    uint8_t is_marked[TTM_DEVICE_COUNT] = {0};
    struct ttm_group_set set = {.number = number};
    int r;

    for (uint32_t i = 0; i < count; i++) {
        if (devices[i] < TTM_DEVICE_COUNT && !is_marked[devices[i]]) {
            is_marked[devices[i]] = 1;
            set.device_count++;
        }
    }
    if (set.device_count == 0 || groups->set_count == SETS_MAX)
        return -EINVAL;
    struct ttm_group_set *grown = realloc(groups->sets, (groups->set_count + 1) * sizeof(grown[0]));
    if (!grown)
        return -ENOMEM;
    groups->sets = grown;
    set.devices = malloc(set.device_count * sizeof(set.devices[0]));
    if (!set.devices)
        return -ENOMEM;
    for (uint32_t d = 0, n = 0; d < TTM_DEVICE_COUNT; d++) {
        if (is_marked[d])
            set.devices[n++] = (uint16_t)d;
    }
    r = cover(groups, &set, is_marked, split, arg);
    if (r < 0) {
        free(set.groups);
        free(set.devices);
        return r;
    }
    groups->sets[groups->set_count] = set;
    return (int)groups->set_count++;
}
