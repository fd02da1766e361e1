/* SPDX-License-Identifier: Apache-2.0 */
#include "client/switch.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own_fd.h"
#include "base/seed.h"
#include "client/helper.h"

struct ttm_tracker ttm_own_tracker;
const struct ttmem_guest *ttm_own_guest;
_Atomic bool ttm_own_has_missed;

/*
 * What is looked at until the page is mapped; and where no page can be had, the switch is the
 * program's own and commands do not see it.
 */
static struct ttm_control private_control = {.nudge_fd = -1};
struct ttm_control *_Atomic ttm_own_control = &private_control;

/* Guards switching and what follows. */
static pthread_mutex_t switch_lock;
static struct ttm_helper helper;
static bool has_tracker; /* made once, kept until the process ends: a thread may be inside */
static bool has_helper;
static bool is_to_be_mapped;         /* there is a page, or was to be: see map_control() */
static bool is_child;                /* of a fork: what its parent had is not its own */
static _Atomic bool was_forked;      /* it was one, and may have what was its parent's */
static bool is_barred;               /* from tracking: see leave_parent() */
static _Atomic bool has_loader_left; /* see leave() */
static pthread_key_t slot_key;
static pthread_key_t leave_key; /* set in the main thread alone */
static bool has_leave_key;

static struct ttm_own_fd control_fd = {.fd = -1};
static bool is_wanted_at_start; /* by the environment, or by the parent */

/* A page that the kernel empties in the child of any fork, by whatever call: see leave_parent(). */
#define PAGE 4096
static union {
    _Alignas(PAGE) bool is_own; /* this memory is that of the process that wrote it */
    char bytes[PAGE];
} marked;

__thread struct ttm_slot *_Atomic ttm_own_slot __attribute__((tls_model("initial-exec")));

/* ---- a thread's slot ---- */

static bool leave_parent(void);

static void forget_slot(void)
{
    atomic_store_explicit(&ttm_own_slot, NULL, memory_order_relaxed); /* one thread */
    if (ttm_own_guest && ttm_own_guest->on_slot)
        ttm_own_guest->on_slot(NULL);
}

static void release_slot(void *slot)
{
    if (!((struct ttm_slot *)slot)->ring) /* it was a parent's */
        return;
    /* First, so that a signal handler does not report into what is another thread's by then. */
    forget_slot();
    atomic_signal_fence(memory_order_seq_cst);
    ttm_tracker_release(&ttm_own_tracker, slot);
}

struct ttm_slot *ttm_switch_find_slot(void)
{
    const int saved_errno = errno;
    struct ttm_slot *slot = NULL, *own = NULL;

    if (marked.is_own || (leave_parent() && ttm_switch_epoch() != 0))
        slot = ttm_tracker_claim(&ttm_own_tracker);

    /* relaxed: one thread; a signal handler may have been faster. */
    if (slot && !atomic_compare_exchange_strong_explicit(
                    &ttm_own_slot, &own, slot, memory_order_relaxed, memory_order_relaxed)) {
        ttm_tracker_release(&ttm_own_tracker, slot);
        slot = own;
    }
    if (slot)
        (void)pthread_setspecific(slot_key, slot);
    errno = saved_errno;
    return slot;
}

/* ---- on and off ---- */

/* An error-checking lock: a signal handler that interrupts a switch is told so and goes on. */
static void init_lock(void)
{
    pthread_mutexattr_t attr;

    (void)pthread_mutexattr_init(&attr);
    (void)pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
    (void)pthread_mutex_init(&switch_lock, &attr);
    (void)pthread_mutexattr_destroy(&attr);
}

static int make_tracker(void)
{
    if (has_tracker)
        return 0;
    int r = -pthread_key_create(&slot_key, release_slot);
    if (r < 0)
        return r;
    /* A child that leaves its parent does so in the middle of an event of this number. */
    const uint32_t epoch = atomic_load_explicit(&ttm_own_tracker.epoch, memory_order_relaxed);
    r = ttm_tracker_init(&ttm_own_tracker, ttm_seed_random());
    atomic_store_explicit(&ttm_own_tracker.epoch, epoch, memory_order_relaxed);
    if (r < 0)
        (void)pthread_key_delete(slot_key);
    has_tracker = r == 0;
    return r;
}

