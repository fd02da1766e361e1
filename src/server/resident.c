/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resident.h"

#include <stdlib.h>
#include <string.h>

#include "server/record.h"
#include "server/tracked.h"

/*
 * Sums of one process in one turn of the loop, in steps of about a nanosecond; the last of them may
 * add one pass over TTM_CB_CELLS_MAX. Devices share sums, so most processes need far less.
 */
#define STEPS_PER_TURN (UINT64_C(1) << 20)

_Static_assert(TTM_SEGMENT_PROGRAMS <= TTM_CB_PROGRAMS_MAX, "a sum accepts so many");

static void raise_program_peaks(struct ttm_tracked *tracked, uint32_t device_set, uint64_t bytes)
{
    struct ttm_registry *reg = tracked->client->server->reg;
    struct ttm_process *process = tracked->client->process;
    const struct ttm_device_set set = ttm_device_sets_get(&reg->sets, device_set);

    for (uint16_t i = 0; i < set.count; i++) {
        const uint16_t id = set.devices[i];
        struct ttm_cb_totals *both[] = {
            &process->devices[process->slots[id] - 1].totals.cb,
            &reg->devices[id]->totals.cb,
        };
        for (size_t b = 0; b < 2; b++) {
            if (bytes > both[b]->peak_registered_bytes)
                both[b]->peak_registered_bytes = bytes;
            if (bytes > both[b]->peak_resident_bytes)
                both[b]->peak_resident_bytes = bytes;
        }
    }
}

void ttm_resident_place(struct ttm_tracked *tracked, const struct ttm_birth *birth, int cores,
                        uint32_t devices)
{
    struct ttm_cb_map *map = &tracked->client->process->cbs;
    const struct ttm_cb cb = {
        .serial = birth->serial,
        .program = birth->id,
        .address = birth->address,
        .core_bytes = birth->footprint_bytes / map->core_sets[cores].count,
        .core_set = (uint32_t)cores,
        .device_set = birth->site.device_set,
    };

    if (ttm_cb_map_add(map, &cb) < 0)
        tracked->client->server->counter[TTM_COUNTER_REFUSED_MEMORY]++;
    if (devices >= TTM_NOTE_FIRST) {
        tracked->mesh_note = devices;
        tracked->mesh_set = cb.device_set;
    }
    /* Registered and resident is all that one program has, be it for a moment between two sums. */
    tracked->cb_program_bytes =
        (tracked->cb_program == birth->id ? tracked->cb_program_bytes : 0) + birth->footprint_bytes;
    tracked->cb_program = birth->id;
    raise_program_peaks(tracked, birth->site.device_set, tracked->cb_program_bytes);
}

static void sum_cbs_of_device(struct ttm_tracked *tracked, struct ttm_process_device *device)
{
    struct ttm_server *server = tracked->client->server;
    struct ttm_cb_totals *own = &device->totals.cb;
    struct ttm_cb_totals *all = &server->reg->devices[device->id]->totals.cb;
    struct ttm_device_state state;
    struct ttm_cb_sums sums;

    ttm_ring_reader_device(&tracked->reader, device->id, &state);
    if (ttm_cb_map_sum(&tracked->client->process->cbs, &server->reg->sets, device->id,
                       state.programs, state.program_count, &sums) < 0)
        return;
    sums.registered_bytes += own->coreless_bytes;
    sums.resident_bytes += own->coreless_bytes;
    all->registered_bytes += sums.registered_bytes - own->registered_bytes;
    all->resident_bytes += sums.resident_bytes - own->resident_bytes;
    own->registered_bytes = sums.registered_bytes;
    own->resident_bytes = sums.resident_bytes;
    ttm_cb_raise_peaks(&device->totals);
    ttm_cb_raise_peaks(&server->reg->devices[device->id]->totals);
}

/*
 * Sums the next devices, in a circle, until all are done or this turn has no time left. What is
 * registered comes first and is remembered: where that alone takes the turn, what is resident is
 * the next turn's.
 */
