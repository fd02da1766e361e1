/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/tracking.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "client/guest.h"
#include "client/lane.h"
#include "hook/allocators.h"
#include "hook/buffers.h"
#include "hook/devices.h"
#include "hook/ending.h"
#include "hook/gate.h"
#include "hook/hot.h"
#include "hook/keepers.h"
#include "hook/opening.h"
#include "hook/origins.h"
#include "hook/programs.h"
#include "hook/runtime.h"
#include "hook/workloads.h"
#include "stack/stack.h"

static bool was_in_environment; /* when we were loaded */
static bool is_child;           /* of a fork: what there was before is its parent's */

static struct ttmem_guest guest;

/* Gate closed. */
static void set_flag(bool is_on)
{
    if (is_on) /* relaxed: see the reader */
        atomic_fetch_or_explicit(&ttm_hot.state, TTM_GATE_TRACKING, memory_order_relaxed);
    else
        atomic_fetch_and_explicit(&ttm_hot.state, ~TTM_GATE_TRACKING, memory_order_relaxed);
}

/* What lanes.h needs, in the page that a fork empties. */
static void put_at_hand(const struct ttm_runtime *runtime)
{
    ttm_hot.tracker = ttmem_guest_tracker(ttm_lane_layout());
    ttm_hot.ending = ttm_ending_word();
    if (runtime)
        ttm_runtime_put_at_hand(runtime);
}

/* Gate closed. Numbers of notes are those of an earlier spell of tracking, or of none. */
static void begin_anew(const struct ttm_runtime *runtime)
{
    ttm_allocators_forget_notes();
    ttm_origins_begin(runtime ? runtime->metal : NULL);
    guest.is_lasting = !ttm_origins_have_frames();
    ttm_keepers_begin();
    ttm_ending_look();
    put_at_hand(runtime);
    set_flag(true);
    if (runtime)
        ttm_devices_tell_all(runtime);
}

/* libttmem was switched on and knows nothing of what is live. */
static void catch_up(void)
{
    const int saved_errno = errno;

    ttm_runtime_say();
    ttm_opening_say();
    (void)ttm_gate_close(); /* in vain: then as exact as can be */
    const struct ttm_runtime *runtime = ttm_runtime_tracked();
    begin_anew(runtime);
    ttm_stack_set_silent(true); /* of what others did long ago */
    if (runtime) {
        ttm_buffers_tell_all(runtime);
        ttm_programs_tell_all();
    }
    ttm_stack_set_silent(false);
    ttm_gate_open();
    errno = saved_errno;
}

static void stop(void)
{
    const int saved_errno = errno;

    (void)ttm_gate_close(); /* whoever is inside reports to the end */
    set_flag(false);
    ttm_gate_open();
    errno = saved_errno;
}

static struct ttmem_guest guest = {
    .on_enable = catch_up,
    .on_disable = stop,
    .origin = ttm_stack_origin,
    .on_slot = ttm_own_set_slot,
};

/* In the child of a fork libttmem begins with nothing, and does not ask us. */
static void begin_in_child(void)
{
    ttm_runtime_say();
    (void)ttm_gate_close();
    begin_anew(ttm_runtime_tracked());
    ttm_gate_open();
}

void ttm_tracking_begin_if_wanted(void)
{
    const int saved_errno = errno;

    if (ttmem_is_enabled() && ttmem_enable() == 0 && is_child && !ttm_tracking_is_on())
        begin_in_child();
    errno = saved_errno;
}

bool ttm_event_enter_slowly(void)
{
    if (!ttm_tracking_is_on()) /* when in doubt, once more */
        ttm_tracking_begin_if_wanted();
    ttm_gate_enter();
    return ttm_tracking_is_on();
}

void ttm_tracking_look_at_environment(void)
{
    const char *wanted = was_in_environment ? NULL : getenv("TT_ALLOC_TRACKING_ENABLED");

    if (wanted && strcmp(wanted, "1") == 0) {
        was_in_environment = true; /* once: it may be switched off again */
        (void)ttmem_enable();
    }
}

static void forget_in_child(void)
{
    set_flag(false);
    is_child = true;
    put_at_hand(ttm_runtime_tracked()); /* a handler may have forked amid an event, which goes on */
    ttm_gate_after_fork();
    ttm_runtime_after_fork();
    ttm_allocators_after_fork();
    ttm_buffers_after_fork();
    ttm_devices_after_fork();
    ttm_opening_after_fork();
    ttm_programs_after_fork();
    ttm_workloads_after_fork();
}

__attribute__((constructor)) static void begin(void)
{
    const char *wanted = getenv("TT_ALLOC_TRACKING_ENABLED");

    was_in_environment = wanted && strcmp(wanted, "1") == 0;
    ttm_hot_begin();
    (void)pthread_atfork(ttm_gate_before_fork, ttm_gate_after_fork_in_parent, forget_in_child);
    ttmem_guest_register(&guest);
}
