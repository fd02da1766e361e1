/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notebook - the notes of one process, by number.
 *
 * Notes are said once and referred to by number. They are kept as they were said;
 * who needs one reads it with the decoders of wire/note.h and wire/origin.h. One
 * thread; memory follows the notes, which follow the origins.
 *
 * IPython gives a cell another file name each time it is run. Code of such a cell is one
 * note, that of the first time, whatever number it is asked for by.
 */
#ifndef TTM_ANALYSIS_NOTEBOOK_H
#define TTM_ANALYSIS_NOTEBOOK_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/arena.h"
#include "base/u64_map.h"
#include "wire/region.h"

struct ttm_noted {
    uint32_t number;
    uint32_t kind;
    const uint8_t *bytes;
    size_t length;
};

struct ttm_notebook {
    struct ttm_noted *notes;
    uint32_t count;
    uint32_t room;
    struct ttm_u64_map places;
    struct ttm_u64_map cells; /* code of IPython's cells, by what a second run leaves as it is */
    struct ttm_arena bytes;
};

void ttm_notebook_init(struct ttm_notebook *book, uint64_t seed);
void ttm_notebook_done(struct ttm_notebook *book);

/*
 * Copies it. A number that is known keeps what was said first; code of a cell that was run before
 * becomes another number of that. Returns 0 or -ENOMEM.
 */
int ttm_notebook_add(struct ttm_notebook *book, const struct ttm_noted *note);

/* NULL when it is not there or of another kind. */
const struct ttm_noted *ttm_notebook_find(const struct ttm_notebook *book, uint32_t number,
                                          uint32_t kind);

/* Of any kind. */
const struct ttm_noted *ttm_notebook_get(const struct ttm_notebook *book, uint32_t number);

/*
 * The devices that a number stands for: that one, or those that its note lists. Returns
 * how many, 0 when it was never said.
 */
uint32_t ttm_notebook_devices(const struct ttm_notebook *book, uint32_t number,
                              uint16_t ret[TTM_DEVICE_COUNT]);

#endif /* TTM_ANALYSIS_NOTEBOOK_H */
