/* SPDX-License-Identifier: Apache-2.0 */
#include "model/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A copy of an array, NULL for an empty one. Returns whether there was memory. */
static bool copy_array(const void *from, size_t count, size_t size, void *ret)
{
    void *copy = NULL;

    if (count > 0) {
        copy = malloc(count * size);
        if (!copy)
            return false;
        memcpy(copy, from, count * size);
    }
    memcpy(ret, &copy, sizeof(copy));
    return true;
}

static void release_process(struct ttm_registry *reg, struct ttm_snapshot_process *p)
{
    ttm_registry_bury(reg, &p->lives);
    free(p->devices);
    free(p->site_counts);
    ttm_process_unref(p->process);
}

/* What other users may not see is not copied either, however much it is. */
static int take_allocations(const struct ttm_process *proc, struct ttm_snapshot_process *ret)
{
    ret->site_count = proc->sites.count;
    ret->origin_count = proc->origins.count;
    if (!copy_array(proc->sites.counts, proc->sites.count, sizeof(ret->site_counts[0]),
                    &ret->site_counts))
        return -ENOMEM;
    return ttm_life_view_take(&proc->lives.store, &ret->lives);
}

static int take_process(struct ttm_registry *reg, struct ttm_process *proc, bool is_visible,
                        struct ttm_snapshot_process *ret)
{
    *ret = (struct ttm_snapshot_process){
        .process = proc,
        .live_count = proc->lives.store.live,
        .counters = proc->counters,
        .device_count = proc->device_count,
    };
    ttm_process_ref(proc);
    if (copy_array(proc->devices, proc->device_count, sizeof(ret->devices[0]), &ret->devices) &&
        (!is_visible || take_allocations(proc, ret) == 0))
        return 0;
    release_process(reg, ret);
    return -ENOMEM;
}

static int take_devices(const struct ttm_registry *reg, struct ttm_snapshot *snap)
{
    if (reg->device_count == 0)
        return 0;
    snap->devices = malloc(reg->device_count * sizeof(snap->devices[0]));
    if (!snap->devices)
        return -ENOMEM;
    for (uint16_t id = 0; id < TTM_DEVICE_COUNT; id++) {
        if (reg->devices[id])
            snap->devices[snap->device_count++] =
                (struct ttm_snapshot_device){.id = id, .device = *reg->devices[id]};
    }
    return 0;
}

struct ttm_snapshot *ttm_snapshot_take(struct ttm_registry *reg, uint64_t time_ns)
{
    return ttm_snapshot_take_for(reg, time_ns, TTM_USER_NONE);
}

struct ttm_snapshot *ttm_snapshot_take_for(struct ttm_registry *reg, uint64_t time_ns, uint32_t uid)
{
    struct ttm_snapshot *snap = calloc(1, sizeof(*snap));

    if (!snap)
        return NULL;
    snap->reg = reg;
    snap->time_ns = time_ns;
    reg->snapshots++;
    if (take_devices(reg, snap) < 0)
        goto fail;
    snap->processes = calloc(reg->process_count + 1, sizeof(snap->processes[0]));
    if (!snap->processes)
        goto fail;
    TTM_LIST_FOR_EACH(pos, &reg->processes) {
        struct ttm_process *proc = TTM_CONTAINER_OF(pos, struct ttm_process, link);
        const bool is_visible = uid == TTM_USER_NONE || uid == proc->info.uid;
        if (take_process(reg, proc, is_visible, &snap->processes[snap->process_count]) < 0)
            goto fail;
        snap->process_count++;
    }
    return snap;

fail:
    ttm_snapshot_free(snap);
    return NULL;
}

void ttm_snapshot_free(struct ttm_snapshot *snap)
{
    if (!snap)
        return;
    for (uint32_t i = 0; snap->processes && i < snap->process_count; i++)
        release_process(snap->reg, &snap->processes[i]);
    snap->reg->snapshots--;
    free(snap->processes);
    free(snap->devices);
    free(snap);
}

static bool is_equal(const struct ttm_totals *a, const struct ttm_totals *b)
{
    return a->count == b->count && a->bytes == b->bytes && a->footprint_bytes == b->footprint_bytes;
}

