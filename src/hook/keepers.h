/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keepers - asks the program's Python, near the end, what keeps its tensors alive.
 *
 * Only where TTMEM_HOLDERS=1 is in the environment, and only in a program that has an
 * interpreter. It is asked before a mesh is closed, as its buffers are given back
 * then; when the interpreter is about to end; and once an allocation has failed. What
 * it finds goes to libttmem as notes of wire/keepers.h, by origin.
 */
#ifndef TTM_HOOK_KEEPERS_H
#define TTM_HOOK_KEEPERS_H

/* Tracking begins. */
void ttm_keepers_begin(void);

/* A mesh is about to be closed. Outside the gate and the runtime's locks. */
void ttm_keepers_before_close(void);

/* An allocation has failed: asks as soon as Python's main thread is back in Python. */
void ttm_keepers_after_failure(void);

#endif /* TTM_HOOK_KEEPERS_H */
