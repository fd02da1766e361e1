/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin_table - where the allocations of a process come from, in words.
 *
 * An origin is known by the number that its process gave it. What it says is
 * copied when it is first heard of, so it outlives the process. One thread, no
 * I/O, no clock.
 */
#ifndef TTM_MODEL_ORIGIN_TABLE_H
#define TTM_MODEL_ORIGIN_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/quota.h"

/* A process that has more is shown without them from there on. */
#define TTM_ORIGINS_MAX (1u << 16)
#define TTM_ORIGIN_BYTES_MAX (32u << 20)

enum ttm_origin_text {
    TTM_ORIGIN_CONTEXT,
    TTM_ORIGIN_NAME,
    TTM_ORIGIN_THREAD,
    TTM_ORIGIN_OPERATION,
    TTM_ORIGIN_PYTHON, /* a line for each frame, innermost first */
    TTM_ORIGIN_NATIVE,
    TTM_ORIGIN_TEXTS
};

struct ttm_origin {
    uint32_t number;
    uint64_t place; /* the same for those that differ in the thread alone; the table fills it in */
    const char *text[TTM_ORIGIN_TEXTS]; /* "" for what is not known */
};

struct ttm_origin_table {
    struct ttm_origin *
        *origins; /* in the order they were heard of; each with its texts behind it */
    uint32_t count;
    uint32_t room;
    uint32_t *index; /* open addressing, place + 1, 0 is empty */
    uint32_t index_size;
    size_t bytes;
    struct ttm_origin_block *blocks; /* where origins lie, the newest first */
    uint64_t seed;
    struct ttm_quota *quota; /* counts bytes; NULL: none. Set by the owner after the init. */
};

/* Who chooses the numbers does not know 'seed'. */
void ttm_origin_table_init(struct ttm_origin_table *table, uint64_t seed);
void ttm_origin_table_done(struct ttm_origin_table *table);

/* NULL when it is not known. */
const struct ttm_origin *ttm_origin_table_find(const struct ttm_origin_table *table,
                                               uint32_t number);

/* Copies an origin that is not there yet. Returns 0, -ENOSPC or -ENOMEM. */
int ttm_origin_table_add(struct ttm_origin_table *table, const struct ttm_origin *origin);

/*
 * Frees some of the memory of a table that is only to be freed: up to 'blocks' blocks of 256 KiB.
 * Returns whether the rest is little.
 */
bool ttm_origin_table_drop(struct ttm_origin_table *table, uint32_t blocks);

#endif /* TTM_MODEL_ORIGIN_TABLE_H */
