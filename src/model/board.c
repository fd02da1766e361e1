/* SPDX-License-Identifier: Apache-2.0 */
#include "model/board.h"

#include <stddef.h>
#include <string.h>

#define KIB 1024u
#define GIB (1024u * 1024u * 1024u)

/* L1 of a worker core, and what the allocator gets of a DRAM channel, from the SoC descriptors. */
#define GRAYSKULL_L1 (1024u * KIB)
#define WORMHOLE_L1 (1464u * KIB)
#define BLACKHOLE_L1 (1536u * KIB)
#define BLACKHOLE_CHANNEL 4278190080u /* 4080 MiB */

/* name, architecture, worker cores, L1 per core, DRAM channels, bytes per channel */
static const struct ttm_board boards[] = {
    {"e75", TTM_ARCH_GRAYSKULL, 96, GRAYSKULL_L1, 8, GIB},
    {"e150", TTM_ARCH_GRAYSKULL, 120, GRAYSKULL_L1, 8, GIB},
    {"n150", TTM_ARCH_WORMHOLE_B0, 72, WORMHOLE_L1, 12, GIB},
    {"n300", TTM_ARCH_WORMHOLE_B0, 64, WORMHOLE_L1, 12, GIB},
    {"galaxy-wormhole", TTM_ARCH_WORMHOLE_B0, 80, WORMHOLE_L1, 12, GIB},
    {"p100", TTM_ARCH_BLACKHOLE, 120, BLACKHOLE_L1, 7, BLACKHOLE_CHANNEL},
    {"p100a", TTM_ARCH_BLACKHOLE, 120, BLACKHOLE_L1, 7, BLACKHOLE_CHANNEL},
    {"p150a", TTM_ARCH_BLACKHOLE, 120, BLACKHOLE_L1, 8, BLACKHOLE_CHANNEL},
    {"p150b", TTM_ARCH_BLACKHOLE, 120, BLACKHOLE_L1, 8, BLACKHOLE_CHANNEL},
    {"p150c", TTM_ARCH_BLACKHOLE, 120, BLACKHOLE_L1, 8, BLACKHOLE_CHANNEL},
    {"p300a", TTM_ARCH_BLACKHOLE, 120, BLACKHOLE_L1, 8, BLACKHOLE_CHANNEL},
    {"p300b", TTM_ARCH_BLACKHOLE, 120, BLACKHOLE_L1, 8, BLACKHOLE_CHANNEL},
    {"p300c", TTM_ARCH_BLACKHOLE, 120, BLACKHOLE_L1, 8, BLACKHOLE_CHANNEL},
    {"galaxy-blackhole", TTM_ARCH_BLACKHOLE, 130, BLACKHOLE_L1, 8, BLACKHOLE_CHANNEL},
};

/* What is sure of an architecture when the board is not known: its most common board's. */
static const struct ttm_board arches[TTM_ARCH_COUNT] = {
    [TTM_ARCH_GRAYSKULL] = {"", TTM_ARCH_GRAYSKULL, 120, GRAYSKULL_L1, 8, GIB},
    [TTM_ARCH_WORMHOLE_B0] = {"", TTM_ARCH_WORMHOLE_B0, 64, WORMHOLE_L1, 12, GIB},
    [TTM_ARCH_BLACKHOLE] = {"", TTM_ARCH_BLACKHOLE, 120, BLACKHOLE_L1, 8, BLACKHOLE_CHANNEL},
};

const struct ttm_board *ttm_board_find(const char *name)
{
    for (size_t i = 0; i < sizeof(boards) / sizeof(boards[0]); i++) {
        if (strcmp(boards[i].name, name) == 0)
            return &boards[i];
    }
    return NULL;
}

const struct ttm_board *ttm_board_of_arch(unsigned arch)
{
    if (arch >= TTM_ARCH_COUNT || arches[arch].arch == TTM_ARCH_UNKNOWN)
        return NULL;
    return &arches[arch];
}

uint64_t ttm_board_capacity(const struct ttm_board *board, enum ttm_region region)
{
    const uint64_t l1 = (uint64_t)board->core_count * board->l1_per_core_bytes;

    switch (region) {
    case TTM_REGION_DRAM:
        return (uint64_t)board->dram_channels * board->dram_channel_bytes;
    case TTM_REGION_L1:
    case TTM_REGION_CB: /* circular buffers share L1 with the buffers */
        return l1;
    case TTM_REGION_SYSTEM_MEMORY:
    case TTM_REGION_L1_SMALL: /* a slice of L1 and one of DRAM, chosen when the device is opened */
    case TTM_REGION_TRACE:
    case TTM_REGION_KERNEL: /* loaded and resident differ: a core's ring holds some programs' at a time */
    case TTM_REGION_COUNT:
        break;
    }
    return 0;
}
