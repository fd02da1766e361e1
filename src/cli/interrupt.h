/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interrupt - the signals that end a command that goes on, and waits in which none is lost.
 *
 * A signal that comes between a look at a flag and the wait would be noticed when
 * the wait is over, which may take an hour. Here signals are let in by the wait alone.
 *
 * One thread; other threads of the command block all signals.
 */
#ifndef TTM_CLI_INTERRUPT_H
#define TTM_CLI_INTERRUPT_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From now on SIGINT, SIGTERM and SIGHUP are noted, and end no more than a wait. */
void ttm_interrupt_catch(void);

/* Whether one has come; whether one that comes is noted. */
bool ttm_interrupt_came(void);
bool ttm_interrupt_is_caught(void);

/* As poll(); -1: for ever. Returns at once, with no event, when a signal has come before. */
void ttm_interrupt_poll(struct pollfd *fds, size_t count, int64_t timeout_ms);

#endif /* TTM_CLI_INTERRUPT_H */
