/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bank_map - what lies where in one bank of a region, as far as a process told of it.
 *
 * Allocators give out the same addresses in every bank, so one bank stands for all.
 * Where the bank begins is not known: the map reaches from the lowest address that
 * is held to the end of the highest. One thread, no I/O, no clock.
 */
#ifndef TTM_MODEL_BANK_MAP_H
#define TTM_MODEL_BANK_MAP_H

#include <stdint.h>

#define TTM_BANK_CELLS_MAX 64
#define TTM_BANK_LOWEST_MAX 3

struct ttm_process;
struct ttm_registry;

enum ttm_bank_cell { TTM_CELL_FREE, TTM_CELL_PART, TTM_CELL_HELD };

/* One allocation, for telling of it. */
struct ttm_bank_low {
    uint64_t address;
    uint64_t footprint_bytes; /* in all banks */
    uint32_t origin;
};

struct ttm_bank_map {
    uint64_t start; /* the lowest address */
    uint64_t end;   /* behind the highest */
    uint32_t cell_count;
    uint8_t cells[TTM_BANK_CELLS_MAX];               /* enum ttm_bank_cell */
    struct ttm_bank_low lowest[TTM_BANK_LOWEST_MAX]; /* ascending */
    uint32_t lowest_count;
};

/*
 * Draws a map of at most 'cell_count' cells. Without a 'bank_count' there are none,
 * only the lowest allocations. Returns 0 or -ENOMEM.
 */
int ttm_bank_map_draw(const struct ttm_registry *reg, const struct ttm_process *proc,
                      uint16_t device, uint8_t region, uint32_t bank_count, uint32_t cell_count,
                      struct ttm_bank_map *ret);

#endif /* TTM_MODEL_BANK_MAP_H */
