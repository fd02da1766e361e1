/* SPDX-License-Identifier: Apache-2.0 */
/*
 * id_ranges - user ids that belong together.
 *
 * A user can have a range of subordinate ids for its containers (subuid(5)), and processes under
 * each of them. Where users have shares, all of a range have one.
 */
#ifndef TTM_BASE_ID_RANGES_H
#define TTM_BASE_ID_RANGES_H

#include <stdint.h>

struct ttm_id_range {
    uint32_t first;
    uint32_t last;
};

struct ttm_id_ranges {
    struct ttm_id_range *list;
    uint32_t count;
};

/*
 * Reads a file of lines "name:first:count"; lines that say something else are passed over. Without
 * such a file, or without memory, there are no ranges. Release with ttm_id_ranges_done().
 */
void ttm_id_ranges_read(struct ttm_id_ranges *ranges, const char *path);
void ttm_id_ranges_done(struct ttm_id_ranges *ranges);

/* The first id of the range that 'id' is in, which stands for all of them; else 'id' itself. */
uint32_t ttm_id_ranges_user(const struct ttm_id_ranges *ranges, uint32_t id);

#endif /* TTM_BASE_ID_RANGES_H */
