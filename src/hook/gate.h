/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate - many threads pass at a time; now and then one closes it to be alone.
 *
 * A thread passes from before the runtime's allocator changes until that change
 * has been reported. Who reads the allocator's own live set closes the gate first,
 * so every change lies wholly before or wholly after the reading. To pass costs
 * two atomic additions to a line that few threads share.
 */
#ifndef TTM_HOOK_GATE_H
#define TTM_HOOK_GATE_H

#include <stdbool.h>

/* May be nested. Waits while another thread has closed the gate. */
void ttm_gate_enter(void);
void ttm_gate_leave(void);

/*
 * Keeps others from entering and waits until nobody is inside but, perhaps, the
 * caller, who then opens it again. Returns false when somebody stayed inside for
 * seconds (a thread that was cancelled there): what follows may be inexact, and
 * the gate has to be opened all the same.
 */
bool ttm_gate_close(void);
void ttm_gate_open(void);

/* In the child of a fork: nobody else is there. */
void ttm_gate_after_fork(void);

#endif /* TTM_HOOK_GATE_H */
