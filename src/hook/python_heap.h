/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_heap - who refers to whom, of all objects of an interpreter, in one pass.
 *
 * The search for holders is Python (python/ttmem/_holders.py). These are the functions that it
 * calls where Python itself would take too long. libttmem-hook gives them to its own copy of
 * that text, and the package's module _fast has them too.
 *
 *   heap_objects(get_objects, left)    [list of all objects that the collector knows, list of
 *                                      their types]; objects of the types in the list 'left'
 *                                      are None. None if there are too many, False if this
 *                                      interpreter is not laid out as expected
 *   heap_special(objects, kinds)       list of the objects whose kind is SPECIAL
 *   heap_graph(objects, kinds, pairs, limit_ns)
 *                                      the graph; None if a limit was reached
 *   heap_tensors(graph)                list of the objects whose kind is TENSOR
 *   heap_holders(graph, thing, limit)  list of what refers to it, the oldest first
 *
 * 'kinds' is a list of (type, sum of enum ttm_heap_kind); objects of types that it does not
 * have are never traversed. 'pairs' is a list of (object, list of what it refers to), for what
 * is not asked through its type; an object that is None stands for nobody.
 *
 * With the GIL, which each function keeps until it returns, and with the collector switched off.
 * No Python code runs while a pass is made. A graph refers to its objects until it is freed.
 */
#ifndef TTM_HOOK_PYTHON_HEAP_H
#define TTM_HOOK_PYTHON_HEAP_H

#include <sys/types.h>

enum ttm_heap_kind {
    TTM_HEAP_PLAIN = 1,   /* its objects are traversed by their type */
    TTM_HEAP_SPECIAL = 2, /* its objects are in 'pairs' */
    TTM_HEAP_TENSOR = 4,
    TTM_HEAP_INSIDE = 8, /* found where something refers to it: tuple, frozenset, dict */
};

/* PyMethodDef, as the stable ABI has it. */
struct ttm_python_method {
    const char *name;
    void *(*call)(void *self, void *const *args, ssize_t count);
    int flags;
    const char *doc;
};

/* The last one has no name. */
extern struct ttm_python_method ttm_python_heap_methods[];

#endif /* TTM_HOOK_PYTHON_HEAP_H */
