/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear hashing. There are 'buckets' buckets, half <= buckets < 2 * half. A
 * hash belongs to bucket hash mod 2*half where that exists, else to hash mod
 * half. When there are more lives than buckets, bucket number 'buckets' comes
 * into being and takes its share from number 'buckets - half', the only one that
 * can hold any of it. Shrinking goes the same way back.
 *
 * The bucket array is cut into segments of 16 KiB, so that it grows without
 * being copied and its memory goes back. A bucket's 0 is empty, as fresh pages are.
 */
#include "model/life_table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/pages.h"

#define SEGMENT_SIZE (TTM_SEGMENT_BUCKETS * sizeof(uint32_t))
#define FIRST_BUCKETS 64u
#define SPLITS_AHEAD 16 /* for each life that comes while more are expected */
/*
 * While there is little to link anew, the index grows for those who are expected before they come: a
 * few dozen microseconds. It is address space until they do, and not more of it than 4 MiB by word alone.
 */
#define AT_ONCE_BUCKETS (1u << 20)
#define AT_ONCE_LIVES 4096u
#define AT_ONCE_CHUNKS 8u /* each of which a view may share */

void ttm_life_table_init(struct ttm_life_table *table, ttm_life_hash hash, const void *context)
{
    *table = (struct ttm_life_table){.hash = hash, .context = context};
    ttm_life_store_init(&table->store);
}

static void free_index(struct ttm_life_table *table)
{
    for (uint32_t i = 0; i < table->segment_count; i++)
        ttm_pages_free(table->segments[i], SEGMENT_SIZE);
    free(table->segments);
    table->segments = NULL;
    table->segment_count = 0;
    table->segment_room = 0;
    table->buckets = 0;
    table->half = 0;
    table->expected = 0;
}

void ttm_life_table_done(struct ttm_life_table *table)
{
    ttm_life_store_done(&table->store);
    free_index(table);
}

size_t ttm_life_table_bytes(const struct ttm_life_table *table)
{
    return ttm_life_store_bytes(&table->store) + table->segment_count * SEGMENT_SIZE +
           table->segment_room * sizeof(table->segments[0]);
}

static uint32_t *bucket_at(const struct ttm_life_table *table, uint32_t number)
{
    return &table->segments[number / TTM_SEGMENT_BUCKETS][number % TTM_SEGMENT_BUCKETS];
}

/* Side by side; each goes back alone. */
static int add_segments(struct ttm_life_table *table, uint32_t count)
{
    uint32_t room = table->segment_room ? table->segment_room : 1;

    while (room < table->segment_count + count)
        room *= 2;
    if (room > table->segment_room) {
        uint32_t **segments = realloc(table->segments, room * sizeof(segments[0]));
        if (!segments)
            return -ENOMEM;
        table->segments = segments;
        table->segment_room = room;
    }
    uint32_t *pages = ttm_pages_alloc(count * SEGMENT_SIZE);
    if (!pages)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        table->segments[table->segment_count++] = pages + (size_t)i * TTM_SEGMENT_BUCKETS;
    return 0;
}

/*
 * A chain that is being built: its bucket, the bits that this is to have, and its
 * last life so far. Keeps the order of what is appended.
 */
struct chain {
    uint32_t *bucket;
    uint32_t bits;
    uint32_t last;
};

static void chain_append(struct ttm_life_table *table, struct chain *chain, uint32_t ref,
                         uint64_t hash)
{
    chain->bits |= ttm_life_table_bit(hash);
    if (chain->last == TTM_LIFE_NONE)
        *chain->bucket = ref + 1;
    else if (ttm_life_store_get(&table->store, chain->last)->next != ref)
        ttm_life_store_edit(&table->store, chain->last)->next = ref;
    chain->last = ref;
}

static void chain_close(struct ttm_life_table *table, struct chain *chain)
{
    if (chain->last == TTM_LIFE_NONE) {
        *chain->bucket = 0;
        return;
    }
    *chain->bucket |= chain->bits;
    if (ttm_life_store_get(&table->store, chain->last)->next != TTM_LIFE_NONE)
        ttm_life_store_edit(&table->store, chain->last)->next = TTM_LIFE_NONE;
}

