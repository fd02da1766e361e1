/* SPDX-License-Identifier: Apache-2.0 */
/*
 * life_row - single allocations in an answer, and the sites they share.
 *
 * A site is what many allocations have in common (where, of which kind); it is
 * sent once, before the first life that refers to it. Lives come many to a
 * frame: 0 u32 process index | 4 u32 count | 8 … rows of TTM_LIFE_ROW_SIZE.
 */
#ifndef TTM_WIRE_LIFE_ROW_H
#define TTM_WIRE_LIFE_ROW_H

#include <stddef.h>
#include <stdint.h>

#include "wire/region.h"

enum ttm_site_flags {
    TTM_SITE_ALIAS = 1 << 0,   /* a view of memory that another life owns: adds nothing */
    TTM_SITE_CORES = 1 << 1,   /* it is known on which cores it lies */
    TTM_SITE_PROGRAM = 1 << 2, /* a part of a program: 'id' is the program, 'allocator' the part */
};

/* The frame TTM_FRAME_SITE. */
struct ttm_site_row {
    uint32_t process_index;
    uint32_t site;
    uint32_t allocator;
    uint64_t births;
    uint64_t ends;   /* freed by their owner */
    uint32_t origin; /* number of an origin of the process, 0: not known */
    uint8_t region;
    uint8_t kind; /* enum ttm_kernel_kind */
    uint8_t flags;
    uint16_t banks; /* of each device; 0: not known */
    uint16_t device_count;
    uint16_t devices[TTM_DEVICE_COUNT]; /* ascending */
};

struct ttm_life_row {
    uint64_t id;
    uint64_t address;
    uint64_t bytes;
    uint64_t footprint_bytes;
    uint64_t age_ns;
    uint32_t site;
};

#define TTM_SITE_ROW_SIZE_MAX (48 + 2 * TTM_DEVICE_COUNT)
#define TTM_LIVES_HEAD_SIZE 8
#define TTM_LIFE_ROW_SIZE 48

/* 'buf' has TTM_SITE_ROW_SIZE_MAX bytes; returns those used. */
size_t ttm_site_row_encode(const struct ttm_site_row *row, uint8_t *buf);

/* Returns 0 or -EBADMSG. */
int ttm_site_row_decode(const uint8_t *buf, size_t len, struct ttm_site_row *ret);

void ttm_lives_head_encode(uint32_t process_index, uint32_t count, uint8_t *buf);

/* Returns the number of rows that follow, or -EBADMSG when they do not fit 'len'. */
long ttm_lives_head_decode(const uint8_t *buf, size_t len, uint32_t *ret_process_index);

void ttm_life_row_encode(const struct ttm_life_row *row, uint8_t *buf);
void ttm_life_row_decode(const uint8_t *buf, struct ttm_life_row *ret);

#endif /* TTM_WIRE_LIFE_ROW_H */
