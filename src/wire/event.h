/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event - one thing that happened, as 'tt-mem tail' receives it.
 *
 * The frame TTM_FRAME_EVENTS holds any number of them, back to back; the frame
 * TTM_FRAME_LOST holds a u64, how many a slow reader has lost at that place. Before the
 * first event with an origin comes the frame TTM_FRAME_ORIGIN (origin_row.h), which has
 * the process id in place of an index; one that comes again is another one.
 */
#ifndef TTM_WIRE_EVENT_H
#define TTM_WIRE_EVENT_H

#include <stddef.h>
#include <stdint.h>

enum ttm_event_op {
    TTM_EVENT_BIRTH = 0,
    TTM_EVENT_END = 1,
    TTM_EVENT_REPLACED = 2,    /* ended because its id was born again */
    TTM_EVENT_UNKNOWN_END = 3, /* nothing of that id was live */
    TTM_EVENT_PROCESS_END = 4, /* see below */
    TTM_EVENT_CLOSED = 5,      /* ended because its device was closed */
    TTM_EVENT_OP_COUNT
};

/*
 * Of the end of a process, id and bytes are what it still held, address and
 * footprint_bytes how much had ended with its device, total_bytes the run that it was
 * part of (wire/attach.h).
 */
struct ttm_event {
    uint64_t time_ns; /* wall clock */
    uint64_t id;
    uint64_t address;
    uint64_t bytes;
    uint64_t footprint_bytes;
    uint64_t total_bytes; /* of that region on that device, all processes, after the event */
    int32_t pid;
    uint16_t device_id;
    uint8_t op;
    uint8_t region;
    uint8_t kind;
    uint32_t origin; /* of its process, by number; 0: not known. told before */
};

#define TTM_EVENT_SIZE 64

void ttm_event_encode(const struct ttm_event *event, uint8_t buf[TTM_EVENT_SIZE]);

/* Returns 0 or -EBADMSG. 'len' is what is left of the frame. */
int ttm_event_decode(const uint8_t *buf, size_t len, struct ttm_event *ret);

#endif /* TTM_WIRE_EVENT_H */
