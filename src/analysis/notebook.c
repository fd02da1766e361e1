/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/notebook.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/note.h"

void ttm_notebook_init(struct ttm_notebook *book, uint64_t seed)
{
    *book = (struct ttm_notebook){0};
    ttm_u64_map_init(&book->places, seed);
    ttm_arena_init(&book->bytes);
}

void ttm_notebook_done(struct ttm_notebook *book)
{
    free(book->notes);
    ttm_u64_map_done(&book->places);
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

int ttm_notebook_add(struct ttm_notebook *book, const struct ttm_noted *note)
{
    uint32_t place;

    if (ttm_u64_map_find(&book->places, note->number, &place))
        return 0;
    uint8_t *bytes = ttm_arena_take(&book->bytes, note->length, 1);
    if (!bytes || make_room(book) < 0 ||
        ttm_u64_map_add(&book->places, note->number, book->count) < 0)
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
