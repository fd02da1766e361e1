/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_crowd - threads that add, end and walk the lives of one table at the same time.
 *
 * Each thread that adds hands its lives over to one that ends them, but for one in
 * CROWD_STAYS, which stays. Others walk again and again until all is done. Ids are the serials.
 */
#ifndef TTM_TESTS_UNIT_LIVE_CROWD_H
#define TTM_TESTS_UNIT_LIVE_CROWD_H

#include "testing.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "client/live_table.h"

#define CROWD_PAIRS 2u
#define CROWD_WALKERS 2u
#define CROWD_STAYS 64u
#define CROWD_AHEAD_MAX 256u

/* Each function returns how much of it went wrong, and is called by several threads. */
struct crowd {
    struct ttm_live_table *table;
    uint64_t lives_each; /* that one thread adds */
    uint64_t staying;    /* so many more, of serials from 1 on, are there all the time */
    uint64_t ahead;      /* lives on their way to who ends them, at most; up to CROWD_AHEAD_MAX */
    uint64_t (*add)(struct ttm_live_cache *own, uint64_t serial);
    uint64_t (*end)(struct ttm_live_cache *own, uint64_t serial);
    uint64_t (*meet)(const struct ttm_live *live); /* on a walk */
    _Atomic bool is_over;
};

/* Serials on their way from the thread that added to the one that ends. */
struct crowd_handover {
    _Atomic uint64_t tail;
    _Atomic uint64_t head;
    uint64_t serials[CROWD_AHEAD_MAX];
};

struct crowd_worker {
    pthread_t thread;
    struct crowd *crowd;
    uint32_t pair;
    struct crowd_handover *handover;
    uint64_t wrong;
};

/* The n-th life that a pair adds; it stays when 'n' is a multiple of CROWD_STAYS. */
static inline uint64_t crowd_serial(uint32_t pair, uint64_t n)
{
    return (pair + 1ull) << 48 | (n + 1);
}

/* Of each pair. */
static inline uint64_t crowd_stays(const struct crowd *crowd)
{
    return (crowd->lives_each + CROWD_STAYS - 1) / CROWD_STAYS;
}

static inline void *crowd_add_and_hand_over(void *arg)
{
    struct crowd_worker *worker = arg;
    const struct crowd *crowd = worker->crowd;
    struct crowd_handover *out = worker->handover;
    struct ttm_live_cache own = {0};

    for (uint64_t n = 0; n < crowd->lives_each; n++) {
        const uint64_t serial = crowd_serial(worker->pair, n);
        worker->wrong += crowd->add(&own, serial);
        if (n % CROWD_STAYS == 0)
            continue;
        const uint64_t tail = atomic_load(&out->tail);
        while (tail - atomic_load(&out->head) >= crowd->ahead)
            (void)sched_yield();
        out->serials[tail % CROWD_AHEAD_MAX] = serial;
        atomic_store(&out->tail, tail + 1);
    }
    ttm_live_table_flush(crowd->table, &own);
    return NULL;
}

static inline void *crowd_end_what_is_handed_over(void *arg)
{
    struct crowd_worker *worker = arg;
    const struct crowd *crowd = worker->crowd;
    struct crowd_handover *in = worker->handover;
    const uint64_t expected = crowd->lives_each - crowd_stays(crowd);
    struct ttm_live_cache own = {0};

    for (uint64_t n = 0; n < expected; n++) {
        while (atomic_load(&in->tail) == n)
            (void)sched_yield();
        worker->wrong += crowd->end(&own, in->serials[n % CROWD_AHEAD_MAX]);
        atomic_store(&in->head, n + 1);
    }
    ttm_live_table_flush(crowd->table, &own);
    return NULL;
}

/* Walks again and again: those that are there all the time are met once each. */
static inline void *crowd_walk(void *arg)
{
    struct crowd_worker *worker = arg;
    const struct crowd *crowd = worker->crowd;

    while (!atomic_load(&crowd->is_over)) {
        struct ttm_live_walk walk = {0};
        struct ttm_live live;
        uint64_t staying = 0;
        while (ttm_live_table_next(crowd->table, &walk, &live)) {
            worker->wrong += crowd->meet(&live);
            staying += live.serial <= crowd->staying;
        }
        worker->wrong += staying != crowd->staying;
    }
    return NULL;
}

static inline void crowd_start(struct crowd_worker *worker, void *(*run)(void *))
{
    assert_int_equal(pthread_create(&worker->thread, NULL, run, worker), 0);
}

/* Tells what went wrong. Nobody asserts while others still run on what is on our stack. */
static inline uint64_t crowd_join(struct crowd_worker *worker)
{
    return pthread_join(worker->thread, NULL) == 0 ? worker->wrong : 1;
}

/* Ends the test when anything went wrong. What stays is in the table afterwards. */
static inline void crowd_run(struct crowd *crowd)
{
    struct crowd_handover handovers[CROWD_PAIRS] = {0};
    struct crowd_worker adders[CROWD_PAIRS], enders[CROWD_PAIRS], walkers[CROWD_WALKERS];
    struct ttm_live_cache own = {0};
    uint64_t wrong = 0;

    assert_in_range(crowd->ahead, 1, CROWD_AHEAD_MAX);
    for (uint64_t serial = 1; serial <= crowd->staying; serial++)
        assert_int_equal(crowd->add(&own, serial), 0);
    ttm_live_table_flush(crowd->table, &own);
    for (uint32_t i = 0; i < CROWD_WALKERS; i++) {
        walkers[i] = (struct crowd_worker){.crowd = crowd};
        crowd_start(&walkers[i], crowd_walk);
    }
    for (uint32_t i = 0; i < CROWD_PAIRS; i++) {
        adders[i] = (struct crowd_worker){.crowd = crowd, .pair = i, .handover = &handovers[i]};
        enders[i] = adders[i];
        crowd_start(&adders[i], crowd_add_and_hand_over);
        crowd_start(&enders[i], crowd_end_what_is_handed_over);
    }
    for (uint32_t i = 0; i < CROWD_PAIRS; i++) {
        wrong += crowd_join(&adders[i]);
        wrong += crowd_join(&enders[i]);
    }
    atomic_store(&crowd->is_over, true);
    for (uint32_t i = 0; i < CROWD_WALKERS; i++)
        wrong += crowd_join(&walkers[i]);
    assert_int_equal(wrong, 0);
}

#endif /* TTM_TESTS_UNIT_LIVE_CROWD_H */