/* The young bucket takes its share of the old one's lives. */
static void share_out(struct ttm_life_table *table, uint32_t old, uint32_t young)
{
    uint32_t ref = (*bucket_at(table, old) & TTM_BUCKET_REF) - 1;
    struct chain stays = {.bucket = bucket_at(table, old), .last = TTM_LIFE_NONE};
    struct chain moves = {.bucket = bucket_at(table, young), .last = TTM_LIFE_NONE};

    while (ref != TTM_LIFE_NONE) {
        const struct ttm_life *life = ttm_life_store_get(&table->store, ref);
        const uint32_t next = life->next;
        const uint64_t hash = table->hash(table->context, life);
        chain_append(table, ttm_life_table_number(table, hash) == young ? &moves : &stays, ref,
                     hash);
        ref = next;
    }
    chain_close(table, &stays);
    chain_close(table, &moves);
}

static void split(struct ttm_life_table *table)
{
    const uint32_t young = table->buckets;
    const uint32_t old = young - table->half;

    if (young / TTM_SEGMENT_BUCKETS == table->segment_count && add_segments(table, 1) < 0)
        return; /* chains grow a little longer until there is memory */

    table->buckets++;
    if (*bucket_at(table, old) != 0) /* else the young one is as empty as its pages are */
        share_out(table, old, young);
    if (table->buckets == 2 * table->half)
        table->half *= 2;
}

static void merge(struct ttm_life_table *table)
{
    if (table->buckets == table->half)
        table->half /= 2;
    const uint32_t gone = --table->buckets;
    uint32_t *into = bucket_at(table, gone - table->half);
    uint32_t *from = bucket_at(table, gone);

    if (*from != 0) {
        uint32_t last = (*from & TTM_BUCKET_REF) - 1;
        while (ttm_life_store_get(&table->store, last)->next != TTM_LIFE_NONE)
            last = ttm_life_store_get(&table->store, last)->next;
        if (*into != 0)
            ttm_life_store_edit(&table->store, last)->next = (*into & TTM_BUCKET_REF) - 1;
        *into = *from | (*into & ~TTM_BUCKET_REF);
        *from = 0;
    }
    /* Half a segment stays in hand, so that a count at a border does not map and unmap. */
    if (table->buckets + TTM_SEGMENT_BUCKETS / 2 <=
        (table->segment_count - 1) * TTM_SEGMENT_BUCKETS)
        ttm_pages_free(table->segments[--table->segment_count], SEGMENT_SIZE);
}

static int begin(struct ttm_life_table *table)
{
    if (add_segments(table, 1) < 0)
        return -ENOMEM;
    table->buckets = FIRST_BUCKETS;
    table->half = FIRST_BUCKETS;
    return 0;
}

/* The buckets that it takes for as many lives as there are, and some for those who are expected. */
static void grow_for(struct ttm_life_table *table, uint32_t added)
{
    for (uint32_t i = 0; i < added && table->store.live > table->buckets; i++)
        split(table);
    for (uint32_t i = 0; i < SPLITS_AHEAD * added && table->buckets < table->expected; i++)
        split(table);
}

/* Fills a place and puts it before the others of its bucket. */
static void enter(struct ttm_life_table *table, uint64_t hash, const struct ttm_life *life,
                  uint32_t ref, struct ttm_life *place)
{
    uint32_t *bucket = ttm_life_table_bucket(table, hash);

    assert(ref < TTM_BUCKET_REF && life->site != TTM_SITE_NONE);
    /* An empty bucket's 0 becomes TTM_LIFE_NONE. */
    ttm_life_copy(place, life, (*bucket & TTM_BUCKET_REF) - 1);
    *bucket = (*bucket & ~TTM_BUCKET_REF) | ttm_life_table_bit(hash) | (ref + 1);
}

uint32_t ttm_life_table_add_many(struct ttm_life_table *table, const uint64_t *hashes,
                                 const struct ttm_life *lives, uint32_t count)
{
    struct ttm_life *places;
    uint32_t done = 0, n = 1, ref;

    if (table->buckets == 0 && begin(table) < 0)
        return 0;
    while (done < count && n > 0) {
        n = ttm_life_store_add_some(&table->store, count - done, &ref, &places);
        for (uint32_t i = 0; i < n; i++)
            enter(table, hashes[done + i], &lives[done + i], ref + i, &places[i]);
        done += n;
    }
    grow_for(table, done);
    return done;
}

int ttm_life_table_add(struct ttm_life_table *table, uint64_t hash, const struct ttm_life *life)
{
    return ttm_life_table_add_many(table, &hash, life, 1) == 1 ? 0 : -ENOMEM;
}

