/* SPDX-License-Identifier: Apache-2.0 */
#include "model/life_store.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/pages.h"

#define SLOT_BITS 11
#define SLOT_MASK ((1u << SLOT_BITS) - 1)
#define NO_SLOT UINT16_MAX
/* From so many chunks on the pages of a new one are taken with it: what is too much is little then. */
#define MANY_CHUNKS 16

_Static_assert(TTM_CHUNK_LIVES <= SLOT_MASK, "a reference is chunk number and slot");

void ttm_life_store_init(struct ttm_life_store *store)
{
    *store = (struct ttm_life_store){.room_head = TTM_LIFE_NONE};
}

static void chunk_unref(struct ttm_life_chunk *chunk)
{
    if (chunk && --chunk->refs == 0)
        ttm_pages_free(chunk, TTM_CHUNK_SIZE);
}

/* What is left of the block goes back. */
static void drop_block(struct ttm_life_store *store)
{
    if (store->block_left > 0)
        ttm_pages_free(store->block, store->block_left * (size_t)TTM_CHUNK_SIZE);
    store->block = NULL;
    store->block_left = 0;
}

void ttm_life_store_expect(struct ttm_life_store *store, uint32_t lives)
{
    store->expected = lives;
    if (lives == 0)
        drop_block(store);
}

void ttm_life_store_done(struct ttm_life_store *store)
{
    drop_block(store);
    for (uint32_t i = 0; i < store->chunk_count; i++)
        chunk_unref(store->chunks[i]);
    free(store->chunks);
    ttm_life_store_init(store);
}

size_t ttm_life_store_bytes(const struct ttm_life_store *store)
{
    size_t bytes = store->chunk_room * sizeof(void *) + store->block_left * (size_t)TTM_CHUNK_SIZE;

    for (uint32_t i = 0; i < store->chunk_count; i++)
        bytes += store->chunks[i] ? TTM_CHUNK_SIZE : 0;
    return bytes;
}

/* The chunk, no longer shared with any view. */
static struct ttm_life_chunk *own_chunk(struct ttm_life_store *store, uint32_t number)
{
    struct ttm_life_chunk *chunk = store->chunks[number];

    if (chunk->refs == 1)
        return chunk;
    struct ttm_life_chunk *copy = ttm_pages_alloc(TTM_CHUNK_SIZE);
    if (!copy)
        return chunk;
    ttm_pages_take(copy, TTM_CHUNK_SIZE);
    memcpy(copy, chunk, offsetof(struct ttm_life_chunk, lives[chunk->used]));
    copy->refs = 1;
    chunk_unref(chunk);
    store->chunks[number] = copy;
    return copy;
}

struct ttm_life *ttm_life_store_edit(struct ttm_life_store *store, uint32_t ref)
{
    return &own_chunk(store, ref >> SLOT_BITS)->lives[ref & SLOT_MASK];
}

static void room_link(struct ttm_life_store *store, uint32_t number)
{
    struct ttm_life_chunk *chunk = store->chunks[number];

    chunk->room_prev = TTM_LIFE_NONE;
    chunk->room_next = store->room_head;
    if (store->room_head != TTM_LIFE_NONE)
        own_chunk(store, store->room_head)->room_prev = number;
    store->room_head = number;
}

static void room_unlink(struct ttm_life_store *store, uint32_t number)
{
    const struct ttm_life_chunk *chunk = store->chunks[number];

    if (chunk->room_prev != TTM_LIFE_NONE)
        own_chunk(store, chunk->room_prev)->room_next = chunk->room_next;
    else
        store->room_head = chunk->room_next;
    if (chunk->room_next != TTM_LIFE_NONE)
        own_chunk(store, chunk->room_next)->room_prev = chunk->room_prev;
}

/* A number for a new chunk: one that was given back, or one more. */
static int find_number(struct ttm_life_store *store, uint32_t *ret)
{
    /* Chunks are given back from anywhere; with 1 M lives there are 856 numbers to look at,
     * once for 1169 births. */
    for (uint32_t i = 0; i < store->chunk_count; i++) {
        if (!store->chunks[i]) {
            *ret = i;
            return 0;
        }
    }
    if (store->chunk_count == store->chunk_room) {
        const uint32_t room = store->chunk_room ? store->chunk_room * 2 : 4;
        struct ttm_life_chunk **chunks = realloc(store->chunks, room * sizeof(void *));
        if (!chunks)
            return -ENOMEM;
        store->chunks = chunks;
        store->chunk_room = room;
    }
    *ret = store->chunk_count;
    return 0;
}

/* Whoever promises more than he keeps gets no more memory for it than he has filled. */
uint32_t ttm_life_store_wants_blocks(const struct ttm_life_store *store)
{
    if (store->block_left > 0 || store->live < TTM_LIFE_BLOCK_LIVES ||
        store->expected < store->live)
        return 0;
    return (store->expected - store->live) / TTM_LIFE_BLOCK_LIVES;
}

void ttm_life_store_give_block(struct ttm_life_store *store, void *block)
{
    assert(store->block_left == 0);
    store->block = block;
    store->block_left = TTM_LIFE_BLOCK_CHUNKS;
}

static struct ttm_life_chunk *new_chunk(struct ttm_life_store *store, uint32_t number)
{
    if (store->block_left == 0) {
        void *pages = ttm_pages_alloc(TTM_CHUNK_SIZE);
        if (pages && number >= MANY_CHUNKS)
            ttm_pages_take(pages, TTM_CHUNK_SIZE);
        return pages;
    }
    uint8_t *chunk = store->block;
    store->block += TTM_CHUNK_SIZE;
    store->block_left--;
    return (struct ttm_life_chunk *)(void *)chunk;
}

