/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin_row - where allocations come from, and what was said about a process:
 * the rows of an answer that carry text.
 *
 * A site (life_row.h) names its origin by number; the row of an origin comes
 * before the first site that does. Each row is the payload of one frame.
 */
#ifndef TTM_WIRE_ORIGIN_ROW_H
#define TTM_WIRE_ORIGIN_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/region.h"
#include "wire/shortage.h"
#include "wire/totals.h"

/* Lists have a line for each frame, innermost first. Longer ones are cut at a line. */
#define TTM_FRAMES_TEXT_MAX 16383

/* The frame TTM_FRAME_ORIGIN. The texts are borrowed. */
struct ttm_origin_row {
    uint32_t process_index;
    uint32_t number;
    const char *context;
    const char *name;
    const char *thread;
    const char *operation;
    const char *python; /* "decode.py:28:cache_kv\n…" */
    const char *native;
};

#define TTM_ORIGIN_ROW_SIZE_MAX (16 + 4 * (2 + TTM_STRING_MAX) + 2 * (2 + TTM_FRAMES_TEXT_MAX))

/* 'buf' has TTM_ORIGIN_ROW_SIZE_MAX bytes; returns those used. */
size_t ttm_origin_row_encode(const struct ttm_origin_row *row, uint8_t *buf);

/* The room that the texts of a decoded row point into. */
struct ttm_origin_texts {
    char strings[4][TTM_STRING_MAX + 1];
    char lists[2][TTM_FRAMES_TEXT_MAX + 1];
};

/* Returns 0 or -EBADMSG. */
int ttm_origin_row_decode(const uint8_t *buf, size_t len, struct ttm_origin_texts *texts,
                          struct ttm_origin_row *ret);

/* The frame TTM_FRAME_MARK. */
struct ttm_mark_row {
    uint32_t process_index;
    uint64_t time_ns; /* wall clock */
    char name[TTM_STRING_MAX + 1];
};

size_t ttm_mark_row_encode(const struct ttm_mark_row *row, uint8_t buf[TTM_ROW_SIZE_MAX]);
int ttm_mark_row_decode(const uint8_t *buf, size_t len, struct ttm_mark_row *ret);

/* "out_of_memory", "cb_clash". */
const char *ttm_failure_kind_name(unsigned kind);

/* What allocations of one origin hold together. */
struct ttm_owner {
    uint32_t origin; /* 0: not known */
    uint64_t count;
    uint64_t bytes; /* as requested */
    uint64_t footprint_bytes;
};

#define TTM_OWNERS_MAX 8

/* The frame TTM_FRAME_FAILURE: an allocation that could not be made. */
struct ttm_failure_row {
    uint32_t process_index;
    uint64_t time_ns; /* wall clock */
    uint64_t wanted_bytes;
    uint64_t bank_wanted_bytes;
    uint64_t bank_free_bytes;
    uint64_t bank_largest_bytes;
    uint32_t origin;
    uint16_t device_id; /* the first, of a mesh */
    uint8_t region;
    uint8_t kind; /* enum ttm_failure_kind */
    uint32_t owner_count;
    struct ttm_owner owners[TTM_OWNERS_MAX]; /* who held the region then, largest first */
};

/* Where its owners are: with a clash they hold L1, whatever the region is called. */
static inline uint8_t ttm_failure_held_region(const struct ttm_failure_row *row)
{
    return row->kind == TTM_FAILURE_CB_CLASH ? TTM_REGION_L1 : row->region;
}

static inline enum ttm_shortage ttm_failure_shortage(const struct ttm_failure_row *row)
{
    const struct ttm_shortage_facts facts = {
        .wanted_bytes = row->bank_wanted_bytes,
        .free_bytes = row->bank_free_bytes,
        .largest_block_bytes = row->bank_largest_bytes,
        .kind = row->kind,
    };

    return ttm_shortage_of(&facts);
}

size_t ttm_failure_row_encode(const struct ttm_failure_row *row, uint8_t buf[TTM_ROW_SIZE_MAX]);
/* Returns 0 or -EBADMSG. A row of an older sender has no owners. */
int ttm_failure_row_decode(const uint8_t *buf, size_t len, struct ttm_failure_row *ret);

#endif /* TTM_WIRE_ORIGIN_ROW_H */
