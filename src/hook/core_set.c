/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/core_set.h"

#include <string.h>

#define GRID 64u /* rows, and bits of a row; chips have less than half of it */

uint32_t ttm_cores_count(const struct ttmem_core_range *ranges, uint32_t count)
{
    uint32_t cores = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct ttmem_core_range *r = &ranges[i];

        if (r->end_x >= r->start_x && r->end_y >= r->start_y)
            cores += (uint32_t)(r->end_x - r->start_x + 1) * (uint32_t)(r->end_y - r->start_y + 1);
    }
    return cores;
}

bool ttm_cores_intersect(const struct ttmem_core_range *a, uint32_t a_count,
                         const struct ttmem_core_range *b, uint32_t b_count)
{
    for (uint32_t i = 0; i < a_count; i++) {
        for (uint32_t j = 0; j < b_count; j++) {
            if (a[i].start_x <= b[j].end_x && b[j].start_x <= a[i].end_x &&
                a[i].start_y <= b[j].end_y && b[j].start_y <= a[i].end_y)
                return true;
        }
    }
    return false;
}

/* Bits 'from' to 'to', both included. */
static uint64_t bits(uint32_t from, uint32_t to)
{
    return (~(uint64_t)0 >> (GRID - 1 - to)) & (~(uint64_t)0 << from);
}

static void paint(uint64_t *rows, const struct ttm_core_set *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        const struct ttmem_core_range *r = &set->ranges[i];

        if (r->end_x >= GRID || r->end_y >= GRID || r->start_x > r->end_x)
            continue;
        for (uint32_t y = r->start_y; y <= r->end_y; y++)
            rows[y] |= bits(r->start_x, r->end_x);
    }
}

/* Takes the rectangle out of the rows that begins with the first core of row 'y'. */
static struct ttmem_core_range cut(uint64_t *rows, uint32_t y)
{
    const uint32_t x = (uint32_t)__builtin_ctzll(rows[y]);
    const uint64_t rest = ~(rows[y] >> x);
    const uint32_t width = rest ? (uint32_t)__builtin_ctzll(rest) : GRID;
    const uint64_t run = bits(x, x + width - 1);
    uint32_t last = y;

    while (last + 1 < GRID && (rows[last + 1] & run) == run)
        last++;
    for (uint32_t i = y; i <= last; i++)
        rows[i] &= ~run;
    return (struct ttmem_core_range){.start_x = (uint8_t)x,
                                     .start_y = (uint8_t)y,
                                     .end_x = (uint8_t)(x + width - 1),
                                     .end_y = (uint8_t)last};
}

void ttm_core_set_join(struct ttm_core_set *set, const struct ttm_core_set *more)
{
    uint64_t rows[GRID];

    memset(rows, 0, sizeof(rows));
    paint(rows, set);
    paint(rows, more);
    set->count = 0;
    for (uint32_t y = 0; y < GRID; y++) {
        while (rows[y] && set->count < TTM_RANGES_MAX)
            set->ranges[set->count++] = cut(rows, y);
    }
}
