/* SPDX-License-Identifier: Apache-2.0 */
#include "server/pairs.h"

#include <string.h>

#include "ring/segment.h"

_Static_assert((TTM_PAIRS_MAX & (TTM_PAIRS_MAX - 1)) == 0, "a mask");

/* Serials count up by thread, which is in the upper 16 bits: those of a slice hardly ever meet. */
static inline uint16_t *place_of(struct ttm_pairs *pairs, uint64_t serial)
{
    return &pairs->births[(serial + (serial >> 48) * 97) % TTM_PAIRS_MAX];
}

static inline uint16_t take(struct ttm_pairs *pairs, const struct ttm_record *records,
                            uint64_t serial)
{
    uint16_t *place = place_of(pairs, serial);
    const uint16_t birth = *place;

    if (birth == TTM_PAIR_NONE || records[birth].serial != serial)
        return TTM_PAIR_NONE;
    *place = TTM_PAIR_NONE;
    return birth;
}

static void forget_births(struct ttm_pairs *pairs)
{
    memset(pairs->births, 0xff, sizeof(pairs->births));
}

void ttm_pairs_find(struct ttm_pairs *pairs, const struct ttm_record *records,
                    const uint16_t *order, uint32_t n)
{
    forget_births(pairs);
    for (uint32_t i = 0; i < n; i++) {
        const uint16_t at = order[i];
        const struct ttm_record *record = &records[at];

        pairs->mate[at] = TTM_PAIR_NONE;
        if (record->op == TTM_RECORD_BIRTH) {
            /* A serial that is born twice is not worth a pair. */
            if (take(pairs, records, record->serial) == TTM_PAIR_NONE)
                *place_of(pairs, record->serial) = at;
        } else if (record->op == TTM_RECORD_FAILURE) {
            forget_births(pairs); /* all lives are looked through for its owners */
        } else if (record->op != TTM_RECORD_MARK) { /* which may have a name there */
            const uint16_t birth = take(pairs, records, record->serial);
            if (birth == TTM_PAIR_NONE || record->op != TTM_RECORD_END)
                continue;
            pairs->mate[at] = birth;
            pairs->mate[birth] = at;
        }
    }
}
