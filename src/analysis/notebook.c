/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/notebook.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "wire/note.h"
#include "wire/origin.h"

void ttm_notebook_init(struct ttm_notebook *book, uint64_t seed)
{
    *book = (struct ttm_notebook){0};
    ttm_u64_map_init(&book->places, seed);
    ttm_u64_map_init(&book->cells, seed);
    ttm_arena_init(&book->bytes);
}

void ttm_notebook_done(struct ttm_notebook *book)
{
    free(book->notes);
    ttm_u64_map_done(&book->places);
    ttm_u64_map_done(&book->cells);
    ttm_arena_done(&book->bytes);
    *book = (struct ttm_notebook){0};
}

static int make_room(struct ttm_notebook *book)
{
    if (book->count < book->room)
        return 0;
    const uint32_t room = book->room ? book->room * 2 : 64;
    struct ttm_noted *grown = realloc(book->notes, room * sizeof(grown[0]));
    if (!grown)
        return -ENOMEM;
    book->notes = grown;
    book->room = room;
    return 0;
}

static uint64_t hash_text(uint64_t hash, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        hash = ttm_hash_u64(hash ^ (uint8_t)text[i]);
    return ttm_hash_u64(hash ^ length);
}

/* "<ipython-input-7-0123456789ab>", the 7th that was run: of code in such a file all but the 7; else 0. */
static uint64_t cell_key(const struct ttm_noted *note)
{
    static const char prefix[] = "<ipython-input-";
    const size_t skipped = sizeof(prefix) - 1;
    struct ttm_code_note code;

    if (note->kind != TTM_NOTE_CODE || ttm_code_note_decode(note->bytes, note->length, &code) < 0 ||
        code.file.length < skipped || memcmp(code.file.bytes, prefix, skipped) != 0)
        return 0;
    const char *dash = memchr(code.file.bytes + skipped, '-', code.file.length - skipped);
    if (!dash)
        return 0;
    const size_t rest = (size_t)(code.file.bytes + code.file.length - dash);
    return hash_text(hash_text(code.first_line, dash, rest), code.name.bytes, code.name.length) | 1;
}

int ttm_notebook_add(struct ttm_notebook *book, const struct ttm_noted *note)
{
    uint32_t place;

    if (ttm_u64_map_find(&book->places, note->number, &place))
        return 0;
    const uint64_t cell = cell_key(note);
    if (cell && ttm_u64_map_find(&book->cells, cell, &place))
        return ttm_u64_map_add(&book->places, note->number, place) < 0 ? -ENOMEM : 0;
    uint8_t *bytes = ttm_arena_take(&book->bytes, note->length, 1);
    if (!bytes || make_room(book) < 0 ||
        ttm_u64_map_add(&book->places, note->number, book->count) < 0 ||
        (cell && ttm_u64_map_add(&book->cells, cell, book->count) < 0))
        return -ENOMEM;
    if (note->length > 0)
        memcpy(bytes, note->bytes, note->length);
    book->notes[book->count] = *note;
    book->notes[book->count++].bytes = bytes;
    return 0;
}

const struct ttm_noted *ttm_notebook_get(const struct ttm_notebook *book, uint32_t number)
{
    uint32_t place;

    return ttm_u64_map_find(&book->places, number, &place) ? &book->notes[place] : NULL;
}

const struct ttm_noted *ttm_notebook_find(const struct ttm_notebook *book, uint32_t number,
                                          uint32_t kind)
{
    const struct ttm_noted *note = ttm_notebook_get(book, number);

    return note && note->kind == kind ? note : NULL;
}

uint32_t ttm_notebook_devices(const struct ttm_notebook *book, uint32_t number,
                              uint16_t ret[TTM_DEVICE_COUNT])
{
    if (number < TTM_DEVICE_COUNT) {
        ret[0] = (uint16_t)number;
        return 1;
    }
    const struct ttm_noted *note = ttm_notebook_find(book, number, TTM_NOTED_DEVICES);
    uint32_t count = 0;
    for (size_t at = 0; note && at + 2 <= note->length && count < TTM_DEVICE_COUNT; at += 2)
        ret[count++] = get_le16(note->bytes + at);
    return count;
}
