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
#define TTM_SEGMENT_HEADER_LEAST 192 /* what the first version had; the rest may be missing */

enum ttm_record_op {
    TTM_RECORD_BIRTH = 1,
    TTM_RECORD_END = 2,
    TTM_RECORD_REPLACED = 3, /* ended because its key was born again */
    TTM_RECORD_CLOSED = 4,   /* ended because its device or allocator was closed */
    TTM_RECORD_NAMED = 5,    /* 'origin' is what the life has from now on */
    TTM_RECORD_MARK = 6,    /* a moment: 'origin' is a note with its name, or it is in the record */
    TTM_RECORD_FAILURE = 7, /* an allocation that could not be made, see below */
    TTM_RECORD_DEVICE = 8,  /* of 'devices' now note 'origin' holds, 0: look at its cell */
    TTM_RECORD_KEPT = 9,    /* 'origin' is a note of wire/keepers.h */
    TTM_RECORD_PEAKS = 10,  /* the peaks of the process begin anew */
};

enum ttm_record_flags {
    TTM_RECORD_ALIAS = 1,   /* adds nothing: another life owns the memory */
    TTM_RECORD_CORES = 2,   /* 'bytes' is the note of its cores; requested as the footprint */
    TTM_RECORD_PROGRAM = 4, /* 'id' is a program and 'allocator' the number of its part */
};

/*
 * One event. The serial is given by the process and never used twice by it; of what has ended it
 * says all that the reader needs, and but for time, id and op the rest is 0.
 *
 * Of a failure, id is what was wanted, address what was wanted of each bank, bytes
 * what is free in a bank and footprint_bytes its largest free block; kind is the
 * kind of failure. Of a mark without a note, its name takes the bytes from serial
 * to footprint_bytes, NUL at the end when it is shorter.
 */
struct ttm_record {
    uint64_t time_ns; /* CLOCK_MONOTONIC, taken after the live table was changed */
    uint64_t serial;
    uint64_t id;
    uint64_t address;
    uint64_t bytes;
    uint64_t footprint_bytes;
    uint16_t allocator;
    uint16_t banks;   /* that it is spread over on each device, 0: not known */
    uint32_t devices; /* number of a note that lists them; below 1024 that one device */
    uint32_t origin;  /* number of a note, 0: none */
    uint8_t op;
    uint8_t region;
    uint8_t kind;
    uint8_t flags;
};

/* The name of a mark that has no note. */
#define TTM_MARK_TEXT_AT 8
#define TTM_MARK_TEXT_MAX 40

/* Producer and consumer each have a cache line of their own. */
struct ttm_ring {
    _Alignas(64) _Atomic uint64_t tail; /* written by the producer */
    _Atomic uint64_t lost;              /* events that found the ring full, ever */
    _Atomic uint32_t owner;             /* thread id, 0: free for another thread */
    uint32_t reserved;
    uint64_t head_seen; /* the producer's last look at head: the line below stays the consumer's */
    /*
     * Its thread came here because another ring was full: what is here is read when that one was
     * read up to this tail, so that the thread's events stay in order.
     */
    _Atomic uint64_t follows_tail;
    _Atomic uint32_t follows;           /* number of that ring + 1; 0: none */
    _Alignas(64) _Atomic uint64_t head; /* written by the consumer */
};

/*
 * The area of notes: entries of a header and their bytes, padded to 8. The
 * number of a note is its offset / 8 + TTM_NOTE_FIRST. An entry is written
 * before its kind, which makes it whole.
 */
enum ttm_note_kind {
    TTM_NOTE_DEVICES = 1, /* device ids, u16 each */
    TTM_NOTE_STRING = 2,
    TTM_NOTE_CORES = 3,   /* ranges of cores; wire/note.h has this and the two below */
    TTM_NOTE_DEVICE = 4,  /* what is known of a device */
    TTM_NOTE_ORIGIN = 5,  /* where an allocation comes from */
    TTM_NOTE_STACKS = 16, /* kinds from here on are those of wire/origin.h */
};

