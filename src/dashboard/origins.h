/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origins - what is allocated now, by where it came from; and where it lies in a bank.
 *
 * Made of answers that have lives. Pure: no I/O, no clock. One thread.
 */
#ifndef TTM_DASHBOARD_ORIGINS_H
#define TTM_DASHBOARD_ORIGINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "query/answer.h"
#include "wire/request.h"

#define TTM_ORIGINS_MAX 16384
#define TTM_ORIGIN_WHERE_SIZE 192
#define TTM_ORIGIN_OPERATION_SIZE 48
#define TTM_ORIGIN_CALLERS_SIZE 128

/* What one place in one process has in one region. */
struct ttm_origin_group {
    uint64_t key; /* stays the same from answer to answer */
    int32_t pid;
    uint8_t region;
    uint64_t count;
    uint64_t requested_bytes;
    uint64_t used_bytes;                       /* on each of its devices */
    uint64_t oldest_ns, youngest_ns;           /* ages */
    uint8_t device_bits[TTM_DEVICE_BITS_SIZE]; /* by the driver's number */
    uint16_t first_device;
    char devices[32];                          /* "0-7" */
    char where[TTM_ORIGIN_WHERE_SIZE];         /* "decode.py:28 cache_kv"; harmless to a terminal */
    char operation[TTM_ORIGIN_OPERATION_SIZE]; /* "ttnn.zeros", "" */
    char callers[TTM_ORIGIN_CALLERS_SIZE]; /* "← step:61 ← main:80"; "" when none is known */
    uint32_t answer, process, origin;      /* where it was found; origin + 1 or 0 */
};

/* The answers of all servers, and which of it to look at. */
struct ttm_origins_source {
    const struct ttm_answer *answers;
    size_t answer_count;
    struct ttm_device_filter devices; /* by the driver's numbers */
    const uint16_t *numbers;          /* TT-Metal's id → the driver's number; NULL: the same */
};

/* Zero-initialised. Those with the most bytes first. */
struct ttm_origins {
    struct ttm_origin_group *groups;
    size_t count, room;
    size_t left_out;     /* groups beyond TTM_ORIGINS_MAX */
    size_t hidden_count; /* processes whose lives may not be seen */
    uint64_t live_count;
};

/* Builds anew; keeps its memory for the next time. Returns 0 or -ENOMEM. */
int ttm_origins_build(struct ttm_origins *origins, const struct ttm_origins_source *source);
void ttm_origins_done(struct ttm_origins *origins);

const struct ttm_origin_group *ttm_origins_find(const struct ttm_origins *origins, uint64_t key);

/* ---- one of them ---- */

#define TTM_DETAIL_SIZES 6
#define TTM_DETAIL_LIVES 64

struct ttm_origin_detail {
    const struct ttm_answer_origin *origin; /* borrowed of the answer; NULL: not known */
    struct {
        uint64_t bytes, count;
    } sizes[TTM_DETAIL_SIZES]; /* the most common ones first */
    size_t size_count;
    size_t more_sizes;                           /* further sizes */
    struct ttm_life_row lives[TTM_DETAIL_LIVES]; /* the youngest first */
    size_t live_count;
};

void ttm_origins_detail(const struct ttm_origins_source *source,
                        const struct ttm_origin_group *group, struct ttm_origin_detail *ret);

/* ---- the bank ---- */

struct ttm_bank_block {
    uint64_t address;
    uint64_t bytes; /* in this bank */
    uint64_t key;   /* of its group; 0: free */
};

/*
 * The address space of one bank of a region on a device, from the lowest to the
 * highest address, held and free blocks in turn. Every bank of a device looks the
 * same, as buffers are spread over all; a block has its footprint divided by banks.
 *
 * Where a bank begins is not told. What is free outside the blocks is known as a sum,
 * and shown where the allocator grows to: below in L1, above in DRAM.
 */
struct ttm_bank {
    bool has_size; /* else the number of banks is not known, or addresses do not fit one */
    uint64_t bank_bytes;
    uint32_t bank_count;
    uint64_t begin, end; /* of what is drawn */
    uint64_t free_bytes, largest_free_bytes;
    struct ttm_bank_block *blocks;
    size_t count, room;
};

/* Returns 0 or -ENOMEM. 'bank' is zeroed or was built before. */
int ttm_bank_build(struct ttm_bank *bank, const struct ttm_origins_source *source, uint16_t device,
                   uint8_t region);
void ttm_bank_done(struct ttm_bank *bank);

/* What lies between two addresses. */
struct ttm_bank_share {
    uint64_t own_bytes;   /* of the group that was asked for */
    uint64_t other_bytes; /* of others */
};

struct ttm_bank_share ttm_bank_share(const struct ttm_bank *bank, uint64_t begin, uint64_t end,
                                     uint64_t key);

/* From the first held address to the end of the last; false when nothing is held. */
bool ttm_bank_extent(const struct ttm_bank *bank, uint64_t *ret_begin, uint64_t *ret_end);

#endif /* TTM_DASHBOARD_ORIGINS_H */
