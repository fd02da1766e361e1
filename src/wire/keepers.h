/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keepers - what keeps the allocations of an origin alive, as the tracked program
 * saw it: a note of kind KEEPERS.
 *
 *   0 u32 note of ORIGIN | 4 u8 cause | 5 u8 keepers | 6 u16 round
 *   | for each: u16 bytes, text
 *   | u8 search | u8 0 | u16 0 | for each: u32 root
 *
 * The last line is left out when all of it is 0. A root is the object that the text is
 * about: a list with a name, an exception, a generator. It has a number within its round, so
 * two texts with the same root speak of the same object; 0 where that is not known.
 *
 * Without holders, a search that is done saw no Python object that holds them; a search that is
 * unfinished says nothing. Of
 * several notes for one origin the last one holds; each round of looking has a number
 * of its own, so that the same words again are another note. Text is UTF-8; the bytes come from
 * a process that may lie.
 */
#ifndef TTM_WIRE_KEEPERS_H
#define TTM_WIRE_KEEPERS_H

#include <stddef.h>
#include <stdint.h>

#include "wire/origin.h"

#define TTM_NOTE_KEEPERS 24 /* after the kinds of wire/origin.h */

enum ttm_cause {
    TTM_CAUSE_NONE = 0, /* not known */
    TTM_CAUSE_CONTAINER = 1,
    TTM_CAUSE_CYCLE = 2,
    TTM_CAUSE_TRACEBACK = 3,
    TTM_CAUSE_CLOSURE = 4,
    TTM_CAUSE_FRAME = 5,
    TTM_CAUSE_COUNT
};

enum ttm_holder_search {
    TTM_SEARCH_DONE = 0,
    TTM_SEARCH_UNFINISHED = 1, /* what it found holds; there may be more */
    TTM_SEARCH_COUNT
};

#define TTM_KEEPERS_MAX 8
#define TTM_KEEPER_TEXT_MAX 255 /* of longer ones the beginning is kept */

struct ttm_keepers_note {
    uint32_t origin;
    uint16_t round;
    uint8_t cause;  /* enum ttm_cause */
    uint8_t search; /* enum ttm_holder_search */
    uint8_t count;
    struct ttm_note_text keepers[TTM_KEEPERS_MAX]; /* the most telling first */
    uint32_t roots[TTM_KEEPERS_MAX];
};

#define TTM_KEEPERS_NOTE_SIZE_MAX                                                                  \
    (8 + TTM_KEEPERS_MAX * (2 + TTM_KEEPER_TEXT_MAX) + 4 + TTM_KEEPERS_MAX * 4)

/* Returns the bytes used. */
size_t ttm_keepers_note_encode(const struct ttm_keepers_note *note,
                               uint8_t buf[TTM_KEEPERS_NOTE_SIZE_MAX]);

/*
 * Returns 0 or -EBADMSG. What it returns lasts as long as 'buf'. A cause that is not
 * known here is TTM_CAUSE_NONE, such a state of the search TTM_SEARCH_UNFINISHED.
 */
int ttm_keepers_note_decode(const uint8_t *buf, size_t len, struct ttm_keepers_note *ret);

/* "container"; NULL for TTM_CAUSE_NONE and what is none. */
const char *ttm_cause_name(uint8_t cause);

#endif /* TTM_WIRE_KEEPERS_H */
