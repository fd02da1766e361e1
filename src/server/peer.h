/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer - what the kernel says of the process behind a connection.
 */
#ifndef TTM_SERVER_PEER_H
#define TTM_SERVER_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/totals.h"

/*
 * A pidfd of the process that made the connection 'fd', whose number is 'pid' and
 * which was accepted at 'accepted_ns' (CLOCK_BOOTTIME); -1 when it has ended or
 * cannot be seen. The caller owns it.
 */
int ttm_peer_open_pidfd(int fd, pid_t pid, uint64_t accepted_ns);

bool ttm_peer_has_ended(int pidfd);

/* When the process started (CLOCK_BOOTTIME); 0 when it cannot be known. */
uint64_t ttm_peer_start_ns(pid_t pid);

/*
 * How far the monotonic clock of the process is ahead of ours: 0 unless it is in a time namespace
 * of its own (a container that was moved to another machine), or when that cannot be known.
 */
int64_t ttm_peer_clock_ahead_ns(pid_t pid);

/* The command line with spaces between its words, cut to fit; the bare name when there is none. */
void ttm_peer_command(pid_t pid, char ret[TTM_STRING_MAX + 1]);

/* Whether the process has no file of that inode mapped; false when that cannot be known. */
bool ttm_peer_has_unmapped(pid_t pid, uint64_t inode);

#endif /* TTM_SERVER_PEER_H */
