/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/failure_text.h"

#include "cli/origin_text.h"
#include "wire/origin_row.h"
#include "wire/region.h"

#define HOLDERS_SHOWN 4

void ttm_origin_words(struct ttm_text *out, const struct ttm_origin *origin)
{
    if (!origin)
        return;
    const struct ttm_answer_origin words = {
        .context = (char *)origin->text[TTM_ORIGIN_CONTEXT],
        .name = (char *)origin->text[TTM_ORIGIN_NAME],
        .thread = (char *)origin->text[TTM_ORIGIN_THREAD],
        .operation = (char *)origin->text[TTM_ORIGIN_OPERATION],
        .python = (char *)origin->text[TTM_ORIGIN_PYTHON],
        .native = (char *)origin->text[TTM_ORIGIN_NATIVE],
    };
    ttm_origin_text(out, &words);
}

/* The one that ends what is there. */
static void drop_space(struct ttm_text *out)
{
    if (!ttm_text_failed(out) && out->length > 0 && out->data[out->length - 1] == ' ')
        out->data[--out->length] = '\0';
}

static void put_head(const struct ttm_failure_row *failure, const struct ttm_origin *origin,
                     struct ttm_text *out)
{
    char wanted[TTM_NUMBER_SIZE], bank[TTM_NUMBER_SIZE];

    if (failure->kind == TTM_FAILURE_CB_CLASH)
        ttm_text_format(out, "circular buffers run into L1 buffers on device %u ",
                        failure->device_id);
    else
        ttm_text_format(out, "out of memory in %s of device %u ", ttm_region_name(failure->region),
                        failure->device_id);
    if (origin)
        ttm_text_append(out, "at ");
    ttm_origin_words(out, origin);
    drop_space(out);
    ttm_text_format(out, ": %s wanted", ttm_format_bytes(failure->wanted_bytes, wanted));
    if (failure->bank_wanted_bytes > 0)
        ttm_text_format(out, ", %s in each bank",
                        ttm_format_bytes(failure->bank_wanted_bytes, bank));
    ttm_text_append(out, "\n");
}

/* Whether there is too little, or too little in one piece. */
static void put_verdict(const struct ttm_failure_row *failure, struct ttm_text *out)
{
    char left[TTM_NUMBER_SIZE], largest[TTM_NUMBER_SIZE];

    if (failure->bank_wanted_bytes == 0)
        return;
    (void)ttm_format_bytes(failure->bank_free_bytes, left);
    (void)ttm_format_bytes(failure->bank_largest_bytes, largest);
    if (failure->bank_free_bytes >= failure->bank_wanted_bytes)
        ttm_text_format(out,
                        "  free %s a bank, but the largest free block is %s: fragmented, not "
                        "exhausted\n",
                        left, largest);
    else
        ttm_text_format(out, "  free %s a bank, the largest free block is %s: exhausted\n", left,
                        largest);
}

static bool is_concerned(const struct ttm_failure_row *failure, const struct ttm_remains *remains,
                         const struct ttm_device_sets *sets)
{
    const struct ttm_device_set set = ttm_device_sets_get(sets, remains->device_set);
    const bool is_other_side =
        failure->kind == TTM_FAILURE_CB_CLASH && remains->region == TTM_REGION_L1;

    if (remains->region != failure->region && !is_other_side)
        return false;
    for (uint16_t i = 0; i < set.count; i++) {
        if (set.devices[i] == failure->device_id)
            return true;
    }
    return false;
}

static uint64_t bytes_of(const struct ttm_remains *remains)
{
    return remains->count * remains->footprint_bytes;
}

/* The largest of those that come behind 'after', which is NULL for the first. */
static const struct ttm_remains *next_holder(const struct ttm_failure_row *failure,
                                             const struct ttm_departed *holders,
                                             const struct ttm_device_sets *sets,
                                             const struct ttm_remains *after)
{
    const struct ttm_remains *best = NULL;

    for (uint32_t i = 0; i < holders->remains_count; i++) {
        const struct ttm_remains *r = &holders->remains[i];
        const bool is_behind = !after || bytes_of(r) < bytes_of(after) ||
                               (bytes_of(r) == bytes_of(after) && r > after);
        if (is_behind && (!best || bytes_of(r) > bytes_of(best)) && is_concerned(failure, r, sets))
            best = r;
    }
    return best;
}

static void put_holder(const struct ttm_departed *holders, const struct ttm_remains *remains,
                       struct ttm_text *out)
{
    const struct ttm_origin *origin =
        remains->origin ? ttm_origin_table_find(&holders->origins, remains->origin) : NULL;
    char count[TTM_NUMBER_SIZE], each[TTM_NUMBER_SIZE], sum[TTM_NUMBER_SIZE];

    ttm_text_format(out, "%10s  %s of %s in %s%s", ttm_format_bytes(bytes_of(remains), sum),
                    ttm_format_count(remains->count, count), ttm_format_bytes(remains->bytes, each),
                    ttm_region_name(remains->region), origin ? "  " : "");
    ttm_origin_words(out, origin);
    if (origin)
        drop_space(out);
    ttm_text_append(out, "\n");
}

void ttm_failure_text(const struct ttm_failure_row *failure, const struct ttm_origin *origin,
                      const struct ttm_departed *holders, const struct ttm_device_sets *sets,
                      struct ttm_text *out)
{
    const struct ttm_remains *holder = NULL;

    put_head(failure, origin, out);
    put_verdict(failure, out);
    for (int i = 0; i < HOLDERS_SHOWN; i++) {
        holder = next_holder(failure, holders, sets, holder);
        if (!holder)
            break;
        ttm_text_append(out, i == 0 ? "  held by " : "          ");
        put_holder(holders, holder, out);
    }
}
