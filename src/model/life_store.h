/* SPDX-License-Identifier: Apache-2.0 */
/*
 * life_store - the memory that holds one process's lives.
 *
 * Lives sit in chunks of 64 KiB, named by a 32-bit reference, so that an index
 * needs four bytes a life. A chunk that runs empty goes back to the kernel. A
 * reader that needs the lives as they are now takes a view: it shares the chunks,
 * and the first change to a shared chunk works on a copy. A view costs a few
 * microseconds however many lives there are, and stays exact while events go on.
 *
 * One thread, no I/O, no clock.
 */
#ifndef TTM_MODEL_LIFE_STORE_H
#define TTM_MODEL_LIFE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ttm_life {
    uint64_t serial; /* given by its process and never used twice; 0 where there is none */
    uint64_t id;
    uint64_t address;
    uint64_t bytes;
    uint64_t footprint_bytes;
    uint64_t birth_ns; /* monotonic */
    uint32_t site;     /* what it shares with others: ttm_site_table; TTM_SITE_NONE = empty place */
    uint32_t next;     /* used by the table that indexes the store */
};

#define TTM_SITE_NONE UINT32_MAX
#define TTM_LIFE_NONE UINT32_MAX

#define TTM_CHUNK_SIZE 65536
#define TTM_CHUNK_LIVES 1169
#define TTM_LIFE_BLOCK_CHUNKS 32u
#define TTM_LIFE_BLOCK_SIZE (TTM_LIFE_BLOCK_CHUNKS * (size_t)TTM_CHUNK_SIZE)
#define TTM_LIFE_BLOCK_LIVES (TTM_LIFE_BLOCK_CHUNKS * TTM_CHUNK_LIVES)

struct ttm_life_chunk {
    uint32_t refs;      /* the store, and every view that shares it */
    uint32_t room_prev; /* chunks with free places form a list */
    uint32_t room_next;
    uint16_t live;
    uint16_t used;      /* places from here on were never taken */
    uint16_t free_head; /* places that were given back, linked by 'next' */
    uint8_t reserved[54];
    struct ttm_life lives[TTM_CHUNK_LIVES];
};

_Static_assert(sizeof(struct ttm_life) == 56, "56 bytes a life leave room for the index in 64");
_Static_assert(sizeof(struct ttm_life_chunk) == TTM_CHUNK_SIZE, "a chunk is whole pages");

struct ttm_life_store {
    struct ttm_life_chunk **chunks; /* NULL where a chunk was given back */
    uint32_t chunk_count;
    uint32_t chunk_room;
    uint32_t room_head; /* TTM_LIFE_NONE: every chunk is full */
    uint32_t live;
    uint32_t expected;
    uint8_t *block; /* the next of 'block_left' chunks whose memory was given together */
    uint32_t block_left;
};

void ttm_life_store_init(struct ttm_life_store *store);
void ttm_life_store_done(struct ttm_life_store *store);

/* About so many are about to be there; 0: no longer. A hint. */
void ttm_life_store_expect(struct ttm_life_store *store, uint32_t lives);

/*
 * While many more than there are are expected, its next chunks may be cut from a block of zeroed pages
 * that was got elsewhere. How many such blocks it could use from now on; 0: none at this moment.
 */
uint32_t ttm_life_store_wants_blocks(const struct ttm_life_store *store);

/* Takes over a block that it wants. Its memory goes back by the chunk. */
void ttm_life_store_give_block(struct ttm_life_store *store, void *block);

/* Borrowed until the next change of the store. 'ref' names a life. */
static inline const struct ttm_life *ttm_life_store_get(const struct ttm_life_store *store,
                                                        uint32_t ref)
{
    return &store->chunks[ref >> 11]->lives[ref & 2047];
}

/*
 * The same, to be changed: a chunk that a view shares is copied first. When
 * memory for the copy is short the view sees the change; nothing else suffers.
 */
struct ttm_life *ttm_life_store_edit(struct ttm_life_store *store, uint32_t ref);

/* Word by word: the life was written so a moment ago, and a copy by larger pieces would wait for that. */
static inline void ttm_life_copy(struct ttm_life *to, const struct ttm_life *from, uint32_t next)
{
    to->serial = from->serial;
    to->id = from->id;
    to->address = from->address;
    to->bytes = from->bytes;
    to->footprint_bytes = from->footprint_bytes;
    to->birth_ns = from->birth_ns;
    to->site = from->site;
    to->next = next;
}

/* Returns 0 or -ENOMEM. 'life' is copied, but for its 'next', which is given. */
int ttm_life_store_add(struct ttm_life_store *store, const struct ttm_life *life, uint32_t next,
                       uint32_t *ret_ref);

/*
 * Places side by side for as many of 'count' new lives as one chunk has room for. The caller fills all
 * of them at once, '*ret_ref' being the first one's reference. Returns how many, 0 when memory is short.
 */
uint32_t ttm_life_store_add_some(struct ttm_life_store *store, uint32_t count, uint32_t *ret_ref,
                                 struct ttm_life **ret);

void ttm_life_store_remove(struct ttm_life_store *store, uint32_t ref);

/* Memory taken from the kernel. */
size_t ttm_life_store_bytes(const struct ttm_life_store *store);

/* The lives as they were when the view was taken. */
struct ttm_life_view {
    struct ttm_life_chunk **chunks;
    uint32_t chunk_count;
};

/* Returns 0 or -ENOMEM. */
int ttm_life_view_take(const struct ttm_life_store *store, struct ttm_life_view *ret);

/* Takes the chunks out of the store, which is empty then. Returns 0; no memory is needed. */
void ttm_life_view_take_over(struct ttm_life_store *store, struct ttm_life_view *ret);

/*
 * The next life at or after '*at' (start with 0), or NULL at the end. A chunk
 * that has been passed is let go.
 */
const struct ttm_life *ttm_life_view_next(struct ttm_life_view *view, uint64_t *at);

/* Lets go of at most 'budget' chunks; returns whether all are gone. */
bool ttm_life_view_release(struct ttm_life_view *view, uint32_t budget);

#endif /* TTM_MODEL_LIFE_STORE_H */
