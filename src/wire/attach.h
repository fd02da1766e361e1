/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach - what a tracked process and the server say to each other besides the
 * rings.
 *
 *   ATTACH     process → server, with two fds: the segment and a socket that wakes.
 *              0 u64 the run that it is part of, 0: none. May be left out.
 *   TELL       server → process: 0 u32 epoch | 4 u32 0. Tell all that is live.
 *   TOLD       process → server: 0 u32 epoch | 4 u32 count | 8 … lives of 64 bytes
 *              The first may have no lives and say what comes: 8 u32 about how many.
 *   TOLD_END   process → server: 0 u32 epoch | 4 u32 0
 *   SWITCHED   process → server: 0 u32 1: tracking is on, 0: off | 4 u32 0. While it is
 *              off nothing is known of what the process holds.
 *
 * A life is told as its record of birth (ring/segment.h), little-endian.
 */
#ifndef TTM_WIRE_ATTACH_H
#define TTM_WIRE_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/* A live allocation as its process tells it. */
struct ttm_told {
    uint64_t serial;
    uint64_t id;
    uint64_t address;
    uint64_t bytes;
    uint64_t footprint_bytes;
    uint64_t birth_ns;
    uint32_t devices;
    uint32_t origin;
    uint16_t allocator;
    uint16_t banks; /* 0: not known */
    uint8_t region;
    uint8_t kind;
    uint8_t flags;
};

/*
 * A run is a number that 'tt-mem run' makes up and hands down in the environment. By it
 * the command knows its processes again where their pids mean nothing to it: in another
 * namespace. Nothing else is decided by it.
 */
#define TTM_RUN_VARIABLE "TTMEM_RUN" /* sixteen hexadecimal digits */
#define TTM_ATTACH_SIZE 8

void ttm_attach_encode(uint64_t run, uint8_t buf[TTM_ATTACH_SIZE]);

/* The run, 0 for none. */
uint64_t ttm_attach_decode(const uint8_t *buf, size_t len);

#define TTM_TOLD_HEAD_SIZE 8
#define TTM_TOLD_SIZE 64
#define TTM_TOLD_PER_FRAME 60 /* fits TTM_FRAME_REQUEST_MAX */

void ttm_told_head_encode(uint32_t epoch, uint32_t count, uint8_t buf[TTM_TOLD_HEAD_SIZE]);

/* Returns the number of lives that follow, or -EBADMSG when they do not fit 'len'. */
long ttm_told_head_decode(const uint8_t *buf, size_t len, uint32_t *ret_epoch);

/* The first frame of a telling of about 'lives'. */
#define TTM_TOLD_ANNOUNCE_SIZE 12
void ttm_told_announce_encode(uint32_t epoch, uint32_t lives, uint8_t buf[TTM_TOLD_ANNOUNCE_SIZE]);

/* What a frame whose head was decoded announces; 0: nothing. */
uint32_t ttm_told_announced(const uint8_t *buf, size_t len);

/* These are here, as a process may tell a million at once and each takes a few nanoseconds. */
static inline void ttm_told_encode(const struct ttm_told *told, uint8_t buf[TTM_TOLD_SIZE])
{
    put_le64(buf, told->serial);
    put_le64(buf + 8, told->id);
    put_le64(buf + 16, told->address);
    put_le64(buf + 24, told->bytes);
    put_le64(buf + 32, told->footprint_bytes);
    put_le64(buf + 40, told->birth_ns);
    put_le32(buf + 48, told->devices);
    put_le32(buf + 52, told->origin);
    put_le16(buf + 56, told->allocator);
    buf[58] = told->region;
    buf[59] = told->kind;
    buf[60] = told->flags;
    buf[61] = 0;
    put_le16(buf + 62, told->banks);
}

static inline void ttm_told_decode(const uint8_t buf[TTM_TOLD_SIZE], struct ttm_told *ret)
{
    ret->serial = get_le64(buf);
    ret->id = get_le64(buf + 8);
    ret->address = get_le64(buf + 16);
    ret->bytes = get_le64(buf + 24);
    ret->footprint_bytes = get_le64(buf + 32);
    ret->birth_ns = get_le64(buf + 40);
    ret->devices = get_le32(buf + 48);
    ret->origin = get_le32(buf + 52);
    ret->allocator = get_le16(buf + 56);
    ret->region = buf[58];
    ret->kind = buf[59];
    ret->flags = buf[60];
    ret->banks = get_le16(buf + 62);
}

static inline uint64_t ttm_told_serial(const uint8_t buf[TTM_TOLD_SIZE])
{
    return get_le64(buf);
}

/* Whether two lives have the same site: all but serial, id, place, size and time. */
static inline bool ttm_told_is_alike(const uint8_t a[TTM_TOLD_SIZE], const uint8_t b[TTM_TOLD_SIZE])
{
    return get_le64(a + 48) == get_le64(b + 48) && get_le64(a + 56) == get_le64(b + 56);
}

#endif /* TTM_WIRE_ATTACH_H */
