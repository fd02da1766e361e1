/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages_ahead - memory for a crowd that is about to come, taken from the kernel by a thread of its own.
 *
 * A page that nobody had is cleared first, and on a virtual machine often has to come from outside of
 * it: up to a millisecond for a megabyte. Whoever writes there first waits. Here another does, a few
 * blocks ahead.
 */
#ifndef TTM_BASE_PAGES_AHEAD_H
#define TTM_BASE_PAGES_AHEAD_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TTM_AHEAD_BLOCK ((size_t)2 << 20) /* a large page of most machines */
#define TTM_AHEAD_MOST 32u                /* blocks that may be there and not taken */

/* All zero at first, and after its end. */
struct ttm_pages_ahead {
    bool has_begun;
    bool has_thread;
    pthread_t thread;
    sem_t room;
    uint32_t wanted; /* blocks in all */
    uint32_t most;   /* that are there and not taken */
    _Atomic bool is_over;
    _Atomic uint32_t made;
    _Atomic uint32_t taken;
    void *blocks[TTM_AHEAD_MOST];
};

/*
 * Starts with 'blocks' blocks, of which up to 'most' wait to be taken, unless it was started before.
 * Without a thread there will be none.
 */
void ttm_pages_ahead_begin(struct ttm_pages_ahead *ahead, uint32_t blocks, uint32_t most);

/*
 * TTM_AHEAD_BLOCK of zeros that begin at a multiple of it, or NULL when none is ready. Never waits.
 * The caller gives it back by ttm_pages_free(), in pieces if it likes.
 */
void *ttm_pages_ahead_take(struct ttm_pages_ahead *ahead);

/* Waits for the block that is being made, if one is, and gives back those that were not taken. */
void ttm_pages_ahead_end(struct ttm_pages_ahead *ahead);

#endif /* TTM_BASE_PAGES_AHEAD_H */
