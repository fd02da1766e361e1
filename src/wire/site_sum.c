/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/site_sum.h"

#include "wire/row.h"

size_t ttm_site_sum_encode(const struct ttm_site_sum *sum, uint8_t buf[TTM_SITE_SUM_SIZE])
{
    put_le16(buf, TTM_SITE_SUM_SIZE);
    put_le16(buf + 2, 0);
    put_le32(buf + 4, sum->process_index);
    put_le32(buf + 8, sum->site);
    put_le32(buf + 12, 0);
    put_le64(buf + 16, sum->live);
    put_le64(buf + 24, sum->bytes);
    put_le64(buf + 32, sum->footprint_bytes);
    put_le64(buf + 40, sum->first_age_ns);
    put_le64(buf + 48, sum->last_age_ns);
    return TTM_SITE_SUM_SIZE;
}

int ttm_site_sum_decode(const uint8_t *buf, size_t len, struct ttm_site_sum *ret)
{
    if (row_fixed_size(buf, len, TTM_SITE_SUM_SIZE) < 0)
        return -EBADMSG;
    *ret = (struct ttm_site_sum){
        .process_index = get_le32(buf + 4),
        .site = get_le32(buf + 8),
        .live = get_le64(buf + 16),
        .bytes = get_le64(buf + 24),
        .footprint_bytes = get_le64(buf + 32),
        .first_age_ns = get_le64(buf + 40),
        .last_age_ns = get_le64(buf + 48),
    };
    return 0;
}

size_t ttm_left_out_encode(const struct ttm_left_out *left_out, uint8_t buf[TTM_LEFT_OUT_SIZE])
{
    put_le64(buf, left_out->sites);
    put_le64(buf + 8, left_out->lives);
    put_le64(buf + 16, left_out->footprint_bytes);
    return TTM_LEFT_OUT_SIZE;
}

int ttm_left_out_decode(const uint8_t *buf, size_t len, struct ttm_left_out *ret)
{
    if (len < TTM_LEFT_OUT_SIZE)
        return -EBADMSG;
    *ret = (struct ttm_left_out){
        .sites = get_le64(buf),
        .lives = get_le64(buf + 8),
        .footprint_bytes = get_le64(buf + 16),
    };
    return 0;
}
