/* SPDX-License-Identifier: Apache-2.0 */
#include "base/id_ranges.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANGES_MAX 65536

static bool parse(const char *line, struct ttm_id_range *ret)
{
    const char *at = strchr(line, ':');
    char *end;

    if (!at)
        return false;
    const unsigned long long first = strtoull(at + 1, &end, 10);
    if (end == at + 1 || *end != ':')
        return false;
    at = end + 1;
    const unsigned long long count = strtoull(at, &end, 10);
    if (end == at || (*end != '\n' && *end != '\0') || count == 0 || first == 0 ||
        first > UINT32_MAX || count - 1 > UINT32_MAX - first)
        return false;
    *ret = (struct ttm_id_range){.first = (uint32_t)first, .last = (uint32_t)(first + count - 1)};
    return true;
}

static bool add(struct ttm_id_ranges *ranges, const struct ttm_id_range *range)
{
    if (ranges->count == RANGES_MAX)
        return false;
    struct ttm_id_range *grown =
        realloc(ranges->list, (ranges->count + 1) * sizeof(ranges->list[0]));
    if (!grown)
        return false;
    ranges->list = grown;
    ranges->list[ranges->count++] = *range;
    return true;
}

void ttm_id_ranges_read(struct ttm_id_ranges *ranges, const char *path)
{
    char line[256];

    *ranges = (struct ttm_id_ranges){0};
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    while (fgets(line, sizeof(line), file)) {
        struct ttm_id_range range;
        if (parse(line, &range) && !add(ranges, &range))
            break;
    }
    (void)fclose(file);
}

void ttm_id_ranges_done(struct ttm_id_ranges *ranges)
{
    free(ranges->list);
    *ranges = (struct ttm_id_ranges){0};
}

uint32_t ttm_id_ranges_user(const struct ttm_id_ranges *ranges, uint32_t id)
{
    for (uint32_t i = 0; i < ranges->count; i++) {
        if (id >= ranges->list[i].first && id <= ranges->list[i].last)
            return ranges->list[i].first;
    }
    return id;
}
