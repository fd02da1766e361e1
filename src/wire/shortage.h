/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shortage - why an allocation did not fit: the one rule, whose verdict every view shows.
 *
 * Pure functions, for any thread.
 */
#ifndef TTM_WIRE_SHORTAGE_H
#define TTM_WIRE_SHORTAGE_H

#include <stdint.h>

enum ttm_failure_kind {
    TTM_FAILURE_OUT_OF_MEMORY = 0,
    TTM_FAILURE_CB_CLASH = 1,
    TTM_FAILURE_KIND_COUNT,
};

enum ttm_shortage {
    TTM_SHORTAGE_NONE, /* nothing can be said; views leave the verdict out */
    TTM_SHORTAGE_EXHAUSTED,
    TTM_SHORTAGE_FRAGMENTED,
};

/* A failure, as the allocator of the program described it. All sizes are of one bank. */
struct ttm_shortage_facts {
    uint64_t wanted_bytes; /* 0: not known */
    uint64_t free_bytes;
    uint64_t largest_block_bytes; /* that is free */
    uint8_t kind;                 /* enum ttm_failure_kind */
};

/*
 * Exhausted: less is free than is wanted. Fragmented: enough is free, but no block is large enough.
 * None: the sizes are not known; or a block is large enough, so that it failed for another reason;
 * or circular buffers clash, where what is wanted is an address.
 */
enum ttm_shortage ttm_shortage_of(const struct ttm_shortage_facts *facts);

/* As JSON has it, which knows two words: "fragmented"; "exhausted" for all others. */
const char *ttm_shortage_name(enum ttm_shortage shortage);

#endif /* TTM_WIRE_SHORTAGE_H */
