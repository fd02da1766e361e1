/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_runtime - the interpreter in this process: which, and may it be read.
 *
 * One per process, found once and then only read. A thread gets its own state from
 * here, and only while what is said of layouts has been proven to hold.
 */
#ifndef TTM_STACK_PYTHON_RUNTIME_H
#define TTM_STACK_PYTHON_RUNTIME_H

#include <stdint.h>

#include "stack/python_object.h"

struct ttm_python_seat;

/* Valid once ttm_python_runtime_enter() has returned something. */
extern struct ttm_python_view ttm_python_runtime_view;

/*
 * Looks for an interpreter; asks the loader, so outside of any event. May be
 * called again, by one thread at a time.
 */
void ttm_python_runtime_find(void);

/* Why there are no frames although there is an interpreter; "" while nothing is wrong. */
const char *ttm_python_runtime_trouble(void);

/*
 * This thread's state in an interpreter that can be read, 0 for none: no Python, no
 * state, a layout that is not what it should be, or it shuts down. Any thread. What
 * is not 0 can be read until ttm_python_door_leave(*seat), see python_door.h.
 */
uintptr_t ttm_python_runtime_enter(struct ttm_python_seat **seat);

#endif /* TTM_STACK_PYTHON_RUNTIME_H */
