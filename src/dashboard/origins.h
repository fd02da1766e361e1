/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origins - what is allocated now, by where it came from; and where it lies in a bank.
 *
 * What each origin holds is made of the sums of sites, or where a server has none, of
 * lives; a closer look at one origin and at a bank, of lives. Pure: no I/O, no clock.
 * One thread.
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
    uint64_t used_bytes; /* on each of its devices */
    uint64_t held_ns;    /* how long it has held something at most; of lives, the oldest */
    uint8_t device_bits[TTM_DEVICE_BITS_SIZE]; /* by the driver's number */
    uint16_t first_device;
    char devices[32];                          /* "0-7" */
    char where[TTM_ORIGIN_WHERE_SIZE];         /* "decode.py:28 cache_kv"; harmless to a terminal */
    char operation[TTM_ORIGIN_OPERATION_SIZE]; /* "ttnn.zeros", "" */
    char callers[TTM_ORIGIN_CALLERS_SIZE]; /* "← step:61 ← main:80"; "" when none is known */
    uint32_t answer, process, origin;      /* where it was found; origin + 1 or 0 */
    uint32_t origin_number;                /* as its process has it; 0: not known */
};

static inline bool ttm_origin_group_is_on(const struct ttm_origin_group *group, unsigned device)
{
    return device < TTM_DEVICE_COUNT && (group->device_bits[device / 8] >> (device % 8) & 1) != 0;
}

/* What single lives are looked at for: one origin, and the bank that it lies in. */
struct ttm_closer_look {
    uint16_t device; /* by the driver's number */
    uint8_t region;  /* of the bank */
    uint8_t origin_region;
    int32_t pid;
    uint32_t origin; /* its number */
};

static inline bool ttm_closer_look_is_same(const struct ttm_closer_look *a,
                                           const struct ttm_closer_look *b)
{
    return a->device == b->device && a->region == b->region &&
           a->origin_region == b->origin_region && a->pid == b->pid && a->origin == b->origin;
}

/* Appends the name of a native frame of a process, harmless to a terminal. Returns whether it has one. */
typedef bool (*ttm_place_name_fn)(void *context, int32_t pid, const char *frame, size_t length,
                                  struct ttm_text *out);

/* The answers of all servers, and which of it to look at. */
struct ttm_origins_source {
    const struct ttm_answer *answers; /* with the sums of sites, or with lives */
    size_t answer_count;
    const struct ttm_answer *lives; /* with lives; may be the same */
    size_t lives_count;
    bool is_partial;        /* these are not all lives */
    bool has_look;          /* but those that 'look' is for */
    uint64_t lives_version; /* another one when lives are others; 0: not counted */
    struct ttm_closer_look look;
    struct ttm_device_filter devices; /* by the driver's numbers */
    const uint16_t *numbers;          /* TT-Metal's id → the driver's number; NULL: the same */
    ttm_place_name_fn place_name;     /* NULL: native places by module and offset */
    void *place_context;
};

/*
 * Tells whether lives are worth asking for again: from one answer with sums of sites to the
 * next it is the same number as long as none that the look is for has begun or ended. 0 when that
 * cannot be told, as the answer does not have all sites.
 */
uint64_t ttm_closer_look_print(const struct ttm_closer_look *look, const struct ttm_answer *answer,
                               const uint16_t *numbers);

/* Zero-initialised. Those with the most bytes first. */
struct ttm_origins {
    struct ttm_origin_group *groups;
    size_t count, room;
    size_t left_out;     /* groups beyond TTM_ORIGINS_MAX, and sites that servers left out */
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
    bool is_told; /* its lives are at hand; else all but 'origin' is empty */
    const struct ttm_answer_origin *origin; /* borrowed of the answer; NULL: not known */
    struct {
        uint64_t bytes, count;
    } sizes[TTM_DETAIL_SIZES]; /* the most common ones first, of those the largest */
    size_t size_count;
    size_t more_sizes;                           /* further sizes */
    struct ttm_life_row lives[TTM_DETAIL_LIVES]; /* the youngest first */
    size_t live_count;
    uint64_t seen_count; /* lives that this is made of */
    uint64_t left_out;   /* lives, of this origin or its bank, that servers left out */
    uint64_t youngest_ns, oldest_ns;
};

