/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own - what each thread has of the hook: what every event looks at, in one cache line.
 */
#ifndef TTM_HOOK_OWN_H
#define TTM_HOOK_OWN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ttm_allocator;
struct ttm_slot;

/* What a thread has of the gate, see gate.h. */
struct ttm_gate_pass {
    _Atomic uint32_t *line; /* how deep it is inside; NULL: it has none to itself */
    uint32_t depth;         /* of one that has none, or while it has closed the gate: before that */
    bool is_sharing;        /* it stays without one */
    bool has_closed;
    uint8_t forks; /* that it is in the middle of, with closers kept away */
};

/* The allocator that it had to do with last, see buffers.c. */
struct ttm_last_allocator {
    const void *impl;
    struct ttm_allocator *allocator;
    /*
     * What ttm_hot.state has to be for lanes.h: the ends of allocators at that time, as an ended one
     * may be followed by another, and below them that tracking is on, or TTM_LANES_NONE.
     */
    uint64_t state;
};

struct ttm_own {
    _Alignas(64) struct ttm_gate_pass gate;
    struct ttm_last_allocator last;
    struct ttm_slot *slot; /* what libttmem has of the thread, see client/guest.h */
    const void *newborn;   /* the buffer that it has a place for and has not announced yet */
    uint32_t releases;     /* buffers that it is giving back the long way, one within another */
    bool is_making;        /* it began to make a program for the program cache, see making.h */
};

_Static_assert(sizeof(struct ttm_own) == 64, "one cache line");

extern __thread struct ttm_own ttm_own __attribute__((tls_model("initial-exec")));

/* A guest's on_slot(). */
void ttm_own_set_slot(struct ttm_slot *slot);

#endif /* TTM_HOOK_OWN_H */
