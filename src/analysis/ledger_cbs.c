/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Circular buffers are summed over the cores of a chip, which takes tens of
 * microseconds; so that is done at most once in an interval of recorded time that
 * doubles as sums add up, and at the end. Their peaks are the largest of these, and of
 * what any program has by itself.
 */
#include "analysis/ledger_cbs.h"

#include <errno.h>
#include <string.h>

#include "wire/note.h"

#define SUMS_PER_INTERVAL 256 /* then the interval doubles */

_Static_assert(TTM_GROUP_PROGRAMS <= TTM_CB_PROGRAMS_MAX, "a sum accepts so many");

/* Returns 0 or -ENOMEM. What cannot be placed on cores counts without them. */
static int place(struct ttm_ledger *ledger, const struct ttm_recorded_life *life,
                 const struct ttm_group_set *set, bool *ret_is_placed)
{
    struct ttm_core_range ranges[TTM_CORE_RANGES_MAX];
    int cores = life->cores ? ttm_cb_map_find_cores(&ledger->cbs, life->cores) : -ENOENT;

    *ret_is_placed = false;
    if (cores < 0 && life->cores) {
        const struct ttm_noted *note =
            ttm_notebook_find(&ledger->notes, life->cores, TTM_NOTED_CORES);
        const int count = note ? ttm_cores_note_decode(note->bytes, note->length, ranges) : 0;
        if (count > 0)
            cores = ttm_cb_map_add_cores(&ledger->cbs, life->cores, ranges, (uint32_t)count);
    }
    if (cores == -ENOMEM)
        return cores;
    if (cores < 0 || ledger->cbs.core_sets[cores].count == 0)
        return 0;
    struct ttm_cb cb = {
        .serial = life->serial,
        .program = life->id,
        .address = life->address,
        .core_bytes = life->footprint_bytes / ledger->cbs.core_sets[cores].count,
        .core_set = (uint32_t)cores,
    };
    int r =
        ttm_device_sets_intern(&ledger->cb_sets, set->devices, set->device_count, &cb.device_set);
    if (r == 0)
        r = ttm_cb_map_add(&ledger->cbs, &cb);
    *ret_is_placed = r == 0;
    return r == -ENOMEM ? r : 0;
}

/*
 * A program that is laid out is about to be sent: registered and resident is all that it has, be it
 * for a moment between two sums.
 */
static void raise_program_peaks(struct ttm_ledger *ledger, const struct ttm_group_set *set,
                                const struct ttm_recorded_life *life)
{
    ledger->cb_program_bytes =
        (ledger->cb_program == life->id ? ledger->cb_program_bytes : 0) + life->footprint_bytes;
    ledger->cb_program = life->id;
    for (uint32_t i = 0; i < set->group_count; i++) {
        struct ttm_group_cbs *cbs = &ledger->groups.groups[set->groups[i]].cbs;
        if (ledger->cb_program_bytes > cbs->peak_registered_bytes)
            cbs->peak_registered_bytes = ledger->cb_program_bytes;
        if (ledger->cb_program_bytes > cbs->peak_resident_bytes)
            cbs->peak_resident_bytes = ledger->cb_program_bytes;
    }
}

void ttm_ledger_cbs_coreless(struct ttm_ledger *ledger, const struct ttm_group_set *set,
                             uint64_t bytes)
{
    for (uint32_t i = 0; i < set->group_count; i++)
        ledger->groups.groups[set->groups[i]].cbs.coreless_bytes += bytes;
}

/* As that of the regions in ledger.c. */
static void raise_peaks(const struct ttm_ledger *ledger, struct ttm_group_cbs *cbs)
{
    if (ledger->is_loss_open)
        return;
    if (cbs->registered_bytes > cbs->peak_registered_bytes)
        cbs->peak_registered_bytes = cbs->registered_bytes;
    if (cbs->resident_bytes > cbs->peak_resident_bytes)
        cbs->peak_resident_bytes = cbs->resident_bytes;
}

/* What those of a group take, and those of the programs that were sent there. */
static int sum_group(struct ttm_ledger *ledger, const struct ttm_group *group,
                     const uint64_t *programs, uint32_t count, struct ttm_cb_sums *ret)
{
    const int r =
        ttm_cb_map_sum(&ledger->cbs, &ledger->cb_sets, group->first_device, programs, count, ret);

    ret->registered_bytes += group->cbs.coreless_bytes;
    ret->resident_bytes += group->cbs.coreless_bytes;
    return r;
}

