/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracker - the state of tracking in this process.
 *
 * One for the process. The functions that report events may be called by any
 * thread at any time; they take no lock, make no system call and allocate
 * nothing, but for the first event of a thread, which finds itself a ring.
 */
#ifndef TTM_CLIENT_TRACKER_H
#define TTM_CLIENT_TRACKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <stddef.h>
#include "base/tick_clock.h"
#include "client/deferred.h"
#include "client/happening.h"
#include "client/live_table.h"
#include "client/note_table.h"

#include "ring/producer.h"
#include "wire/note.h"

#define TTM_CONTEXTS_MAX 64

/*
 * What a thread has to itself while it owns the ring of the same number. Up to the count of the
 * cache it is what every event looks at, in one line; short offsets make short code too.
 */
struct ttm_slot {
    /* Where it writes: its own, or one to go on in; NULL in a child. */
    _Alignas(128) struct ttm_ring *ring;
    uint64_t serial; /* the last that was given; goes on from owner to owner */
    /* Of a guest to whom all events of the thread are alike; of that epoch and context. */
    uint32_t lasting_epoch;
    uint32_t lasting_context;
    uint32_t lasting_origin;
    uint32_t context; /* the innermost, 0 for none */
    uint64_t busy_id; /* of the event that it is in the middle of */
    struct ttm_deferred deferred;
    _Atomic bool is_busy; /* in the middle of an event: its signal handlers find it set */
    _Atomic bool has_own; /* the program itself has told of an allocation here, not its hook */
    struct ttm_live_cache cache;
    uint32_t number;
    uint32_t context_epoch; /* contexts of an earlier one have gone */
    uint32_t context_depth; /* may be more than there is room for */
    /* What the thread is about: notes of the whole path, innermost last. */
    uint32_t contexts[TTM_CONTEXTS_MAX];
    uint32_t context_origin; /* an origin that says nothing but the context */
    /* Events in a row for which there was no other ring, and the tail of the full one. */
    uint32_t refusals;
    uint64_t refused_at;
    struct ttm_deferred_places deferred_places;
};

_Static_assert(offsetof(struct ttm_slot, cache.places) == 64, "one cache line");

struct ttm_tracker {
    /* Odd: tracking is on. Raised by one with each switch, so it tells one spell from the next. */
    _Atomic uint32_t epoch;
    struct ttm_tick_clock clock; /* of events */
    struct ttm_producer producer;
    struct ttm_live_table table;
    struct ttm_slot *slots; /* one for each ring */
    struct ttm_note_table notes;
};

_Static_assert(offsetof(struct ttm_tracker, producer.segment) < 64,
               "what every event looks at is in one cache line");

/* Returns 0 or a negative errno. */
int ttm_tracker_init(struct ttm_tracker *tracker, uint64_t seed);
void ttm_tracker_done(struct ttm_tracker *tracker);

/* A slot for the calling thread, or NULL when all are taken. */
struct ttm_slot *ttm_tracker_claim(struct ttm_tracker *tracker);

/*
 * The thread ends, or tracking does. A thread that was cancelled in the middle of
 * an event leaves a loss behind, so that the server asks for what is live.
 */
void ttm_tracker_release(struct ttm_tracker *tracker, struct ttm_slot *slot);

/*
 * Reports an event. A birth that was let in before tracking was switched off is
 * taken back: nobody will tell of its end.
 */
void ttm_tracker_report(struct ttm_tracker *tracker, struct ttm_slot *slot,
                        const struct ttm_happening *report);

/*
 * The same for the two that are frequent: a birth, whose serial and time are set here,
 * and an end by its owner. A birth is plain when it has neither kind nor flags; 'key' is its key.
 */
void ttm_tracker_begin(struct ttm_tracker *tracker, struct ttm_slot *slot, struct ttm_live *live,
                       uint32_t epoch);
void ttm_tracker_begin_plain(struct ttm_tracker *tracker, struct ttm_slot *slot,
                             struct ttm_live *live, uint64_t key, uint32_t epoch);
/* Returns false when there was no such life, which is counted; true too when that is not known yet. */
bool ttm_tracker_end(struct ttm_tracker *tracker, struct ttm_slot *slot, uint16_t allocator,
                     uint8_t region, uint64_t id, uint32_t epoch);
void ttm_tracker_end_plain(struct ttm_tracker *tracker, struct ttm_slot *slot, uint16_t allocator,
                           uint8_t region, uint64_t id, uint32_t epoch);

/* For lane.h, after an event that is told of: wakes a reader that sleeps, reports what handlers left. */
void ttm_tracker_look_after(struct ttm_tracker *tracker, struct ttm_slot *slot);

/* For lane.h: ends a life that began there while tracking was switched off. */
void ttm_tracker_take_back(struct ttm_tracker *tracker, struct ttm_slot *slot, uint64_t key,
                           uint64_t id, uint64_t serial);

/*
 * Waits a little until every thread has left the event that it is in the middle of, so that what
 * the table says of an event that has been seen there is in a ring too. Returns false when one
 * stayed: the table is right all the same.
 */
bool ttm_tracker_settle(struct ttm_tracker *tracker);

/* Counts an event that cannot be told of. */
void ttm_tracker_refuse(struct ttm_tracker *tracker);

/* The same for one that makes no sense. */
void ttm_tracker_refuse_senseless(struct ttm_tracker *tracker);

/* Counts an end of what was not live. */
void ttm_tracker_count_unknown_end(struct ttm_tracker *tracker);

/*
 * Counts it as a mistake of the program, which has freed what it never told of or has freed twice;
 * unless some of what it told of was not taken in.
 */
void ttm_tracker_count_unknown_free(struct ttm_tracker *tracker);

/* Forgets what is live, after tracking was switched off; returns whether anything was. On any thread. */
bool ttm_tracker_forget(struct ttm_tracker *tracker);

/* Whether the program itself has ever told of an allocation, and not its hook. */
bool ttm_tracker_has_own(const struct ttm_tracker *tracker);

/* The number of the note with that content; 0 when there is no room. */
static inline uint32_t ttm_tracker_note(struct ttm_tracker *tracker, uint32_t kind,
                                        const void *bytes, uint32_t length)
{
    return ttm_note_table_intern(&tracker->notes, &tracker->producer, kind, bytes, length);
}

/* The note of an origin. */
uint32_t ttm_tracker_origin(struct ttm_tracker *tracker, const struct ttm_origin_note *origin);

#endif /* TTM_CLIENT_TRACKER_H */
