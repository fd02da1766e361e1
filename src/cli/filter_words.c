/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/filter_words.h"

#include "wire/region.h"

/* "0-3,7"; returns how many there are. */
static unsigned put_ids(const struct ttm_device_filter *devices, struct ttm_text *out)
{
    unsigned count = 0;

    for (unsigned first = 0, next; first < TTM_DEVICE_COUNT; first = next) {
        next = first + 1;
        if (!ttm_device_filter_has(devices, first))
            continue;
        while (next < TTM_DEVICE_COUNT && ttm_device_filter_has(devices, next))
            next++;
        ttm_text_format(out, next - first > 1 ? "%s%u-%u" : "%s%u", count > 0 ? "," : "", first,
                        next - 1);
        count += next - first;
    }
    return count;
}

void ttm_filter_words(const struct ttm_device_filter *devices, int region, struct ttm_text *out)
{
    struct ttm_text ids;

    if (region >= 0)
        ttm_text_format(out, " in %s", ttm_region_name((unsigned)region));
    if (devices->is_all)
        return;
    ttm_text_init(&ids);
    const unsigned count = put_ids(devices, &ids);
    ttm_text_format(out, " on device%s %s", count == 1 ? "" : "s", ttm_text_string(&ids));
    out->failed |= ttm_text_failed(&ids);
    ttm_text_done(&ids);
}
