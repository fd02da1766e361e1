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
 * A pidfd of the process that made the connection 'fd', whose number is 'pid'; -1 when it has ended
 * or cannot be seen. The caller owns it. 'ret_is_sure' is false where the kernel cannot name the
 * process behind a connection: whoever started after the connection was made is somebody else.
 */
int ttm_peer_open_pidfd(int fd, pid_t pid, bool *ret_is_sure);

bool ttm_peer_has_ended(int pidfd);

/*
 * The functions below read files under /proc/PID. The process can make that last as long as it
 * likes, so they are for a worker's thread, never for the loop.
 */

/* What /proc says of a process. */
struct ttm_peer_facts {
    uint64_t start_ns; /* CLOCK_BOOTTIME; 0: not known */
    /*
     * How far the monotonic clock of the process is ahead of ours: 0 unless it is in a time
     * namespace of its own (a container that was moved to another machine), or when not known.
     */
    int64_t clock_ahead_ns;
    /* The command line with spaces between its words, cut to fit; or the bare name. */
    char command[TTM_STRING_MAX + 1];
};

/* All but the command line, which is the bare name here: no lock of the process is waited for. */
void ttm_peer_read_facts(pid_t pid, struct ttm_peer_facts *ret);

/* Nothing changes when the command line cannot be read, or is empty. */
void ttm_peer_read_command(pid_t pid, char ret[TTM_STRING_MAX + 1]);

/*
 * Whether the process has no file of that inode mapped; false when that cannot be known, as of a
 * process with very many mappings.
 */
bool ttm_peer_has_unmapped(pid_t pid, uint64_t inode);

#endif /* TTM_SERVER_PEER_H */
