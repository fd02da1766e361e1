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

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "stack/hot.h"

/* Where a thread says that it is inside. Each thread has one, from its first entry on. */
struct ttm_python_seat {
    alignas(64) _Atomic pid_t owner; /* the process whose thread sits here, 0: none */
    _Atomic bool is_inside;
};

enum ttm_python_door_state { TTM_DOOR_SHUT, TTM_DOOR_ASKED, TTM_DOOR_OPEN };

/* Looks for what is needed of the interpreter in 'library', a handle of dlopen(). Once. */
void ttm_python_door_find(void *library);

/*
 * Has the door of an initialized interpreter opened soon, whichever thread this is and
 * whatever Python's main thread is waiting for. May start a thread, so outside of any
 * event. Once.
 */
void ttm_python_door_begin(void);

/*
 * Opens the door if this thread has the GIL, which it keeps all the while. Outside of any
 * event; runs no Python code.
 */
void ttm_python_door_open_here(void);

/*
 * Asks an initialized interpreter to say when it ends, unless it was asked. Does
 * nothing on a thread that could be overtaken by that end: one that is neither the
 * main thread nor has the GIL.
 */
void ttm_python_door_ask(void);

/*
 * Starts a thread that waits for the GIL, runs 'task' with it and ends; one that the
 * interpreter overtakes with its end never runs it. Returns false when there is none.
 */
bool ttm_python_door_send(void (*task)(void));

/* Called with the GIL when the interpreter is about to end, before the door shuts. Once, early. */
void ttm_python_door_set_listener(void (*listener)(void));

/* The interpreter is not there: what was asked of it is void. */
void ttm_python_door_forget(void);

/* NULL is fine, here and below. */
static inline void ttm_python_door_leave(struct ttm_python_seat *seat)
{
    /* release: pairs with the load in is_occupied(); what was read is read by then. */
    if (seat)
        atomic_store_explicit(&seat->is_inside, false, memory_order_release);
}

/* Has it gone in by an open door? */
static inline bool ttm_python_door_is_inside(const struct ttm_python_seat *seat)
{
    /* relaxed: only its own thread asks. */
    return seat && atomic_load_explicit(&seat->is_inside, memory_order_relaxed);
}

/*
 * Goes in by a door that is open. Then the interpreter is there until
 * ttm_python_door_leave(); where it returns false, ttm_python_door_enter() may know more.
 */
static inline bool ttm_python_door_enter_open(struct ttm_python_seat *seat)
{
    if (__builtin_expect(!seat, 0))
        return false;
    /*
     * relaxed, and in this order for the compiler alone: shut_door(), which stores and loads the
     * other way round, has every processor pass a barrier in between.
     */
    atomic_store_explicit(&seat->is_inside, true, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    /* acquire: pairs with the store in watch(). */
    if (__builtin_expect(
            atomic_load_explicit(&ttm_stack_hot.door, memory_order_acquire) == TTM_DOOR_OPEN, 1))
        return true;
    ttm_python_door_leave(seat);
    return false;
}

/*
 * Returns true when this thread may read until ttm_python_door_leave(). '*seat' is
 * NULL at first and then what the last call has left there.
 */
bool ttm_python_door_enter(struct ttm_python_seat **seat);

/* The thread ends, or is the one that goes on in a forked child. */
void ttm_python_door_give_back(struct ttm_python_seat *seat);

#endif /* TTM_STACK_PYTHON_DOOR_H */
