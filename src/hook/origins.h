/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origins - where an event of a thread comes from: its call stacks, the operation
 * of ttnn it is in, its name and its context, said as one note.
 *
 * Any thread, any number of times; nothing here waits.
 */
#ifndef TTM_HOOK_ORIGINS_H
#define TTM_HOOK_ORIGINS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Tracking begins, or begins anew: the numbers of notes are new. 'ours' is an address
 * in libttmem-metal, or NULL where it is not loaded. How much of the stacks is kept comes from TTMEM_PYTHON_FRAMES and TTMEM_NATIVE_FRAMES.
 */
void ttm_origins_begin(const void *ours);

/*
 * For moments when the runtime's caller may have Python's GIL, outside the gate: so the
 * first allocation on a device has its line, whichever thread makes it.
 */
void ttm_origins_use_gil(void);

/* Does an origin say where in the program an event was? After ttm_origins_begin(). */
bool ttm_origins_have_frames(void);

/* Why stacks are missing in this process, "" while nothing is wrong. */
const char *ttm_origins_trouble(void);

#endif /* TTM_HOOK_ORIGINS_H */
