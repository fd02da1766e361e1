/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/origin_row.h"

#include <string.h>

#include "wire/row.h"

#define ORIGIN_FIXED 16
#define MARK_FIXED 16
#define FAILURE_FIXED 56

/* As row_put_string(), but a text that is too long ends with its last whole line. */
static size_t put_lines(uint8_t *at, const char *text)
{
    size_t n = strlen(text);

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
    return FAILURE_FIXED;
}

int ttm_failure_row_decode(const uint8_t *buf, size_t len, struct ttm_failure_row *ret)
{
    if (row_fixed_size(buf, len, FAILURE_FIXED) < 0)
        return -EBADMSG;

    const struct ttm_failure_row row = {
        .device_id = get_le16(buf + 2),
        .process_index = get_le32(buf + 4),
        .time_ns = get_le64(buf + 8),
        .wanted_bytes = get_le64(buf + 16),
        .bank_wanted_bytes = get_le64(buf + 24),
        .bank_free_bytes = get_le64(buf + 32),
        .bank_largest_bytes = get_le64(buf + 40),
        .origin = get_le32(buf + 48),
        .region = buf[52],
        .kind = buf[53],
    };
    if (row.region >= TTM_REGION_COUNT || row.kind >= TTM_FAILURE_KIND_COUNT ||
        row.device_id >= TTM_DEVICE_COUNT)
        return -EBADMSG;
    *ret = row;
    return 0;
}
