/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cb_map - which circular buffers of a process lie on which cores.
 *
 * Programs that are kept for reuse plan their circular buffers over the same
 * addresses: what they take of a core is the union of these, not the sum. What is
 * resident on a core belongs to the program that was sent there last.
 *
 * The process chooses every number in here, so each call has a bounded cost: adding and
 * removing are constant, and a sum is linear in TTM_CBS_MAX and TTM_CB_CELLS_MAX.
 *
 * One thread, no I/O, no clock.
 */
#ifndef TTM_MODEL_CB_MAP_H
#define TTM_MODEL_CB_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/u64_map.h"
#include "model/device_sets.h"
#include "model/quota.h"
#include "wire/note.h"

#define TTM_CBS_MAX 16384
#define TTM_CORE_GRID 32 /* cores on a side; larger coordinates are not believed */
#define TTM_CORE_SETS_MAX 4096
/* The number of cores of each circular buffer, added up over all of them. */
#define TTM_CB_CELLS_MAX (1u << 21)
#define TTM_CB_PROGRAMS_MAX 8 /* in the list that a sum is asked for */

/* A set of cores, and the number that the process gave it. */
struct ttm_core_set {
    uint32_t note;
    uint32_t count;
    uint32_t rows[TTM_CORE_GRID]; /* a bit for each x */
};

struct ttm_cb {
    uint64_t serial;
    uint64_t program;
    uint64_t address;
    uint64_t core_bytes; /* on each core */
    uint32_t core_set;   /* index in the map */
    uint32_t device_set;
};

struct ttm_cb_sorted;

struct ttm_cb_map {
    struct ttm_cb *cbs;
    uint32_t count;
    uint32_t room;
    uint32_t cells; /* the number of cores of each, added up */
    struct ttm_core_set *core_sets;
    uint32_t core_set_count;
    uint32_t core_set_room;
    struct ttm_u64_map by_serial;
    struct ttm_u64_map by_note;
    struct ttm_cb_sorted *sorted; /* what sums remember; NULL before the first circular buffer */
    bool is_changed;              /* since somebody cleared it */
    /* NULL: none. Set by the owner after the init. */
    struct ttm_quota *cb_quota;
    struct ttm_quota *core_set_quota;
};

/* The process that chooses serials, notes and addresses does not know 'seed'. */
void ttm_cb_map_init(struct ttm_cb_map *map, uint64_t seed);
void ttm_cb_map_done(struct ttm_cb_map *map);

/* The index of the set of that note, or -ENOENT. */
int ttm_cb_map_find_cores(const struct ttm_cb_map *map, uint32_t note);

/*
 * Returns the index of the new set; -ENOSPC; -EEXIST for a note that has one; -EINVAL for cores
 * that no chip has; -ENOMEM.
 */
int ttm_cb_map_add_cores(struct ttm_cb_map *map, uint32_t note, const struct ttm_core_range *ranges,
                         uint32_t count);

/* Returns 0; -ENOSPC; -EEXIST for a serial that is there; -ENOMEM. On an error nothing has changed. */
int ttm_cb_map_add(struct ttm_cb_map *map, const struct ttm_cb *cb);

/* Nothing happens when it is not there. */
void ttm_cb_map_remove(struct ttm_cb_map *map, uint64_t serial);
void ttm_cb_map_clear(struct ttm_cb_map *map);

struct ttm_cb_sums {
    uint64_t registered_bytes; /* of all programs, over all cores of the device */
    uint64_t resident_bytes;   /* of those sent last */
};

/*
 * 'programs' are those sent to the device, newest first. An address range that passes the end of
 * 64 bits ends there. Returns 0 or -ENOMEM.
 *
 * The map sorts once after a change, and remembers sums until the next one: devices that have the
 * same circular buffers and the same programs cost one sum together.
 */
int ttm_cb_map_sum(const struct ttm_cb_map *map, const struct ttm_device_sets *sets,
                   uint16_t device, const uint64_t *programs, uint32_t program_count,
                   struct ttm_cb_sums *ret);

/* What all sums of the map have cost so far, in steps of about a nanosecond. */
uint64_t ttm_cb_map_steps(const struct ttm_cb_map *map);

#endif /* TTM_MODEL_CB_MAP_H */
