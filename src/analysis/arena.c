/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_FIRST_BYTES 1024u /* there may be an arena for each of many processes */
#define CHUNK_BYTES 65536u
#define ALIGNMENT 16u

struct ttm_arena_chunk {
    struct ttm_arena_chunk *next;
    size_t used;
    size_t room;
    _Alignas(ALIGNMENT) unsigned char bytes[];
};

void ttm_arena_init(struct ttm_arena *arena)
{
    *arena = (struct ttm_arena){0};
}

void ttm_arena_done(struct ttm_arena *arena)
{
    while (arena->chunks) {
        struct ttm_arena_chunk *next = arena->chunks->next;
        free(arena->chunks);
        arena->chunks = next;
    }
}

/* Twice the current one, and room for a few pieces of this size. */
static size_t next_chunk_bytes(const struct ttm_arena *arena, size_t piece_bytes)
{
    size_t room = arena->chunks ? arena->chunks->room * 2 : CHUNK_FIRST_BYTES;

    while (room < piece_bytes * 4)
        room *= 2;
    return room < CHUNK_BYTES ? room : CHUNK_BYTES;
}

static struct ttm_arena_chunk *add_chunk(struct ttm_arena *arena, size_t bytes)
{
    const size_t room = bytes > CHUNK_BYTES / 4 ? bytes : next_chunk_bytes(arena, bytes);
    struct ttm_arena_chunk *chunk = calloc(1, sizeof(*chunk) + room);

    if (!chunk)
        return NULL;
    chunk->room = room;
    /* One that is filled by a single large piece must not hide what is left of the current one. */
    if (arena->chunks && room == bytes) {
        chunk->next = arena->chunks->next;
        arena->chunks->next = chunk;
    } else {
        chunk->next = arena->chunks;
        arena->chunks = chunk;
    }
    return chunk;
}

void *ttm_arena_take(struct ttm_arena *arena, size_t count, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2) {
        arena->failed = true;
        return NULL;
    }
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct ttm_arena_chunk *chunk = arena->chunks;
    if (!chunk || chunk->room - chunk->used < bytes)
        chunk = add_chunk(arena, bytes);
    if (!chunk) {
        arena->failed = true;
        return NULL;
    }
    void *piece = chunk->bytes + chunk->used;
    chunk->used += bytes;
    return piece;
}

const char *ttm_arena_text(struct ttm_arena *arena, const char *bytes, size_t length)
{
    char *text = ttm_arena_take(arena, length + 1, 1);

    if (!text)
        return "";
    if (length > 0)
        memcpy(text, bytes, length);
    return text;
}
