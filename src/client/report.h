/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report - an event on its way from the program to the live table and the ring.
 */
#ifndef TTM_CLIENT_REPORT_H
#define TTM_CLIENT_REPORT_H

#include <stdint.h>

#include "client/live_table.h"
#include "ring/segment.h"

enum ttm_report_op {
    TTM_REPORT_BIRTH,
    TTM_REPORT_END,             /* live: its key */
    TTM_REPORT_CLOSE,           /* the same, ended by something else than its owner */
    TTM_REPORT_PROGRAM_FREE,    /* live: program (id) and region; all its parts end */
    TTM_REPORT_NAME,            /* live: its key, and the origin's new name and context */
    TTM_REPORT_DEVICE_CLOSE,    /* live.devices: all on that device ends */
    TTM_REPORT_ALLOCATOR_CLOSE, /* live.allocator: all of it ends */
    TTM_REPORT_RECORD,          /* as it is, but for the time */
};

struct ttm_report {
    enum ttm_report_op op;
    union {
        struct ttm_live live;
        struct ttm_record record;
    };
    uint32_t name, context; /* notes, of TTM_REPORT_NAME; 0: as it is */
    uint32_t epoch;         /* of the tracker, when the event was let in */
};

#endif /* TTM_CLIENT_REPORT_H */
