/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot - everything the registry knows, at one moment.
 *
 * Taking one costs what its totals cost; the lives are shared with the registry
 * until either changes (life_store). So an answer can be sent at the pace of its
 * reader and still speak of one moment. One thread, no I/O, no clock.
 */
#ifndef TTM_MODEL_SNAPSHOT_H
#define TTM_MODEL_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "model/registry.h"

struct ttm_snapshot_process {
    struct ttm_process *process; /* a reference; its sites are append-only */
    uint32_t live_count;
    uint32_t site_count;
    uint32_t origin_count; /* these are append-only too */
    struct ttm_site_counts *site_counts;
    struct ttm_process_counters counters;
    struct ttm_process_device *devices;
    uint32_t device_count;
    struct ttm_life_view lives;
};

struct ttm_snapshot_device {
    uint16_t id;
    struct ttm_device device;
};

struct ttm_snapshot {
    struct ttm_registry *reg;
    uint64_t time_ns; /* monotonic, given by the caller */
    struct ttm_snapshot_device *devices;
    uint32_t device_count;
    struct ttm_snapshot_process *processes;
    uint32_t process_count;
};

/* Returns NULL only when memory is short. 'reg' must outlive it. */
struct ttm_snapshot *ttm_snapshot_take(struct ttm_registry *reg, uint64_t time_ns);

/* The same, where processes of other users than 'uid' have totals alone; TTM_USER_NONE: none are. */
struct ttm_snapshot *ttm_snapshot_take_for(struct ttm_registry *reg, uint64_t time_ns,
                                           uint32_t uid);

/* NULL is fine. */
void ttm_snapshot_free(struct ttm_snapshot *snap);

/*
 * The self-check: sums up the lives again and compares with the totals of the
 * snapshot and with the sums of its sites. Done in steps, so that it stalls nobody. Uses the snapshot's lives
 * up.
 */
struct ttm_snapshot_check {
    struct ttm_registry *reg;
    struct ttm_snapshot *snap;
    uint32_t process;
    uint64_t at;
    uint32_t site; /* of the process at hand, once its allocations are summed up by site */
    struct ttm_process_device *sums;   /* of the process at hand, as snap's devices */
    struct ttm_site_counts *site_sums; /* likewise, as its sites */
    uint64_t lives;
    uint64_t work;       /* so far, in sums that were changed or compared */
    uint64_t mismatches; /* totals that are not the sum of their lives */
};

/*
 * Call it right after the snapshot was taken: the sums over all processes are
 * compared here. Returns 0 or -ENOMEM. Takes the snapshot over, also on an error.
 */
int ttm_snapshot_check_init(struct ttm_snapshot_check *check, struct ttm_registry *reg,
                            struct ttm_snapshot *snap);

/* Changes or compares about 'budget' more sums. Returns 1 when done, 0 when there is more, -ENOMEM. */
int ttm_snapshot_check_step(struct ttm_snapshot_check *check, uint32_t budget);

void ttm_snapshot_check_done(struct ttm_snapshot_check *check);

/* All of it at once, for tests: the number of mismatches, or a negative errno. */
int64_t ttm_registry_check(struct ttm_registry *reg);

#endif /* TTM_MODEL_SNAPSHOT_H */
