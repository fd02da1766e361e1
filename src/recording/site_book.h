/* SPDX-License-Identifier: Apache-2.0 */
/*
 * site_book - what the births of a process have in common, said once.
 *
 * A loop allocates the same sizes in the same places for the same reasons over
 * and over: such a tuple is a site. In the file a birth names its site by a small
 * number. A site stays as long as a life refers to it; numbers are given anew
 * when too many have been given, so that neither side's table grows with the file.
 *
 * One thread. Used by the encoder.
 */
#ifndef TTM_RECORDING_SITE_BOOK_H
#define TTM_RECORDING_SITE_BOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Numbers in a file are below this. */
#define TTM_SITE_NUMBERS_MAX 65536u
#define TTM_SITE_UNNUMBERED UINT32_MAX

/* Without padding: compared and hashed as bytes. */
struct ttm_site_facts {
    uint64_t bytes;
    uint64_t footprint_bytes;
    uint32_t allocator;
    uint32_t devices;
    uint32_t origin;
    uint32_t cores;
    uint8_t region;
    uint8_t kind;
    uint8_t flags;
    uint8_t zero[3];
    uint16_t banks;
};

_Static_assert(sizeof(struct ttm_site_facts) == 40, "no padding");

struct ttm_booked_site {
    struct ttm_site_facts facts;
    uint64_t last_address; /* of its last birth in the file */
    uint32_t number;       /* in the file, or TTM_SITE_UNNUMBERED */
    uint32_t refs;         /* lives */
    uint32_t next;         /* in its bucket, or among the free */
    uint32_t follower;     /* the site that was asked for after it, a guess */
};

struct ttm_site_book {
    struct ttm_booked_site *sites;
    uint32_t count; /* places from here on were never taken */
    uint32_t room;
    uint32_t used;
    uint32_t free_head;
    uint32_t *buckets;
    uint32_t bucket_count; /* a power of two, or 0 */
    uint32_t last;         /* the site that was asked for last */
    uint32_t numbered;     /* numbers given */
    uint64_t seed;
};

void ttm_site_book_init(struct ttm_site_book *book, uint64_t seed);
void ttm_site_book_done(struct ttm_site_book *book);

static inline bool ttm_site_facts_are_same(const struct ttm_site_facts *a,
                                           const struct ttm_site_facts *b)
{
    uint64_t x[5], y[5];

    /* As words: for so few bytes a call costs more than the comparison. */
    memcpy(x, a, sizeof(x));
    memcpy(y, b, sizeof(y));
    return ((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3]) | (x[4] ^ y[4])) == 0;
}

#define TTM_BOOKED_NONE UINT32_MAX       /* as 'last' and 'follower' */
#define TTM_BOOKED_FREE (UINT32_MAX - 1) /* as 'follower' */

/* What follows where there is no guess, or it is wrong. */
int ttm_site_book_look_up(struct ttm_site_book *book, const struct ttm_site_facts *facts,
                          uint32_t *ret);

/*
 * In a loop the site after this one is the one that came after it last time: no hash. Returns that
 * one's place, or TTM_BOOKED_NONE. Who finds that it is the one says so by ttm_site_book_took().
 */
static inline uint32_t ttm_site_book_guess(const struct ttm_site_book *book)
{
    if (book->last == TTM_BOOKED_NONE)
        return TTM_BOOKED_NONE;
    const uint32_t guess = book->sites[book->last].follower;
    return guess < book->count && book->sites[guess].follower != TTM_BOOKED_FREE ? guess
                                                                                 : TTM_BOOKED_NONE;
}

static inline void ttm_site_book_took(struct ttm_site_book *book, uint32_t guess)
{
    book->last = guess;
}

/* Finds or adds; 'ret' is its place in 'sites'. Returns 0 or -ENOMEM. */
static inline int ttm_site_book_get(struct ttm_site_book *book, const struct ttm_site_facts *facts,
                                    uint32_t *ret)
{
    const uint32_t guess = ttm_site_book_guess(book);

    if (guess == TTM_BOOKED_NONE || !ttm_site_facts_are_same(&book->sites[guess].facts, facts))
        return ttm_site_book_look_up(book, facts, ret);
    ttm_site_book_took(book, guess);
    *ret = guess;
    return 0;
}

/* Takes back all numbers, and forgets the sites that no life refers to. */
void ttm_site_book_renumber(struct ttm_site_book *book);

#endif /* TTM_RECORDING_SITE_BOOK_H */
