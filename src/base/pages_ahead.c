/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread makes blocks and one takes them; block number n is in blocks[n % most] from
 * when 'made' is past n until 'taken' is. 'room' counts the places that are free, and wakes the maker.
 */
#include "base/pages_ahead.h"

#include <string.h>

#include "base/pages.h"
#include "base/quiet_thread.h"

/* Begins at a multiple of its size, as a large page does. */
static void *make_block(void)
{
    uint8_t *pages = ttm_pages_alloc(2 * TTM_AHEAD_BLOCK);

    if (!pages)
        return NULL;
    const size_t before = -(uintptr_t)pages & (TTM_AHEAD_BLOCK - 1);
    uint8_t *block = pages + before;
    if (before > 0)
        ttm_pages_free(pages, before);
    ttm_pages_free(block + TTM_AHEAD_BLOCK, TTM_AHEAD_BLOCK - before);
    ttm_pages_join(block, TTM_AHEAD_BLOCK);
    ttm_pages_take(block, TTM_AHEAD_BLOCK);
    return block;
}

static void *make_blocks(void *argument)
{
    struct ttm_pages_ahead *ahead = argument;

    for (uint32_t i = 0; i < ahead->wanted; i++) {
        while (sem_wait(&ahead->room) < 0)
            continue;
        /* relaxed: it is a wish. The semaphore orders what was in the place before. */
        if (atomic_load_explicit(&ahead->is_over, memory_order_relaxed))
            break;
        void *block = make_block();
        if (!block)
            break;
        ahead->blocks[i % ahead->most] = block;
        /* release: pairs with the acquire in ttm_pages_ahead_take(). */
        atomic_store_explicit(&ahead->made, i + 1, memory_order_release);
    }
    return NULL;
}

void ttm_pages_ahead_begin(struct ttm_pages_ahead *ahead, uint32_t blocks, uint32_t most)
{
    if (ahead->has_begun)
        return;
    ahead->has_begun = true;
    ahead->wanted = blocks;
    ahead->most = most < TTM_AHEAD_MOST ? most : TTM_AHEAD_MOST;
    if (sem_init(&ahead->room, 0, ahead->most) == 0)
        ahead->has_thread = ttm_quiet_thread_start(&ahead->thread, NULL, make_blocks, ahead) == 0;
}

void *ttm_pages_ahead_take(struct ttm_pages_ahead *ahead)
{
    /* relaxed: we alone change it. */
    const uint32_t taken = atomic_load_explicit(&ahead->taken, memory_order_relaxed);

    /* acquire: pairs with the release in make_blocks(). */
    if (atomic_load_explicit(&ahead->made, memory_order_acquire) == taken)
        return NULL;
    void *block = ahead->blocks[taken % ahead->most];
    atomic_store_explicit(&ahead->taken, taken + 1, memory_order_relaxed);
    (void)sem_post(&ahead->room);
    return block;
}

void ttm_pages_ahead_end(struct ttm_pages_ahead *ahead)
{
    void *block;

    if (ahead->has_thread) {
        atomic_store_explicit(&ahead->is_over, true, memory_order_relaxed);
        (void)sem_post(&ahead->room);
        (void)pthread_join(ahead->thread, NULL);
        while ((block = ttm_pages_ahead_take(ahead)))
            ttm_pages_free(block, TTM_AHEAD_BLOCK);
        (void)sem_destroy(&ahead->room);
    }
    memset(ahead, 0, sizeof(*ahead));
}
