/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/ledger_failures.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/ledger.h"
#include "analysis/origin_words.h"

/* From where: by call stack, where none is known by what it was said to be for. */
static uint64_t place_of(const struct ttm_ledger *ledger, uint32_t origin)
{
    const struct ttm_origin_line line = ttm_origin_line(&ledger->notes, origin);

    return line.code != 0 ? line.code : line.context;
}

enum ttm_shortage ttm_ledger_failure_shortage(const struct ttm_recorded_failure *failure)
{
    const struct ttm_shortage_facts facts = {
        .wanted_bytes = failure->bank_wanted_bytes,
        .free_bytes = failure->bank_free_bytes,
        .largest_block_bytes = failure->bank_largest_bytes,
        .kind = failure->kind,
    };

    return ttm_shortage_of(&facts);
}

static bool is_one_kind(const struct ttm_ledger *ledger, const struct ttm_ledger_failure *a,
                        const struct ttm_ledger_failure *b)
{
    const struct ttm_recorded_failure *x = &a->failure, *y = &b->failure;

    return x->kind == y->kind && x->region == y->region && a->device == b->device &&
           ttm_ledger_failure_shortage(x) == ttm_ledger_failure_shortage(y) &&
           (x->origin == y->origin || place_of(ledger, x->origin) == place_of(ledger, y->origin));
}

/* The one to do without: between the first and the last of a kind, else a first, else the oldest. */
static uint32_t least_missed(const struct ttm_ledger *ledger)
{
    uint32_t first = ledger->failure_count;

    for (uint32_t i = 0; i < ledger->failure_count; i++) {
        const struct ttm_ledger_failure *failure = &ledger->failures[i];
        if (!failure->is_last && failure->alike > 1)
            return i;
        if (!failure->is_last && i < first)
            first = i;
    }
    return first < ledger->failure_count ? first : 0;
}

static void make_room(struct ttm_ledger *ledger)
{
    if (ledger->failure_count < TTM_LEDGER_FAILURES)
        return;
    struct ttm_ledger_failure *gone = &ledger->failures[least_missed(ledger)];
    memmove(gone, gone + 1,
            (size_t)(ledger->failures + --ledger->failure_count - gone) * sizeof(*gone));
}

/* ---- who held the memory ---- */

static bool is_on(const struct ttm_ledger *ledger, const struct ttm_cell *cell, uint16_t device)
{
    const struct ttm_group_set *set = &ledger->groups.sets[cell->set];

    for (uint16_t i = 0; i < set->device_count; i++) {
        if (set->devices[i] == device)
            return true;
    }
    return false;
}

/* Keeps the largest, in order. */
static void add_owner(struct ttm_ledger_failure *failure, uint32_t cell,
                      const struct ttm_held *held)
{
    uint32_t at = failure->owner_count;

    while (at > 0 && failure->owners[at - 1].held.footprint_bytes < held->footprint_bytes)
        at--;
    if (at == TTM_OWNERS)
        return;
    if (failure->owner_count < TTM_OWNERS)
        failure->owner_count++;
    memmove(failure->owners + at + 1, failure->owners + at,
            (failure->owner_count - at - 1) * sizeof(failure->owners[0]));
    failure->owners[at] = (struct ttm_ledger_owner){.cell = cell, .held = *held};
}

static void find_owners(const struct ttm_ledger *ledger, struct ttm_ledger_failure *failure)
{
    for (uint32_t i = 0; i < ledger->cell_count; i++) {
        const struct ttm_cell *cell = &ledger->cells[i];
        const bool is_there = cell->region == failure->failure.region ||
                              (failure->failure.kind == TTM_FAILURE_CB_CLASH &&
                               (cell->region == TTM_REGION_CB || cell->region == TTM_REGION_L1));
        if (is_there && cell->now.footprint_bytes > 0 && is_on(ledger, cell, failure->device))
            add_owner(failure, i, &cell->now);
    }
}

/* ---- keeping one ---- */

int ttm_ledger_keep_failure(struct ttm_ledger *ledger, const struct ttm_ledger_failure *failure)
{
    if (!ledger->failures)
        ledger->failures = calloc(TTM_LEDGER_FAILURES, sizeof(ledger->failures[0]));
    if (!ledger->failures)
        return -ENOMEM;
    make_room(ledger);
    struct ttm_ledger_failure *kept = &ledger->failures[ledger->failure_count];
    *kept = *failure;
    kept->is_last = true;
    kept->alike = 1;
    kept->first_ns = failure->time_ns;
    for (uint32_t i = 0; i < ledger->failure_count; i++) {
        struct ttm_ledger_failure *before = &ledger->failures[i];
        if (!before->is_last || !is_one_kind(ledger, before, kept))
            continue;
        before->is_last = false;
        kept->alike = before->alike + 1;
        kept->first_ns = before->first_ns;
    }
    ledger->failure_count++;
    find_owners(ledger, kept);
    return 0;
}
