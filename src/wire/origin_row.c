/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/origin_row.h"

#include <string.h>

#include "wire/row.h"

#define ORIGIN_FIXED 16
#define MARK_FIXED 16
#define FAILURE_LEAST 56
#define FAILURE_OWNERS_AT 64
#define OWNER_SIZE 32
#define FAILURE_FIXED (FAILURE_OWNERS_AT + TTM_OWNERS_MAX * OWNER_SIZE)

_Static_assert(FAILURE_FIXED <= TTM_ROW_SIZE_MAX, "a failure fits");

/* As row_put_string(), but a text that is too long ends with its last whole line. */
static size_t put_lines(uint8_t *at, const char *text)
{
    size_t n = strnlen(text, TTM_FRAMES_TEXT_MAX + 1);

    if (n > TTM_FRAMES_TEXT_MAX) {
        n = TTM_FRAMES_TEXT_MAX;
        while (n > 0 && text[n - 1] != '\n')
            n--;
    }
    put_le16(at, (uint16_t)n);
    memcpy(at + 2, text, n);
    return 2 + n;
}

size_t ttm_origin_row_encode(const struct ttm_origin_row *row, uint8_t *buf)
{
    size_t at = ORIGIN_FIXED;

    put_le16(buf, ORIGIN_FIXED);
    put_le16(buf + 2, 0);
    put_le32(buf + 4, row->process_index);
    put_le32(buf + 8, row->number);
    put_le32(buf + 12, 0);
    at += row_put_string(buf + at, row->context, TTM_STRING_MAX);
    at += row_put_string(buf + at, row->name, TTM_STRING_MAX);
    at += row_put_string(buf + at, row->thread, TTM_STRING_MAX);
    at += row_put_string(buf + at, row->operation, TTM_STRING_MAX);
    at += put_lines(buf + at, row->python);
    return at + put_lines(buf + at, row->native);
}

int ttm_origin_row_decode(const uint8_t *buf, size_t len, struct ttm_origin_texts *texts,
                          struct ttm_origin_row *ret)
{
    const int fixed = row_fixed_size(buf, len, ORIGIN_FIXED);

    if (fixed < 0)
        return fixed;
    size_t at = (size_t)fixed;
    for (size_t i = 0; i < 4; i++) {
        if (row_get_string(buf, len, &at, texts->strings[i], TTM_STRING_MAX) < 0)
            return -EBADMSG;
    }
    for (size_t i = 0; i < 2; i++) {
        if (row_get_string(buf, len, &at, texts->lists[i], TTM_FRAMES_TEXT_MAX) < 0)
            return -EBADMSG;
    }
    *ret = (struct ttm_origin_row){
        .process_index = get_le32(buf + 4),
        .number = get_le32(buf + 8),
        .context = texts->strings[0],
        .name = texts->strings[1],
        .thread = texts->strings[2],
        .operation = texts->strings[3],
        .python = texts->lists[0],
        .native = texts->lists[1],
    };
    return 0;
}

size_t ttm_mark_row_encode(const struct ttm_mark_row *row, uint8_t buf[TTM_ROW_SIZE_MAX])
{
    put_le16(buf, MARK_FIXED);
    put_le16(buf + 2, 0);
    put_le32(buf + 4, row->process_index);
    put_le64(buf + 8, row->time_ns);
    return MARK_FIXED + row_put_string(buf + MARK_FIXED, row->name, TTM_STRING_MAX);
}

int ttm_mark_row_decode(const uint8_t *buf, size_t len, struct ttm_mark_row *ret)
{
    const int fixed = row_fixed_size(buf, len, MARK_FIXED);

    if (fixed < 0)
        return fixed;
    size_t at = (size_t)fixed;
    ret->process_index = get_le32(buf + 4);
    ret->time_ns = get_le64(buf + 8);
    return row_get_string(buf, len, &at, ret->name, TTM_STRING_MAX);
}

const char *ttm_failure_kind_name(unsigned kind)
{
    return kind == TTM_FAILURE_OUT_OF_MEMORY ? "out_of_memory"
           : kind == TTM_FAILURE_CB_CLASH    ? "cb_clash"
                                             : "?";
}

size_t ttm_failure_row_encode(const struct ttm_failure_row *row, uint8_t buf[TTM_ROW_SIZE_MAX])
{
    put_le16(buf, FAILURE_FIXED);
    put_le16(buf + 2, row->device_id);
    put_le32(buf + 4, row->process_index);
    put_le64(buf + 8, row->time_ns);
    put_le64(buf + 16, row->wanted_bytes);
    put_le64(buf + 24, row->bank_wanted_bytes);
    put_le64(buf + 32, row->bank_free_bytes);
    put_le64(buf + 40, row->bank_largest_bytes);
    put_le32(buf + 48, row->origin);
    buf[52] = row->region;
    buf[53] = row->kind;
    put_le16(buf + 54, 0);
    put_le32(buf + 56, row->owner_count);
    put_le32(buf + 60, 0);
    memset(buf + FAILURE_OWNERS_AT, 0, FAILURE_FIXED - FAILURE_OWNERS_AT);
    for (uint32_t i = 0; i < row->owner_count; i++) {
        uint8_t *at = buf + FAILURE_OWNERS_AT + (size_t)i * OWNER_SIZE;
        put_le32(at, row->owners[i].origin);
        put_le64(at + 8, row->owners[i].count);
        put_le64(at + 16, row->owners[i].bytes);
        put_le64(at + 24, row->owners[i].footprint_bytes);
    }
    return FAILURE_FIXED;
}

int ttm_failure_row_decode(const uint8_t *buf, size_t len, struct ttm_failure_row *ret)
{
    uint8_t part[FAILURE_FIXED];

    if (row_get_fixed(buf, len, FAILURE_LEAST, sizeof(part), part) < 0)
        return -EBADMSG;

    struct ttm_failure_row row = {
        .device_id = get_le16(part + 2),
        .process_index = get_le32(part + 4),
        .time_ns = get_le64(part + 8),
        .wanted_bytes = get_le64(part + 16),
        .bank_wanted_bytes = get_le64(part + 24),
        .bank_free_bytes = get_le64(part + 32),
        .bank_largest_bytes = get_le64(part + 40),
        .origin = get_le32(part + 48),
        .region = part[52],
        .kind = part[53],
        .owner_count = get_le32(part + 56),
    };
    if (row.region >= TTM_REGION_COUNT || row.kind >= TTM_FAILURE_KIND_COUNT ||
        row.device_id >= TTM_DEVICE_COUNT || row.owner_count > TTM_OWNERS_MAX)
        return -EBADMSG;
    for (uint32_t i = 0; i < row.owner_count; i++) {
        const uint8_t *at = part + FAILURE_OWNERS_AT + (size_t)i * OWNER_SIZE;
        row.owners[i] = (struct ttm_owner){
            .origin = get_le32(at),
            .count = get_le64(at + 8),
            .bytes = get_le64(at + 16),
            .footprint_bytes = get_le64(at + 24),
        };
    }
    *ret = row;
    return 0;
}
