/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/keepers.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"

#define HEAD 8
#define TAIL 4 /* and a root for each */

static bool has_tail(const struct ttm_keepers_note *note)
{
    bool has = note->search != TTM_SEARCH_DONE;

    for (uint8_t i = 0; i < note->count; i++)
        has |= note->roots[i] != 0;
    return has;
}

static size_t put_tail(const struct ttm_keepers_note *note, uint8_t *buf)
{
    put_le32(buf, note->search);
    for (uint8_t i = 0; i < note->count; i++)
        put_le32(buf + TAIL + (size_t)i * 4, note->roots[i]);
    return TAIL + note->count * 4u;
}

static int read_tail(const uint8_t *buf, size_t len, struct ttm_keepers_note *note)
{
    if (len == 0) /* an older sender */
        return 0;
    if (len < TAIL + note->count * 4u)
        return -EBADMSG;
    note->search = buf[0] < TTM_SEARCH_COUNT ? buf[0] : TTM_SEARCH_UNFINISHED;
    for (uint8_t i = 0; i < note->count; i++)
        note->roots[i] = get_le32(buf + TAIL + (size_t)i * 4);
    return 0;
}

size_t ttm_keepers_note_encode(const struct ttm_keepers_note *note,
                               uint8_t buf[TTM_KEEPERS_NOTE_SIZE_MAX])
{
    size_t size = HEAD;

    put_le32(buf, note->origin);
    buf[4] = note->cause;
    buf[5] = note->count;
    put_le16(buf + 6, note->round);
    for (uint8_t i = 0; i < note->count; i++) {
        const struct ttm_note_text text = ttm_note_text_cut(note->keepers[i], TTM_KEEPER_TEXT_MAX);
        put_le16(buf + size, text.length);
        size += 2;
        if (text.length > 0)
            memcpy(buf + size, text.bytes, text.length);
        size += text.length;
    }
    return has_tail(note) ? size + put_tail(note, buf + size) : size;
}

int ttm_keepers_note_decode(const uint8_t *buf, size_t len, struct ttm_keepers_note *ret)
{
    size_t at = HEAD;

    if (len < HEAD || buf[5] > TTM_KEEPERS_MAX)
        return -EBADMSG;
    struct ttm_keepers_note note = {
        .origin = get_le32(buf),
        .round = get_le16(buf + 6),
        .cause = buf[4] < TTM_CAUSE_COUNT ? buf[4] : TTM_CAUSE_NONE,
        .count = buf[5],
    };
    for (uint8_t i = 0; i < note.count; i++) {
        if (len - at < 2)
            return -EBADMSG;
        const uint16_t length = get_le16(buf + at);
        at += 2;
        if (length > TTM_KEEPER_TEXT_MAX || len - at < length)
            return -EBADMSG;
        note.keepers[i] = (struct ttm_note_text){(const char *)buf + at, length};
        at += length;
    }
    if (read_tail(buf + at, len - at, &note) < 0)
        return -EBADMSG;
    *ret = note;
    return 0;
}

const char *ttm_cause_name(uint8_t cause)
{
    static const char *const names[TTM_CAUSE_COUNT] = {
        [TTM_CAUSE_CONTAINER] = "container", [TTM_CAUSE_CYCLE] = "cycle",
        [TTM_CAUSE_TRACEBACK] = "traceback", [TTM_CAUSE_CLOSURE] = "closure",
        [TTM_CAUSE_FRAME] = "frame",
    };

    return cause < TTM_CAUSE_COUNT ? names[cause] : NULL;
}
