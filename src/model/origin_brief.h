/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin_brief - an origin in the few words that people read in a list, each once.
 *
 * Origins that read the same are one here, from whatever process and by whatever
 * way the program came there. Bounded. One thread, no I/O, no clock.
 */
#ifndef TTM_MODEL_ORIGIN_BRIEF_H
#define TTM_MODEL_ORIGIN_BRIEF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/u64_map.h"

#define TTM_ORIGIN_BRIEF_MAX 4096

struct ttm_origin;

/* "" for what is not known. */
struct ttm_origin_brief {
    const char *place; /* "decode.py:28:cache_kv"; what comes behind a newline is not meant */
    const char *operation;
    const char *name;
    const char *context;
};

/* The words of an origin, borrowed from it: its innermost frame; where there is no
 * other a native one, the user's if any is. All are "" for NULL. */
struct ttm_origin_brief ttm_origin_brief_of(const struct ttm_origin *origin);

bool ttm_origin_brief_are_empty(const struct ttm_origin_brief *words);

struct ttm_origin_book {
    struct ttm_origin_brief **words; /* number 1 is the first; each with its texts behind it */
    uint32_t count;
    struct ttm_u64_map numbers; /* by a hash of the words */
};

/* Who chooses the words does not know 'seed'. */
void ttm_origin_book_init(struct ttm_origin_book *book, uint64_t seed);
void ttm_origin_book_done(struct ttm_origin_book *book);

/* The number of these words; 0 when nothing is known of it, the book is full or memory is short. */
uint32_t ttm_origin_book_add(struct ttm_origin_book *book, const struct ttm_origin *origin);

/* NULL for 0. */
const struct ttm_origin_brief *ttm_origin_book_get(const struct ttm_origin_book *book,
                                                   uint32_t number);

#endif /* TTM_MODEL_ORIGIN_BRIEF_H */
