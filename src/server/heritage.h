/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heritage - what a server leaves to the one that comes after it: about how many lives it was told of.
 *
 * The number stands in the lock file beside its socket. The programs that it was told by find a new
 * server within 200 ms; meanwhile that one takes memory for a crowd, which on a slow virtual machine
 * is most of what keeps it from being exact. What is not needed goes back after a few seconds.
 *
 * Belongs to the loop thread.
 */
#ifndef TTM_SERVER_HERITAGE_H
#define TTM_SERVER_HERITAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pages_ahead.h"

/* All zero at first. */
struct ttm_heritage {
    struct ttm_pages_ahead ahead;
    uint64_t until_ns;   /* blocks that nobody took go back then; 0: there are none */
    uint64_t written_ns; /* when it was looked at last what is to be left */
    uint32_t written;    /* lives */
};

/* Whether so many are worth a word. */
bool ttm_heritage_is_crowd(uint32_t lives);

/* Reads what the last server left in its lock file, and begins to take memory where that was a crowd. */
void ttm_heritage_begin(struct ttm_heritage *heritage, int lock_fd, uint64_t now_ns);

/* A block of memory for lives, as of ttm_pages_ahead_take(); NULL when there is none. */
void *ttm_heritage_take_block(struct ttm_heritage *heritage);

/* Leaves the number of lives if it has changed by much, and gives back what nobody took. */
void ttm_heritage_tick(struct ttm_heritage *heritage, int lock_fd, uint32_t lives, uint64_t now_ns);

/* When the next tick is due, UINT64_MAX: not before something happens. */
uint64_t ttm_heritage_due_ns(const struct ttm_heritage *heritage, uint32_t lives);

/* The server ends. Returns whether what it leaves is worth keeping. */
bool ttm_heritage_end(struct ttm_heritage *heritage, int lock_fd, uint32_t lives);

#endif /* TTM_SERVER_HERITAGE_H */
