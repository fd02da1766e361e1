/* SPDX-License-Identifier: Apache-2.0 */
#include "model/origin_brief.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "model/origin_table.h"
#include "wire/origin.h"

enum { WORDS = 4 };

/* A piece of an origin's text: of a stack the first line. */
struct piece {
    const char *text;
    size_t length;
};

void ttm_origin_book_init(struct ttm_origin_book *book, uint64_t seed)
{
    *book = (struct ttm_origin_book){0};
    ttm_u64_map_init(&book->numbers, seed);
}

void ttm_origin_book_done(struct ttm_origin_book *book)
{
    for (uint32_t i = 0; i < book->count; i++)
        free(book->words[i]);
    free(book->words);
    ttm_u64_map_done(&book->numbers);
    ttm_origin_book_init(book, book->numbers.seed);
}

struct ttm_origin_brief ttm_origin_brief_of(const struct ttm_origin *origin)
{
    if (!origin)
        return (struct ttm_origin_brief){"", "", "", ""};
    const char *python = origin->text[TTM_ORIGIN_PYTHON];
    return (struct ttm_origin_brief){
        .place =
            python[0] != '\0' ? python : ttm_users_native_line(origin->text[TTM_ORIGIN_NATIVE]),
        .operation = origin->text[TTM_ORIGIN_OPERATION],
        .name = origin->text[TTM_ORIGIN_NAME],
        .context = origin->text[TTM_ORIGIN_CONTEXT],
    };
}

bool ttm_origin_brief_are_empty(const struct ttm_origin_brief *words)
{
    return words->place[0] == '\0' && words->operation[0] == '\0' && words->name[0] == '\0' &&
           words->context[0] == '\0';
}

static void take_pieces(const struct ttm_origin_brief *words, struct piece ret[WORDS])
{
    const char *texts[WORDS] = {words->place, words->operation, words->name, words->context};

    for (size_t i = 0; i < WORDS; i++)
        ret[i] = (struct piece){texts[i], i == 0 ? strcspn(texts[i], "\n") : strlen(texts[i])};
}

static uint64_t hash_of(uint64_t seed, const struct piece pieces[WORDS])
{
    uint64_t hash = seed;

    for (size_t i = 0; i < WORDS; i++) {
        for (size_t n = 0; n < pieces[i].length; n++)
            hash = ttm_hash_u64(hash + (uint8_t)pieces[i].text[n] + 1);
        hash = ttm_hash_u64(hash);
    }
    return hash;
}

static bool is_same(const struct ttm_origin_brief *words, const struct piece pieces[WORDS])
{
    const char *texts[WORDS] = {words->place, words->operation, words->name, words->context};

    for (size_t i = 0; i < WORDS; i++) {
        if (strlen(texts[i]) != pieces[i].length ||
            memcmp(texts[i], pieces[i].text, pieces[i].length) != 0)
            return false;
    }
    return true;
}

/* The words and their texts in one piece of memory. */
static struct ttm_origin_brief *copy_of(const struct piece pieces[WORDS])
{
    size_t bytes = sizeof(struct ttm_origin_brief);
    const char *texts[WORDS];

    for (size_t i = 0; i < WORDS; i++)
        bytes += pieces[i].length + 1;
    struct ttm_origin_brief *words = malloc(bytes);
    if (!words)
        return NULL;
    char *at = (char *)(words + 1);
    for (size_t i = 0; i < WORDS; i++) {
        texts[i] = at;
        memcpy(at, pieces[i].text, pieces[i].length);
        at[pieces[i].length] = '\0';
        at += pieces[i].length + 1;
    }
    *words = (struct ttm_origin_brief){
        .place = texts[0], .operation = texts[1], .name = texts[2], .context = texts[3]};
    return words;
}

/* Room for one more: there is a power of two of places, or none. */
static bool make_room(struct ttm_origin_book *book)
{
    if (book->count >= TTM_ORIGIN_BRIEF_MAX)
        return false;
    if (book->count & (book->count - 1))
        return true;
    const size_t room = book->count ? (size_t)book->count * 2 : 1;
    struct ttm_origin_brief **grown = realloc(book->words, room * sizeof(void *));
    if (!grown)
        return false;
    book->words = grown;
    return true;
}

uint32_t ttm_origin_book_add(struct ttm_origin_book *book, const struct ttm_origin *origin)
{
    struct piece pieces[WORDS];
    uint32_t number;

    const struct ttm_origin_brief borrowed = ttm_origin_brief_of(origin);
    if (ttm_origin_brief_are_empty(&borrowed))
        return 0;
    take_pieces(&borrowed, pieces);
    uint64_t key = hash_of(book->numbers.seed, pieces);
    for (; ttm_u64_map_find(&book->numbers, key, &number); key++) {
        if (is_same(book->words[number - 1], pieces))
            return number;
    }
    struct ttm_origin_brief *words = make_room(book) ? copy_of(pieces) : NULL;
    if (!words || ttm_u64_map_add(&book->numbers, key, book->count + 1) < 0) {
        free(words);
        return 0;
    }
    book->words[book->count++] = words;
    return book->count;
}

const struct ttm_origin_brief *ttm_origin_book_get(const struct ttm_origin_book *book,
                                                   uint32_t number)
{
    return number > 0 && number <= book->count ? book->words[number - 1] : NULL;
}
