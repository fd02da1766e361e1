/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader - the reading side of a segment, in the server.
 *
 * Whatever the segment says is checked: a lying producer can spoil its own
 * numbers and nothing else. One thread.
 */
#ifndef TTM_RING_READER_H
#define TTM_RING_READER_H

#include <stdbool.h>

#include "ring/segment.h"

/* Bounds on what a process may make us map. */
#define TTM_SEGMENT_BYTES_MAX (1ull << 30)
#define TTM_SEGMENT_RINGS_MAX 4096

struct ttm_ring_reader {
    struct ttm_segment *segment;
    /* Copies of the header, checked once; the segment's own are not looked at again. */
    uint64_t bytes;
    uint32_t ring_count;
    uint32_t ring_slots;
    uint64_t ring_stride;
    uint64_t rings_offset;
    uint64_t notes_offset;
    uint64_t notes_bytes;
    uint64_t *heads; /* of each ring, ours; the segment's is only told */
    uint64_t *marks; /* tails of the first 'marked' rings at ttm_ring_reader_mark() */
    uint32_t marked;
    uint64_t *goals; /* the same of ttm_ring_reader_aim() */
    uint32_t aimed;
    uint32_t at_ring; /* the ring to go on with */
    uint64_t corrupt; /* times a tail made no sense */
    bool is_late;
};

/* Maps the segment behind 'fd', which stays the caller's. Returns 0, -EPERM, -EBADMSG, -ENOMEM. */
int ttm_ring_reader_open(int fd, struct ttm_ring_reader *ret);
void ttm_ring_reader_close(struct ttm_ring_reader *reader);

/*
 * Copies up to 'max' records, ring by ring, beginning where the last call ended.
 * Returns how many, 0 when every ring was found empty; one that follows another counts as empty
 * until that was read as far. '*ret_passed' is raised by
 * one each time the last ring was passed: once it has been raised twice, every
 * ring was looked at after the call that first returned something.
 */
uint32_t ttm_ring_reader_read(struct ttm_ring_reader *reader, struct ttm_record *records,
                              uint32_t max, uint64_t *ret_passed);

/* Remembers how far each ring has been written. */
void ttm_ring_reader_mark(struct ttm_ring_reader *reader);

/* Whether all that was in the rings when they were marked has been read. */
bool ttm_ring_reader_is_past_mark(const struct ttm_ring_reader *reader);

/* The same once more, for a second purpose. */
void ttm_ring_reader_aim(struct ttm_ring_reader *reader);
bool ttm_ring_reader_is_past_aim(const struct ttm_ring_reader *reader);

/* Events that found a ring full, ever, over all rings. */
uint64_t ttm_ring_reader_lost(const struct ttm_ring_reader *reader);

/*
 * Announces that the reader sleeps until the producer's socket wakes it. Returns false
 * when something has arrived meanwhile, and then does not. A record may have been
 * written at this very moment by a thread that has not seen it: some milliseconds later,
 * and before it sleeps, the reader looks with ttm_ring_reader_has_more() once more.
 */
bool ttm_ring_reader_sleep(struct ttm_ring_reader *reader);

/*
 * Announces that the reader looks again by itself in a while, and wants to be woken
 * by the socket only when three quarters of a ring are full or it has lost something.
 */
void ttm_ring_reader_doze(struct ttm_ring_reader *reader);

/* Takes the announcement back, after waking for another reason. */
void ttm_ring_reader_wake(struct ttm_ring_reader *reader);

/* How many rings there are in use. */
uint32_t ttm_ring_reader_used(const struct ttm_ring_reader *reader);

/* Whether there is something to read. */
bool ttm_ring_reader_has_more(const struct ttm_ring_reader *reader);

/* How full the fullest ring is, in thousandths. */
uint32_t ttm_ring_reader_fill(const struct ttm_ring_reader *reader);

/* Whether a reader before us has read something. */
bool ttm_ring_reader_is_late(const struct ttm_ring_reader *reader);

/* What holds for a device now; 'programs' are those sent there last, newest first. */
struct ttm_device_state {
    uint32_t note;
    uint32_t dispatched;
    uint32_t program_count;
    uint64_t programs[TTM_SEGMENT_PROGRAMS];
};

/* All zero when there is nothing to say of it. */
void ttm_ring_reader_device(const struct ttm_ring_reader *reader, uint32_t id,
                            struct ttm_device_state *ret);

/* What the process says of itself. */
struct ttm_process_state {
    uint64_t unknown_ends;
    uint64_t untracked; /* no room for them, and senseless ones */
    uint64_t senseless;
    uint64_t unknown_frees;
    uint64_t notes_left_out;
    uint32_t runtime_note;
    uint32_t trouble_note;
    uint32_t opening_note;
};

void ttm_ring_reader_process(const struct ttm_ring_reader *reader, struct ttm_process_state *ret);

/*
 * Copies the bytes of a note of that kind, at most 'max'. Returns their number;
 * -ENOENT when there is no such note; -EMSGSIZE when it is longer than 'max'.
 */
long ttm_ring_reader_note(const struct ttm_ring_reader *reader, uint32_t number, uint32_t kind,
                          void *ret, uint32_t max);

#endif /* TTM_RING_READER_H */
