/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opening - what comes of opening a device, as long as the process has none.
 *
 * 'tt-mem run' says why it tracked nothing. Of a program that loads TT-Metal and opens no device the
 * hook hears nothing, so it looks when the program exits. Of one that fails to open a device it hears
 * the exception as it passes. Any thread.
 */
#ifndef TTM_HOOK_OPENING_H
#define TTM_HOOK_OPENING_H

/* The program is about to open a device. */
void ttm_opening_begin(void);

/* The process has a device. */
void ttm_opening_done(void);

/* Reports what there is to report: tracking was switched on. */
void ttm_opening_say(void);

/* In the child of a fork. */
void ttm_opening_after_fork(void);

#endif /* TTM_HOOK_OPENING_H */
