/* SPDX-License-Identifier: Apache-2.0 */
/*
 * membarrier - a barrier in every other thread of the process, made by the kernel.
 *
 * For two who each store and then look whether the other one has: where one of them is frequent and
 * the other rare, the rare one has the barriers made and the frequent one pays nothing.
 */
#ifndef TTM_BASE_MEMBARRIER_H
#define TTM_BASE_MEMBARRIER_H

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * Every other thread has passed a barrier when this returns. Where the kernel refuses (a sandbox) it
 * lets 10 ms pass instead: what a processor has stored reaches the others within microseconds. May
 * change errno.
 */
static inline void ttm_membarrier(void)
{
    /* Registered each time, as a child of fork() may not be. */
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) < 0 ||
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) < 0)
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

#endif /* TTM_BASE_MEMBARRIER_H */
