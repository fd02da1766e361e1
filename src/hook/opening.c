/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/opening.h"

#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#include "client/guest.h"
#include "hook/metal.h"
#include "hook/release.h"
#include "hook/runtime.h"
#include "hook/tracking.h"

#define REASON_SIZE 200

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards 'outcome' */
static char outcome[REASON_SIZE + 32];                   /* "" when there is nothing to report */
static _Atomic bool has_device;                          /* it has, or had, one */

static void set_outcome(const char *text)
{
    pthread_mutex_lock(&lock);
    (void)snprintf(outcome, sizeof(outcome), "%s", text);
    pthread_mutex_unlock(&lock);
}

void ttm_opening_say(void)
{
    char copy[sizeof(outcome)];

    pthread_mutex_lock(&lock);
    memcpy(copy, outcome, sizeof(copy));
    pthread_mutex_unlock(&lock);
    ttmem_guest_say_opening(copy);
}

static bool is_without_device(void)
{
    return !atomic_load_explicit(&has_device, memory_order_relaxed); /* a hint for people */
}

void ttm_opening_begin(void)
{
    const int saved_errno = errno;

    ttm_tracking_look_at_environment();
    ttm_tracking_begin_if_wanted();
    if (is_without_device()) {
        set_outcome("opening a device did not finish"); /* if nothing more is heard of it */
        ttm_opening_say();
    }
    errno = saved_errno;
}

void ttm_opening_done(void)
{
    if (is_without_device() && !atomic_exchange_explicit(&has_device, true, memory_order_relaxed)) {
        set_outcome("");
        ttm_opening_say();
    }
}

void ttm_opening_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
}

/* ---- an exception that passes ---- */

/* "opening a device failed (no such device)" */
static void fail(const char *what, const struct _Unwind_Exception *exception)
{
    const int saved_errno = errno;
    const struct ttm_runtime *runtime = ttm_runtime_tracked();
    char reason[REASON_SIZE], text[sizeof(outcome)];

    ttm_tracking_begin_if_wanted();
    if (runtime && runtime->metal->exception_reason(exception, reason, sizeof(reason)))
        (void)snprintf(text, sizeof(text), "%s (%s)", what, reason);
    else
        (void)snprintf(text, sizeof(text), "%s", what);
    set_outcome(text);
    ttm_opening_say();
    errno = saved_errno;
}

/*
 * Both are named by the assembler alone. They act in the search for a handler, as nothing is unwound
 * where there is none: then the program aborts.
 */
_Unwind_Reason_Code ttm_opening_unwound(int version, _Unwind_Action actions,
                                        uint64_t exception_class,
                                        struct _Unwind_Exception *exception,
                                        struct _Unwind_Context *context);
_Unwind_Reason_Code ttm_opening_search_unwound(int version, _Unwind_Action actions,
                                               uint64_t exception_class,
                                               struct _Unwind_Exception *exception,
                                               struct _Unwind_Context *context);

__attribute__((used)) _Unwind_Reason_Code ttm_opening_unwound(int version, _Unwind_Action actions,
                                                              uint64_t exception_class,
                                                              struct _Unwind_Exception *exception,
                                                              struct _Unwind_Context *context)
{
    (void)version, (void)exception_class, (void)context;
    if ((actions & _UA_SEARCH_PHASE) != 0 && is_without_device())
        fail("opening a device failed", exception);
    return _URC_CONTINUE_UNWIND;
}

__attribute__((used)) _Unwind_Reason_Code ttm_opening_search_unwound(
    int version, _Unwind_Action actions, uint64_t exception_class,
    struct _Unwind_Exception *exception, struct _Unwind_Context *context)
{
    (void)version, (void)exception_class, (void)context;
    if ((actions & _UA_SEARCH_PHASE) != 0 && is_without_device())
        fail("finding devices failed", exception);
    return _URC_CONTINUE_UNWIND;
}

/* ---- a program that opens none ---- */

static int look_for_metal(struct dl_phdr_info *info, size_t size, void *context)
{
    static const char name[] = "libtt_metal.so";
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *base = slash ? slash + 1 : info->dlpi_name;

    (void)size;
    if (strncmp(base, name, sizeof(name) - 1) != 0)
        return 0;
    (void)snprintf(context, PATH_MAX, "%s", info->dlpi_name);
    return 1;
}

/* True if the server is that of a 'tt-mem run', which wants to know why nothing was tracked. */
static bool is_in_run(void)
{
    const char *socket = getenv("TTMEM_SOCKET");

    return socket && strstr(socket, "/tt-mem.run.");
}

/*
 * When the program exits. What was heard has been reported; a process that was never heard of says that
 * it had TT-Metal, if it did. One in which tracking is off says so to 'tt-mem run' alone.
 */
__attribute__((destructor)) static void say_at_exit(void)
{
    static char path[PATH_MAX], release[64];
    const int saved_errno = errno;
    const bool is_wanted = ttmem_is_enabled() != 0;

    if ((is_wanted ? is_without_device() && !ttm_runtime_tracked() : is_in_run()) &&
        dl_iterate_phdr(look_for_metal, path) == 1) {
        (void)ttm_release_name_at(path, release, sizeof(release));
        ttmem_guest_say_at_exit(release, is_wanted ? "" : "tracking was off");
    }
    errno = saved_errno;
}