static uint64_t count_differences(const struct ttm_device_totals *a,
                                  const struct ttm_device_totals *b)
{
    uint64_t differences = 0;

    for (size_t r = 0; r < TTM_REGION_COUNT; r++)
        differences += !is_equal(&a->region[r], &b->region[r]);
    return differences + (memcmp(a->kernel_bytes, b->kernel_bytes, sizeof(a->kernel_bytes)) != 0);
}

/* The totals of a process on a device, or NULL; a process's slots stay once they are given. */
static const struct ttm_process_device *device_of(const struct ttm_snapshot_process *p, uint32_t id)
{
    const uint32_t slot = p->process->slots ? p->process->slots[id] : 0;

    return slot != 0 && slot <= p->device_count ? &p->devices[slot - 1] : NULL;
}

static void add_totals(struct ttm_device_totals *sums, const struct ttm_device_totals *own)
{
    for (size_t r = 0; r < TTM_REGION_COUNT; r++) {
        sums->region[r].count += own->region[r].count;
        sums->region[r].bytes += own->region[r].bytes;
        sums->region[r].footprint_bytes += own->region[r].footprint_bytes;
    }
    for (size_t k = 0; k < TTM_KERNEL_KIND_COUNT; k++)
        sums->kernel_bytes[k] += own->kernel_bytes[k];
}

/* The sums over all processes against the processes' own, at the moment of the snapshot. */
static int64_t count_device_mismatches(const struct ttm_registry *reg,
                                       const struct ttm_snapshot *snap)
{
    struct ttm_device_totals *sums = calloc(reg->device_count + 1, sizeof(sums[0]));
    uint16_t places[TTM_DEVICE_COUNT] = {0};
    uint16_t count = 0;
    int64_t mismatches = 0;

    if (!sums)
        return -ENOMEM;
    for (uint32_t id = 0; id < TTM_DEVICE_COUNT; id++) {
        if (reg->devices[id])
            places[id] = count++;
    }
    for (uint32_t p = 0; p < snap->process_count; p++) {
        const struct ttm_snapshot_process *process = &snap->processes[p];
        for (uint32_t i = 0; i < process->device_count; i++)
            add_totals(&sums[places[process->devices[i].id]], &process->devices[i].totals);
    }
    for (uint32_t id = 0; id < TTM_DEVICE_COUNT; id++) {
        if (reg->devices[id])
            mismatches += (int64_t)count_differences(&sums[places[id]], &reg->devices[id]->totals);
    }
    free(sums);
    return mismatches;
}

/* What each user has against its processes, at the moment of the snapshot. */
static uint64_t count_user_mismatches(const struct ttm_snapshot *snap)
{
    uint64_t mismatches = 0;

    for (uint32_t p = 0; p < snap->process_count; p++)
        snap->processes[p].process->user->counted = 0;
    for (uint32_t p = 0; p < snap->process_count; p++)
        snap->processes[p].process->user->counted += snap->processes[p].live_count;
    for (uint32_t p = 0; p < snap->process_count; p++) {
        const struct ttm_user *user = snap->processes[p].process->user;
        mismatches += user->counted != user->allocations.used;
    }
    return mismatches;
}

int ttm_snapshot_check_init(struct ttm_snapshot_check *check, struct ttm_registry *reg,
                            struct ttm_snapshot *snap)
{
    *check = (struct ttm_snapshot_check){.reg = reg, .snap = snap};
    if (!snap)
        return -ENOMEM;
    const int64_t mismatches = count_device_mismatches(reg, snap);
    if (mismatches < 0) {
        ttm_snapshot_check_done(check);
        return (int)mismatches;
    }
    check->mismatches = (uint64_t)mismatches + count_user_mismatches(snap);
    return 0;
}

void ttm_snapshot_check_done(struct ttm_snapshot_check *check)
{
    free(check->sums);
    free(check->site_sums);
    ttm_snapshot_free(check->snap);
    *check = (struct ttm_snapshot_check){0};
}

/* Empty sums for the devices and sites of 'p', in the same order. */
static int begin_process(struct ttm_snapshot_check *check, const struct ttm_snapshot_process *p)
{
    check->sums = calloc(p->device_count ? p->device_count : 1, sizeof(check->sums[0]));
    check->site_sums = calloc((size_t)p->site_count + 1, sizeof(check->site_sums[0]));
    if (!check->sums || !check->site_sums)
        return -ENOMEM;
    for (uint32_t i = 0; i < p->device_count; i++)
        check->sums[i].id = p->devices[i].id;
    return 0;
}

