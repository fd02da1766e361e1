/* SPDX-License-Identifier: Apache-2.0 */
/*
 * brief - lives whose end is known when they are born.
 *
 * Such a life is added to all sums and taken out of them again as any other, each at
 * its moment, so that totals, peaks and the sums of its site are the same; but it is
 * not entered into the table of lives. Nobody may look at the lives of the process
 * from its beginning to its end.
 *
 * It is most of what a server does for a program that allocates in a loop, so it is inline.
 * The thread of the registry; no lock, no clock, no I/O.
 */
#ifndef TTM_MODEL_BRIEF_H
#define TTM_MODEL_BRIEF_H

#include <stdbool.h>
#include <stdint.h>

#include "model/registry.h"

struct ttm_brief_life {
    uint64_t serial;
    uint64_t bytes;
    uint64_t footprint_bytes;
    uint64_t birth_ns;
};

/* What is the same for all lives of a site. */
struct ttm_brief_site {
    uint32_t number;
    uint32_t device_set;
    uint8_t region;
};

/*
 * 'number' is a site of the process that a life has had. Returns false when its lives
 * are summed in other ways than those of a buffer, and then none is brief.
 */
bool ttm_brief_site_of(const struct ttm_process *proc, uint32_t number, struct ttm_brief_site *ret);

/* Whether 'n' lives more are within the limits, so that none of them need be counted for that. */
bool ttm_brief_has_room(const struct ttm_registry *reg, const struct ttm_process *proc, uint32_t n);

static inline void ttm_brief_add(struct ttm_totals *totals, const struct ttm_brief_life *life)
{
    ttm_region_add(totals, life->bytes, life->footprint_bytes);
}

static inline void ttm_brief_take(struct ttm_totals *totals, const struct ttm_brief_life *life)
{
    totals->ends++; /* freed by its owner */
    ttm_region_take(totals, life->bytes, life->footprint_bytes);
}

static inline struct ttm_totals *ttm_brief_own(const struct ttm_process *proc, uint32_t device,
                                               uint8_t region)
{
    return &proc->devices[proc->slots[device] - 1].totals.region[region];
}

static inline struct ttm_totals *ttm_brief_all(const struct ttm_registry *reg, uint32_t device,
                                               uint8_t region)
{
    return &reg->devices[device]->totals.region[region];
}

/* The totals of a life on several devices. */
void ttm_brief_add_many(struct ttm_registry *reg, struct ttm_process *proc,
                        const struct ttm_brief_site *site, const struct ttm_brief_life *life);
void ttm_brief_take_many(struct ttm_registry *reg, struct ttm_process *proc,
                         const struct ttm_brief_site *site, const struct ttm_brief_life *life);

/*
 * Returns whether the life has begun. Else nothing has changed, and it is one for
 * ttm_registry_birth(): its serial is live, or its serial or size is none.
 */
static inline bool ttm_brief_begin(struct ttm_registry *reg, struct ttm_process *proc,
                                   const struct ttm_brief_site *site,
                                   const struct ttm_brief_life *life)
{
    struct ttm_site_counts *counts = &proc->sites.counts[site->number];

    if (life->serial == 0 || life->bytes - 1 >= TTM_LIFE_BYTES_MAX ||
        life->footprint_bytes > TTM_LIFE_BYTES_MAX ||
        (!ttm_serial_is_new(proc, life->serial) && ttm_registry_has_serial(proc, life->serial)))
        return false;
    reg->births++;
    proc->births++;
    proc->bytes += life->bytes;
    counts->births++;
    ttm_site_counts_add(counts, life->bytes, life->footprint_bytes, life->birth_ns);
    if (site->device_set < TTM_DEVICE_COUNT) {
        ttm_brief_add(ttm_brief_own(proc, site->device_set, site->region), life);
        ttm_brief_add(ttm_brief_all(reg, site->device_set, site->region), life);
    } else {
        ttm_brief_add_many(reg, proc, site, life);
    }
    return true;
}

/* It has ended, freed by its owner. */
static inline void ttm_brief_end(struct ttm_registry *reg, struct ttm_process *proc,
                                 const struct ttm_brief_site *site,
                                 const struct ttm_brief_life *life)
{
    struct ttm_site_counts *counts = &proc->sites.counts[site->number];

    reg->ends++;
    proc->bytes -= life->bytes;
    counts->ends++;
    ttm_site_counts_take(counts, life->bytes, life->footprint_bytes);
    if (site->device_set < TTM_DEVICE_COUNT) {
        ttm_brief_take(ttm_brief_own(proc, site->device_set, site->region), life);
        ttm_brief_take(ttm_brief_all(reg, site->device_set, site->region), life);
    } else {
        ttm_brief_take_many(reg, proc, site, life);
    }
}

#endif /* TTM_MODEL_BRIEF_H */
