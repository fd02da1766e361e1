/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seats - where in its bank each thing lies that was never given back.
 *
 * Allocators give out the same addresses in every bank, so one bank stands for all.
 * Where a bank begins is not known: what is drawn reaches from the lowest address that
 * is held to the end of the highest. One thread, no I/O, no clock; memory follows what
 * remains, and what is drawn is bounded.
 */
#ifndef TTM_ANALYSIS_SEATS_H
#define TTM_ANALYSIS_SEATS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/arena.h"

struct ttm_seat {
    uint64_t address;
    uint64_t bank_bytes;
    uint64_t births; /* of the process when it ended; UINT64_MAX: it did not */
    uint32_t cell;
};

struct ttm_seats {
    struct ttm_seat *seats;
    uint32_t count;
    uint32_t room;
};

void ttm_seats_init(struct ttm_seats *seats);
void ttm_seats_done(struct ttm_seats *seats);

/* Returns 0 or -ENOMEM. */
int ttm_seats_add(struct ttm_seats *seats, const struct ttm_seat *seat);

/* Neighbours of one origin; where a bank is crowded, of several, and then named by the largest. */
struct ttm_bank_run {
    uint64_t start;
    uint64_t end;
    uint64_t held_bytes; /* less than its length when there are gaps in it */
    uint32_t count;
    uint32_t origin; /* UINT32_MAX: not known */
    bool is_mixed;   /* others have a part in it */
};

struct ttm_bank {
    uint64_t start; /* the lowest address */
    uint64_t end;   /* behind the highest */
    uint64_t held_bytes;
    uint64_t count;
    uint64_t gap_count; /* between start and end */
    uint64_t largest_gap_start;
    uint64_t largest_gap_bytes;
    struct ttm_bank_run *runs; /* ascending, none on another */
    uint32_t run_count;
};

/* One thing in a bank, on the way to a run. */
struct ttm_bank_piece {
    uint64_t start;
    uint64_t end;
    uint32_t origin;
};

/*
 * Draws the pieces, in any order, which it sorts, as at most 'runs_max' runs; what lies on
 * another counts as far as it sticks out. Returns NULL for none, and when memory is short,
 * which the arena remembers.
 */
struct ttm_bank *ttm_bank_draw(struct ttm_bank_piece *pieces, uint32_t count, uint32_t runs_max,
                               struct ttm_arena *arena);

#endif /* TTM_ANALYSIS_SEATS_H */
