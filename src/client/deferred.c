/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of one thread nest: one that interrupts another returns before the
 * other goes on. So a place is taken by an addition and filled afterwards, and
 * whoever is not a handler finds all places filled. All of this is one thread,
 * which is why every operation is relaxed.
 */
#include "client/deferred.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#define FIRST_CHUNK 64u /* reports */

/* Stands for a chunk that could not be had: who comes later does not get it either. */
static struct ttm_happening none;

static size_t chunk_bytes(unsigned chunk)
{
    return ((size_t)FIRST_CHUNK << chunk) * sizeof(struct ttm_happening);
}

/* The chunk, made if need be; 'none' when that cannot be. */
static struct ttm_happening *make_chunk(struct ttm_deferred *deferred, unsigned chunk)
{
    struct ttm_happening *there =
        atomic_load_explicit(&deferred->places->chunks[chunk], memory_order_relaxed);

    if (there)
        return there;
    const int saved_errno = errno;
    void *mem =
        mmap(NULL, chunk_bytes(chunk), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ttm_happening *own = mem != MAP_FAILED ? mem : &none;
    /* A handler that interrupted us may have been here: then it is as it says. */
    if (atomic_compare_exchange_strong_explicit(&deferred->places->chunks[chunk], &there, own,
                                                memory_order_relaxed, memory_order_relaxed))
        there = own;
    else if (own != &none)
        (void)munmap(own, chunk_bytes(chunk));
    errno = saved_errno;
    /* cppcheck-suppress memleak ; the swap has put it where it belongs */
    return there;
}

/* Chunk n begins at report AT_HAND + FIRST_CHUNK * (2^n - 1). */
static struct ttm_happening *place_at(struct ttm_deferred *deferred, uint32_t at)
{
    if (at < TTM_DEFERRED_AT_HAND)
        return &deferred->places->at_hand[at];
    const uint32_t shifted = at - TTM_DEFERRED_AT_HAND + FIRST_CHUNK;
    const unsigned chunk = 31u - (unsigned)__builtin_clz(shifted / FIRST_CHUNK);
    if (chunk >= TTM_DEFERRED_CHUNKS)
        return NULL;
    struct ttm_happening *first = NULL;
    /* Where one could not be had there is none behind it: see ttm_deferred_add(). */
    for (unsigned i = 0; i <= chunk; i++) {
        first = make_chunk(deferred, i);
        if (first == &none)
            return NULL;
    }
    return first + (shifted - (FIRST_CHUNK << chunk));
}

bool ttm_deferred_add(struct ttm_deferred *deferred, const struct ttm_happening *report)
{
    const uint32_t at = atomic_fetch_add_explicit(&deferred->count, 1, memory_order_relaxed);
    struct ttm_happening *place = place_at(deferred, at);

    if (!place) {
        /* Whoever interrupted us since got a later place, so none either: ours is the last. */
        atomic_fetch_sub_explicit(&deferred->count, 1, memory_order_relaxed);
        return false;
    }
    *place = *report;
    return true;
}

/* What could not be had may be had another time. */
static void try_again_later(struct ttm_deferred *deferred)
{
    for (unsigned i = 0; i < TTM_DEFERRED_CHUNKS; i++) {
        if (atomic_load_explicit(&deferred->places->chunks[i], memory_order_relaxed) == &none)
            atomic_store_explicit(&deferred->places->chunks[i], NULL, memory_order_relaxed);
    }
}

const struct ttm_happening *ttm_deferred_next(struct ttm_deferred *deferred, uint32_t *at)
{
    uint32_t count = atomic_load_explicit(&deferred->count, memory_order_relaxed);

    while (*at >= count) {
        if (count == 0)
            return NULL;
        /* Fails when one has come since we looked. */
        if (atomic_compare_exchange_strong_explicit(&deferred->count, &count, 0,
                                                    memory_order_relaxed, memory_order_relaxed)) {
            try_again_later(deferred);
            return NULL;
        }
    }
    atomic_signal_fence(memory_order_seq_cst);
    return place_at(deferred, (*at)++);
}

void ttm_deferred_done(struct ttm_deferred *deferred)
{
    for (unsigned i = 0; deferred->places && i < TTM_DEFERRED_CHUNKS; i++) {
        struct ttm_happening *chunk =
            atomic_exchange_explicit(&deferred->places->chunks[i], NULL, memory_order_relaxed);
        if (chunk && chunk != &none)
            (void)munmap(chunk, chunk_bytes(i));
    }
}
