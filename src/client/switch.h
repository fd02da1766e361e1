/* SPDX-License-Identifier: Apache-2.0 */
/*
 * switch - tracking on and off in this process, and what each thread needs for it.
 *
 * Off costs two loads. On, a thread's first event finds it a slot, which it keeps
 * until it ends. Whoever switches holds a lock; no event takes it, but for the
 * first one after tracking was asked for.
 */
#ifndef TTM_CLIENT_SWITCH_H
#define TTM_CLIENT_SWITCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/guest.h"
#include "client/tracker.h"
#include "ring/control.h"

/* The one of this process. Its memory is there once tracking was on, and stays. */
extern struct ttm_tracker ttm_own_tracker;
extern struct ttm_control *_Atomic ttm_own_control;
extern const struct ttmem_guest *ttm_own_guest; /* NULL: the hook is not there */
/* Something was allocated that nobody was told of, as tracking was off, or was forgotten since. */
extern _Atomic bool ttm_own_has_missed;

/* While tracking is off. Mostly it is known already, and then no thread takes the line from another. */
static inline void ttm_switch_miss(void)
{
    /* relaxed: it is looked at when tracking is switched on, which is at no certain moment. */
    if (!atomic_load_explicit(&ttm_own_has_missed, memory_order_relaxed))
        atomic_store_explicit(&ttm_own_has_missed, true, memory_order_relaxed);
}

/*
 * Once, before anything else of the library: looks at the environment and makes the control page,
 * which the first event maps. Until then a page of our own says that tracking is wanted, so that
 * the event looks.
 */
void ttm_switch_begin(void);

/* Switches it on if that is wanted. Returns the epoch, 0 when it stays off. */
__attribute__((cold, noinline)) uint32_t ttm_switch_on_wanted(void);

/*
 * Whether all that this process can free was told of: it has allocated nothing while tracking was
 * off, and has nothing from a parent.
 */
bool ttm_switch_knows_all(void);

/* The note that says what has been missed, 0 for nothing. While tracking is on. */
uint32_t ttm_switch_trouble(void);

/* The epoch of tracking, an odd number; 0 when it is off. */
static inline uint32_t ttm_switch_epoch(void)
{
    /* acquire: pairs with the release of the switch; the tracker is there. */
    const uint32_t epoch = atomic_load_explicit(&ttm_own_tracker.epoch, memory_order_acquire);

    if (__builtin_expect((epoch & 1) != 0, 1))
        return epoch;
    /* acquire: pairs with the release in map_control(). */
    struct ttm_control *control = atomic_load_explicit(&ttm_own_control, memory_order_acquire);
    /* relaxed: whoever asked for it cannot tell when we see it. */
    if (atomic_load_explicit(&control->is_wanted, memory_order_relaxed) == 0)
        return 0;
    return ttm_switch_on_wanted();
}

/* Atomic for a signal handler that finds its thread looking for a slot. */
extern __thread struct ttm_slot *_Atomic ttm_own_slot __attribute__((tls_model("initial-exec")));

/* For a thread that has none yet, or in a child that has its parent's, of which nothing is left. */
__attribute__((cold, noinline)) struct ttm_slot *ttm_switch_find_slot(void);

/* The slot of this thread, NULL when all are taken. Tracking is or was on. */
static inline struct ttm_slot *ttm_switch_slot(void)
{
    struct ttm_slot *slot = atomic_load_explicit(&ttm_own_slot, memory_order_relaxed); /* ours */

    return __builtin_expect(slot && slot->ring, 1) ? slot : ttm_switch_find_slot();
}

/* Whether tracking is on, for what events refer to. Nothing is written to a parent's memory after. */
static inline bool ttm_switch_is_on(void)
{
    return ttm_switch_epoch() != 0 && ttm_switch_slot() != NULL;
}

#endif /* TTM_CLIENT_SWITCH_H */
