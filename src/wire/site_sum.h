/* SPDX-License-Identifier: Apache-2.0 */
/*
 * site_sum - what the lives of a site hold together, and what an answer leaves out.
 *
 * Whoever asks for sites gets these sums instead of single lives. Each row follows
 * that of its site (life_row.h) and is the payload of one frame.
 */
#ifndef TTM_WIRE_SITE_SUM_H
#define TTM_WIRE_SITE_SUM_H

#include <stddef.h>
#include <stdint.h>

/* The frame TTM_FRAME_SITE_SUM. */
struct ttm_site_sum {
    uint32_t process_index;
    uint32_t site;
    uint64_t live;
    uint64_t bytes; /* as requested */
    uint64_t footprint_bytes;
    uint64_t first_age_ns; /* since the first birth after it held nothing: no life is older */
    uint64_t last_age_ns;  /* since the last birth: no life is younger */
};

#define TTM_SITE_SUM_SIZE 56

/* Returns TTM_SITE_SUM_SIZE. */
size_t ttm_site_sum_encode(const struct ttm_site_sum *sum, uint8_t buf[TTM_SITE_SUM_SIZE]);

/* Returns 0 or -EBADMSG. */
int ttm_site_sum_decode(const uint8_t *buf, size_t len, struct ttm_site_sum *ret);

/* The frame TTM_FRAME_LEFT_OUT: an answer has a limit, and this is what it does not have. */
struct ttm_left_out {
    uint64_t sites;
    uint64_t lives;
    uint64_t footprint_bytes; /* of sites that were left out */
};

#define TTM_LEFT_OUT_SIZE 24

/* Returns TTM_LEFT_OUT_SIZE. */
size_t ttm_left_out_encode(const struct ttm_left_out *left_out, uint8_t buf[TTM_LEFT_OUT_SIZE]);

/* Returns 0 or -EBADMSG. */
int ttm_left_out_decode(const uint8_t *buf, size_t len, struct ttm_left_out *ret);

#endif /* TTM_WIRE_SITE_SUM_H */
