/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traces - backtraces of the program, as if we were not there.
 *
 * TT-Metal puts one into the text of what it throws. Where the way to it leads through
 * a function of ours, the text is to be that of a program that is not tracked. So
 * backtrace() passes through here, and leaves our frames out.
 */
#ifndef TTM_HOOK_TRACES_H
#define TTM_HOOK_TRACES_H

/* From now on the code of the library that has this address in it is left out. Twice at most. */
void ttm_traces_hide(const void *inside);

/* What stands in for backtrace(), for those that are patched. */
int ttm_traces_take(void **frames, int count);

#endif /* TTM_HOOK_TRACES_H */
