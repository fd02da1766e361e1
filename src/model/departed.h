/* SPDX-License-Identifier: Apache-2.0 */
/*
 * departed - what is remembered of processes when they end: totals and what remained.
 *
 * The registry forgets a process with its end. Who wants to sum up a run adds
 * each process here just before; one that is still running can be added likewise.
 * Everything is copied and bounded: beyond a bound only sums are kept, and they say
 * so. One thread, no I/O, no clock.
 *
 * What remains is what its owner did not free: it is live still, or it ended with
 * its process, or with its device.
 */
#ifndef TTM_MODEL_DEPARTED_H
#define TTM_MODEL_DEPARTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/origin_brief.h"
#include "model/registry.h"
#include "model/remains.h"

#define TTM_DEPARTED_PROCESSES_MAX 256

/* Sums over the allocations of one process, or of all. An alias counts nowhere. */
struct ttm_departed_sums {
    uint64_t events; /* of a process known from elsewhere, whose births are not */
    uint64_t births;
    uint64_t ends;                      /* freed by their owner */
    uint64_t remaining;                 /* at the end, or when their device was closed */
    uint64_t remaining_footprint_bytes; /* on all its devices together */
    uint64_t program_parts;             /* of those: what stays with programs */
    uint64_t program_buffers; /* of these: not circular buffers and kernels, but buffers */
    uint64_t program_footprint_bytes;
    uint64_t closed; /* of the others: those that ended with their device */
    uint64_t lost_events;
    uint64_t unknown_frees;
    uint64_t replaced;
    uint64_t refused;        /* as they make no sense */
    uint64_t untracked;      /* events that the process had no room for */
    uint64_t notes_left_out; /* names, contexts and stacks likewise */
    uint64_t failures;       /* allocations that could not be made */
};

struct ttm_departed_process {
    int32_t pid;
    bool is_running; /* it had not ended when it was added */
    struct ttm_departed_sums sums;
    char command[TTM_STRING_MAX + 1];
    char trouble[TTM_STRING_MAX + 1]; /* why something in it is not tracked, or "" */
};

/* Sums over processes, but for the peaks: those are of all processes together. */
struct ttm_departed_device {
    uint16_t id;
    uint8_t arch;
    uint64_t capacity_bytes[TTM_REGION_COUNT]; /* 0: not known */
    struct ttm_device_totals totals;
    char board[TTM_STRING_MAX + 1];
};

struct ttm_departed {
    struct ttm_departed_sums sums;
    struct ttm_departed_process *processes; /* in the order of their ends */
    uint32_t process_count;
    uint32_t processes_left_out; /* over the bound; in the sums they are */
    uint32_t running_count;
    uint32_t inexact_count; /* ended before they could make good what was lost */
    uint32_t gap_count;     /* were not listened to without a break */
    uint32_t off_count;     /* in which tracking was off in the end */
    /* Of a process with TT-Metal that had no device, of which nothing else is kept. */
    char runtime[TTM_STRING_MAX + 1];    /* "ttnn 0.81.1", "" when there was none */
    char opening[TTM_STRING_MAX + 1];    /* what came of opening a device; "": it opened none */
    bool is_runtime_off;                 /* tracking was off in it */
    struct ttm_departed_device *devices; /* by id, ascending */
    uint32_t device_count;
    struct ttm_remains_set remains;
    struct ttm_origin_book origins; /* that the remains refer to */
    struct ttm_device_sets sets;    /* likewise: numbers of the registry are used again */
    bool is_short;                  /* memory was short: the lists are not whole */
};

/* Programs that are summed up do not know 'seed'. */
void ttm_departed_init(struct ttm_departed *departed, uint64_t seed);
void ttm_departed_done(struct ttm_departed *departed);

/*
 * Adds a process that is still in the registry, which is left as it is. One that was
 * never heard to do anything is left out.
 */
void ttm_departed_add(struct ttm_departed *departed, const struct ttm_registry *reg,
                      const struct ttm_process *proc, bool is_running);

/* For who knows of processes from elsewhere: adds one with its sums. */
void ttm_departed_put_process(struct ttm_departed *departed,
                              const struct ttm_departed_process *process);

/*
 * Notes the TT-Metal of a process that had no device, and 'opening', what came of opening one ("": it
 * opened none). The first that failed to open one is kept, else the last.
 */
void ttm_departed_put_runtime(struct ttm_departed *departed, const char *runtime,
                              const char *opening, bool is_off);

/* The device of that id, new and empty if need be; NULL when memory is short. Borrowed. */
struct ttm_departed_device *ttm_departed_device_of(struct ttm_departed *departed, uint16_t id);

/* Why something is not tracked, by the first process that has a reason; NULL: none has. */
const char *ttm_departed_trouble(const struct ttm_departed *departed);

/* Whether a process has allocated or freed what is in no sum here. */
bool ttm_departed_has_missed(const struct ttm_departed *departed);

/* Whether there may be more, or less, that remains. */
bool ttm_departed_is_inexact(const struct ttm_departed *departed);

/*
 * Whether there is anything to tell. There is not where no process was heard of, and
 * where those that were could not be tracked, as ttm_departed_trouble() says.
 */
bool ttm_departed_has_news(const struct ttm_departed *departed);

#endif /* TTM_MODEL_DEPARTED_H */
