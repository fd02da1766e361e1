/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/by_process.h"

#include <errno.h>
#include <stdlib.h>

void ttm_by_process_init(struct ttm_by_process *list, uint64_t seed)
{
    *list = (struct ttm_by_process){0};
    ttm_u64_map_init(&list->places, seed);
}

void ttm_by_process_done(struct ttm_by_process *list)
{
    free(list->objects);
    ttm_u64_map_done(&list->places);
    *list = (struct ttm_by_process){0};
}

void *ttm_by_process_find(struct ttm_by_process *list, uint32_t process)
{
    if (list->count > 0 && list->last_process == process)
        return list->objects[list->last];
    uint32_t place;
    if (!ttm_u64_map_find(&list->places, process, &place))
        return NULL;
    list->last = place;
    list->last_process = process;
    return list->objects[place];
}

static bool make_room(struct ttm_by_process *list)
{
    if (list->count < list->room)
        return true;
    const uint32_t room = list->room > 0 ? list->room * 2 : 8;
    void **grown = realloc(list->objects, room * sizeof(grown[0]));
    if (!grown)
        return false;
    list->objects = grown;
    list->room = room;
    return true;
}

int ttm_by_process_add(struct ttm_by_process *list, uint32_t process, void *object)
{
    if (!make_room(list))
        return -ENOMEM;
    const int r = ttm_u64_map_add(&list->places, process, list->count);
    if (r < 0)
        return r;
    list->last = list->count;
    list->last_process = process;
    list->objects[list->count++] = object;
    return 0;
}
