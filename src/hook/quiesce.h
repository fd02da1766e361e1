/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quiesce - waits until no other thread is inside some functions that it had entered
 * before.
 *
 * For who has pointed calls elsewhere, and has to know when the last one that went the
 * old way is over. Nobody is stopped or signalled: the kernel is asked.
 */
#ifndef TTM_HOOK_QUIESCE_H
#define TTM_HOOK_QUIESCE_H

#include <stdbool.h>
#include <stdint.h>

struct ttm_code {
    uintptr_t start, end;
};

/*
 * Returns true when each thread that was there at the beginning is known to have left; false
 * when that could not be known of one, after 50 ms, or after a second for one that does not get
 * to run.
 */
bool ttm_quiesce(const struct ttm_code *functions, uint32_t count);

#endif /* TTM_HOOK_QUIESCE_H */
