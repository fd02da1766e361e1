/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dispatch - what sending a program to run looks at and notes, in one cache line.
 *
 * It is the beginning of what programs.c knows of a program. Written there under its lock; read by
 * whoever sends the program, inside the gate.
 */
#ifndef TTM_HOOK_DISPATCH_H
#define TTM_HOOK_DISPATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/guest.h"

struct ttm_dispatch {
    _Alignas(64) uint64_t program;        /* its number */
    _Atomic uint64_t order;               /* of the last dispatch; 0: never */
    struct ttm_device_cell *_Atomic cell; /* of the one device that it is on; NULL: see below */
    _Atomic uint32_t noted;               /* what 'cell' has counted when this was its latest */
    _Atomic uint32_t place;               /* in the cell, of then */
    _Atomic bool is_scattered; /* it is on 'devices', whose ids do not follow each other */
    _Atomic uint32_t devices;
    struct ttm_device_cell *_Atomic cells; /* of all devices */
    /* Something of it in L1 is told of, on these devices. */
    _Atomic struct ttm_device_span span;
};

/*
 * A number to sort dispatches by. Where the processor counts, nobody has to share a counter: its
 * counts differ between processors by less than a dispatch takes.
 */
static inline uint64_t ttm_dispatch_next(void)
{
#ifdef __x86_64__
    return __builtin_ia32_rdtsc();
#else
    static _Atomic uint64_t dispatches;

    return atomic_fetch_add_explicit(&dispatches, 1, memory_order_relaxed) + 1;
#endif
}

/* As below, of what is on several devices whose ids follow each other, or on none. */
bool ttm_dispatch_note_all(const struct ttm_dispatch *dispatch);

/* Notes it, while tracking is on. Returns false where its devices are scattered: programs.c has to. */
static inline bool ttm_dispatch_note(struct ttm_dispatch *dispatch)
{
    /* acquire: pairs with the release in set_span(). */
    struct ttm_device_cell *cell = atomic_load_explicit(&dispatch->cell, memory_order_acquire);

    /* relaxed: a number to sort by. */
    atomic_store_explicit(&dispatch->order, ttm_dispatch_next(), memory_order_relaxed);
    if (__builtin_expect(!cell, 0))
        return ttm_dispatch_note_all(dispatch);
    /* relaxed: two threads that send to one device at once may overwrite each other's word. */
    const uint32_t n = atomic_load_explicit(&cell->dispatched, memory_order_relaxed);
    /* Nothing was since, unless two had the same place, of which the cell has one. */
    if (n == atomic_load_explicit(&dispatch->noted, memory_order_relaxed) &&
        atomic_load_explicit(
            &cell->programs[atomic_load_explicit(&dispatch->place, memory_order_relaxed)],
            memory_order_relaxed) == dispatch->program)
        return true;
    const uint32_t place = n % TTM_SEGMENT_PROGRAMS;
    atomic_store_explicit(&cell->programs[place], dispatch->program, memory_order_relaxed);
    atomic_store_explicit(&dispatch->place, place, memory_order_relaxed);
    atomic_store_explicit(&dispatch->noted, n + 1, memory_order_relaxed);
    /* release: the program is there before it is counted. */
    atomic_store_explicit(&cell->dispatched, n + 1, memory_order_release);
    return true;
}

#endif /* TTM_HOOK_DISPATCH_H */