static void sum_cbs(struct ttm_tracked *tracked)
{
    struct ttm_process *process = tracked->client->process;
    const struct ttm_device_sets *sets = &tracked->client->server->reg->sets;
    const uint64_t end = ttm_cb_map_steps(&process->cbs) + STEPS_PER_TURN;

    if (tracked->cbs_unsummed == 0 || process->device_count == 0)
        return;
    tracked->cbs_summed_ns = tracked->client->server->now_ns;
    while (tracked->cbs_unsummed > 0 && ttm_cb_map_steps(&process->cbs) < end) {
        struct ttm_process_device *device =
            &process->devices[tracked->cbs_next % process->device_count];
        struct ttm_cb_sums registered;
        (void)ttm_cb_map_sum(&process->cbs, sets, device->id, NULL, 0, &registered);
        if (ttm_cb_map_steps(&process->cbs) >= end)
            return;
        sum_cbs_of_device(tracked, device);
        tracked->cbs_next++;
        tracked->cbs_unsummed--;
    }
}

static uint64_t dispatched(const struct ttm_tracked *tracked)
{
    const struct ttm_process *process = tracked->client->process;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < process->device_count; i++) {
        struct ttm_device_state state;
        ttm_ring_reader_device(&tracked->reader, process->devices[i].id, &state);
        sum += state.dispatched;
    }
    return sum;
}

/* ---- which programs were sent, for the recording ---- */

/* What the device was sent since the last time, the oldest first; of many the latest. */
static void record_programs(struct ttm_tracked *tracked, uint32_t devices,
                            const struct ttm_device_state *state, uint32_t recorded)
{
    uint32_t fresh = state->dispatched - recorded;

    for (fresh = fresh < state->program_count ? fresh : state->program_count; fresh > 0; fresh--)
        ttm_record_dispatch(tracked->client, state->programs[fresh - 1], devices);
}

/*
 * A mesh is usually sent the same, and recorded as one: devices that differ in their records are
 * counted apart by whoever reads it.
 */
static void record_mesh(struct ttm_tracked *tracked)
{
    const struct ttm_device_set set =
        ttm_device_sets_get(&tracked->client->server->reg->sets, tracked->mesh_set);
    uint32_t *recorded = tracked->cbs_recorded;
    struct ttm_device_state first, other;

    ttm_ring_reader_device(&tracked->reader, set.devices[0], &first);
    for (uint16_t i = 1; i < set.count; i++) {
        ttm_ring_reader_device(&tracked->reader, set.devices[i], &other);
        if (other.dispatched != first.dispatched ||
            recorded[set.devices[i]] != recorded[set.devices[0]] ||
            memcmp(other.programs, first.programs, sizeof(first.programs)) != 0)
            return;
    }
    record_programs(tracked, tracked->mesh_note, &first, recorded[set.devices[0]]);
    for (uint16_t i = 0; i < set.count; i++)
        recorded[set.devices[i]] = first.dispatched;
}

static void record_sent(struct ttm_tracked *tracked)
{
    const struct ttm_process *process = tracked->client->process;

    if (!ttm_record_is_on(tracked->client))
        return;
    if (!tracked->cbs_recorded)
        tracked->cbs_recorded = calloc(TTM_SEGMENT_DEVICES, sizeof(tracked->cbs_recorded[0]));
    if (!tracked->cbs_recorded)
        return;
    if (tracked->mesh_note != 0)
        record_mesh(tracked);
    for (uint32_t i = 0; i < process->device_count; i++) {
        const uint16_t id = process->devices[i].id;
        struct ttm_device_state state;
        ttm_ring_reader_device(&tracked->reader, id, &state);
        record_programs(tracked, id, &state, tracked->cbs_recorded[id]);
        tracked->cbs_recorded[id] = state.dispatched;
    }
}

void ttm_resident_sum(struct ttm_tracked *tracked)
{
    struct ttm_process *process = tracked->client->process;
    const uint64_t sent = dispatched(tracked);

    if (!process->cbs.is_changed && sent == tracked->cbs_dispatched) {
        sum_cbs(tracked);
        return;
    }
    process->cbs.is_changed = false;
    tracked->cbs_dispatched = sent;
    tracked->cbs_unsummed = process->device_count;
    sum_cbs(tracked);
    record_sent(tracked);
}
