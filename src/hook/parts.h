/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts - a list of what a program has in the L1 of its cores.
 *
 * Plain data without a lock: a list belongs to the thread that fills it, or to a
 * record that has a lock.
 */
#ifndef TTM_HOOK_PARTS_H
#define TTM_HOOK_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "hook/metal.h"

/* What a part was told of as; the parts of one source are replaced together. */
enum ttm_part_source {
    TTM_PART_CB,
    TTM_PART_DFB,
    TTM_PART_SCRATCHPAD,
    TTM_PART_KERNEL,
};

struct ttm_part {
    uint64_t address;
    uint64_t core_bytes;               /* in each of its cores */
    uint32_t first_range, range_count; /* in the list's ranges */
    uint32_t cores;
    uint8_t source; /* enum ttm_part_source */
    uint8_t kind;   /* enum ttmem_kernel_kind */
};

struct ttm_parts {
    struct ttm_part *items;
    uint32_t count, capacity;
    struct ttmem_core_range *ranges;
    uint32_t range_count, range_capacity;
};

/* A list of zeros is an empty one. */
void ttm_parts_done(struct ttm_parts *list);

/*
 * Adds a part (its ranges and cores are taken from 'cores'). One with the address,
 * size and source of another is the same on more cores. Returns 0, -ENOMEM, or
 * -E2BIG beyond what libttmem takes of one program.
 */
int ttm_parts_add(struct ttm_parts *list, const struct ttm_part *part,
                  const struct ttm_core_set *cores);

/* Removes the parts of a source. Returns whether there were any. */
bool ttm_parts_remove(struct ttm_parts *list, enum ttm_part_source source);

/* Moves the parts of 'from' behind those of 'list'; what does not fit is lost. 'from' is empty then. */
void ttm_parts_move(struct ttm_parts *list, struct ttm_parts *from);

/* The region that libttmem knows a source by. */
uint8_t ttm_part_region(enum ttm_part_source source);

/* Does the list have anything in that region? */
bool ttm_parts_have(const struct ttm_parts *list, uint8_t region);

/* The address above all that the list has on any of these cores, but for kernels; 0: nothing. */
uint64_t ttm_parts_end_on(const struct ttm_parts *list, const struct ttm_core_set *cores);

#endif /* TTM_HOOK_PARTS_H */