/* Takes all lives out of their buckets, those of each in their order. Returns their number. */
static uint32_t unlink_all(struct ttm_life_table *table, uint32_t refs[AT_ONCE_LIVES])
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < table->buckets; i++) {
        uint32_t ref = (*bucket_at(table, i) & TTM_BUCKET_REF) - 1;
        *bucket_at(table, i) = 0;
        for (; ref != TTM_LIFE_NONE; ref = ttm_life_table_next(table, ref))
            refs[count++] = ref;
    }
    return count;
}

/* As many splits as it takes to 'buckets', where so few are live that each is just linked anew. */
static void grow_at_once(struct ttm_life_table *table, uint32_t buckets)
{
    uint32_t refs[AT_ONCE_LIVES];
    const uint32_t segments = (buckets + TTM_SEGMENT_BUCKETS - 1) / TTM_SEGMENT_BUCKETS;

    if ((table->buckets == 0 && begin(table) < 0) ||
        (segments > table->segment_count &&
         add_segments(table, segments - table->segment_count) < 0))
        return; /* by steps then */
    uint32_t count = unlink_all(table, refs);
    table->buckets = buckets;
    while (2 * table->half <= buckets)
        table->half *= 2;
    while (count-- > 0) { /* the newest of a hash is linked last, and comes out first */
        struct ttm_life *life = ttm_life_store_edit(&table->store, refs[count]);
        const uint64_t hash = table->hash(table->context, life);
        uint32_t *bucket = ttm_life_table_bucket(table, hash);
        life->next = (*bucket & TTM_BUCKET_REF) - 1;
        *bucket = (*bucket & ~TTM_BUCKET_REF) | ttm_life_table_bit(hash) | (refs[count] + 1);
    }
}

void ttm_life_table_expect(struct ttm_life_table *table, uint32_t lives)
{
    const uint32_t buckets = lives < AT_ONCE_BUCKETS ? lives : AT_ONCE_BUCKETS;

    table->expected = lives;
    ttm_life_store_expect(&table->store, lives);
    if (buckets > table->buckets && buckets > FIRST_BUCKETS &&
        table->buckets <= 2 * AT_ONCE_LIVES && table->store.live <= AT_ONCE_LIVES &&
        table->store.chunk_count <= AT_ONCE_CHUNKS)
        grow_at_once(table, buckets);
}

void ttm_life_table_fetch(const struct ttm_life_table *table, const uint64_t *hashes,
                          uint32_t count)
{
    if (table->buckets == 0)
        return;
    for (uint32_t i = 0; i < count; i++)
        __builtin_prefetch(ttm_life_table_bucket(table, hashes[i]), 1);
}

void ttm_life_table_fetch_lives(const struct ttm_life_table *table, const uint64_t *hashes,
                                uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t ref = ttm_life_table_first(table, hashes[i]);
        if (ref != TTM_LIFE_NONE)
            __builtin_prefetch(ttm_life_store_get(&table->store, ref));
    }
}

void ttm_life_table_remove(struct ttm_life_table *table, uint64_t hash, uint32_t ref)
{
    uint32_t *bucket = ttm_life_table_bucket(table, hash);
    const uint32_t next = ttm_life_store_get(&table->store, ref)->next;

    const uint32_t bits = *bucket & ~TTM_BUCKET_REF; /* others may need them */
    if ((*bucket & TTM_BUCKET_REF) == ref + 1) {
        *bucket = next == TTM_LIFE_NONE ? 0 : bits | (next + 1);
    } else {
        uint32_t before = (*bucket & TTM_BUCKET_REF) - 1;
        while (ttm_life_store_get(&table->store, before)->next != ref) {
            before = ttm_life_store_get(&table->store, before)->next;
            assert(before != TTM_LIFE_NONE);
        }
        ttm_life_store_edit(&table->store, before)->next = next;
    }
    ttm_life_store_remove(&table->store, ref);
    /* Two at a time: shrinking begins at half, and has to be done when the last life goes. */
    for (int i = 0; i < 2; i++) {
        if (table->store.live < table->buckets / 2 && table->buckets > FIRST_BUCKETS &&
            table->buckets > table->expected)
            merge(table);
    }
}

void ttm_life_table_take_over(struct ttm_life_table *table, struct ttm_life_view *ret)
{
    ttm_life_view_take_over(&table->store, ret);
    free_index(table);
}
