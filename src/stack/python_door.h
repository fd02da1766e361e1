/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_door - keeps the interpreter's memory from going while a thread reads it.
 *
 * A thread goes in before it looks at its Python frames and comes out after. When
 * the interpreter is about to shut down it closes the door, and waits a moment for
 * those who are inside. One per process; any thread, with the GIL or without it.
 */
#ifndef TTM_STACK_PYTHON_DOOR_H
#define TTM_STACK_PYTHON_DOOR_H

#include <stdbool.h>

/* Where a thread says that it is inside. Each thread has one, from its first entry on. */
struct ttm_python_seat;

/* Looks for what is needed of the interpreter in 'library', a handle of dlopen(). Once. */
void ttm_python_door_find(void *library);

/*
 * Asks an initialized interpreter to say when it ends, unless it was asked. Does
 * nothing on a thread that could be overtaken by that end: one that is neither the
 * main thread nor has the GIL.
 */
void ttm_python_door_ask(void);

/* Called with the GIL when the interpreter is about to end, before the door shuts. Once, early. */
void ttm_python_door_set_listener(void (*listener)(void));

/* The interpreter is not there: what was asked of it is void. */
void ttm_python_door_forget(void);

/*
 * Returns true when this thread may read until ttm_python_door_leave(). '*seat' is
 * NULL at first and then what the last call has left there.
 */
bool ttm_python_door_enter(struct ttm_python_seat **seat);

/* NULL is fine, here and below. */
void ttm_python_door_leave(struct ttm_python_seat *seat);

/* The thread ends, or is the one that goes on in a forked child. */
void ttm_python_door_give_back(struct ttm_python_seat *seat);

#endif /* TTM_STACK_PYTHON_DOOR_H */
