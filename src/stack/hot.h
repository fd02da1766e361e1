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

#include "stack/stack.h"

/* What it takes to tell frames apart: of struct ttm_python_layout, and two words of each frame. */
struct ttm_python_trace {
    uint16_t thread_frame;
    uint16_t thread_id;
    int16_t cframe_frame;
    uint16_t frame_back;
    uint16_t frame_locals;
    uint16_t frame_pointer; /* 64 bits */
    uint16_t frame_rest;    /* 32 bits, of which 'rest_mask' count */
    uint32_t rest_mask;
};

struct ttm_stack_hot {
    alignas(
        64) _Atomic unsigned epoch; /* stack.c: of notes; a thread that has another one forgets */
    _Atomic unsigned unloads;       /* stack.c: of modules; likewise */
    _Atomic int python_state;       /* python_runtime.c: enum ttm_python_state */
    _Atomic int door;               /* python_door.c: enum ttm_python_door_state */
    _Atomic uint64_t deaths;        /* python_deaths.c: of code objects; 0: nobody watches */
    _Atomic uint64_t slot;          /* python_slot.c */
    struct ttm_python_trace trace;  /* python_runtime.c, before 'python_state' says FOUND */
    ttm_stack_note_fn note;         /* stack.c, at the start */
};

_Static_assert(sizeof(struct ttm_stack_hot) == 64, "one line of the cache");

extern struct ttm_stack_hot ttm_stack_hot;

#endif /* TTM_STACK_HOT_H */
