/* SPDX-License-Identifier: Apache-2.0 */
/*
 * producer - the writing side of a segment, inside the tracked process.
 *
 * Making one takes system calls; after that a thread claims a ring once, and a
 * record costs a copy and one store. Nothing here blocks, prints or allocates.
 * A ring belongs to the thread that claimed it.
 *
 * The reader can write to the segment too. So the producer decides nothing from the segment that
 * could make two threads share a ring: it keeps its own copy of who has which ring, and of how
 * much is taken. A reader that scribbles spoils what it reads, and nothing else.
 */
#ifndef TTM_RING_PRODUCER_H
#define TTM_RING_PRODUCER_H

#include <stdbool.h>

#include "base/own_fd.h"
#include "ring/segment.h"

/* Virtual size; pages are taken as they are written. */
#define TTM_RINGS 512
#define TTM_RING_SLOTS 8192 /* 512 KiB a thread, of the 1 MiB that it may have */
#define TTM_NOTES_BYTES (64u << 20)
/*
 * Rings that threads may have besides their own while the reader does not get to run, all threads
 * together: 4 MiB of a process in which that has happened. The reader was seen to be kept waiting
 * for 30 ms where others take every processor; a thread with a million events a second fills its
 * own ring in eight.
 */
#define TTM_SPARE_RINGS 8

struct ttm_producer {
    struct ttm_segment *segment;
    struct ttm_own_fd fd;        /* of the memfd */
    struct ttm_own_fd wake_fd;   /* a socket: the reader sleeps on its other end */
    struct ttm_own_fd sleep_fd;  /* that end, which each reader is given */
    _Atomic uint32_t spares;     /* rings that were taken to go on in and never before */
    _Atomic uint32_t rings_used; /* these three are what the segment says to the reader */
    _Atomic uint32_t notes_used;
    _Atomic uint32_t owners[TTM_RINGS];
};

/* Whether this process may make one, and its children: see base/file_limit.h. */
bool ttm_producer_is_allowed(void);

/* Returns 0 or a negative errno; -EFBIG where it is not allowed. */
int ttm_producer_new(struct ttm_producer *ret);

/* Unmaps and closes; the reader keeps its own mapping. No ring may be in use. */
void ttm_producer_done(struct ttm_producer *producer);

/* A ring for the thread 'tid', one that another has given back if possible; NULL when all are taken. */
struct ttm_ring *ttm_producer_claim(struct ttm_producer *producer, uint32_t tid);

/* The number of a ring, below TTM_RINGS. */
uint32_t ttm_producer_number(const struct ttm_producer *producer, const struct ttm_ring *ring);

/* The thread ends: what it wrote stays for the reader, the ring is for the next. */
void ttm_producer_release(struct ttm_producer *producer, struct ttm_ring *ring);

/* Rings from this number on were never claimed. */
uint32_t ttm_producer_rings_used(const struct ttm_producer *producer);

/* The ring of that number. */
struct ttm_ring *ttm_producer_ring(const struct ttm_producer *producer, uint32_t number);

/*
 * A ring to go on in for the thread of 'own', whose ring 'full' is full: 'own' itself if that has
 * been read, else one that nobody has, which is claimed. 'full' is given back if it is not 'own'.
 * NULL when there is none, and nothing has changed.
 */
struct ttm_ring *ttm_producer_go_on(struct ttm_producer *producer, struct ttm_ring *own,
                                    struct ttm_ring *full);

/* For a ring that looked full when its producer looked last: whether it is. */
__attribute__((cold, noinline)) bool ttm_ring_is_full(struct ttm_ring *ring, uint64_t tail);

/* For a reader that may not be awake, or a ring that fills up: wakes it if need be. */
__attribute__((cold, noinline)) void ttm_ring_call_reader(struct ttm_producer *producer,
                                                          struct ttm_ring *ring, uint64_t tail,
                                                          uint32_t sleep);

#define TTM_RING_PREFETCH 8 /* records ahead */

/*
 * A reader that dozes is woken from here on. Of a million events a second the rest of the ring lasts
 * for two milliseconds; where the reader does not get to run for longer, the thread goes on in spare ones.
 */
#define TTM_RING_WAKE_AT (TTM_RING_SLOTS - TTM_RING_SLOTS / 4)

/* Where the next record is to be written, and its number; NULL when the ring is full. */
static inline struct ttm_record *ttm_ring_next(struct ttm_ring *ring, uint64_t *ret_tail)
{
    struct ttm_record *slots = (struct ttm_record *)(ring + 1);
    /* relaxed: only we write it. */
    const uint64_t tail = *ret_tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

    /* '>=', so that a head that lies ahead reads as full and not as room. */
    if (__builtin_expect(tail - ring->head_seen >= TTM_RING_SLOTS, 0) &&
        ttm_ring_is_full(ring, tail))
        return NULL;
    /* The reader's processor has the lines of the last round: they are called back in time. */
    __builtin_prefetch(&slots[(tail + TTM_RING_PREFETCH) % TTM_RING_SLOTS], 1);
    return &slots[tail % TTM_RING_SLOTS];
}

/* The record of that number is whole: hands it to the reader, and wakes it if need be. */
static inline void ttm_ring_publish(struct ttm_producer *producer, struct ttm_ring *ring,
                                    uint64_t tail)
{
    /* release: publishes the record to the reader's acquire of tail. */
    atomic_store_explicit(&ring->tail, ++tail, memory_order_release);
    /*
     * relaxed: the processor may look here before others see the tail, and the reader may have
     * announced its sleep and found the ring empty in between. A barrier would cost more than all
     * the rest of this; instead the reader looks once more some milliseconds after it has
     * announced its sleep, when the tail has long been seen.
     */
    const uint32_t sleep =
        atomic_load_explicit(&producer->segment->reader_sleep, memory_order_relaxed);
    /* One branch for all that is usual: it is awake or dozing, and the ring is far from full. */
    const bool is_asleep = (sleep & ~(uint32_t)TTM_READER_DOZING) != 0;
    const bool is_late = tail - ring->head_seen >= TTM_RING_WAKE_AT;
    if (__builtin_expect(is_asleep | is_late, 0))
        ttm_ring_call_reader(producer, ring, tail, sleep);
}

/* Both, for a record that lies elsewhere. Returns whether there was room; else the loss is counted. */
bool ttm_ring_push(struct ttm_producer *producer, struct ttm_ring *ring,
                   const struct ttm_record *record);

/* Counts an event that is not in the ring, which has the server ask for what is live. */
void ttm_ring_lose(struct ttm_producer *producer, struct ttm_ring *ring);

/*
 * Writes a note and returns its number, or 0 when there is no room. The caller
 * sees to it that the same thing is not noted again and again.
 */
uint32_t ttm_producer_note(struct ttm_producer *producer, uint32_t kind, const void *bytes,
                           uint32_t length);

/* The bytes of a note of that kind, where they lie; NULL when there is none. */
const void *ttm_producer_read_note(const struct ttm_producer *producer, uint32_t number,
                                   uint32_t kind, uint32_t *ret_length);

#endif /* TTM_RING_PRODUCER_H */
