/* SPDX-License-Identifier: Apache-2.0 */
/*
 * note - the contents of notes in a segment that are more than plain text.
 *
 *   CORES    ranges of 4 bytes: start x, start y, end x, end y, corners included
 *   ORIGIN   u32 each: context, name, thread, operation, Python stack, native stack;
 *            numbers of notes, 0 for none
 *   DEVICE   0 u16 id | 2 u8 arch | 3 u8 0 | 4 u32 cores | 8 u64 ASIC id
 *            | 16 seven u64 bytes of a bank | 72 seven u32 banks | 100 board, the rest
 *
 * Whoever decodes takes a length; longer notes of a newer process are fine.
 */
#ifndef TTM_WIRE_NOTE_H
#define TTM_WIRE_NOTE_H

#include <stddef.h>
#include <stdint.h>

#include "wire/region.h"

/* Kinds of notes, by the numbers that ring/segment.h gives them; wire/origin.h has the rest. */
enum ttm_noted_kind {
    TTM_NOTED_DEVICES = 1,
    TTM_NOTED_STRING = 2,
    TTM_NOTED_CORES = 3,
    TTM_NOTED_DEVICE = 4,
    TTM_NOTED_ORIGIN = 5,
};

/* Where an allocation comes from. */
struct ttm_origin_note {
    uint32_t context;
    uint32_t name;
    uint32_t thread;
    uint32_t operation;
    uint32_t python;
    uint32_t native;
};

#define TTM_ORIGIN_NOTE_SIZE 24

void ttm_origin_note_encode(const struct ttm_origin_note *note, uint8_t buf[TTM_ORIGIN_NOTE_SIZE]);

/* Returns 0 or -EBADMSG. */
int ttm_origin_note_decode(const uint8_t *buf, size_t len, struct ttm_origin_note *ret);

#define TTM_BOARD_NAME_MAX 31

struct ttm_device_note {
    uint16_t id;
    uint8_t arch; /* enum ttm_arch */
    uint32_t core_count;
    uint64_t asic_id;
    uint64_t bank_bytes[TTM_REGION_COUNT];
    uint32_t bank_count[TTM_REGION_COUNT];
    char board[TTM_BOARD_NAME_MAX + 1];
};

#define TTM_DEVICE_NOTE_SIZE_MAX (100 + TTM_BOARD_NAME_MAX)

/* Returns the bytes used. */
size_t ttm_device_note_encode(const struct ttm_device_note *note,
                              uint8_t buf[TTM_DEVICE_NOTE_SIZE_MAX]);

/* Returns 0 or -EBADMSG. */
int ttm_device_note_decode(const uint8_t *buf, size_t len, struct ttm_device_note *ret);

struct ttm_core_range {
    uint8_t start_x, start_y, end_x, end_y;
};

#define TTM_CORE_RANGES_MAX 256
#define TTM_CORE_RANGE_SIZE 4

/* 'buf' has TTM_CORE_RANGE_SIZE bytes for each range. */
void ttm_cores_note_encode(const struct ttm_core_range *ranges, uint32_t count, uint8_t *buf);

/* Returns the number of ranges, at most TTM_CORE_RANGES_MAX, or -EBADMSG. */
int ttm_cores_note_decode(const uint8_t *buf, size_t len,
                          struct ttm_core_range ret[TTM_CORE_RANGES_MAX]);

#endif /* TTM_WIRE_NOTE_H */
