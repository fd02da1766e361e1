/* SPDX-License-Identifier: Apache-2.0 */
/*
 * happening - an event on its way from the program to the live table and the ring.
 */
#ifndef TTM_CLIENT_HAPPENING_H
#define TTM_CLIENT_HAPPENING_H

#include <stdint.h>

#include "client/live_table.h"
#include "ring/segment.h"

enum ttm_happening_op {
    TTM_HAPPENING_BIRTH,
    TTM_HAPPENING_END,             /* live: its key */
    TTM_HAPPENING_CLOSE,           /* the same, ended by something else than its owner */
    TTM_HAPPENING_PROGRAM_FREE,    /* live: program (id) and region; all its parts end */
    TTM_HAPPENING_NAME,            /* live: its key, and the origin's new name and context */
    TTM_HAPPENING_DEVICE_CLOSE,    /* live.devices: all on that device ends */
    TTM_HAPPENING_ALLOCATOR_CLOSE, /* live.allocator: all of it ends */
    TTM_HAPPENING_RECORD,          /* as it is, but for the time */
};

struct ttm_happening {
    enum ttm_happening_op op;
    union {
        struct ttm_live live;
        struct ttm_record record;
    };
    uint32_t name, context; /* notes, of TTM_HAPPENING_NAME; 0: as it is */
    uint32_t epoch;         /* of the tracker, when the event was let in */
};

#endif /* TTM_CLIENT_HAPPENING_H */
