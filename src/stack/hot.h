/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hot - what every capture looks at and hardly anybody writes, together: between two events
 * the program drives what we have out of the caches, and each line of them that has to come back
 * costs as much as a dozen instructions.
 *
 * One per process. Each field has one file that writes it.
 */
#ifndef TTM_STACK_HOT_H
#define TTM_STACK_HOT_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "stack/python_layout.h"

struct ttm_stack_hot {
    alignas(
        64) _Atomic unsigned epoch;   /* stack.c: of notes; a thread that has another one forgets */
    _Atomic unsigned unloads;         /* stack.c: of modules; likewise */
    _Atomic int python_state;         /* python_runtime.c: enum ttm_python_state */
    _Atomic int door;                 /* python_door.c: enum ttm_python_door_state */
    _Atomic uint64_t deaths;          /* python_deaths.c: of code objects; 0: nobody watches */
    void *(*this_thread_state)(void); /* python_runtime.c, before 'python_state' says FOUND */
    struct ttm_python_layout layout;  /* likewise */
};

_Static_assert(offsetof(struct ttm_stack_hot, layout.frame_locals) < 64, "one line of the cache");

extern struct ttm_stack_hot ttm_stack_hot;

#endif /* TTM_STACK_HOT_H */
