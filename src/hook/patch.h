/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patch - being called in a process that has TT-Metal already.
 *
 * Its calls were bound to its own functions when it was loaded. Each goes through a
 * word of its module, which is pointed to our function of the same name here: one
 * aligned store, so a thread that calls meanwhile goes to one or to the other.
 *
 * The words stay as they are when tracking is switched off. Who does not listen
 * cannot know which allocators have gone, and would ask one of those later.
 */
#ifndef TTM_HOOK_PATCH_H
#define TTM_HOOK_PATCH_H

#include <ttmem/ttmem.h>

/*
 * Listens to the TT-Metal of this process from now on, and finds the devices that are
 * open. Tracking is not switched on by it. One thread at a time, not inside a call
 * of TT-Metal. Returns how many words were changed: 0 when TT-Metal is not loaded yet, or calls us
 * already; -ENOTSUP where modules look otherwise than we know; another negative errno.
 */
TTMEM_EXPORT int ttmem_hook_install(void);

#endif /* TTM_HOOK_PATCH_H */
