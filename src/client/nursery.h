/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nursery - where lives are born that the hook tells of, each by its id in a cache line of its own.
 *
 * Most allocations of a loop are given back soon, and to come and go here touches that line and
 * nothing else of the live table. What becomes of a life that stays is in live_table.c.
 */
#ifndef TTM_CLIENT_NURSERY_H
#define TTM_CLIENT_NURSERY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/live_place.h"

#define TTM_NURSERY_LINES 32

/* With a serial: the life is on its way to the table. Alone: the place is being filled. */
#define TTM_NURSERY_APART (UINT64_C(1) << 63)

struct ttm_nursery_line {
    _Alignas(64) struct ttm_live_place place;
    _Atomic uint64_t
        mover_of; /* the serial of the life there that somebody moves, or of an earlier one */
};

/* Of 'lines', the one for that id. */
static inline struct ttm_nursery_line *ttm_nursery_line(struct ttm_nursery_line *lines, uint64_t id)
{
    return &lines[id % TTM_NURSERY_LINES];
}

/* A life that lives there, and is not on its way out. */
static inline bool ttm_nursery_is_life(uint64_t serial)
{
    return (int64_t)serial > 0; /* neither 0 nor apart */
}

/* Takes a place that is free, to be filled. */
static inline bool ttm_nursery_take(struct ttm_live_place *place)
{
    return ttm_place_swap_serial(place, 0, TTM_NURSERY_APART);
}

#endif /* TTM_CLIENT_NURSERY_H */
