/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report_choice.h"

#include <stdlib.h>

#include "cli/filter_words.h"
#include "cli/terminal.h"

struct ttm_held ttm_report_held(const struct ttm_report_choice *choice,
                                const struct ttm_report_origin *origin)
{
    return choice->at == TTM_AT_PEAK   ? origin->peak
           : choice->at == TTM_AT_MARK ? origin->moments[0]
                                       : origin->remaining;
}

bool ttm_report_is_narrowed(const struct ttm_report_choice *choice)
{
    return !choice->devices.is_all || choice->region >= 0 || choice->min_bytes > 0;
}

void ttm_report_part(const struct ttm_report_choice *choice, struct ttm_text *out)
{
    char bytes[TTM_NUMBER_SIZE];

    if (choice->min_bytes > 0)
        ttm_text_format(out, " of %s or more", ttm_format_bytes(choice->min_bytes, bytes));
    ttm_filter_words(&choice->devices, choice->region, out);
}

bool ttm_report_has_process(const struct ttm_report_choice *choice,
                            const struct ttm_report_process *process)
{
    return choice->pid == 0 || choice->pid == process->pid;
}

static bool is_in_part(const struct ttm_report_choice *choice, const uint16_t *devices,
                       uint16_t count, unsigned region)
{
    bool is_on_device = choice->devices.is_all;

    for (uint16_t i = 0; !is_on_device && i < count; i++)
        is_on_device = ttm_device_filter_has(&choice->devices, devices[i]);
    return is_on_device && (choice->region < 0 || choice->region == (int)region);
}

bool ttm_report_has_origin(const struct ttm_report_choice *choice,
                           const struct ttm_report_origin *origin)
{
    return is_in_part(choice, origin->devices, origin->device_count, origin->region) &&
           ttm_report_held(choice, origin).footprint_bytes >= choice->min_bytes;
}

uint32_t ttm_report_addresses(const struct ttm_report_choice *choice,
                              const struct ttm_report_process *process,
                              const struct ttm_reused *ret[TTM_REPORT_ADDRESSES])
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < process->address_count && count < TTM_REPORT_ADDRESSES; i++) {
        const struct ttm_report_address *address = &process->addresses[i];
        if (is_in_part(choice, address->devices, address->device_count, address->used.region))
            ret[count++] = &address->used;
    }
    return count;
}

/* qsort() hands no argument on; one list is sorted at a time. */
struct ordered {
    const struct ttm_report_origin *origin;
    uint64_t footprint_bytes;
    bool is_first;
};

static int by_weight(const void *a, const void *b)
{
    const struct ordered *x = a, *y = b;

    if (x->is_first != y->is_first)
        return x->is_first ? -1 : 1;
    if (x->footprint_bytes != y->footprint_bytes)
        return x->footprint_bytes < y->footprint_bytes ? 1 : -1;
    return x->origin < y->origin ? -1 : x->origin > y->origin;
}

const struct ttm_report_origin **ttm_report_order(const struct ttm_report_choice *choice,
                                                  const struct ttm_report_process *process,
                                                  bool is_suspects_first, uint32_t *ret_count)
{
    struct ordered *order = calloc(process->origin_count + 1, sizeof(order[0]));
    const struct ttm_report_origin **list = calloc(process->origin_count + 1, sizeof(void *));
    uint32_t count = 0;

    for (uint32_t i = 0; order && list && i < process->origin_count; i++) {
        const struct ttm_report_origin *origin = &process->origins[i];
        if (ttm_report_has_origin(choice, origin))
            order[count++] = (struct ordered){
                .origin = origin,
                .footprint_bytes = ttm_report_held(choice, origin).footprint_bytes,
                .is_first = is_suspects_first && origin->verdict.is_suspect,
            };
    }
    if (!order || !list) {
        free(order);
        free(list);
        return NULL;
    }
    qsort(order, count, sizeof(order[0]), by_weight);
    for (uint32_t i = 0; i < count; i++)
        list[i] = order[i].origin;
    free(order);
    *ret_count = count;
    return list;
}
