/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request - what a command asks the server for.
 *
 * GET_STATUS, GET_TOTALS and CHECK have no payload. The others:
 *
 *   GET_LIVES         0 u32 ticket (0: as of now) | 4 u32 reserved
 *   SUBSCRIBE_TOTALS  0 u32 interval in ms        | 4 u32 reserved
 *   SUBSCRIBE_EVENTS  0 i32 pid (0: all)          | 4 u32 flags | 8 device bits (128 bytes)
 *   GET_SITES         0 u32 lines of a stack (0: all) | 4 u32 reserved
 *   GET_LIVES_OF      0 u32 most lives (0: the server's limit) | 4 u32 lines of a stack (0: all) |
 *                     8 u16 device | 10 u8 region | 11 u8 region of the origin | 12 i32 pid |
 *                     16 u32 origin | 20 u32 reserved
 */
#ifndef TTM_WIRE_REQUEST_H
#define TTM_WIRE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/region.h"

#define TTM_DEVICE_BITS_SIZE (TTM_DEVICE_COUNT / 8)

/* A choice of devices; 'is_all' makes the bits meaningless. */
struct ttm_device_filter {
    bool is_all;
    uint8_t bits[TTM_DEVICE_BITS_SIZE];
};

static inline bool ttm_device_filter_has(const struct ttm_device_filter *filter, unsigned device)
{
    return filter->is_all || (filter->bits[device / 8] >> (device % 8) & 1) != 0;
}

static inline void ttm_device_filter_add(struct ttm_device_filter *filter, unsigned device)
{
    filter->bits[device / 8] |= (uint8_t)(1u << (device % 8));
}

/* One number in a payload of eight bytes: GET_LIVES, SUBSCRIBE_TOTALS and GET_SITES. */
#define TTM_NUMBER_REQUEST_SIZE 8

void ttm_number_request_encode(uint32_t number, uint8_t buf[TTM_NUMBER_REQUEST_SIZE]);
int ttm_number_request_decode(const uint8_t *buf, size_t len, uint32_t *ret);

struct ttm_events_request {
    int32_t pid; /* 0: all */
    struct ttm_device_filter devices;
    /* Before the end of a process comes its row, TTM_FRAME_PROCESS; its failures come likewise. */
    bool has_last_words;
};

#define TTM_EVENTS_REQUEST_SIZE (8 + TTM_DEVICE_BITS_SIZE)

void ttm_events_request_encode(const struct ttm_events_request *request,
                               uint8_t buf[TTM_EVENTS_REQUEST_SIZE]);
int ttm_events_request_decode(const uint8_t *buf, size_t len, struct ttm_events_request *ret);

/*
 * Some lives: those that lie in 'region' of 'device', and wherever they lie those of
 * one origin of a process. The stack of that origin comes whole.
 */
struct ttm_lives_request {
    uint32_t most;   /* lives in the answer; 0: as many as the server sends */
    uint32_t frames; /* lines of the stacks of other origins; 0: all */
    uint16_t device;
    uint8_t region;
    uint8_t origin_region;
    int32_t pid;
    uint32_t origin; /* its number */
};

#define TTM_LIVES_REQUEST_SIZE 24

void ttm_lives_request_encode(const struct ttm_lives_request *request,
                              uint8_t buf[TTM_LIVES_REQUEST_SIZE]);
/* Returns 0 or -EBADMSG, also for a device or region that is none. */
int ttm_lives_request_decode(const uint8_t *buf, size_t len, struct ttm_lives_request *ret);

#endif /* TTM_WIRE_REQUEST_H */
