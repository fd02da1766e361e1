/* SPDX-License-Identifier: Apache-2.0 */
/*
 * board - what each architecture and board has, from static tables.
 *
 * Worker cores are those left after harvesting, not the NoC grid. Used until a
 * client tells of its own device, which is always better. No device is opened.
 */
#ifndef TTM_MODEL_BOARD_H
#define TTM_MODEL_BOARD_H

#include <stdint.h>

#include "wire/region.h"

/* Of one chip. A value of 0 is not known. */
struct ttm_board {
    const char *name; /* "n150"; for an architecture alone "" */
    uint8_t arch;     /* enum ttm_arch */
    uint32_t core_count;
    uint32_t l1_per_core_bytes;
    uint32_t dram_channels;
    uint32_t dram_channel_bytes;
};

/* The board of that name as the driver spells it (tt_card_type), or NULL. */
const struct ttm_board *ttm_board_find(const char *name);

/* A typical board of that architecture, or NULL. */
const struct ttm_board *ttm_board_of_arch(unsigned arch);

/* Capacity of a region in bytes, 0 where a board does not fix it. */
uint64_t ttm_board_capacity(const struct ttm_board *board, enum ttm_region region);

#endif /* TTM_MODEL_BOARD_H */