int ttm_ledger_cbs_sum(struct ttm_ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->groups.count; i++) {
        struct ttm_group *group = &ledger->groups.groups[i];
        struct ttm_group_cbs *cbs = &group->cbs;
        struct ttm_cb_sums sums = {0};
        const int r = sum_group(ledger, group, cbs->programs, cbs->program_count, &sums);
        if (r < 0)
            return r;
        cbs->registered_bytes = sums.registered_bytes;
        cbs->resident_bytes = sums.resident_bytes;
        raise_peaks(ledger, cbs);
        const bool is_sent = cbs->program_count > 0;
        const int drawn =
            ttm_ledger_draw(ledger, &group->region[TTM_REGION_CB], ledger->cbs_changed_ns,
                            is_sent ? cbs->resident_bytes : cbs->registered_bytes);
        if (drawn < 0)
            return drawn;
    }
    ledger->are_cbs_changed = false;
    if (++ledger->cb_sums % SUMS_PER_INTERVAL == 0)
        ledger->cbs_interval_ns *= 2;
    return 0;
}

void ttm_ledger_cbs_change(struct ttm_ledger *ledger, uint64_t time_ns)
{
    ledger->are_cbs_changed = true;
    ledger->cbs_changed_ns = time_ns;
}

/* Sums before what is known changes, so that a state that lasted is not missed. */
int ttm_ledger_cbs_settle(struct ttm_ledger *ledger, uint64_t time_ns)
{
    if (!ledger->are_cbs_changed || time_ns < ledger->cbs_summed_ns + ledger->cbs_interval_ns)
        return 0;
    ledger->cbs_summed_ns = time_ns;
    return ttm_ledger_cbs_sum(ledger);
}

/* The first that goes with its device or process: what is there now is what remains. */
int ttm_ledger_cbs_close(struct ttm_ledger *ledger)
{
    const int r = ledger->are_cbs_changed ? ttm_ledger_cbs_sum(ledger) : 0;

    for (uint32_t i = 0; i < ledger->groups.count; i++) {
        struct ttm_group_cbs *cbs = &ledger->groups.groups[i].cbs;
        cbs->kept_registered_bytes = cbs->registered_bytes;
        cbs->kept_resident_bytes = cbs->resident_bytes;
    }
    ledger->are_cbs_closed = true;
    return r;
}

void ttm_ledger_cbs_mark(struct ttm_ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->groups.count; i++) {
        struct ttm_group_cbs *cbs = &ledger->groups.groups[i].cbs;
        memcpy(cbs->mark_programs, cbs->programs, sizeof(cbs->mark_programs));
        cbs->mark_program_count = cbs->program_count;
    }
    ledger->is_mark_unsummed = true;
}

/* A mark may come with each step, and only the last counts: programs are sent far more often than made. */
int ttm_ledger_cbs_sum_mark(struct ttm_ledger *ledger)
{
    for (uint32_t i = 0; ledger->is_mark_unsummed && i < ledger->groups.count; i++) {
        struct ttm_group *group = &ledger->groups.groups[i];
        struct ttm_group_cbs *cbs = &group->cbs;
        struct ttm_cb_sums sums = {0};
        const int r = sum_group(ledger, group, cbs->mark_programs, cbs->mark_program_count, &sums);
        if (r < 0)
            return r;
        cbs->mark_registered_bytes = sums.registered_bytes;
        cbs->mark_resident_bytes = sums.resident_bytes;
    }
    ledger->is_mark_unsummed = false;
    return 0;
}

int ttm_ledger_cbs_birth(struct ttm_ledger *ledger, const struct ttm_recorded_life *life,
                         const struct ttm_group_set *set, bool *ret_is_placed)
{
    const int r = place(ledger, life, set, ret_is_placed);

    if (r == 0 && *ret_is_placed)
        raise_program_peaks(ledger, set, life);
    else if (r == 0)
        ttm_ledger_cbs_coreless(ledger, set, life->footprint_bytes);
    return r;
}

void ttm_ledger_cbs_dispatch(struct ttm_ledger *ledger, const struct ttm_group_set *set,
                             uint64_t program, uint64_t time_ns)
{
    for (uint32_t i = 0; i < set->group_count; i++) {
        struct ttm_group_cbs *cbs = &ledger->groups.groups[set->groups[i]].cbs;
        uint32_t at = 0;
        while (at < cbs->program_count && cbs->programs[at] != program)
            at++;
        if (at == cbs->program_count && at < TTM_GROUP_PROGRAMS)
            cbs->program_count++;
        if (at == TTM_GROUP_PROGRAMS)
            at--;
        memmove(cbs->programs + 1, cbs->programs, at * sizeof(cbs->programs[0]));
        cbs->programs[0] = program;
    }
    ttm_ledger_cbs_change(ledger, time_ns);
}
