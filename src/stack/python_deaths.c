/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyCode_Type has a function that is called when a code object dies. Ours is put in
 * its place, counts, and calls the one that was there. 3.12 has a public way to be
 * told (PyCode_AddWatcher), but for one interpreter each and with the GIL; 3.10 and
 * 3.11 have none. The type is one static object for all interpreters of the process,
 * the place has been the same since 3.0, and a code object cannot be of a subtype.
 *
 * It takes no GIL to put it there. The place is a word, so a thread that lets a code
 * object die meanwhile calls the one or the other. If it calls the old one, that code
 * object is in no thread's frame any more, so nobody can mark it after the count says
 * that somebody watches. It stays there when the interpreter ends; the library that
 * this is part of is never unloaded.
 *
 * Code that is made, run and thrown away all the time (exec, lambdas of a loop) must
 * not make everybody look again and again. So only those deaths count that somebody
 * may care about: of an object at an address that was marked, as far as a small table
 * of bits can tell.
 */
#include "stack/python_deaths.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

#include "stack/hot.h"
#include "stack/probe.h"

#define MARKS_BITS 14
#define TYPE_DEALLOC 48 /* PyTypeObject.tp_dealloc, in all versions */

typedef void (*dealloc_fn)(void *object);

/* Written by ttm_python_deaths_find(), before any event. */
static struct {
    dealloc_fn *place; /* NULL: not as expected, so it is left alone */
    dealloc_fn original;
} watched;

static _Atomic uint64_t marks[(1u << MARKS_BITS) / 64];

static inline _Atomic uint64_t *mark_of(uintptr_t code, uint64_t *ret_bit)
{
    const uint64_t hash = code * 0x9e3779b97f4a7c15ull >> (64 - MARKS_BITS);

    *ret_bit = 1ull << hash % 64;
    return &marks[hash / 64];
}

static void on_death(void *code)
{
    uint64_t bit;
    const _Atomic uint64_t *mark = mark_of((uintptr_t)code, &bit);

    /*
     * relaxed, both: a mark comes from a thread that has let go of the code object
     * since, with the GIL; and see ttm_python_deaths().
     */
    if (atomic_load_explicit(mark, memory_order_relaxed) & bit)
        atomic_fetch_add_explicit(&ttm_stack_hot.deaths, 1, memory_order_relaxed);
    watched.original(code);
}

static bool are_of_one_module(const void *a, const void *b)
{
    Dl_info of_a, of_b;

    return dladdr(a, &of_a) && dladdr(b, &of_b) && of_a.dli_fbase == of_b.dli_fbase;
}

void ttm_python_deaths_find(uintptr_t code_type)
{
    dealloc_fn *place = (dealloc_fn *)(code_type + TYPE_DEALLOC);

    /* Where it does not hold a function of the interpreter's own, we do not know what it holds. */
    if (!are_of_one_module((const void *)(uintptr_t)*place, (const void *)code_type))
        return;
    watched.original = *place;
    watched.place = place;
}

TTM_READS_FOREIGN void ttm_python_deaths_watch(void)
{
    uint64_t none = 0;

    if (!watched.place)
        return;
    /* release: on_death() needs 'original', which was written before. */
    __atomic_store_n(watched.place, on_death, __ATOMIC_RELEASE);
    /* release: pairs with the acquire in ttm_python_deaths(). Whoever reads it uses the above. */
    (void)atomic_compare_exchange_strong_explicit(&ttm_stack_hot.deaths, &none, 1,
                                                  memory_order_release, memory_order_relaxed);
}

void ttm_python_deaths_mark(uintptr_t code)
{
    uint64_t bit;
    _Atomic uint64_t *mark = mark_of(code, &bit);

    /* relaxed: see on_death(). It is read first, as the line is mostly shared. */
    if (!(atomic_load_explicit(mark, memory_order_relaxed) & bit))
        atomic_fetch_or_explicit(mark, bit, memory_order_relaxed);
}

void ttm_python_deaths_presume(void)
{
    uint64_t count = ttm_python_deaths();

    /* release: pairs with the acquire in ttm_python_deaths(); what has changed is there by then. */
    while (count != 0 &&
           !atomic_compare_exchange_weak_explicit(&ttm_stack_hot.deaths, &count, count + 1,
                                                  memory_order_release, memory_order_relaxed))
        ;
}
