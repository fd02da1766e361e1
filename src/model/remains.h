/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remains - allocations that were not freed by their owner, counted by what they are.
 *
 * A bounded set of kinds: those that are alike in size, place and origin are one
 * kind with a count. Beyond the bound, and when memory is short, only the sums of
 * the others grow. Parts of programs are in sums of their own alone: the program cache
 * keeps them on purpose. One thread, no I/O, no clock.
 */
#ifndef TTM_MODEL_REMAINS_H
#define TTM_MODEL_REMAINS_H

#include <stdbool.h>
#include <stdint.h>

#define TTM_REMAINS_MAX 4096
#define TTM_REMAINS_DEVICES 6

struct ttm_device_sets;
struct ttm_life;
struct ttm_site;

/* Allocations that remained and are alike. */
struct ttm_remains {
    uint64_t bytes;           /* of each */
    uint64_t footprint_bytes; /* of each, on one device */
    uint64_t count;
    uint32_t origin; /* as who has the set numbers it, 0: not known */
    uint8_t region;
    uint8_t kind;
    bool is_program_part; /* a circular buffer or kernel of a program, or a buffer it keeps */
    uint16_t device_count;
    uint16_t devices[TTM_REMAINS_DEVICES]; /* the first of them, ascending */
    uint16_t last_device;
    uint32_t device_set; /* as the owner of the list numbers it */
};

struct ttm_remains_set {
    struct ttm_remains *list; /* in no order */
    uint32_t count;
    uint32_t *index;                 /* open addressing, place + 1, 0 is empty */
    uint64_t total;                  /* ever added */
    uint64_t total_bytes;            /* of these, once for each */
    uint64_t others;                 /* that are in no kind */
    uint64_t others_footprint_bytes; /* of these, on all their devices together */
    uint64_t program_parts;          /* likewise in no kind */
    uint64_t program_buffers;        /* of these: buffers that a program keeps */
    uint64_t program_bytes;
    uint64_t program_footprint_bytes;
    uint64_t seed;
};

/* Who chooses sizes does not know 'seed'. */
void ttm_remains_set_init(struct ttm_remains_set *set, uint64_t seed);
void ttm_remains_set_done(struct ttm_remains_set *set);

/* One life as a kind of its own; its origin is that of the site. */
struct ttm_remains ttm_remains_of(const struct ttm_device_sets *sets, const struct ttm_site *site,
                                  const struct ttm_life *life);

/* Adds as many as 'remains' counts. */
void ttm_remains_add(struct ttm_remains_set *set, const struct ttm_remains *remains);

/* What they take on all their devices together. */
static inline uint64_t ttm_remains_taken(const struct ttm_remains *remains)
{
    return remains->count * remains->footprint_bytes * remains->device_count;
}

#endif /* TTM_MODEL_REMAINS_H */
