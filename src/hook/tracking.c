/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/tracking.h"

#include <errno.h>
#include <pthread.h>

#include "client/guest.h"
#include "hook/allocators.h"
#include "hook/buffers.h"
#include "hook/devices.h"
#include "hook/gate.h"
#include "hook/programs.h"
#include "hook/runtime.h"
#include "hook/workloads.h"

_Atomic bool ttm_tracking_flag;

/* libttmem was switched on and knows nothing of what is live. */
static void catch_up(void)
{
    const int saved_errno = errno;
    const struct ttm_runtime *runtime;

    (void)ttm_gate_close(); /* in vain: then as exact as can be */
    runtime = ttm_runtime_tracked();
    ttm_allocators_forget_notes();
    atomic_store_explicit(&ttm_tracking_flag, true, memory_order_relaxed); /* alone */
    if (runtime) {
        ttm_devices_tell_all(runtime);
        ttm_buffers_tell_all(runtime);
        ttm_programs_tell_all();
    }
    ttm_gate_open();
    errno = saved_errno;
}

static const struct ttmem_guest guest = {.on_enable = catch_up};

int ttm_event_begin(void)
{
    const int saved_errno = errno;

    /* Outside the gate, as catching up closes it. relaxed: when in doubt, once more. */
    if (!atomic_load_explicit(&ttm_tracking_flag, memory_order_relaxed) && ttmem_is_enabled())
        (void)ttmem_enable();
    ttm_gate_enter();
    return saved_errno;
}

void ttm_event_end(int saved_errno)
{
    ttm_gate_leave();
    errno = saved_errno;
}

/* The child of a fork is alone, and libttmem begins anew in it. */
static void forget_in_child(void)
{
    atomic_store_explicit(&ttm_tracking_flag, false, memory_order_relaxed);
    ttm_gate_after_fork();
    ttm_runtime_after_fork();
    ttm_allocators_after_fork();
    ttm_devices_after_fork();
    ttm_programs_after_fork();
    ttm_workloads_after_fork();
}

__attribute__((constructor)) static void begin(void)
{
    (void)pthread_atfork(NULL, NULL, forget_in_child);
    ttmem_guest_register(&guest);
}