static bool is_on(void)
{
    return (atomic_load_explicit(&ttm_own_tracker.epoch, memory_order_relaxed) & 1) != 0;
}

/* The page, once it was mapped. */
static struct ttm_control *own_control(void)
{
    return atomic_load_explicit(&ttm_own_control,
                                memory_order_relaxed); /* written under the lock */
}

/*
 * With the lock held. Loading the library makes the page, for commands to find; whoever uses the
 * library first maps it.
 */
static void map_control(void)
{
    struct ttm_control *control;

    if (!is_to_be_mapped)
        return;
    /* The program may have closed it for one of its own. */
    if (!ttm_own_fd_is_ours(&control_fd))
        control_fd = ttm_own_fd_of(ttm_control_new(is_wanted_at_start));
    if (control_fd.fd >= 0 && ttm_control_map(control_fd.fd, &control) == 0)
        /* release: pairs with the acquire in ttm_switch_epoch(); the mapping is there. */
        atomic_store_explicit(&ttm_own_control, control, memory_order_release);
    else
        atomic_store_explicit(&private_control.is_wanted, is_wanted_at_start, memory_order_relaxed);
    is_to_be_mapped = false; /* the last, for a fork() meanwhile: see was_wanted() */
}

static bool is_wanted(void)
{
    return atomic_load_explicit(&own_control()->is_wanted, memory_order_seq_cst) != 0;
}

/* With the lock held, by whoever decides: a command may have its own word at any time. */
static void want(bool is_wanted_now)
{
    atomic_store_explicit(&own_control()->is_wanted, is_wanted_now, memory_order_relaxed);
}

/* With the lock held. A command waits for it. */
static void say_state(enum ttm_control_state state)
{
    /* release: what was done before is there for whoever the command has told. */
    atomic_store_explicit(&own_control()->state, state, memory_order_release);
}

static bool look_at_wish(void);
static bool let_helper_leave(void);

bool ttm_switch_knows_all(void)
{
    /* relaxed, both: see ttm_switch_miss(). */
    return !atomic_load_explicit(&ttm_own_has_missed, memory_order_relaxed) &&
           !atomic_load_explicit(&was_forked, memory_order_relaxed);
}

uint32_t ttm_switch_trouble(void)
{
    static const char trouble[] =
        "it allocated while tracking was off: what is left of that is not known";

    if (!atomic_load_explicit(&ttm_own_has_missed, memory_order_relaxed))
        return 0;
    return ttm_tracker_note(&ttm_own_tracker, TTM_NOTE_STRING, trouble, sizeof(trouble) - 1);
}

static bool has_telling_guest(void)
{
    return ttm_own_guest && ttm_own_guest->on_enable;
}

/*
 * What the program itself allocated before is not known; that is said while tracking is on, as
 * before and after nothing is claimed. A guest has its own word in this, see ttmem_guest_say().
 */
static void own_up(bool is_on_now)
{
    const uint32_t note = is_on_now ? ttm_switch_trouble() : 0;

    if (note == 0 && has_telling_guest())
        return;
    /* release: the note is whole before its number is there. */
    atomic_store_explicit(&ttm_own_tracker.producer.segment->trouble_note, note,
                          memory_order_release);
}

/* A guest tells anew what it had told of, and of nothing else. */
static void forget_lives(void)
{
    if (ttm_tracker_forget(&ttm_own_tracker) &&
        (!has_telling_guest() || ttm_tracker_has_own(&ttm_own_tracker)))
        ttm_switch_miss();
}

/* With the lock held. */
static void switch_off(void)
{
    is_child = false; /* from here on it is its own doing what it knows */
    if (is_on()) {
        say_state(TTM_CONTROL_SWITCHING);
        if (ttm_own_guest && ttm_own_guest->on_disable)
            ttm_own_guest->on_disable();
        /* release: pairs with the acquire in ttm_tracker_report(). */
        atomic_fetch_add_explicit(&ttm_own_tracker.epoch, 1, memory_order_release);
        forget_lives();
        own_up(false);
    }
    say_state(TTM_CONTROL_OFF);
}

/* The helper is there and knows that tracking is on: it looks at the epoch when it connects. */
static int rouse_helper(void)
{
    if (has_helper) {
        ttm_helper_nudge(&helper);
        return 0;
    }
    const int r =
        ttm_helper_start(&helper, &ttm_own_tracker, own_control(), look_at_wish, let_helper_leave);
    has_helper = r == 0;
    if (has_helper && atomic_load(&has_loader_left))
        ttm_helper_watch_end(&helper);
    return r;
}