static void add_life(struct ttm_snapshot_check *check, const struct ttm_snapshot_process *p,
                     const struct ttm_life *life)
{
    check->lives++;
    if (life->site < p->site_count)
        ttm_site_counts_add(&check->site_sums[life->site], life->bytes, life->footprint_bytes,
                            life->birth_ns);
    else
        check->mismatches++; /* of a site that is not known */
}

/*
 * All allocations of a site have the same devices, so its sum is added to theirs, however many they
 * are. Returns how many sums that has changed.
 */
static uint32_t add_site(struct ttm_snapshot_check *check, const struct ttm_snapshot_process *p,
                         uint32_t number)
{
    const struct ttm_site *site = ttm_site_table_get(&p->process->sites, number);
    const struct ttm_site_counts *sum = &check->site_sums[number];
    const struct ttm_device_set set = ttm_device_sets_get(&check->reg->sets, site->device_set);

    if (sum->live == 0)
        return 1;
    for (uint16_t d = 0; d < set.count; d++) {
        const struct ttm_process_device *kept = device_of(p, set.devices[d]);
        if (!kept)
            check->mismatches++; /* a device that has no totals */
        else
            ttm_totals_add_site(&check->sums[kept - p->devices].totals, site, sum);
    }
    return set.count;
}

/* The first and the last birth may be of lives that have ended. */
static bool is_sum_right(const struct ttm_site_counts *kept, const struct ttm_site_counts *sums)
{
    return kept->live == sums->live && kept->bytes == sums->bytes &&
           kept->footprint_bytes == sums->footprint_bytes &&
           (sums->live == 0 ||
            (kept->first_ns <= sums->first_ns && kept->last_ns >= sums->last_ns));
}

static void compare(struct ttm_snapshot_check *check, const struct ttm_snapshot_process *p)
{
    for (uint32_t i = 0; i < p->device_count; i++)
        check->mismatches += count_differences(&p->devices[i].totals, &check->sums[i].totals);
    for (uint32_t i = 0; i < p->site_count; i++)
        check->mismatches += !is_sum_right(&p->site_counts[i], &check->site_sums[i]);
}

static void end_process(struct ttm_snapshot_check *check)
{
    free(check->sums);
    free(check->site_sums);
    check->sums = NULL;
    check->site_sums = NULL;
    check->at = 0;
    check->site = 0;
    check->process++;
}

/* Works on one process. Returns whether that is done, before 'end'. */
static bool check_process(struct ttm_snapshot_check *check, struct ttm_snapshot_process *p,
                          uint64_t end)
{
    const struct ttm_life *life;

    while (check->site == 0 && (life = ttm_life_view_next(&p->lives, &check->at)) != NULL) {
        add_life(check, p, life);
        if (++check->work >= end)
            return false;
    }
    while (check->site < p->site_count) {
        check->work += add_site(check, p, check->site++);
        if (check->work >= end)
            return false;
    }
    compare(check, p);
    check->work += p->device_count + p->site_count + 1;
    return true;
}

int ttm_snapshot_check_step(struct ttm_snapshot_check *check, uint32_t budget)
{
    const uint64_t end = check->work + budget;

    while (check->process < check->snap->process_count) {
        struct ttm_snapshot_process *p = &check->snap->processes[check->process];

        if (!check->sums && begin_process(check, p) < 0)
            return -ENOMEM;
        if (!check_process(check, p, end))
            return 0;
        end_process(check);
        if (check->work >= end && check->process < check->snap->process_count)
            return 0;
    }
    return 1;
}

int64_t ttm_registry_check(struct ttm_registry *reg)
{
    struct ttm_snapshot_check check;

    int r = ttm_snapshot_check_init(&check, reg, ttm_snapshot_take(reg, 0));
    while (r == 0)
        r = ttm_snapshot_check_step(&check, UINT32_MAX);
    const int64_t mismatches = (int64_t)check.mismatches;
    ttm_snapshot_check_done(&check);
    return r < 0 ? r : mismatches;
}
