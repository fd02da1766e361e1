/* SPDX-License-Identifier: Apache-2.0 */
/*
 * groups - devices that have had the same history so far, counted once.
 *
 * A tensor on a mesh of 32 chips is one life that counts on 32 devices. Devices that
 * have been in the same sets all along have the same totals, so they form a group, and
 * an event touches the groups of its set: one, as a rule. A set that cuts through a
 * group splits it in two that go on from the same totals.
 *
 * One thread, no I/O, no clock.
 */
#ifndef TTM_ANALYSIS_GROUPS_H
#define TTM_ANALYSIS_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/course.h"
#include "wire/region.h"

/* What is held: by a cell, a device, or at a moment. */
struct ttm_held {
    uint64_t count;
    uint64_t bytes;
    uint64_t footprint_bytes;
};

static inline void ttm_held_add(struct ttm_held *held, const struct ttm_held *more)
{
    held->count += more->count;
    held->bytes += more->bytes;
    held->footprint_bytes += more->footprint_bytes;
}

static inline void ttm_held_take(struct ttm_held *held, const struct ttm_held *less)
{
    held->count -= less->count;
    held->bytes -= less->bytes;
    held->footprint_bytes -= less->footprint_bytes;
}

/* A region of each device of a group. */
struct ttm_group_region {
    struct ttm_held now;
    struct ttm_held closed;  /* ended with their device, allocator or process only */
    struct ttm_held at_mark; /* at the first of the marks that were asked for */
    uint64_t births;
    uint64_t frees;
    uint64_t peak_bytes;
    uint64_t peak_footprint_bytes;
    uint64_t peak_ns;          /* of the footprint */
    uint64_t peak_births;      /* of the process until then */
    uint64_t peak_version;     /* goes up with each new peak, see analysis/ledger.c */
    struct ttm_course *course; /* of the footprint; NULL: not kept */
};

#define TTM_GROUP_PROGRAMS 8

struct ttm_group_cbs {
    uint64_t coreless_bytes; /* of those whose cores are not known */
    uint64_t registered_bytes;
    uint64_t resident_bytes;
    uint64_t peak_registered_bytes;
    uint64_t peak_resident_bytes;
    uint64_t kept_registered_bytes; /* when the device was closed or the process ended */
    uint64_t kept_resident_bytes;
    uint64_t programs[TTM_GROUP_PROGRAMS]; /* sent there, newest first */
    uint32_t program_count;
    uint64_t mark_programs[TTM_GROUP_PROGRAMS]; /* likewise, at the mark */
    uint32_t mark_program_count;
    uint64_t mark_registered_bytes;
    uint64_t mark_resident_bytes;
};

struct ttm_group {
    struct ttm_group_region region[TTM_REGION_COUNT];
    uint64_t kernel_bytes[TTM_KERNEL_KIND_COUNT]; /* live or ended with their device only */
    struct ttm_group_cbs cbs;
    uint64_t births; /* of the process when something was last born there */
    uint16_t first_device;
};

/* Devices that lives are on together. */
struct ttm_group_set {
    uint32_t number; /* in the recording */
    uint32_t *groups;
    uint32_t group_count;
    uint16_t *devices; /* ascending */
    uint16_t device_count;
    uint32_t session; /* + 1: of the ledger, the one that lives are born in; 0: none yet */
    uint64_t live;    /* lives */
    bool is_closing;  /* some ended with the device, and nothing was born since */
};

struct ttm_groups {
    struct ttm_group *groups;
    uint32_t count;
    struct ttm_group_set *sets;
    uint32_t set_count;
    uint16_t of_device[TTM_DEVICE_COUNT]; /* group + 1, 0: none */
};

void ttm_groups_init(struct ttm_groups *groups);
void ttm_groups_done(struct ttm_groups *groups);

/* The index of the set of that number, or -ENOENT. */
int ttm_groups_find(const struct ttm_groups *groups, uint32_t number);

/* A group was split: 'twin' goes on with what 'group' had, in each set that had it, behind the rest. */
typedef int (*ttm_groups_split_fn)(void *arg, uint32_t group, uint32_t twin);

/*
 * A set of devices, in any order, doubles and those out of range ignored. Returns its
 * index; -EINVAL for one without devices; -ENOMEM or what 'split' returned, after
 * which the groups are not to be used any more.
 */
int ttm_groups_add(struct ttm_groups *groups, uint32_t number, const uint16_t *devices,
                   uint32_t count, ttm_groups_split_fn split, void *arg);

#endif /* TTM_ANALYSIS_GROUPS_H */
