/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/by_process.h"
#include "base/u64_map.h"
#include "wire/life_row.h"

#define OVERLAPS_SOUGHT 256

/* What is known of one process. */
struct teller {
    uint32_t process;
    int32_t pid;
    struct ttm_notebook notes;
    uint32_t bank_count[TTM_DEVICE_COUNT][TTM_REGION_COUNT];
    uint64_t seen_set; /* of devices, the last: its number + 1 */
};

struct listening {
    const struct ttm_history_options *options;
    struct ttm_history *history;
    struct ttm_by_process tellers;
    struct ttm_u64_map live; /* process and slot → index of its life */
    uint64_t room;
};

const char *ttm_history_end_name(unsigned how)
{
    static const char *const names[TTM_ENDED_COUNT] = {
        [TTM_ENDED_FREED] = "freed",
        [TTM_ENDED_REPLACED] = "replaced",
        [TTM_ENDED_DEVICE_CLOSED] = "device_closed",
        [TTM_ENDED_ALLOCATOR_CLOSED] = "allocator_closed",
        [TTM_ENDED_PROGRAM_ENDED] = "program_ended",
        [TTM_ENDED_PROCESS_ENDED] = "process_ended",
        [TTM_ENDED_UNHEARD] = "unheard",
    };

    return how < TTM_ENDED_COUNT ? names[how] : "?";
}

static struct teller *teller_of(struct listening *l, uint32_t process)
{
    struct teller *teller = ttm_by_process_find(&l->tellers, process);

    if (teller)
        return teller;
    teller = calloc(1, sizeof(*teller));
    if (!teller || ttm_by_process_add(&l->tellers, process, teller) < 0) {
        free(teller);
        return NULL;
    }
    teller->process = process;
    ttm_notebook_init(&teller->notes, l->options->seed);
    return teller;
}

static bool is_chosen(const struct listening *l, const struct teller *teller, uint32_t number)
{
    uint16_t devices[TTM_DEVICE_COUNT];

    if (l->options->devices.is_all)
        return true;
    const uint32_t count = ttm_notebook_devices(&teller->notes, number, devices);
    for (uint32_t i = 0; i < count; i++) {
        if (devices[i] < TTM_DEVICE_COUNT &&
            ttm_device_filter_has(&l->options->devices, devices[i]))
            return true;
    }
    return false;
}

/* Whether it reaches over the address, as far as its banks are known, or those of its device. */
static bool reaches(const struct listening *l, const struct teller *teller,
                    const struct ttm_recorded_life *life)
{
    uint16_t devices[TTM_DEVICE_COUNT];

    if (life->region >= TTM_REGION_CB || life->address > l->options->address ||
        ttm_notebook_devices(&teller->notes, life->devices, devices) == 0 ||
        devices[0] >= TTM_DEVICE_COUNT)
        return false;
    const uint32_t banks =
        life->banks > 0 ? life->banks : teller->bank_count[devices[0]][life->region];
    return banks > 0 && l->options->address - life->address < life->footprint_bytes / banks;
}

static uint64_t key_of(const struct ttm_recorded_life *life)
{
    return (uint64_t)life->process << 32 | life->slot;
}

/* Whether one that is live lies in the same memory. Circular buffers share it by nature. */
static bool overlaps(const struct listening *l, const struct ttm_recorded_life *life)
{
    if (life->region >= TTM_REGION_CB || (life->flags & TTM_SITE_ALIAS))
        return false;
    /* Among the newest only, so that no address takes long. */
    const uint64_t count = l->history->count;
    for (uint64_t i = count; i > 0 && i + OVERLAPS_SOUGHT > count; i--) {
        const struct ttm_history_life *other = &l->history->lives[i - 1];
        if (other->life.process != life->process || other->life.region != life->region ||
            other->life.allocator != life->allocator || other->life.devices != life->devices)
            continue;
        if (!other->has_ended && !(other->life.flags & TTM_SITE_ALIAS))
            return true;
    }
    return false;
}

/* Which devices there are; asked for where some were chosen. */
static void see_devices(const struct listening *l, struct teller *teller, uint32_t number)
{
    uint16_t devices[TTM_DEVICE_COUNT];

    if (l->options->devices.is_all || teller->seen_set == number + 1ull)
        return;
    teller->seen_set = number + 1ull;
    const uint32_t count = ttm_notebook_devices(&teller->notes, number, devices);
    for (uint32_t i = 0; i < count; i++) {
        if (devices[i] < TTM_DEVICE_COUNT)
            l->history->has_device[devices[i]] = true;
    }
}

