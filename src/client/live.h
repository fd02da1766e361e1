/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live - an allocation that was not given back yet, and what it is found by.
 */
#ifndef TTM_CLIENT_LIVE_H
#define TTM_CLIENT_LIVE_H

#include <stdint.h>

/*
 * One live allocation, as others see it. Laid out as a record of it is (ring/segment.h), which is
 * then a copy.
 */
struct ttm_live {
    uint64_t birth_ns; /* kept to 64 ns */
    uint64_t serial;   /* never 0, never used twice, up to TTM_LIVE_SERIAL_MAX */
    uint64_t id;
    uint64_t address;
    uint64_t bytes;
    uint64_t footprint_bytes;
    uint16_t allocator;
    uint16_t banks; /* 0: not known */
    uint32_t devices;
    uint32_t origin;
    uint8_t unused; /* of a record: what it tells */
    uint8_t region;
    uint8_t kind;
    uint8_t flags;
};

/* What is kept of a life is packed; whoever adds one sees to it that it fits. */
#define TTM_LIVE_SERIAL_MAX ((1ull << 63) - 1)
#define TTM_LIVE_NUMBER_MAX ((1ull << 40) - 1) /* addresses and sizes: a terabyte */
#define TTM_LIVE_NOTE_MAX ((1u << 24) - 1)     /* devices, origin: 128 MiB of notes */
#define TTM_LIVE_BANKS_MAX 1023
#define TTM_LIVE_REGION_MAX 7
#define TTM_LIVE_KIND_MAX 3
#define TTM_LIVE_FLAGS_MAX 7

/* enum ttm_record_flags; this one belongs to the key: 'id' is a program, 'allocator' its part. */
#define TTM_LIVE_PROGRAM 4

/*
 * What tells lives of the same id apart: allocator, region and that flag, in the bits that they
 * have in the table.
 */
static inline uint64_t ttm_live_key(uint16_t allocator, uint8_t region, uint8_t flags)
{
    return (uint64_t)allocator << 40 | (uint64_t)region << 56 |
           (uint64_t)(flags & TTM_LIVE_PROGRAM) << 61;
}

static inline uint64_t ttm_live_key_of(const struct ttm_live *live)
{
    return ttm_live_key(live->allocator, live->region, live->flags);
}

#endif /* TTM_CLIENT_LIVE_H */
