/* SPDX-License-Identifier: Apache-2.0 */
#include "recording/site_book.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define NONE TTM_BOOKED_NONE

void ttm_site_book_init(struct ttm_site_book *book, uint64_t seed)
{
    *book = (struct ttm_site_book){.free_head = NONE, .last = NONE, .seed = seed};
}

void ttm_site_book_done(struct ttm_site_book *book)
{
    free(book->sites);
    free(book->buckets);
    ttm_site_book_init(book, book->seed);
}

static uint32_t bucket_of(const struct ttm_site_book *book, const struct ttm_site_facts *facts)
{
    uint64_t words[5], hash = book->seed;

    memcpy(words, facts, sizeof(words));
    for (size_t i = 0; i < 5; i++) {
        hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 29;
    }
    return (uint32_t)ttm_hash_u64(hash) & (book->bucket_count - 1);
}

static void link_in(struct ttm_site_book *book, uint32_t place)
{
    const uint32_t bucket = bucket_of(book, &book->sites[place].facts);

    book->sites[place].next = book->buckets[bucket];
    book->buckets[bucket] = place;
}

static bool is_free(const struct ttm_booked_site *site)
{
    return site->follower == TTM_BOOKED_FREE;
}

static void link_all(struct ttm_site_book *book)
{
    memset(book->buckets, 0xff, book->bucket_count * sizeof(book->buckets[0]));
    for (uint32_t i = 0; i < book->count; i++) {
        if (!is_free(&book->sites[i]))
            link_in(book, i);
    }
}

static int grow_buckets(struct ttm_site_book *book)
{
    const uint32_t count = book->bucket_count ? book->bucket_count * 2 : 64;
    uint32_t *buckets = malloc(count * sizeof(buckets[0]));

    if (!buckets)
        return -ENOMEM;
    free(book->buckets);
    book->buckets = buckets;
    book->bucket_count = count;
    link_all(book);
    return 0;
}

/* A place for one more, its number in 'ret'. */
static int take_place(struct ttm_site_book *book, uint32_t *ret)
{
    if (book->free_head != NONE) {
        *ret = book->free_head;
        book->free_head = book->sites[*ret].next;
        return 0;
    }
    if (book->count == book->room) {
        const uint32_t room = book->room ? book->room * 2 : 64;
        struct ttm_booked_site *sites = realloc(book->sites, room * sizeof(sites[0]));
        if (!sites)
            return -ENOMEM;
        book->sites = sites;
        book->room = room;
    }
    *ret = book->count++;
    return 0;
}

static int find(const struct ttm_site_book *book, const struct ttm_site_facts *facts, uint32_t *ret)
{
    if (book->bucket_count == 0)
        return -ENOENT;
    for (uint32_t i = book->buckets[bucket_of(book, facts)]; i != NONE; i = book->sites[i].next) {
        if (ttm_site_facts_are_same(&book->sites[i].facts, facts)) {
            *ret = i;
            return 0;
        }
    }
    return -ENOENT;
}

static int add(struct ttm_site_book *book, const struct ttm_site_facts *facts, uint32_t *ret)
{
    uint32_t place;

    if (book->used >= book->bucket_count && grow_buckets(book) < 0)
        return -ENOMEM;
    if (take_place(book, &place) < 0)
        return -ENOMEM;
    book->sites[place] =
        (struct ttm_booked_site){.facts = *facts, .number = TTM_SITE_UNNUMBERED, .follower = NONE};
    link_in(book, place);
    book->used++;
    *ret = place;
    return 0;
}

int ttm_site_book_look_up(struct ttm_site_book *book, const struct ttm_site_facts *facts,
                          uint32_t *ret)
{
    uint32_t place;
    int r = find(book, facts, &place);
    if (r < 0)
        r = add(book, facts, &place);
    if (r < 0)
        return r;
    if (book->last != NONE)
        book->sites[book->last].follower = place;
    book->last = place;
    *ret = place;
    return 0;
}

void ttm_site_book_renumber(struct ttm_site_book *book)
{
    book->numbered = 0;
    book->last = NONE;
    book->free_head = NONE;
    book->used = 0;
    for (uint32_t i = 0; i < book->count; i++) {
        struct ttm_booked_site *site = &book->sites[i];
        site->number = TTM_SITE_UNNUMBERED;
        if (site->refs > 0) {
            book->used++;
            continue;
        }
        site->follower = TTM_BOOKED_FREE;
        site->next = book->free_head;
        book->free_head = i;
    }
    if (book->bucket_count > 0)
        link_all(book);
}