static int take_birth(struct listening *l, struct teller *teller,
                      const struct ttm_recorded_life *life)
{
    const bool is_there = life->address == l->options->address;
    struct ttm_history *history = l->history;

    see_devices(l, teller, life->devices);
    if ((!is_there && !reaches(l, teller, life)) ||
        (l->options->region >= 0 && l->options->region != life->region) ||
        !is_chosen(l, teller, life->devices))
        return 0;
    if (history->count == TTM_HISTORY_LIVES) {
        history->left_out++;
        return 0;
    }
    if (history->count == l->room) {
        const uint64_t room = l->room ? l->room * 2 : 64;
        struct ttm_history_life *grown = realloc(history->lives, room * sizeof(grown[0]));
        if (!grown)
            return -ENOMEM;
        history->lives = grown;
        l->room = room;
    }
    history->lives[history->count] = (struct ttm_history_life){
        .life = *life,
        .pid = teller->pid,
        .birth_ns = life->birth_ns,
        .is_inside = !is_there,
        .is_overlap = overlaps(l, life),
    };
    const int r = ttm_u64_map_add(&l->live, key_of(life), (uint32_t)history->count);
    history->count++;
    return r == -ENOMEM ? r : 0;
}

static int take(struct listening *l, const struct ttm_recorded *record)
{
    uint32_t index;

    if (record->type == TTM_RECORDED_GAP)
        return 0;
    struct teller *teller = teller_of(l, record->process);
    if (!teller)
        return -ENOMEM;
    if (record->type == TTM_RECORDED_PROCESS)
        teller->pid = record->seen.pid;
    if (record->type == TTM_RECORDED_DEVICE && record->device.id < TTM_DEVICE_COUNT) {
        l->history->has_device[record->device.id] = true;
        memcpy(teller->bank_count[record->device.id], record->device.bank_count,
               sizeof(record->device.bank_count));
    }
    if (record->type == TTM_RECORDED_NOTE) {
        const struct ttm_noted note = {record->note.number, record->note.kind, record->note.bytes,
                                       record->note.length};
        return ttm_notebook_add(&teller->notes, &note);
    }
    if (l->history->first_ns == 0)
        l->history->first_ns = record->time_ns;
    if (record->type == TTM_RECORDED_BIRTH)
        return take_birth(l, teller, record->life);
    if (record->type == TTM_RECORDED_RENAME &&
        ttm_u64_map_find(&l->live, key_of(record->life), &index))
        l->history->lives[index].life.origin = record->life->origin;
    if (record->type == TTM_RECORDED_END &&
        ttm_u64_map_take(&l->live, key_of(record->life), &index)) {
        l->history->lives[index].has_ended = true;
        l->history->lives[index].how = record->how;
        l->history->lives[index].end_ns = record->time_ns;
    }
    return 0;
}

/* Words and devices, once all notes are known. */
static int fill(struct listening *l)
{
    uint16_t devices[TTM_DEVICE_COUNT];
    struct ttm_arena *arena = &l->history->arena;

    for (uint64_t i = 0; l->history->lives && i < l->history->count; i++) {
        struct ttm_history_life *life = &l->history->lives[i];
        const struct teller *teller = teller_of(l, life->life.process);
        const struct ttm_history_life *before = i > 0 ? &l->history->lives[i - 1] : NULL;
        struct ttm_log_note log;
        if (!teller)
            return -ENOMEM;
        if (ttm_origin_log(&teller->notes, &log))
            l->history->is_untimed |= log.is_untimed;
        if (before && before->life.process == life->life.process &&
            before->life.origin == life->life.origin)
            life->words = before->words;
        else
            ttm_origin_words_read(&teller->notes, life->life.origin, &l->options->namer, arena,
                                  &life->words);
        const uint32_t count = ttm_notebook_devices(&teller->notes, life->life.devices, devices);
        uint16_t *list = ttm_arena_take(arena, count, sizeof(list[0]));
        if (!list)
            return -ENOMEM;
        memcpy(list, devices, count * sizeof(list[0]));
        life->devices = list;
        life->device_count = (uint16_t)count;
    }
    return arena->failed ? -ENOMEM : 0;
}

int ttm_history_read(struct ttm_recording *recording, const struct ttm_history_options *options,
                     struct ttm_history *ret)
{
    struct listening l = {.options = options, .history = ret};
    const struct ttm_recorded *record;
    int r;

    *ret = (struct ttm_history){0};
    ttm_arena_init(&ret->arena);
    ttm_by_process_init(&l.tellers, options->seed);
    ttm_u64_map_init(&l.live, options->seed);
    while ((r = ttm_recording_next(recording, &record)) != 0) {
        if (r == -EBADMSG) /* told by the recording's info */
            continue;
        r = r < 0 ? r : take(&l, record);
        if (r < 0)
            break;
    }
    if (r == 0)
        r = fill(&l);
    ttm_recording_info(recording, &ret->info);
    for (uint32_t i = 0; i < l.tellers.count; i++) {
        struct teller *teller = l.tellers.objects[i];
        ttm_notebook_done(&teller->notes);
        free(teller);
    }
    ttm_by_process_done(&l.tellers);
    ttm_u64_map_done(&l.live);
    if (r < 0)
        ttm_history_done(ret);
    return r;
}

void ttm_history_done(struct ttm_history *history)
{
    free(history->lives);
    ttm_arena_done(&history->arena);
    *history = (struct ttm_history){0};
}
