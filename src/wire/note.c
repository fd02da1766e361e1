/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/note.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"

#define BANK_BYTES_AT 16
#define BANK_COUNT_AT (BANK_BYTES_AT + 8 * TTM_REGION_COUNT)
#define BOARD_AT (BANK_COUNT_AT + 4 * TTM_REGION_COUNT)

_Static_assert(BOARD_AT == 100, "as the header says");

void ttm_origin_note_encode(const struct ttm_origin_note *note, uint8_t buf[TTM_ORIGIN_NOTE_SIZE])
{
    put_le32(buf, note->context);
    put_le32(buf + 4, note->name);
    put_le32(buf + 8, note->thread);
    put_le32(buf + 12, note->operation);
    put_le32(buf + 16, note->python);
    put_le32(buf + 20, note->native);
}

int ttm_origin_note_decode(const uint8_t *buf, size_t len, struct ttm_origin_note *ret)
{
    if (len < TTM_ORIGIN_NOTE_SIZE)
        return -EBADMSG;
    *ret = (struct ttm_origin_note){
        .context = get_le32(buf),
        .name = get_le32(buf + 4),
        .thread = get_le32(buf + 8),
        .operation = get_le32(buf + 12),
        .python = get_le32(buf + 16),
        .native = get_le32(buf + 20),
    };
    return 0;
}

size_t ttm_device_note_encode(const struct ttm_device_note *note,
                              uint8_t buf[TTM_DEVICE_NOTE_SIZE_MAX])
{
    const size_t board = strnlen(note->board, TTM_BOARD_NAME_MAX);

    put_le16(buf, note->id);
    buf[2] = note->arch;
    buf[3] = 0;
    put_le32(buf + 4, note->core_count);
    put_le64(buf + 8, note->asic_id);
    for (size_t i = 0; i < TTM_REGION_COUNT; i++) {
        put_le64(buf + BANK_BYTES_AT + 8 * i, note->bank_bytes[i]);
        put_le32(buf + BANK_COUNT_AT + 4 * i, note->bank_count[i]);
    }
    memcpy(buf + BOARD_AT, note->board, board);
    return BOARD_AT + board;
}

int ttm_device_note_decode(const uint8_t *buf, size_t len, struct ttm_device_note *ret)
{
    if (len < BOARD_AT)
        return -EBADMSG;

    struct ttm_device_note note = {
        .id = get_le16(buf),
        .arch = buf[2] < TTM_ARCH_COUNT ? buf[2] : TTM_ARCH_UNKNOWN,
        .core_count = get_le32(buf + 4),
        .asic_id = get_le64(buf + 8),
    };
    if (note.id >= TTM_DEVICE_COUNT)
        return -EBADMSG;
    for (size_t i = 0; i < TTM_REGION_COUNT; i++) {
        note.bank_bytes[i] = get_le64(buf + BANK_BYTES_AT + 8 * i);
        note.bank_count[i] = get_le32(buf + BANK_COUNT_AT + 4 * i);
    }
    const size_t board = len - BOARD_AT;
    memcpy(note.board, buf + BOARD_AT, board < TTM_BOARD_NAME_MAX ? board : TTM_BOARD_NAME_MAX);
    *ret = note;
    return 0;
}

void ttm_cores_note_encode(const struct ttm_core_range *ranges, uint32_t count, uint8_t *buf)
{
    for (uint32_t i = 0; i < count; i++, buf += TTM_CORE_RANGE_SIZE) {
        buf[0] = ranges[i].start_x;
        buf[1] = ranges[i].start_y;
        buf[2] = ranges[i].end_x;
        buf[3] = ranges[i].end_y;
    }
}

int ttm_cores_note_decode(const uint8_t *buf, size_t len,
                          struct ttm_core_range ret[TTM_CORE_RANGES_MAX])
{
    const size_t count = len / TTM_CORE_RANGE_SIZE;

    if (count == 0 || count > TTM_CORE_RANGES_MAX)
        return -EBADMSG;
    for (size_t i = 0; i < count; i++, buf += TTM_CORE_RANGE_SIZE) {
        ret[i] = (struct ttm_core_range){buf[0], buf[1], buf[2], buf[3]};
        if (ret[i].end_x < ret[i].start_x || ret[i].end_y < ret[i].start_y)
            return -EBADMSG;
    }
    return (int)count;
}
