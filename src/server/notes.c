/* SPDX-License-Identifier: Apache-2.0 */
#include "server/notes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/note.h"

#define SETS_MAX 4096 /* of one process; a process has a handful */
#define NOTE_MAX 1024 /* what a newer process may have appended is read and passed over */

void ttm_notes_init(struct ttm_notes *notes, const struct ttm_ring_reader *reader,
                    struct ttm_registry *reg, struct ttm_process *process)
{
    *notes = (struct ttm_notes){.reader = reader, .reg = reg, .process = process};
}

void ttm_notes_done(struct ttm_notes *notes)
{
    free(notes->set_notes);
    free(notes->sets);
    *notes = (struct ttm_notes){0};
}

static int learn_set(struct ttm_notes *notes, uint32_t number, uint32_t *ret)
{
    uint8_t bytes[2 * TTM_DEVICE_COUNT];
    uint16_t devices[TTM_DEVICE_COUNT];
    const long n =
        ttm_ring_reader_note(notes->reader, number, TTM_NOTE_DEVICES, bytes, sizeof(bytes));

    if (n < 0 || notes->set_count == SETS_MAX)
        return -EINVAL;
    for (long i = 0; i < n / 2; i++)
        devices[i] = get_le16(bytes + 2 * i);
    const int r = ttm_device_sets_intern(&notes->reg->sets, devices, (uint32_t)(n / 2), ret);
    if (r < 0)
        return r;
    uint32_t *set_notes = realloc(notes->set_notes, (notes->set_count + 1) * sizeof(set_notes[0]));
    if (!set_notes)
        return -ENOMEM;
    notes->set_notes = set_notes;
    uint32_t *sets = realloc(notes->sets, (notes->set_count + 1) * sizeof(sets[0]));
    if (!sets)
        return -ENOMEM;
    notes->sets = sets;
    notes->set_notes[notes->set_count] = number;
    notes->sets[notes->set_count++] = *ret;
    return 0;
}

int ttm_notes_device_set(struct ttm_notes *notes, uint32_t devices, uint32_t *ret)
{
    if (devices < TTM_DEVICE_COUNT) {
        *ret = devices;
        return 0;
    }
    for (uint32_t i = 0; i < notes->set_count; i++) {
        if (notes->set_notes[i] == devices) {
            *ret = notes->sets[i];
            return 0;
        }
    }
    return learn_set(notes, devices, ret);
}

int ttm_notes_cores(struct ttm_notes *notes, uint32_t number)
{
    uint8_t bytes[TTM_CORE_RANGES_MAX * TTM_CORE_RANGE_SIZE];
    struct ttm_core_range ranges[TTM_CORE_RANGES_MAX];
    const int known = ttm_cb_map_find_cores(&notes->process->cbs, number);

    if (known >= 0)
        return known;
    const long n =
        ttm_ring_reader_note(notes->reader, number, TTM_NOTE_CORES, bytes, sizeof(bytes));
    if (n < 0)
        return -EINVAL;
    const int count = ttm_cores_note_decode(bytes, (size_t)n, ranges);
    if (count < 0)
        return count;
    return ttm_cb_map_add_cores(&notes->process->cbs, number, ranges, (uint32_t)count);
}

void ttm_notes_text(const struct ttm_notes *notes, uint32_t number, char ret[TTM_STRING_MAX + 1])
{
    const long n =
        ttm_ring_reader_note(notes->reader, number, TTM_NOTE_STRING, ret, TTM_STRING_MAX);

    ret[n > 0 ? n : 0] = '\0';
}

uint32_t ttm_notes_origin(struct ttm_notes *notes, uint32_t number)
{
    struct ttm_origin_table *origins = &notes->process->origins;
    uint8_t bytes[NOTE_MAX];
    struct ttm_origin_note note;
    char context[TTM_STRING_MAX + 1], name[TTM_STRING_MAX + 1];
    char thread[TTM_STRING_MAX + 1], operation[TTM_STRING_MAX + 1];

    if (number == 0 || ttm_origin_table_find(origins, number))
        return number;
    const long n =
        ttm_ring_reader_note(notes->reader, number, TTM_NOTE_ORIGIN, bytes, sizeof(bytes));
    if (n < 0 || ttm_origin_note_decode(bytes, (size_t)n, &note) < 0)
        return 0;
    ttm_notes_text(notes, note.context, context);
    ttm_notes_text(notes, note.name, name);
    ttm_notes_text(notes, note.thread, thread);
    ttm_notes_text(notes, note.operation, operation);
    const struct ttm_origin origin = {
        .number = number,
        .text = {[TTM_ORIGIN_CONTEXT] = context,
                 [TTM_ORIGIN_NAME] = name,
                 [TTM_ORIGIN_THREAD] = thread,
                 [TTM_ORIGIN_OPERATION] = operation,
                 [TTM_ORIGIN_PYTHON] = "",
                 [TTM_ORIGIN_NATIVE] = ""},
    };
    return ttm_origin_table_add(origins, &origin) == 0 ? number : 0;
}

void ttm_notes_device(struct ttm_notes *notes, uint32_t number)
{
    uint8_t bytes[NOTE_MAX];
    struct ttm_device_note note;
    const long n =
        ttm_ring_reader_note(notes->reader, number, TTM_NOTE_DEVICE, bytes, sizeof(bytes));

    if (n < 0 || ttm_device_note_decode(bytes, (size_t)n, &note) < 0 ||
        ttm_registry_know_device(notes->reg, notes->process, note.id) < 0)
        return;
    ttm_device_set_note(ttm_registry_device(notes->reg, note.id), &note);
}