/* With the lock held. */
static int switch_on(void)
{
    int r = is_barred ? -ENOTSUP : make_tracker();

    if (r == 0 && is_on())
        return 0;
    say_state(TTM_CONTROL_SWITCHING);
    if (r == 0) {
        forget_lives(); /* of what came while that was switched off */
        own_up(true);
        /* release: pairs with the acquire in ttm_switch_epoch(); the tracker is there. */
        atomic_fetch_add_explicit(&ttm_own_tracker.epoch, 1, memory_order_release);
        r = rouse_helper();
    }
    if (r < 0) {
        want(false); /* so that not every event tries again */
        switch_off();
        return r;
    }
    if (ttm_own_guest && ttm_own_guest->on_enable && !is_child)
        ttm_own_guest->on_enable();
    say_state(TTM_CONTROL_ON); /* what is live is known from here on */
    return 0;
}

/* On the helper thread, after a command has said what it wants. Returns whether that is done. */
static bool look_at_wish(void)
{
    /* Whoever holds the lock may be waiting for this very thread. */
    if (pthread_mutex_trylock(&switch_lock) != 0)
        return false;
    if (is_wanted() && !is_on())
        (void)switch_on();
    if (!is_wanted() && is_on())
        switch_off();
    pthread_mutex_unlock(&switch_lock);
    return true;
}

/* On the helper thread, which has no business in the program while tracking is off. */
static bool let_helper_leave(void)
{
    if (pthread_mutex_trylock(&switch_lock) != 0)
        return false;
    const bool is_leaving = has_helper && !is_on() && !is_wanted();
    if (is_leaving) {
        ttm_helper_leave(&helper);
        has_helper = false;
    }
    pthread_mutex_unlock(&switch_lock);
    return is_leaving;
}

/* What a cancelled thread would leave behind is a lock that nobody gives back. */
static bool lock(int *ret_cancel)
{
    if (!marked.is_own && !leave_parent())
        return false;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, ret_cancel);
    if (pthread_mutex_lock(&switch_lock) == 0)
        return true;
    (void)pthread_setcancelstate(*ret_cancel, NULL);
    return false;
}

static void unlock(int cancel)
{
    pthread_mutex_unlock(&switch_lock);
    (void)pthread_setcancelstate(cancel, NULL);
}

/* Whoever asks, or an event that finds that it is wanted. */
static int enable(bool is_asked)
{
    const int saved_errno = errno;
    int cancel, r = -EDEADLK;

    if (lock(&cancel)) {
        map_control();
        if (is_asked)
            want(true);
        if (is_asked && has_helper)
            ttm_helper_look_at_environment(&helper);
        r = is_asked || is_wanted() ? switch_on() : -ECANCELED;
        unlock(cancel);
    }
    errno = saved_errno;
    return r;
}

uint32_t ttm_switch_on_wanted(void)
{
    return enable(false) == 0 ? atomic_load_explicit(&ttm_own_tracker.epoch, memory_order_acquire)
                              : 0;
}

int ttmem_enable(void)
{
    return enable(true);
}

void ttmem_disable(void)
{
    const int saved_errno = errno;
    int cancel;

    if (lock(&cancel)) {
        map_control();
        want(false);
        switch_off();
        if (has_helper)
            ttm_helper_stop(&helper);
        has_helper = false;
        unlock(cancel);
    }
    errno = saved_errno;
}

int ttmem_is_enabled(void)
{
    const int saved_errno = errno;
    int cancel;

    if (is_on())
        return 1;
    if (!lock(&cancel)) { /* we have interrupted whoever is about to map it */
        errno = saved_errno;
        return is_wanted_at_start;
    }
    map_control();
    unlock(cancel);
    errno = saved_errno;
    return is_wanted();
}

/* The number of a note with that text, 0 for "". */
static uint32_t note_of(const char *text)
{
    const uint32_t length = (uint32_t)strlen(text);

    return length > 0 ? ttm_tracker_note(&ttm_own_tracker, TTM_NOTE_STRING, text, length) : 0;
}