struct ttm_note {
    _Atomic uint32_t kind; /* 0: not whole */
    uint32_t length;       /* of the bytes that follow */
};

#define TTM_NOTE_FIRST 1024 /* smaller numbers stand for single devices */

/*
 * What holds for a device now, and not only from some event on: a server that
 * comes late reads it here. A cell is one cache line.
 */
#define TTM_SEGMENT_PROGRAMS 7

struct ttm_device_cell {
    _Alignas(64) _Atomic uint32_t note; /* TTM_NOTE_DEVICE, 0: not open */
    _Atomic uint32_t dispatched;        /* programs sent there so far */
    /* The latest of them, each in place 'dispatched' % TTM_SEGMENT_PROGRAMS of its time. */
    _Atomic uint64_t programs[TTM_SEGMENT_PROGRAMS];
};

#define TTM_SEGMENT_DEVICES 1024

/* What the reader says of itself. A producer that does not know a value takes it for asleep. */
enum ttm_reader_sleep {
    TTM_READER_AWAKE = 0,
    TTM_READER_ASLEEP = 1, /* to be woken by the next record */
    TTM_READER_DOZING = 2, /* looks by itself soon: to be woken when a ring fills up before that */
};

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
    _Alignas(64) _Atomic uint32_t rings_used;   /* rings from here on were never taken */
    _Atomic uint32_t notes_used;                /* bytes */
    _Alignas(64) _Atomic uint32_t reader_sleep; /* enum ttm_reader_sleep */
    /* What the process says of itself. */
    _Alignas(64) _Atomic uint64_t unknown_ends; /* ends of what was not live */
    _Atomic uint64_t untracked;                 /* events for which there was no room at all */
    _Atomic uint32_t runtime_note;              /* "ttnn 0.81.1", a string */
    _Atomic uint32_t trouble_note;              /* why something is not tracked, a string */
    _Atomic uint64_t senseless;      /* of 'untracked': those with values that nothing can have */
    _Atomic uint64_t unknown_frees;  /* of 'unknown_ends': by a program of which all is known */
    _Atomic uint64_t notes_left_out; /* notes for which there was no room */
    _Atomic uint32_t opening_note;   /* why it has no device although it opened one, a string */
    struct ttm_device_cell devices[TTM_SEGMENT_DEVICES];
};

_Static_assert(sizeof(struct ttm_record) == 64, "a record is one cache line");
_Static_assert(offsetof(struct ttm_record, allocator) == 48, "layout");
_Static_assert(offsetof(struct ttm_record, banks) == 50, "layout");
_Static_assert(offsetof(struct ttm_record, op) == 60, "layout");
_Static_assert(sizeof(struct ttm_ring) == 128, "layout");
_Static_assert(offsetof(struct ttm_ring, follows_tail) == 32, "layout");
_Static_assert(offsetof(struct ttm_ring, follows) == 40, "layout");
_Static_assert(offsetof(struct ttm_ring, head) == 64, "layout");
_Static_assert(offsetof(struct ttm_segment, ring_stride) == 32, "layout");
_Static_assert(offsetof(struct ttm_segment, rings_used) == 64, "layout");
_Static_assert(offsetof(struct ttm_segment, reader_sleep) == 128, "layout");
_Static_assert(offsetof(struct ttm_segment, unknown_ends) == 192, "layout");
_Static_assert(offsetof(struct ttm_segment, senseless) == 216, "layout");
_Static_assert(offsetof(struct ttm_segment, notes_left_out) == 232, "layout");
_Static_assert(offsetof(struct ttm_segment, opening_note) == 240, "layout");
_Static_assert(offsetof(struct ttm_segment, devices) == 256, "layout");
_Static_assert(sizeof(struct ttm_device_cell) == 64, "layout");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2, "atomics cross processes");

#endif /* TTM_RING_SEGMENT_H */
