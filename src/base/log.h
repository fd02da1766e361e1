/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log - lines on stderr that can neither block nor flood the caller.
 *
 * Lines go into a bounded buffer and a thread of the log's own writes them; a
 * reader that stalls (a full pipe, a stopped terminal) costs lines, which are
 * counted, and never time. Each second takes a limited number of lines, the
 * rest is counted and said in one line. Before ttm_log_start() and after
 * ttm_log_stop() a line is written directly, so short commands need neither.
 */
#ifndef TTM_BASE_LOG_H
#define TTM_BASE_LOG_H

#include <stddef.h>
#include <stdint.h>

/* Returns 0 or a negative errno; on an error lines are still written directly. */
int ttm_log_start(int fd);

/* Waits for at most 'timeout_ms' until what is buffered is written. */
void ttm_log_stop(unsigned timeout_ms);

/* One line, without the newline; "tt-mem: " is put before it. */
void ttm_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Text of several lines that is whole already, newlines included: all of it or, when a
 * stalled reader leaves no room, nothing. It counts as one line that was dropped, and
 * the limit of lines is not for it: who calls this keeps one of its own.
 */
void ttm_log_text(const char *text, size_t length);

/* Lines that were dropped so far, by a stalled reader or by the limit. */
uint64_t ttm_log_dropped(void);

#endif /* TTM_BASE_LOG_H */
