/* SPDX-License-Identifier: Apache-2.0 */
/*
 * modules - which library an address belongs to, for one thread.
 *
 * A list of the modules that this thread's stacks have passed through, each with
 * its note (path, build-id, where it was mapped), so that addresses mean
 * something after the process has died. A module is looked at when the first
 * stack passes through it: it is being executed then, so it stays mapped, and a
 * module that no stack passes through is of no interest.
 *
 * The loader is asked by _dl_find_object() (glibc 2.35; exists for unwinders): it
 * takes no lock, so it may be called while this or another thread is inside
 * dlopen(). dl_iterate_phdr() would wait for whoever holds the loader's lock.
 */
#ifndef TTM_STACK_MODULES_H
#define TTM_STACK_MODULES_H

#include <stdbool.h>
#include <stdint.h>

#include "stack/stack.h"

#define TTM_MODULES_MAX 64

struct ttm_module {
    uintptr_t start;
    uintptr_t end;
    uintptr_t bias;
    uintptr_t eh_frame_header; /* 0: has none */
    const void *handle;        /* the loader's own record */
    uint32_t note;
    bool has_note;
    bool is_ours; /* part of the tracker: its frames are not shown */
};

struct ttm_modules {
    struct ttm_module list[TTM_MODULES_MAX];
    unsigned count;
    unsigned last;   /* the one that was found last */
    unsigned oldest; /* the next to be given up when the list is full */
};

/*
 * Once per process, before any thread uses the rest; may take the loader's lock.
 * Returns 0, or -ENOSYS when this C library cannot be asked without a lock.
 */
int ttm_modules_start(const void *const ours[], unsigned count);

/* The module at 'address', NULL for none. Lasts until the next call. */
struct ttm_module *ttm_modules_find(struct ttm_modules *modules, uintptr_t address);

/* Makes the module's note; 'scratch' has room for any. Use ttm_module_note(). */
uint32_t ttm_module_make_note(struct ttm_module *module, ttm_stack_note_fn note, uint8_t *scratch);

/* Number of the module's note, 0 when there is no room for it. */
static inline uint32_t ttm_module_note(struct ttm_module *module, ttm_stack_note_fn note,
                                       uint8_t *scratch)
{
    return module->has_note ? module->note : ttm_module_make_note(module, note, scratch);
}

/* Does the loader still say the same of every module in the list? */
bool ttm_modules_are_current(const struct ttm_modules *modules);

#endif /* TTM_STACK_MODULES_H */