void ttmem_guest_say_at_exit(const char *runtime, const char *outcome)
{
    int cancel;

    if (!lock(&cancel))
        return;
    if (!has_tracker && !is_barred && make_tracker() == 0) {
        struct ttm_segment *segment = ttm_own_tracker.producer.segment;
        /* release, both: the notes are whole before their numbers are there. */
        atomic_store_explicit(&segment->runtime_note, note_of(runtime), memory_order_release);
        atomic_store_explicit(&segment->opening_note, note_of(outcome), memory_order_release);
        ttm_helper_introduce(&helper, &ttm_own_tracker);
    }
    unlock(cancel);
}

void ttmem_guest_register(const struct ttmem_guest *guest)
{
    ttm_own_guest = guest;
}

/* ---- beginning, fork, end ---- */

static void make_control(bool is_wanted_now)
{
    is_wanted_at_start = is_wanted_now;
    is_to_be_mapped = true;
    control_fd = ttm_own_fd_of(ttm_control_new(is_wanted_now));
    /* Has the first event look at the page. */
    atomic_store_explicit(&private_control.is_wanted, 1, memory_order_relaxed);
    atomic_store_explicit(&ttm_own_control, &private_control, memory_order_release);
}

/* What the page says, which may not be mapped yet. */
static bool was_wanted(void)
{
    if (!is_to_be_mapped)
        return is_wanted();
    return ttm_own_fd_is_ours(&control_fd) ? ttm_control_read_wanted(control_fd.fd)
                                           : is_wanted_at_start;
}

/* The page of the parent is not ours to write to. */
static void drop_control(void)
{
    if (own_control() != &private_control)
        (void)munmap(own_control(), sizeof(struct ttm_control));
    ttm_own_fd_close(&control_fd);
}

/* The child of a fork is its own process: it shares nothing and begins anew if it wants to. */
static void forget_in_child(void)
{
    const bool was_on = is_on() || was_wanted();

    init_lock();
    forget_slot();
    if (has_helper)
        ttm_helper_forget(&helper);
    if (has_tracker) {
        /* Or the end of this thread would give back a slot that is gone. */
        (void)pthread_key_delete(slot_key);
        ttm_tracker_done(&ttm_own_tracker);
    }
    atomic_fetch_and_explicit(&ttm_own_tracker.epoch, ~1u, memory_order_relaxed);
    has_tracker = false;
    has_helper = false;
    atomic_store_explicit(&ttm_own_has_missed, false, memory_order_relaxed); /* by the parent */
    atomic_store_explicit(&was_forked, true, memory_order_relaxed);
    has_loader_left = false; /* the thread that is left is the main one now */
    if (has_leave_key)
        (void)pthread_setspecific(leave_key, &leave_key);
    is_child = true;
    is_barred = false;
    drop_control();
    make_control(was_on);
    marked.is_own = true;
}

/*
 * The child of a _Fork() or of a bare clone() is told nothing, and finds it out by itself: with its
 * first event, as its slot was emptied, or when it is about to switch. Returns whether it is its
 * own process now.
 */
static bool leave_parent(void)
{
    sigset_t all, before;

    /* The thread that is left of the parent does it, or it would keep what was its parent's. */
    if (syscall(SYS_gettid) != getpid())
        return false;
    sigfillset(&all); /* a handler would find half of it */
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    forget_in_child();
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (ttm_own_guest) { /* it was not told either, and takes what it knows for its own */
        ttmem_disable();
        is_barred = true;
    }
    return true;
}

/* The thread that loaded us, in most programs the main one, has left without ending the process. */
static void leave(void *nothing)
{
    (void)nothing;
    atomic_store(&has_loader_left, true); /* a helper that starts later has to know it too */
    if (has_helper)
        ttm_helper_watch_end(&helper);
}

void ttm_switch_begin(void)
{
    const char *wanted = getenv("TT_ALLOC_TRACKING_ENABLED");

    init_lock();
    marked.is_own = true;
    (void)madvise(&marked, sizeof(marked),
                  MADV_WIPEONFORK); /* or such children are not told apart */
    make_control(wanted && strcmp(wanted, "1") == 0);
    (void)pthread_atfork(NULL, NULL, forget_in_child);
    /* Not a destructor of thread-local data, which glibc leaves out when a main thread leaves. */
    has_leave_key = pthread_key_create(&leave_key, leave) == 0;
    if (has_leave_key)
        (void)pthread_setspecific(leave_key, &leave_key);
}
