/* SPDX-License-Identifier: Apache-2.0 */
#include "client/note_table.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"

/* A search goes this far; a table that is full beyond it takes nothing more at that spot. */
#define PROBES 32

int ttm_note_table_init(struct ttm_note_table *table, uint64_t seed)
{
    void *mem = mmap(NULL, TTM_NOTE_PLACES * sizeof(table->places[0]), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (mem == MAP_FAILED)
        return -ENOMEM;
    (void)madvise(mem, TTM_NOTE_PLACES * sizeof(table->places[0]), MADV_DONTDUMP);
    table->places = mem;
    table->seed = seed;
    return 0;
}

void ttm_note_table_done(struct ttm_note_table *table)
{
    if (table->places)
        (void)munmap(table->places, TTM_NOTE_PLACES * sizeof(table->places[0]));
    table->places = NULL;
}

static uint64_t hash_of(const struct ttm_note_table *table, uint32_t kind, const void *bytes,
                        uint32_t length)
{
    const uint8_t *at = bytes;
    uint64_t hash = ttm_hash_u64(table->seed ^ (uint64_t)kind << 32 ^ length);
    uint64_t word;

    for (; length >= 8; length -= 8, at += 8) {
        memcpy(&word, at, 8);
        hash = ttm_hash_u64(hash ^ word);
    }
    word = 0;
    memcpy(&word, at, length);
    return ttm_hash_u64(hash ^ word);
}

static bool says(const struct ttm_producer *producer, uint32_t number, uint32_t kind,
                 const void *bytes, uint32_t length)
{
    uint32_t there;
    const void *note = ttm_producer_read_note(producer, number, kind, &there);

    return note && there == length && memcmp(note, bytes, length) == 0;
}

uint32_t ttm_note_table_intern(struct ttm_note_table *table, struct ttm_producer *producer,
                               uint32_t kind, const void *bytes, uint32_t length)
{
    const uint64_t hash = hash_of(table, kind, bytes, length);
    const uint64_t tag = hash & ~(uint64_t)UINT32_MAX;
    uint32_t own = 0;

    for (uint32_t i = 0; i < PROBES; i++) {
        _Atomic uint64_t *place = &table->places[(hash + i) % TTM_NOTE_PLACES];
        /* acquire: pairs with the release below; the note is whole. */
        uint64_t there = atomic_load_explicit(place, memory_order_acquire);
        if (there == 0) {
            if (own == 0)
                own = ttm_producer_note(producer, kind, bytes, length);
            if (own == 0)
                break;
            if (atomic_compare_exchange_strong_explicit(place, &there, tag | own,
                                                        memory_order_release, memory_order_acquire))
                return own;
            /* Somebody was faster, perhaps with the same: then ours was written in vain. */
        }
        if ((there & ~(uint64_t)UINT32_MAX) == tag &&
            says(producer, (uint32_t)there, kind, bytes, length))
            return (uint32_t)there;
    }
    /* relaxed: a number to be shown. */
    atomic_fetch_add_explicit(&producer->segment->notes_left_out, 1, memory_order_relaxed);
    return 0;
}