static int add_chunk(struct ttm_life_store *store)
{
    uint32_t number;

    if (find_number(store, &number) < 0)
        return -ENOMEM;
    struct ttm_life_chunk *chunk = new_chunk(store, number);
    if (!chunk)
        return -ENOMEM;
    chunk->refs = 1;
    chunk->free_head = NO_SLOT;
    store->chunks[number] = chunk;
    if (number == store->chunk_count)
        store->chunk_count++;
    room_link(store, number);
    return 0;
}

/* One that was given back, or such as were never taken. */
uint32_t ttm_life_store_add_some(struct ttm_life_store *store, uint32_t count, uint32_t *ret_ref,
                                 struct ttm_life **ret)
{
    if (store->room_head == TTM_LIFE_NONE && add_chunk(store) < 0)
        return 0;

    const uint32_t number = store->room_head;
    struct ttm_life_chunk *chunk = own_chunk(store, number);
    uint16_t slot = chunk->free_head;
    uint16_t n = 1;
    if (slot != NO_SLOT) {
        chunk->free_head = (uint16_t)chunk->lives[slot].next;
    } else {
        const uint16_t room = (uint16_t)(TTM_CHUNK_LIVES - chunk->used);
        n = count < room ? (uint16_t)count : room;
        slot = chunk->used;
        chunk->used = (uint16_t)(chunk->used + n);
    }
    chunk->live = (uint16_t)(chunk->live + n);
    store->live += n;
    if (chunk->live == TTM_CHUNK_LIVES)
        room_unlink(store, number);
    *ret_ref = number << SLOT_BITS | slot;
    *ret = &chunk->lives[slot];
    return n;
}

int ttm_life_store_add(struct ttm_life_store *store, const struct ttm_life *life, uint32_t next,
                       uint32_t *ret_ref)
{
    struct ttm_life *place;

    assert(life->site != TTM_SITE_NONE);
    if (ttm_life_store_add_some(store, 1, ret_ref, &place) == 0)
        return -ENOMEM;
    ttm_life_copy(place, life, next);
    return 0;
}

void ttm_life_store_remove(struct ttm_life_store *store, uint32_t ref)
{
    const uint32_t number = ref >> SLOT_BITS;
    struct ttm_life_chunk *chunk = own_chunk(store, number);
    struct ttm_life *life = &chunk->lives[ref & SLOT_MASK];

    assert(life->site != TTM_SITE_NONE);
    life->site = TTM_SITE_NONE;
    life->next = chunk->free_head;
    chunk->free_head = (uint16_t)(ref & SLOT_MASK);
    chunk->live--;
    store->live--;
    if (chunk->live == TTM_CHUNK_LIVES - 1)
        room_link(store, number);

    /* One empty chunk stays, so that a program that lives at a border does not map and unmap. */
    const bool is_only_room = store->room_head == number && chunk->room_next == TTM_LIFE_NONE;
    if (chunk->live == 0 && !is_only_room) {
        room_unlink(store, number);
        chunk_unref(chunk);
        store->chunks[number] = NULL;
    }
}

int ttm_life_view_take(const struct ttm_life_store *store, struct ttm_life_view *ret)
{
    *ret = (struct ttm_life_view){0};
    if (store->chunk_count == 0)
        return 0;
    ret->chunks = malloc(store->chunk_count * sizeof(void *));
    if (!ret->chunks)
        return -ENOMEM;
    ret->chunk_count = store->chunk_count;
    for (uint32_t i = 0; i < store->chunk_count; i++) {
        ret->chunks[i] = store->chunks[i];
        if (ret->chunks[i])
            ret->chunks[i]->refs++;
    }
    return 0;
}

void ttm_life_view_take_over(struct ttm_life_store *store, struct ttm_life_view *ret)
{
    drop_block(store);
    *ret = (struct ttm_life_view){.chunks = store->chunks, .chunk_count = store->chunk_count};
    ttm_life_store_init(store);
}

const struct ttm_life *ttm_life_view_next(struct ttm_life_view *view, uint64_t *at)
{
    while (*at >> SLOT_BITS < view->chunk_count) {
        const uint32_t number = (uint32_t)(*at >> SLOT_BITS);
        const struct ttm_life_chunk *chunk = view->chunks[number];

        for (uint32_t slot = *at & SLOT_MASK; chunk && slot < chunk->used; slot++) {
            if (chunk->lives[slot].site != TTM_SITE_NONE) {
                *at = ((uint64_t)number << SLOT_BITS | slot) + 1;
                return &chunk->lives[slot];
            }
        }
        chunk_unref(view->chunks[number]);
        view->chunks[number] = NULL;
        *at = (uint64_t)(number + 1) << SLOT_BITS;
    }
    return NULL;
}

bool ttm_life_view_release(struct ttm_life_view *view, uint32_t budget)
{
    while (view->chunk_count > 0 && budget > 0) {
        struct ttm_life_chunk *chunk = view->chunks[--view->chunk_count];
        if (chunk) {
            chunk_unref(chunk);
            budget--;
        }
    }
    if (view->chunk_count > 0)
        return false;
    free(view->chunks);
    view->chunks = NULL;
    return true;
}
