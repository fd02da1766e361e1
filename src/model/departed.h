/* SPDX-License-Identifier: Apache-2.0 */
/*
 * departed - what is remembered of processes when they end: totals and what remained.
 *
 * The registry forgets a process with its end. Who wants to sum up a run adds
 * each process here just before; one that is still running can be added likewise.
 * Everything is copied and bounded: beyond a bound only sums are kept, and they say
 * so. One thread, no I/O, no clock.
 */
#ifndef TTM_MODEL_DEPARTED_H
#define TTM_MODEL_DEPARTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/registry.h"

#define TTM_DEPARTED_PROCESSES_MAX 256
#define TTM_DEPARTED_REMAINS_MAX 4096
#define TTM_DEPARTED_ORIGINS_MAX 1024
#define TTM_REMAINS_DEVICES 6

/* Sums over the allocations of one process, or of all. An alias counts nowhere. */
struct ttm_departed_sums {
    uint64_t births;
    uint64_t ends;                      /* freed by their owner */
    uint64_t remaining;                 /* at the end, or when their device was closed */
    uint64_t remaining_footprint_bytes; /* on all its devices together */
    uint64_t program_parts;             /* of those: circular buffers and kernels of programs */
    uint64_t program_footprint_bytes;
    uint64_t lost_events;
    uint64_t unknown_frees;
    uint64_t replaced;
};

struct ttm_departed_process {
    int32_t pid;
    bool is_running; /* it had not ended when it was added */
    struct ttm_departed_sums sums;
    char command[TTM_STRING_MAX + 1];
    char trouble[TTM_STRING_MAX + 1]; /* why something in it is not tracked, or "" */
};

/*
 * Sums over processes, but for the peaks: those are of all processes together. What
 * ended with its device is counted as what is there.
 */
struct ttm_departed_device {
    uint16_t id;
    uint8_t arch;
    uint64_t capacity_bytes[TTM_REGION_COUNT]; /* 0: not known */
    struct ttm_device_totals totals;
    char board[TTM_STRING_MAX + 1];
};

/* Allocations that remained and are alike. Parts of programs are in the sums alone. */
struct ttm_remains {
    uint64_t bytes;           /* of each */
    uint64_t footprint_bytes; /* of each, on one device */
    uint64_t count;
    uint8_t region;
    uint8_t kind;
    uint16_t device_count;
    uint16_t devices[TTM_REMAINS_DEVICES]; /* the first of them, ascending */
    uint16_t last_device;
    uint32_t device_set; /* as the registry numbers it */
    uint32_t origin;     /* in 'origins', 0: not known */
};

/* What a process has lost with devices that were closed, until it is added. */
struct ttm_departed_open {
    const struct ttm_process *process; /* as a name only */
    struct ttm_departed_sums sums;
};

struct ttm_departed {
    struct ttm_departed_sums sums;
    struct ttm_departed_process *processes; /* in the order of their ends */
    uint32_t process_count;
    uint32_t processes_left_out; /* over the bound; in the sums they are */
    uint32_t running_count;
    uint32_t inexact_count;              /* ended before they could make good what was lost */
    struct ttm_departed_device *devices; /* by id, ascending */
    uint32_t device_count;
    struct ttm_remains *remains; /* in no order */
    uint32_t remains_count;
    struct ttm_origin_table origins; /* numbered here; those that say the same are one */
    struct ttm_departed_open *open;
    uint32_t open_count;
    struct ttm_departed_sums others; /* remained, over the bound: count and footprint */
    uint32_t *index;                 /* of 'remains': open addressing, place + 1, 0 is empty */
    bool is_short;                   /* memory was short: the lists are not whole */
};

void ttm_departed_init(struct ttm_departed *departed);
void ttm_departed_done(struct ttm_departed *departed);

/*
 * A life of the process has ended with its device. Say so before the process is added.
 */
void ttm_departed_add_closed(struct ttm_departed *departed, const struct ttm_registry *reg,
                             const struct ttm_process *proc, const struct ttm_ended *ended);

/*
 * Adds a process that is still in the registry, which is left as it is. One that was
 * never heard to do anything is left out.
 */
void ttm_departed_add(struct ttm_departed *departed, const struct ttm_registry *reg,
                      const struct ttm_process *proc, bool is_running);

/* For who knows of processes from elsewhere: adds one with its sums. */
void ttm_departed_put_process(struct ttm_departed *departed,
                              const struct ttm_departed_process *process);

/* The device of that id, new and empty if need be; NULL when memory is short. Borrowed. */
struct ttm_departed_device *ttm_departed_device_of(struct ttm_departed *departed, uint16_t id);

#endif /* TTM_MODEL_DEPARTED_H */
