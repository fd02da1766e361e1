/* SPDX-License-Identifier: Apache-2.0 */
#include "recording/kept.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Returns NULL only when memory is short; also of nothing there is a copy. */
static char *copy_text(const char *text, size_t length)
{
    char *copy = malloc(length + 1);

    if (!copy)
        return NULL;
    if (length > 0)
        memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

struct ttm_kept_process *ttm_kept_process_new(uint32_t number, uint64_t seen_ns,
                                              const struct ttm_recorded_process *seen,
                                              uint64_t seed)
{
    struct ttm_kept_process *proc = calloc(1, sizeof(*proc));

    if (!proc)
        return NULL;
    proc->number = number;
    proc->seen = *seen;
    proc->seen_ns = seen_ns;
    proc->life_free = TTM_KEPT_NONE;
    ttm_u64_map_init(&proc->by_serial, seed);
    ttm_site_book_init(&proc->sites, seed);
    proc->seen.command = copy_text(seen->command, seen->command_length);
    if (!proc->seen.command) {
        free(proc);
        return NULL;
    }
    return proc;
}

void ttm_kept_process_free(struct ttm_kept_process *proc)
{
    if (!proc)
        return;
    for (uint32_t i = 0; i < proc->device_count; i++)
        free((char *)proc->devices[i].board);
    free(proc->devices);
    free((char *)proc->seen.command);
    free(proc->notes);
    free(proc->lives);
    ttm_u64_map_done(&proc->by_serial);
    ttm_site_book_done(&proc->sites);
    free(proc);
}

int ttm_kept_device(struct ttm_kept_process *proc, const struct ttm_recorded_device *device)
{
    uint32_t i = 0;
    char *board = copy_text(device->board, device->board_length);

    if (!board)
        return -ENOMEM;
    while (i < proc->device_count && proc->devices[i].id != device->id)
        i++;
    if (i == proc->device_count) {
        struct ttm_recorded_device *devices =
            realloc(proc->devices, (i + 1) * sizeof(proc->devices[0]));
        if (!devices) {
            free(board);
            return -ENOMEM;
        }
        proc->devices = devices;
        proc->device_count++;
    } else {
        free((char *)proc->devices[i].board);
    }
    proc->devices[i] = *device;
    proc->devices[i].board = board;
    return 0;
}

int ttm_kept_note(struct ttm_kept_process *proc, const struct ttm_recorded_note *note)
{
    const struct ttm_kept_note head = {
        .number = note->number, .kind = note->kind, .length = (uint32_t)note->length};
    const size_t length = sizeof(head) + note->length;

    if (proc->notes_room - proc->notes_length < length) {
        size_t room = proc->notes_room ? proc->notes_room : 4096;
        while (room - proc->notes_length < length)
            room *= 2;
        uint8_t *notes = realloc(proc->notes, room);
        if (!notes)
            return -ENOMEM;
        proc->notes = notes;
        proc->notes_room = room;
    }
    memcpy(proc->notes + proc->notes_length, &head, sizeof(head));
    if (note->length > 0)
        memcpy(proc->notes + proc->notes_length + sizeof(head), note->bytes, note->length);
    proc->notes_length += length;
    return 0;
}

static int take_place(struct ttm_kept_process *proc, uint32_t *ret)
{
    if (proc->life_free != TTM_KEPT_NONE) {
        *ret = proc->life_free;
        proc->life_free = proc->lives[*ret].section;
        return 0;
    }
    if (proc->life_count == proc->life_room) {
        const uint32_t room = proc->life_room ? proc->life_room * 2 : 64;
        struct ttm_kept_life *lives = realloc(proc->lives, room * sizeof(lives[0]));
        if (!lives)
            return -ENOMEM;
        proc->lives = lives;
        proc->life_room = room;
    }
    *ret = proc->life_count++;
    return 0;
}

void ttm_kept_life_leave(struct ttm_kept_process *proc, uint32_t place)
{
    proc->lives[place].site = TTM_KEPT_NONE;
    proc->lives[place].section = proc->life_free;
    proc->life_free = place;
}

int ttm_kept_site_look_up(struct ttm_kept_process *proc, const struct ttm_recorded_life *born,
                          uint32_t *ret)
{
    const struct ttm_site_facts facts = {
        .bytes = born->bytes,
        .footprint_bytes = born->footprint_bytes,
        .allocator = born->allocator,
        .devices = born->devices,
        .origin = born->origin,
        .cores = born->cores,
        .banks = born->banks,
        .region = born->region,
        .kind = born->kind,
        .flags = born->flags,
    };
    const int r = ttm_site_book_look_up(&proc->sites, &facts, ret);

    if (r == 0)
        proc->sites.sites[*ret].refs++;
    return r;
}

int ttm_kept_life_add(struct ttm_kept_process *proc, const struct ttm_recorded_life *born,
                      uint32_t section, uint32_t *ret)
{
    uint32_t place, site;
    int r;

    r = take_place(proc, &place);
    if (r < 0)
        return r;
    r = ttm_u64_map_add(&proc->by_serial, born->serial, place);
    if (r < 0) {
        ttm_kept_life_leave(proc, place);
        return r;
    }
    r = ttm_kept_site(proc, born, &site);
    if (r < 0) {
        (void)ttm_u64_map_take(&proc->by_serial, born->serial, &place);
        ttm_kept_life_leave(proc, place);
        return r;
    }
    proc->lives[place] = (struct ttm_kept_life){
        .serial = born->serial,
        .id = born->id,
        .address = born->address,
        .birth_ns = born->birth_ns,
        .ordinal = proc->next_ordinal,
        .site = site,
        .section = section,
    };
    *ret = place;
    return 0;
}
