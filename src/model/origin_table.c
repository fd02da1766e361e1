/* SPDX-License-Identifier: Apache-2.0 */
#include "model/origin_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/pages.h"

/*
 * Origins are freed all together, so they lie one behind the other in blocks: small ones at first,
 * and large ones, which go back to the kernel, where there are many.
 */
struct ttm_origin_block {
    struct ttm_origin_block *next;
    size_t size;
    size_t used;
};

#define SMALL_BLOCK ((size_t)8 << 10)
#define LARGE_BLOCK ((size_t)256 << 10)

static void free_block(struct ttm_origin_table *table)
{
    struct ttm_origin_block *block = table->blocks;

    table->blocks = block->next;
    if (block->size == LARGE_BLOCK)
        ttm_pages_free(block, block->size);
    else
        free(block);
}

/* Room for so many bytes, NULL when memory is short. What is larger than a block has its own. */
static void *take_room(struct ttm_origin_table *table, size_t bytes)
{
    const size_t align = _Alignof(struct ttm_origin);
    const size_t rounded = (bytes + align - 1) / align * align;
    struct ttm_origin_block *block = table->blocks;

    if (!block || block->size - block->used < rounded) {
        const size_t head = (sizeof(*block) + align - 1) / align * align;
        const size_t usual = table->bytes < LARGE_BLOCK ? SMALL_BLOCK : LARGE_BLOCK;
        const size_t size = head + rounded > usual ? head + rounded : usual;
        block = size == LARGE_BLOCK ? ttm_pages_alloc(size) : malloc(size);
        if (!block)
            return NULL;
        *block = (struct ttm_origin_block){.next = table->blocks, .size = size, .used = head};
        table->blocks = block;
    }
    void *room = (char *)block + block->used;
    block->used += rounded;
    return room;
}

void ttm_origin_table_init(struct ttm_origin_table *table, uint64_t seed)
{
    *table = (struct ttm_origin_table){.seed = seed};
}

void ttm_origin_table_done(struct ttm_origin_table *table)
{
    ttm_quota_subtract(table->quota, table->bytes);
    while (table->blocks)
        free_block(table);
    free(table->origins);
    free(table->index);
    ttm_origin_table_init(table, table->seed);
}

/* The place in the index where the number is, or where it would go. */
static uint32_t *find_place(const struct ttm_origin_table *table, uint32_t number)
{
    uint32_t at = (uint32_t)ttm_hash_u64(number ^ table->seed) & (table->index_size - 1);

    while (table->index[at] != 0 && table->origins[table->index[at] - 1]->number != number)
        at = (at + 1) & (table->index_size - 1);
    return &table->index[at];
}

const struct ttm_origin *ttm_origin_table_find(const struct ttm_origin_table *table,
                                               uint32_t number)
{
    if (table->count == 0)
        return NULL;
    const uint32_t place = *find_place(table, number);
    return place != 0 ? table->origins[place - 1] : NULL;
}

static int grow(struct ttm_origin_table *table)
{
    const uint32_t room = table->room ? table->room * 2 : 16;
    struct ttm_origin **origins = realloc(table->origins, room * sizeof(void *));
    if (!origins)
        return -ENOMEM;
    table->origins = origins;
    uint32_t *index = calloc((size_t)room * 2, sizeof(index[0]));
    if (!index)
        return -ENOMEM;
    free(table->index);
    table->index = index;
    table->index_size = room * 2;
    table->room = room;
    for (uint32_t i = 0; i < table->count; i++)
        *find_place(table, table->origins[i]->number) = i + 1;
    return 0;
}

static uint64_t place_of(const struct ttm_origin *origin, uint64_t seed)
{
    uint64_t hash = seed;

    for (size_t i = 0; i < TTM_ORIGIN_TEXTS; i++) {
        if (i != TTM_ORIGIN_THREAD)
            hash = ttm_hash_text(hash, origin->text[i]);
    }
    return hash;
}

static size_t bytes_of(const struct ttm_origin *origin)
{
    size_t bytes = sizeof(*origin);

    for (size_t i = 0; i < TTM_ORIGIN_TEXTS; i++)
        bytes += strlen(origin->text[i]) + 1;
    return bytes;
}

/* The origin and all its texts in one piece of memory. */
static struct ttm_origin *copy_of(struct ttm_origin_table *table, const struct ttm_origin *origin,
                                  size_t bytes)
{
    struct ttm_origin *copy = take_room(table, bytes);

    if (!copy)
        return NULL;
    char *at = (char *)(copy + 1);
    copy->number = origin->number;
    for (size_t i = 0; i < TTM_ORIGIN_TEXTS; i++) {
        const size_t n = strlen(origin->text[i]) + 1;
        memcpy(at, origin->text[i], n);
        copy->text[i] = at;
        at += n;
    }
    return copy;
}

int ttm_origin_table_add(struct ttm_origin_table *table, const struct ttm_origin *origin)
{
    const size_t bytes = bytes_of(origin);

    if (table->count >= TTM_ORIGINS_MAX || table->bytes >= TTM_ORIGIN_BYTES_MAX ||
        !ttm_quota_allows(table->quota, bytes))
        return -ENOSPC;
    if (table->count == table->room && grow(table) < 0)
        return -ENOMEM;
    struct ttm_origin *copy = copy_of(table, origin, bytes);
    if (!copy)
        return -ENOMEM;
    copy->place = place_of(origin, table->seed);
    *find_place(table, origin->number) = table->count + 1;
    table->origins[table->count++] = copy;
    table->bytes += bytes;
    ttm_quota_add(table->quota, bytes);
    return 0;
}

bool ttm_origin_table_drop(struct ttm_origin_table *table, uint32_t blocks)
{
    table->count = 0; /* nothing is looked up any more */
    for (; blocks > 0 && table->blocks; blocks--)
        free_block(table);
    return !table->blocks;
}
