/* SPDX-License-Identifier: Apache-2.0 */
/*
 * brief - lives whose end is known when they are born.
 *
 * Such a life counts in all sums as any other, each at its moment, so that totals,
 * peaks and the sums of its site are the same; but it is not entered into the table
 * of lives, and where it is on several devices, their totals are brought up to date for
 * many lives at a time.
 * Nobody may look at the lives of the process from its beginning to its end.
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

/*
 * What brief lives on several devices have changed in a region since the totals of these were
 * brought up to date: it is the same for each of them.
 */
struct ttm_brief_run {
    uint32_t device_set;
    uint32_t events; /* births and ends; 0: all is up to date */
    uint32_t births;
    int64_t bytes, footprint_bytes;
    int64_t most_bytes, most_footprint_bytes; /* at once; at least 0 */
};

/* All zero at first. Totals are behind by it, until ttm_brief_settle(). */
struct ttm_brief_runs {
    struct ttm_brief_run region[TTM_REGION_CB];
    bool is_any_open;
};

/* The slow part of ttm_brief_settle(). */
__attribute__((noinline)) void ttm_brief_settle_all(struct ttm_registry *reg,
                                                    struct ttm_process *proc,
                                                    struct ttm_brief_runs *runs);

/* Nobody may look at totals, or change them in other ways, before this. */
static inline void ttm_brief_settle(struct ttm_registry *reg, struct ttm_process *proc,
                                    struct ttm_brief_runs *runs)
{
    if (runs->is_any_open)
        ttm_brief_settle_all(reg, proc, runs);
}

/* The same of one region, whose run is empty then. */
__attribute__((noinline)) void ttm_brief_settle_run(struct ttm_registry *reg,
                                                    struct ttm_process *proc,
                                                    struct ttm_brief_run *run, uint8_t region);

/* One more event of a life that begins or ends on the devices of a set. */
static inline void ttm_brief_open(struct ttm_registry *reg, struct ttm_process *proc,
                                  struct ttm_brief_runs *runs, const struct ttm_brief_site *site)
{
    struct ttm_brief_run *run = &runs->region[site->region];

    if (run->device_set != site->device_set) { /* the two may have devices in common */
        ttm_brief_settle_run(reg, proc, run, site->region);
        run->device_set = site->device_set;
    }
    run->events++;
    runs->is_any_open = true;
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

/* Whether it is on one device, whose totals can be changed now: a run may have had it too. */
static inline bool ttm_brief_is_on_one(struct ttm_registry *reg, struct ttm_process *proc,
                                       struct ttm_brief_run *run, const struct ttm_brief_site *site)
{
    if (site->device_set >= TTM_DEVICE_COUNT)
        return false;
    if (__builtin_expect(run->events > 0, 0))
        ttm_brief_settle_run(reg, proc, run, site->region);
    return true;
}

static inline void ttm_brief_add(struct ttm_registry *reg, struct ttm_process *proc,
                                 struct ttm_brief_runs *runs, const struct ttm_brief_site *site,
                                 const struct ttm_brief_life *life)
{
    struct ttm_brief_run *run = &runs->region[site->region];

    if (ttm_brief_is_on_one(reg, proc, run, site)) {
        ttm_region_add(ttm_brief_own(proc, site->device_set, site->region), life->bytes,
                       life->footprint_bytes);
        ttm_region_add(ttm_brief_all(reg, site->device_set, site->region), life->bytes,
                       life->footprint_bytes);
        return;
    }
    ttm_brief_open(reg, proc, runs, site);
    run->births++;
    run->bytes += (int64_t)life->bytes;
    run->footprint_bytes += (int64_t)life->footprint_bytes;
    if (run->bytes > run->most_bytes)
        run->most_bytes = run->bytes;
    if (run->footprint_bytes > run->most_footprint_bytes)
        run->most_footprint_bytes = run->footprint_bytes;
}

static inline void ttm_brief_take_one(struct ttm_totals *totals, const struct ttm_brief_life *life)
{
    totals->ends++; /* freed by its owner */
    ttm_region_take(totals, life->bytes, life->footprint_bytes);
}

static inline void ttm_brief_take(struct ttm_registry *reg, struct ttm_process *proc,
                                  struct ttm_brief_runs *runs, const struct ttm_brief_site *site,
                                  const struct ttm_brief_life *life)
{
    struct ttm_brief_run *run = &runs->region[site->region];

    if (ttm_brief_is_on_one(reg, proc, run, site)) {
        ttm_brief_take_one(ttm_brief_own(proc, site->device_set, site->region), life);
        ttm_brief_take_one(ttm_brief_all(reg, site->device_set, site->region), life);
        return;
    }
    ttm_brief_open(reg, proc, runs, site);
    run->bytes -= (int64_t)life->bytes;
    run->footprint_bytes -= (int64_t)life->footprint_bytes;
}

/*
 * Returns whether the life has begun. Else nothing has changed, and it is one for
 * ttm_registry_birth(): its serial is live, or its serial or size is none.
 */
static inline bool ttm_brief_begin(struct ttm_registry *reg, struct ttm_process *proc,
                                   struct ttm_brief_runs *runs, const struct ttm_brief_site *site,
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
    ttm_brief_add(reg, proc, runs, site, life);
    return true;
}

/* It has ended, freed by its owner. */
static inline void ttm_brief_end(struct ttm_registry *reg, struct ttm_process *proc,
                                 struct ttm_brief_runs *runs, const struct ttm_brief_site *site,
                                 const struct ttm_brief_life *life)
{
    struct ttm_site_counts *counts = &proc->sites.counts[site->number];

    reg->ends++;
    proc->bytes -= life->bytes;
    counts->ends++;
    ttm_site_counts_take(counts, life->bytes, life->footprint_bytes);
    ttm_brief_take(reg, proc, runs, site, life);
}

#endif /* TTM_MODEL_BRIEF_H */
