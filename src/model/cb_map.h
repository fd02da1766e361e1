/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cb_map - which circular buffers of a process lie on which cores.
 *
 * Programs that are kept for reuse plan their circular buffers over the same
 * addresses: what they take of a core is the union of these, not the sum. What is
 * resident on a core belongs to the program that was sent there last.
 *
 * One thread, no I/O, no clock.
 */
#ifndef TTM_MODEL_CB_MAP_H
#define TTM_MODEL_CB_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "model/device_sets.h"
#include "wire/note.h"

#define TTM_CBS_MAX 16384
#define TTM_CORE_GRID 32 /* cores on a side; larger coordinates are not believed */
#define TTM_CORE_SETS_MAX 4096

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

struct ttm_cb_map {
    struct ttm_cb *cbs;
    uint32_t count;
    uint32_t room;
    struct ttm_core_set *core_sets;
    uint32_t core_set_count;
    bool is_changed; /* since somebody cleared it */
};

void ttm_cb_map_init(struct ttm_cb_map *map);
void ttm_cb_map_done(struct ttm_cb_map *map);

/* The index of the set of that note, or -ENOENT. */
int ttm_cb_map_find_cores(const struct ttm_cb_map *map, uint32_t note);

/* Returns the index of the new set, -EINVAL for cores that no chip has, -ENOSPC, -ENOMEM. */
int ttm_cb_map_add_cores(struct ttm_cb_map *map, uint32_t note, const struct ttm_core_range *ranges,
                         uint32_t count);

/* Returns 0, -ENOSPC or -ENOMEM. */
int ttm_cb_map_add(struct ttm_cb_map *map, const struct ttm_cb *cb);

/* Nothing happens when it is not there. */
void ttm_cb_map_remove(struct ttm_cb_map *map, uint64_t serial);
void ttm_cb_map_clear(struct ttm_cb_map *map);

struct ttm_cb_sums {
    uint64_t registered_bytes; /* of all programs, over all cores of the device */
    uint64_t resident_bytes;   /* of those sent last */
};

/* 'programs' are those sent to the device, newest first. Returns 0 or -ENOMEM. */
int ttm_cb_map_sum(const struct ttm_cb_map *map, const struct ttm_device_sets *sets,
                   uint16_t device, const uint64_t *programs, uint32_t program_count,
                   struct ttm_cb_sums *ret);

#endif /* TTM_MODEL_CB_MAP_H */
