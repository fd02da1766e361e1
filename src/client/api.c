/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of ttmem.h. Off costs one load; on, a thread's first event finds
 * it a slot, which it keeps until it ends.
 */
#include <ttmem/ttmem.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/helper.h"
#include "client/tracker.h"
#include "wire/region.h"

_Static_assert(TTM_REGION_COUNT - 1 <= TTM_LIVE_REGION_MAX, "fits a place of the table");
_Static_assert(TTM_KERNEL_KIND_COUNT - 1 <= TTM_LIVE_KIND_MAX, "fits a place of the table");
_Static_assert(TTM_NOTE_FIRST + TTM_NOTES_BYTES / 8 <= TTM_LIVE_NOTE_MAX, "fits a place too");

enum state { STATE_OFF, STATE_WANTED, STATE_ON };

/* WANTED: by the environment; the first event switches it on. */
static _Atomic int state = STATE_OFF;

/* Guards switching on and off; never taken on the way of an event. */
static pthread_mutex_t switch_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ttm_tracker tracker;
static struct ttm_helper helper;
static bool has_tracker; /* made once, kept until the process ends: a thread may be inside */
static bool has_helper;
static pthread_key_t slot_key;

/* Atomic for a signal handler that finds its thread looking for a slot. */
static __thread struct ttm_slot *_Atomic own_slot __attribute__((tls_model("initial-exec")));

static void release_slot(void *slot)
{
    /* First, so that a signal handler does not report into what is another thread's by then. */
    atomic_store_explicit(&own_slot, NULL, memory_order_relaxed); /* one thread */
    atomic_signal_fence(memory_order_seq_cst);
    ttm_tracker_release(&tracker, slot);
}

/* The child of a fork is its own process: it shares nothing and begins anew if it wants to. */
static void forget_in_child(void)
{
    const bool was_on = atomic_load_explicit(&state, memory_order_relaxed) != STATE_OFF;

    atomic_store_explicit(&state, STATE_OFF, memory_order_relaxed); /* one thread is left */
    pthread_mutex_init(&switch_lock, NULL);
    atomic_store_explicit(&own_slot, NULL, memory_order_relaxed);
    if (has_tracker) {
        /* Or the end of this thread would give back a slot that is gone. */
        (void)pthread_key_delete(slot_key);
        ttm_tracker_done(&tracker);
    }
    has_tracker = false;
    has_helper = false;
    if (was_on)
        atomic_store_explicit(&state, STATE_WANTED, memory_order_relaxed);
}

__attribute__((constructor)) static void look_at_environment(void)
{
    const char *wanted = getenv("TT_ALLOC_TRACKING_ENABLED");

    (void)pthread_atfork(NULL, NULL, forget_in_child);
    if (wanted && strcmp(wanted, "1") == 0)
        atomic_store_explicit(&state, STATE_WANTED, memory_order_relaxed); /* before any thread */
}

static int make_tracker(void)
{
    uint64_t seed = 0;

    if (has_tracker)
        return 0;
    if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) < 0)
        seed = ttm_clock_monotonic_ns();
    int r = -pthread_key_create(&slot_key, release_slot);
    if (r == 0)
        r = ttm_tracker_init(&tracker, seed);
    has_tracker = r == 0;
    return r;
}

int ttmem_enable(void)
{
    const int saved_errno = errno;
    int r;

    pthread_mutex_lock(&switch_lock);
    r = make_tracker();
    if (r == 0 && !has_helper) {
        r = ttm_helper_start(&helper, &tracker);
        has_helper = r == 0;
    }
    /* release: pairs with the acquire in switch_on_if_wanted(); the tracker is there. */
    atomic_store_explicit(&state, r == 0 ? STATE_ON : STATE_OFF, memory_order_release);
    pthread_mutex_unlock(&switch_lock);
    errno = saved_errno;
    return r;
}

void ttmem_disable(void)
{
    const int saved_errno = errno;

    pthread_mutex_lock(&switch_lock);
    atomic_store_explicit(&state, STATE_OFF, memory_order_release);
    if (has_helper)
        ttm_helper_stop(&helper);
    has_helper = false;
    pthread_mutex_unlock(&switch_lock);
    errno = saved_errno;
}

int ttmem_is_enabled(void)
{
    return atomic_load_explicit(&state, memory_order_relaxed) != STATE_OFF; /* only a look */
}

/* Returns whether tracking is on. */
static bool switch_on_if_wanted(void)
{
    /* acquire: pairs with the release in ttmem_enable(). */
    const int now = atomic_load_explicit(&state, memory_order_acquire);

    return now == STATE_ON || (now == STATE_WANTED && ttmem_enable() == 0);
}

static struct ttm_slot *find_slot(void)
{
    const int saved_errno = errno;
    struct ttm_slot *slot = ttm_tracker_claim(&tracker);
    struct ttm_slot *own = NULL;

    /* relaxed: one thread; a signal handler may have been faster. */
    if (slot && !atomic_compare_exchange_strong_explicit(
                    &own_slot, &own, slot, memory_order_relaxed, memory_order_relaxed)) {
        ttm_tracker_release(&tracker, slot);
        slot = own;
    }
    if (slot)
        (void)pthread_setspecific(slot_key, slot);
    errno = saved_errno;
    return slot;
}

static struct ttm_slot *slot_of_thread(void)
{
    struct ttm_slot *slot = atomic_load_explicit(&own_slot, memory_order_relaxed); /* one thread */

    return slot ? slot : find_slot();
}

static void report(const struct ttm_report *event)
{
    struct ttm_slot *slot = slot_of_thread();

    if (slot)
        ttm_tracker_report(&tracker, slot, event);
}

void ttmem_alloc(const struct ttmem_allocation *a)
{
    if (__builtin_expect(!switch_on_if_wanted(), 0))
        return;
    if (a->address > TTM_LIVE_NUMBER_MAX || a->bytes > TTM_LIVE_NUMBER_MAX ||
        a->footprint_bytes > TTM_LIVE_NUMBER_MAX || a->bytes == 0 ||
        a->region >= TTM_REGION_COUNT || a->kind >= TTM_KERNEL_KIND_COUNT ||
        a->devices > TTM_LIVE_NOTE_MAX) {
        /* relaxed: a number to be shown. */
        atomic_fetch_add_explicit(&tracker.untracked, 1, memory_order_relaxed);
        return;
    }
    const struct ttm_report event = {
        .is_birth = true,
        .live = {.id = a->id,
                 .address = a->address,
                 .bytes = a->bytes,
                 .footprint_bytes = a->footprint_bytes ? a->footprint_bytes : a->bytes,
                 .devices = a->devices,
                 .allocator = a->allocator,
                 .region = a->region,
                 .kind = a->kind,
                 .flags = (uint8_t)(a->flags & TTM_LIVE_FLAGS_MAX)},
    };
    report(&event);
}

void ttmem_free(uint16_t allocator, uint8_t region, uint64_t id)
{
    if (__builtin_expect(!switch_on_if_wanted(), 0))
        return;
    const struct ttm_report event = {
        .live = {.id = id, .allocator = allocator, .region = region},
    };
    report(&event);
}

uint32_t ttmem_devices(const uint16_t *ids, uint32_t count)
{
    if (!switch_on_if_wanted() || count == 0 || count > TTM_DEVICE_COUNT)
        return 0;
    if (count == 1)
        return ids[0];
    return ttm_producer_note(&tracker.producer, TTM_NOTE_DEVICES, ids,
                             count * (uint32_t)sizeof(ids[0]));
}
