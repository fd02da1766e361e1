/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_runtime - the interpreter in this process: which, and may it be read.
 *
 * One per process, found once and then only read. A thread gets its own state from
 * here, and only while what is said of layouts has been proven to hold.
 */
#ifndef TTM_STACK_PYTHON_RUNTIME_H
#define TTM_STACK_PYTHON_RUNTIME_H

#include <stdatomic.h>
#include <stdint.h>

#include "stack/hot.h"
#include "stack/probe.h"
#include "stack/python_door.h"
#include "stack/python_layout.h"
#include "stack/python_object.h"
#include "stack/python_slot.h"

enum ttm_python_state {
    TTM_PYTHON_ABSENT,
    TTM_PYTHON_FOUND,
    TTM_PYTHON_PROVEN,
    TTM_PYTHON_REFUSED,
};

/* Written by python_runtime.c alone, before the state says FOUND. */
struct ttm_python_runtime {
    struct ttm_python_view view;      /* valid inside, see ttm_python_runtime_enter() */
    void *(*this_thread_state)(void); /* PyGILState_GetThisThreadState() */
};

extern struct ttm_python_runtime ttm_python_runtime;

/*
 * Looks for an interpreter; asks the loader, so outside of any event. May be
 * called again, by one thread at a time.
 */
void ttm_python_runtime_find(void);

/* Why there are no frames although there is an interpreter; "" while nothing is wrong. */
const char *ttm_python_runtime_trouble(void);

/* As below, for a thread that cannot go in by an open door, or whose state is not to be seen. */
__attribute__((cold)) uintptr_t ttm_python_runtime_enter_first(uint64_t self,
                                                               struct ttm_python_seat **seat);

/*
 * This thread's state in an interpreter that can be read, 0 for none: no Python, no
 * state, a layout that is not what it should be, or it shuts down. Any thread; 'self' is
 * its pthread_self(). What is not 0 can be read until ttm_python_door_leave(*seat), see
 * python_door.h. Leaves errno alone.
 */
static inline uintptr_t ttm_python_runtime_enter(uint64_t self, struct ttm_python_seat **seat)
{
    uintptr_t thread;

    if (__builtin_expect(!ttm_python_door_enter_open(*seat), 0))
        return ttm_python_runtime_enter_first(self, seat);
    /*
     * Open: it is initialized, for the door shuts before that ends. Once the slot is known, its
     * layout is proven. A state that was left behind by a thread that had our number must not be
     * followed.
     */
    if (__builtin_expect(ttm_python_slot_read(self, &thread) && thread != 0 &&
                             ttm_load_u64(thread + ttm_stack_hot.trace.thread_id) == self,
                         1))
        return thread;
    ttm_python_door_leave(*seat);
    return ttm_python_runtime_enter_first(self, seat);
}

#endif /* TTM_STACK_PYTHON_RUNTIME_H */
