/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment - the memory that a tracked process shares with the server.
 *
 * A sealed memfd: a header, a ring of records for each thread, and an area of
 * notes (things said once and referred to by number). The process makes it and
 * hands the fd to the server; because it outlives the process, the server reads
 * what a killed program had said.
 *
 * It is the one place where structs lie in memory as they are on the wire. The
 * reader takes every value as the word of somebody who may lie: it is copied
 * once, checked, and the copy is used.
 */
#ifndef TTM_RING_SEGMENT_H
#define TTM_RING_SEGMENT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define TTM_SEGMENT_MAGIC 0x314745534d4d5454ull /* "TTMMSEG1" */
#define TTM_SEGMENT_VERSION 1

enum ttm_record_op {
    TTM_RECORD_BIRTH = 1,
    TTM_RECORD_END = 2,
    TTM_RECORD_REPLACED = 3, /* ended because its key was born again */
};

/* One event. The serial is given by the process and never used twice by it. */
struct ttm_record {
    uint64_t time_ns; /* CLOCK_MONOTONIC, taken after the live table was changed */
    uint64_t serial;
    uint64_t id;
    uint64_t address;
    uint64_t bytes;
    uint64_t footprint_bytes;
    uint32_t allocator;
    uint32_t devices; /* number of a note that lists them; below 1024 that one device */
    uint32_t origin;  /* number of a note, 0: none */
    uint8_t op;
    uint8_t region;
    uint8_t kind;
    uint8_t flags;
};

/* Producer and consumer each have a cache line of their own. */
struct ttm_ring {
    _Alignas(64) _Atomic uint64_t tail; /* written by the producer */
    _Atomic uint64_t lost;              /* events that found the ring full, ever */
    _Atomic uint32_t owner;             /* thread id, 0: free for another thread */
    uint32_t reserved;
    uint64_t head_seen; /* the producer's last look at head: the line below stays the consumer's */
    _Alignas(64) _Atomic uint64_t head; /* written by the consumer */
};

/*
 * The area of notes: entries of a header and their bytes, padded to 8. The
 * number of a note is its offset / 8 + TTM_NOTE_FIRST. An entry is written
 * before its kind, which makes it whole.
 */
enum ttm_note_kind {
    TTM_NOTE_DEVICES = 1, /* device ids, u16 each */
};

struct ttm_note {
    _Atomic uint32_t kind; /* 0: not whole */
    uint32_t length;       /* of the bytes that follow */
};

#define TTM_NOTE_FIRST 1024 /* smaller numbers stand for single devices */

struct ttm_segment {
    uint64_t magic;
    uint32_t version;
    uint32_t header_bytes; /* the first ring begins there */
    uint64_t segment_bytes;
    uint32_t ring_count;
    uint32_t ring_slots; /* a power of two */
    uint64_t ring_stride;
    uint64_t notes_offset;
    uint64_t notes_bytes;
    _Alignas(64) _Atomic uint32_t rings_used; /* rings from here on were never taken */
    _Atomic uint32_t notes_used;              /* bytes */
    _Alignas(64) _Atomic uint32_t is_reader_asleep;
};

_Static_assert(sizeof(struct ttm_record) == 64, "a record is one cache line");
_Static_assert(offsetof(struct ttm_record, allocator) == 48, "layout");
_Static_assert(offsetof(struct ttm_record, op) == 60, "layout");
_Static_assert(sizeof(struct ttm_ring) == 128, "layout");
_Static_assert(offsetof(struct ttm_ring, head) == 64, "layout");
_Static_assert(offsetof(struct ttm_segment, ring_stride) == 32, "layout");
_Static_assert(offsetof(struct ttm_segment, rings_used) == 64, "layout");
_Static_assert(offsetof(struct ttm_segment, is_reader_asleep) == 128, "layout");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2, "atomics cross processes");

#endif /* TTM_RING_SEGMENT_H */
