/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/life_row.h"

#include "wire/row.h"

#define SITE_LEAST 40
#define SITE_FIXED 48 /* device ids follow as u16 */

size_t ttm_site_row_encode(const struct ttm_site_row *row, uint8_t *buf)
{
    put_le16(buf, SITE_FIXED);
    put_le16(buf + 2, row->device_count);
    put_le32(buf + 4, row->process_index);
    put_le32(buf + 8, row->site);
    put_le32(buf + 12, row->allocator);
    buf[16] = row->region;
    buf[17] = row->kind;
    buf[18] = row->flags;
    buf[19] = 0;
    put_le16(buf + 20, row->banks);
    put_le16(buf + 22, 0);
    put_le64(buf + 24, row->births);
    put_le64(buf + 32, row->ends);
    put_le32(buf + 40, row->origin);
    put_le32(buf + 44, 0);
    for (size_t i = 0; i < row->device_count; i++)
        put_le16(buf + SITE_FIXED + 2 * i, row->devices[i]);
    return SITE_FIXED + 2 * (size_t)row->device_count;
}

int ttm_site_row_decode(const uint8_t *buf, size_t len, struct ttm_site_row *ret)
{
    uint8_t part[SITE_FIXED];
    const int fixed = row_get_fixed(buf, len, SITE_LEAST, sizeof(part), part);

    if (fixed < 0)
        return fixed;
    ret->device_count = get_le16(part + 2);
    ret->process_index = get_le32(part + 4);
    ret->site = get_le32(part + 8);
    ret->allocator = get_le32(part + 12);
    ret->region = part[16];
    ret->kind = part[17];
    ret->flags = part[18];
    ret->banks = get_le16(part + 20);
    ret->births = get_le64(part + 24);
    ret->ends = get_le64(part + 32);
    ret->origin = get_le32(part + 40);
    if (ret->region >= TTM_REGION_COUNT || ret->kind >= TTM_KERNEL_KIND_COUNT ||
        ret->device_count > TTM_DEVICE_COUNT || len - (size_t)fixed < 2 * (size_t)ret->device_count)
        return -EBADMSG;
    for (size_t i = 0; i < ret->device_count; i++) {
        ret->devices[i] = get_le16(buf + fixed + 2 * i);
        if (ret->devices[i] >= TTM_DEVICE_COUNT)
            return -EBADMSG;
    }
    return 0;
}

void ttm_lives_head_encode(uint32_t process_index, uint32_t count, uint8_t *buf)
{
    put_le32(buf, process_index);
    put_le32(buf + 4, count);
}

long ttm_lives_head_decode(const uint8_t *buf, size_t len, uint32_t *ret_process_index)
{
    if (len < TTM_LIVES_HEAD_SIZE)
        return -EBADMSG;
    const uint32_t count = get_le32(buf + 4);
    if ((len - TTM_LIVES_HEAD_SIZE) / TTM_LIFE_ROW_SIZE < count)
        return -EBADMSG;
    *ret_process_index = get_le32(buf);
    return (long)count;
}

void ttm_life_row_encode(const struct ttm_life_row *row, uint8_t *buf)
{
    put_le64(buf, row->id);
    put_le64(buf + 8, row->address);
    put_le64(buf + 16, row->bytes);
    put_le64(buf + 24, row->footprint_bytes);
    put_le64(buf + 32, row->age_ns);
    put_le32(buf + 40, row->site);
    put_le32(buf + 44, 0);
}

void ttm_life_row_decode(const uint8_t *buf, struct ttm_life_row *ret)
{
    *ret = (struct ttm_life_row){
        .id = get_le64(buf),
        .address = get_le64(buf + 8),
        .bytes = get_le64(buf + 16),
        .footprint_bytes = get_le64(buf + 24),
        .age_ns = get_le64(buf + 32),
        .site = get_le32(buf + 40),
    };
}
