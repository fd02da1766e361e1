/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/tail_origins.h"

#include <stdbool.h>
#include <stdlib.h>

#include "wire/origin_row.h"

#define ORIGINS_MAX 262144u /* several times what a server takes as told; then all are forgotten */

static uint64_t key_of(int32_t pid, uint32_t number)
{
    return (uint64_t)(uint32_t)pid << 32 | number;
}

void ttm_tail_origins_done(struct ttm_tail_origins *known)
{
    for (uint32_t i = 0; i < known->count; i++)
        ttm_answer_origin_done(&known->origins[i]);
    free(known->origins);
    ttm_u64_map_done(&known->places);
    *known = (struct ttm_tail_origins){0};
}

static bool make_room(struct ttm_tail_origins *known)
{
    if (known->count == ORIGINS_MAX)
        ttm_tail_origins_done(known);
    if (known->count < known->room)
        return true;
    const uint32_t room = known->room ? known->room * 2 : 64;
    struct ttm_answer_origin *grown = realloc(known->origins, room * sizeof(grown[0]));
    if (!grown)
        return false;
    known->origins = grown;
    known->room = room;
    return true;
}

int ttm_tail_origins_add(struct ttm_tail_origins *known, const uint8_t *payload, size_t length)
{
    struct ttm_origin_texts texts;
    struct ttm_answer_origin origin;
    struct ttm_origin_row row;
    uint32_t place;
    const int r = ttm_origin_row_decode(payload, length, &texts, &row);

    if (r < 0)
        return r;
    const uint64_t key = key_of((int32_t)row.process_index, row.number);
    if (ttm_answer_origin_copy(&row, &origin) < 0)
        return 0;
    if (ttm_u64_map_find(&known->places, key, &place)) {
        ttm_answer_origin_done(&known->origins[place - 1]);
        known->origins[place - 1] = origin;
    } else if (make_room(known) && ttm_u64_map_add(&known->places, key, known->count + 1) == 0) {
        known->origins[known->count++] = origin;
    } else {
        ttm_answer_origin_done(&origin);
    }
    return 0;
}

const struct ttm_answer_origin *ttm_tail_origins_find(const struct ttm_tail_origins *known,
                                                      int32_t pid, uint32_t number)
{
    uint32_t place;

    return number != 0 && ttm_u64_map_find(&known->places, key_of(pid, number), &place)
               ? &known->origins[place - 1]
               : NULL;
}
