/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/spread.h"

#include <string.h>

static void widen(struct ttm_spread *spread)
{
    for (size_t i = 0; i < TTM_SPREAD_BARS / 2; i++)
        spread->bars[i] = spread->bars[2 * i] + spread->bars[2 * i + 1];
    memset(spread->bars + TTM_SPREAD_BARS / 2, 0, sizeof(spread->bars) / 2);
    spread->shift++;
}

void ttm_spread_add(struct ttm_spread *spread, uint64_t value)
{
    while (value >> spread->shift >= TTM_SPREAD_BARS)
        widen(spread);
    spread->bars[value >> spread->shift]++;
}

void ttm_spread_merge(struct ttm_spread *spread, const struct ttm_spread *from)
{
    struct ttm_spread other = *from;

    while (other.shift < spread->shift)
        widen(&other);
    while (spread->shift < other.shift)
        widen(spread);
    for (uint32_t i = 0; i < TTM_SPREAD_BARS; i++)
        spread->bars[i] += other.bars[i];
}

void ttm_spread_bars(const struct ttm_spread *spread, uint64_t end, uint32_t count, uint64_t *ret)
{
    memset(ret, 0, count * sizeof(ret[0]));
    for (uint32_t i = 0; i < TTM_SPREAD_BARS; i++) {
        if (spread->bars[i] == 0)
            continue;
        /* The middle of the bar stands for all of it; the first value of a narrow one. */
        const uint64_t width = 1ull << spread->shift;
        const uint64_t middle = ((uint64_t)i << spread->shift) + (width - 1) / 2;
        const double share = end > 0 ? (double)middle / (double)end : 0;
        const uint32_t at = share >= 1 ? count - 1 : (uint32_t)(share * count);
        ret[at] += spread->bars[i];
    }
}
