/* SPDX-License-Identifier: Apache-2.0 */
#include "dashboard/samples.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"

static uint64_t *place(const struct ttm_samples_device *device, enum ttm_track track, uint64_t s)
{
    return &device->values[(size_t)track * TTM_SAMPLES_SECONDS + s % TTM_SAMPLES_SECONDS];
}

static struct ttm_samples_device *find(const struct ttm_samples *history, unsigned id)
{
    for (size_t i = 0; i < history->count; i++) {
        if (history->devices[i].id == id)
            return &history->devices[i];
    }
    return NULL;
}

static struct ttm_samples_device *add_device(struct ttm_samples *history, unsigned id,
                                             uint64_t now_s)
{
    const size_t places = (size_t)TTM_TRACK_COUNT * TTM_SAMPLES_SECONDS;
    void *grown = realloc(history->devices, (history->count + 1) * sizeof(history->devices[0]));

    if (!grown)
        return NULL;
    history->devices = grown;
    uint64_t *values = malloc(places * sizeof(values[0]));
    if (!values)
        return NULL;
    for (size_t i = 0; i < places; i++)
        values[i] = TTM_SAMPLES_NONE;
    struct ttm_samples_device *device = &history->devices[history->count++];
    *device =
        (struct ttm_samples_device){.id = id, .last_s = now_s, .first_s = now_s, .values = values};
    return device;
}

void ttm_samples_done(struct ttm_samples *history)
{
    for (size_t i = 0; i < history->count; i++)
        free(history->devices[i].values);
    free(history->devices);
    *history = (struct ttm_samples){.bridge_s = history->bridge_s};
}

/* What lies between the newest value and now was an hour ago in its place. */
static void advance(struct ttm_samples_device *device, uint64_t now_s, unsigned bridge_s)
{
    const bool is_bridged = now_s - device->last_s - 1 <= bridge_s;
    uint64_t from = device->last_s + 1;

    if (now_s - device->last_s > TTM_SAMPLES_SECONDS)
        from = now_s - TTM_SAMPLES_SECONDS + 1;
    for (uint64_t s = from; s <= now_s; s++) {
        for (unsigned t = 0; t < TTM_TRACK_COUNT; t++)
            *place(device, t, s) =
                is_bridged && s < now_s ? *place(device, t, device->last_s) : TTM_SAMPLES_NONE;
    }
    device->last_s = now_s;
}

int ttm_samples_add(struct ttm_samples *history, unsigned id, uint64_t time_ns,
                    const uint64_t bytes[TTM_TRACK_COUNT])
{
    const uint64_t now_s = time_ns / TTM_NS_PER_S;
    struct ttm_samples_device *device = find(history, id);

    if (!device)
        device = add_device(history, id, now_s);
    if (!device)
        return -ENOMEM;
    if (now_s > device->last_s)
        advance(device, now_s, history->bridge_s);
    for (unsigned t = 0; t < TTM_TRACK_COUNT; t++) {
        uint64_t *value = place(device, t, device->last_s);
        if (*value == TTM_SAMPLES_NONE || bytes[t] > *value)
            *value = bytes[t];
    }
    return 0;
}

/* Whether that second is one that the ring still has. */
static bool is_kept(const struct ttm_samples_device *device, uint64_t s)
{
    return s >= device->first_s && s <= device->last_s && device->last_s - s < TTM_SAMPLES_SECONDS;
}

uint64_t ttm_samples_read(const struct ttm_samples *history, unsigned id, enum ttm_track track,
                          uint64_t now_ns, unsigned window_s, uint64_t *ret, size_t count)
{
    const struct ttm_samples_device *device = find(history, id);
    const uint64_t end_s = now_ns / TTM_NS_PER_S + 1;
    const uint64_t begin_s = end_s > window_s ? end_s - window_s : 0;
    uint64_t peak = 0;

    for (size_t i = 0; i < count; i++) {
        const uint64_t from = begin_s + i * window_s / count;
        uint64_t to = begin_s + (i + 1) * window_s / count;
        ret[i] = TTM_SAMPLES_NONE;
        if (to == from) /* more parts than seconds: several have the same one */
            to = from + 1;
        for (uint64_t s = from; device && s < to; s++) {
            const uint64_t value = is_kept(device, s) ? *place(device, track, s) : TTM_SAMPLES_NONE;
            if (value == TTM_SAMPLES_NONE)
                continue;
            if (ret[i] == TTM_SAMPLES_NONE || value > ret[i])
                ret[i] = value;
            peak = value > peak ? value : peak;
        }
    }
    return peak;
}
