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

#include "client/live_table.h"
#include "ring/producer.h"

/* Events that a signal handler reports while its thread is in the middle of one. */
#define TTM_DEFERRED_MAX 8

struct ttm_report {
    bool is_birth;
    struct ttm_live live; /* of an end: its key alone */
};

/* What a thread has to itself while it owns the ring of the same number. */
struct ttm_slot {
    _Alignas(64) struct ttm_ring *ring;
    uint64_t counter; /* of serials; goes on from owner to owner */
    uint32_t number;
    volatile bool is_busy;           /* only a signal handler of the same thread can find it set */
    _Atomic uint32_t deferred_count; /* atomic for handlers that interrupt handlers */
    struct ttm_report deferred[TTM_DEFERRED_MAX];
    struct ttm_live_cache cache;
};

struct ttm_tracker {
    struct ttm_producer producer;
    struct ttm_live_table table;
    struct ttm_slot *slots; /* one for each ring */
    int helper_fd;          /* eventfd that wakes the helper thread */
    _Atomic uint64_t unknown_ends;
    _Atomic uint64_t untracked; /* events for which there was no room at all */
};

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

void ttm_tracker_report(struct ttm_tracker *tracker, struct ttm_slot *slot,
                        const struct ttm_report *report);

#endif /* TTM_CLIENT_TRACKER_H */