void ttm_origins_detail(const struct ttm_origins_source *source,
                        const struct ttm_origin_group *group, struct ttm_origin_detail *ret);

/* ---- the bank ---- */

/* What lies there of one group, however many allocations that are. */
struct ttm_bank_block {
    uint64_t address;
    uint64_t bytes; /* in this bank */
    uint64_t key;   /* of its group */
};

/* What lies between two addresses. */
struct ttm_bank_share {
    uint64_t own_bytes;   /* of the group that was asked for */
    uint64_t other_bytes; /* of others */
};

/* Addresses in so many cells of the same size. */
struct ttm_bank_look {
    uint64_t begin, end;
    size_t cells;
    uint64_t key; /* of the group that is told from the others */
};

/*
 * The address space of one bank of a region on a device, and what is held of it, from
 * the lowest to the highest address. Every bank of a device looks the
 * same, as buffers are spread over all; a block has its footprint divided by banks.
 *
 * Where a bank begins is not told. What is free outside the blocks is known as a sum,
 * and shown where the allocator grows to: below in L1, above in DRAM.
 */
struct ttm_bank {
    bool has_size; /* else the number of banks is not known, or addresses do not fit one */
    uint64_t bank_bytes;
    uint32_t bank_count;
    uint64_t begin, end;  /* of what is drawn */
    uint64_t first, last; /* the lowest held address, and the end of the highest */
    uint64_t free_bytes, largest_free_bytes;
    uint64_t left_out; /* lives that servers left out: what is free is not known */
    struct ttm_bank_block *blocks;
    size_t count, room;

    struct ttm_bank_share *cells; /* as they were asked for last */
    size_t cell_count, cell_room;
    struct ttm_bank_look cell_look;
};

/* Whether all lives on that bank are at hand. */
bool ttm_origins_has_bank(const struct ttm_origins_source *source, uint16_t device, uint8_t region);

/* Returns 0 or -ENOMEM. 'bank' is zeroed or was built before. */
int ttm_bank_build(struct ttm_bank *bank, const struct ttm_origins_source *source, uint16_t device,
                   uint8_t region);
void ttm_bank_done(struct ttm_bank *bank);

struct ttm_bank_share ttm_bank_share(const struct ttm_bank *bank, uint64_t begin, uint64_t end,
                                     uint64_t key);

static inline uint64_t ttm_bank_cell_begin(const struct ttm_bank_look *look, size_t cell)
{
    const double bytes = (double)(look->end - look->begin) / (double)look->cells;

    return look->begin + (uint64_t)((double)cell * bytes);
}

/* At least one: where there are more cells than bytes, neighbours show the same. */
static inline uint64_t ttm_bank_cell_bytes(const struct ttm_bank_look *look, size_t cell)
{
    const uint64_t bytes = ttm_bank_cell_begin(look, cell + 1) - ttm_bank_cell_begin(look, cell);

    return bytes > 0 ? bytes : 1;
}

/*
 * What lies in each cell. Kept, so that asking for the same again costs nothing; borrowed until
 * another is asked for or the bank is built anew. Returns NULL when memory is short.
 */
const struct ttm_bank_share *ttm_bank_cells(struct ttm_bank *bank,
                                            const struct ttm_bank_look *look);

/* From the first held address to the end of the last; false when nothing is held. */
bool ttm_bank_extent(const struct ttm_bank *bank, uint64_t *ret_begin, uint64_t *ret_end);

#endif /* TTM_DASHBOARD_ORIGINS_H */
