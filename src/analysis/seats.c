/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/seats.h"

#include <errno.h>
#include <stdlib.h>

void ttm_seats_init(struct ttm_seats *seats)
{
    *seats = (struct ttm_seats){0};
}

void ttm_seats_done(struct ttm_seats *seats)
{
    free(seats->seats);
    *seats = (struct ttm_seats){0};
}

int ttm_seats_add(struct ttm_seats *seats, const struct ttm_seat *seat)
{
    if (seats->count == seats->room) {
        const uint32_t room = seats->room ? seats->room * 2 : 64;
        struct ttm_seat *grown = realloc(seats->seats, (size_t)room * sizeof(grown[0]));
        if (!grown)
            return -ENOMEM;
        seats->seats = grown;
        seats->room = room;
    }
    seats->seats[seats->count++] = *seat;
    return 0;
}

/* ---- drawing ---- */

static int by_start(const void *a, const void *b)
{
    const struct ttm_bank_piece *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* A run that is being put together, and the origin that has most of it. */
struct drawing {
    struct ttm_bank *bank;
    uint64_t cell_bytes; /* runs that begin within one cell are one */
    uint64_t largest_bytes;
};

static void begin_run(struct drawing *drawing, const struct ttm_bank_piece *piece)
{
    drawing->bank->runs[drawing->bank->run_count++] = (struct ttm_bank_run){
        .start = piece->start,
        .end = piece->end,
        .held_bytes = piece->end - piece->start,
        .count = 1,
        .origin = piece->origin,
    };
    drawing->largest_bytes = piece->end - piece->start;
}

static void add_to_run(struct drawing *drawing, const struct ttm_bank_piece *piece)
{
    struct ttm_bank_run *run = &drawing->bank->runs[drawing->bank->run_count - 1];
    const uint64_t bytes = piece->end - piece->start;

    run->end = piece->end;
    run->held_bytes += bytes;
    run->count++;
    run->is_mixed |= piece->origin != run->origin;
    if (piece->origin == run->origin) {
        drawing->largest_bytes += bytes;
    } else if (bytes > drawing->largest_bytes) {
        run->origin = piece->origin;
        drawing->largest_bytes = bytes;
    }
}

static void draw_piece(struct drawing *drawing, const struct ttm_bank_piece *piece)
{
    const struct ttm_bank *bank = drawing->bank;
    const struct ttm_bank_run *last = bank->run_count > 0 ? &bank->runs[bank->run_count - 1] : NULL;
    const uint64_t cell = (piece->start - bank->start) / drawing->cell_bytes;

    if (last && ((last->end == piece->start && last->origin == piece->origin && !last->is_mixed) ||
                 (last->start - bank->start) / drawing->cell_bytes == cell))
        add_to_run(drawing, piece);
    else
        begin_run(drawing, piece);
}

static void count_gap(struct ttm_bank *bank, uint64_t from, uint64_t to)
{
    if (to <= from)
        return;
    bank->gap_count++;
    if (to - from > bank->largest_gap_bytes) {
        bank->largest_gap_bytes = to - from;
        bank->largest_gap_start = from;
    }
}

struct ttm_bank *ttm_bank_draw(struct ttm_bank_piece *pieces, uint32_t count, uint32_t runs_max,
                               struct ttm_arena *arena)
{
    const uint32_t room = count < runs_max ? count : runs_max;
    struct ttm_bank *bank = room > 0 ? ttm_arena_take(arena, 1, sizeof(*bank)) : NULL;
    uint64_t end = 0;

    if (!bank)
        return NULL;
    bank->runs = ttm_arena_take(arena, room, sizeof(bank->runs[0]));
    if (!bank->runs)
        return NULL;
    qsort(pieces, count, sizeof(pieces[0]), by_start);
    for (uint32_t i = 0; i < count; i++)
        end = pieces[i].end > end ? pieces[i].end : end;
    bank->start = pieces[0].start;
    bank->end = end;
    /* Without a crowd each piece may be a run of its own: a cell is a byte then. */
    const uint64_t span = end - bank->start;
    struct drawing drawing = {
        .bank = bank,
        .cell_bytes = count == room ? 1 : span / room + (span % room != 0),
    };
    uint64_t reached = bank->start;
    for (uint32_t i = 0; i < count; i++) {
        struct ttm_bank_piece piece = pieces[i];
        count_gap(bank, reached, piece.start);
        if (piece.start < reached)
            piece.start = reached;
        bank->count++;
        if (piece.end <= piece.start)
            continue;
        bank->held_bytes += piece.end - piece.start;
        draw_piece(&drawing, &piece);
        reached = piece.end;
    }
    return bank;
}
