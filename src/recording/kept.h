/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept - what the encoder keeps of a process: all that a section has to tell again.
 *
 * One thread; no I/O. Private to src/recording.
 */
#ifndef TTM_RECORDING_KEPT_H
#define TTM_RECORDING_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/u64_map.h"
#include "recording/code.h"
#include "recording/recorded.h"
#include "recording/site_book.h"

#define TTM_KEPT_NONE UINT32_MAX

struct ttm_kept_life {
    uint64_t serial;
    uint64_t id;
    uint64_t address;
    uint64_t birth_ns;
    uint64_t ordinal;
    uint32_t site;    /* in the book of its process; TTM_KEPT_NONE: an empty place */
    uint32_t section; /* in which it was told or born; of an empty place: the next one */
};

struct ttm_kept_note {
    uint32_t number;
    uint32_t kind;
    uint32_t length;
};

struct ttm_kept_process {
    uint32_t number;
    struct ttm_recorded_process seen; /* 'command' is ours */
    uint64_t seen_ns;
    struct ttm_recorded_device *devices; /* 'board' is ours */
    uint32_t device_count;
    struct ttm_recorded_counters counters;
    bool has_counters;
    uint8_t *notes; /* ttm_kept_note and bytes, one after the other */
    size_t notes_length;
    size_t notes_room;
    struct ttm_kept_life *lives;
    uint32_t life_count; /* places from here on were never taken */
    uint32_t life_room;
    uint32_t life_free;
    struct ttm_u64_map by_serial;
    uint64_t next_ordinal;
    struct ttm_site_book sites;
    struct ttm_guesses guesses;
};

/* Returns NULL only when memory is short. */
struct ttm_kept_process *ttm_kept_process_new(uint32_t number, uint64_t seen_ns,
                                              const struct ttm_recorded_process *seen,
                                              uint64_t seed);

/* NULL is fine. */
void ttm_kept_process_free(struct ttm_kept_process *proc);

/* Keeps a copy, in place of an older one of the same id. Returns 0 or -ENOMEM. */
int ttm_kept_device(struct ttm_kept_process *proc, const struct ttm_recorded_device *device);

/* Keeps a copy. Returns 0 or -ENOMEM. */
int ttm_kept_note(struct ttm_kept_process *proc, const struct ttm_recorded_note *note);

/* Whether that is the site of the life. Field by field, as they were written a moment ago. */
static inline bool ttm_kept_is_site_of(const struct ttm_site_facts *facts,
                                       const struct ttm_recorded_life *life)
{
    return facts->bytes == life->bytes && facts->footprint_bytes == life->footprint_bytes &&
           facts->origin == life->origin && facts->allocator == life->allocator &&
           facts->devices == life->devices && facts->cores == life->cores &&
           facts->banks == life->banks && facts->region == life->region &&
           facts->kind == life->kind && facts->flags == life->flags;
}

/* Where it is not the one that was guessed. Returns 0 or -ENOMEM. */
int ttm_kept_site_look_up(struct ttm_kept_process *proc, const struct ttm_recorded_life *born,
                          uint32_t *ret);

/* The site of a life, for which one more refers to it. Returns 0 or -ENOMEM. */
static inline int ttm_kept_site(struct ttm_kept_process *proc, const struct ttm_recorded_life *born,
                                uint32_t *ret)
{
    const uint32_t guess = ttm_site_book_guess(&proc->sites);

    if (guess == TTM_BOOKED_NONE || !ttm_kept_is_site_of(&proc->sites.sites[guess].facts, born))
        return ttm_kept_site_look_up(proc, born, ret);
    ttm_site_book_took(&proc->sites, guess);
    proc->sites.sites[guess].refs++;
    *ret = guess;
    return 0;
}

/*
 * Enters a life that is born or told in 'section', as the next ordinal, which the
 * caller counts up. Returns 0, -EEXIST or -ENOMEM, then without a trace.
 */
int ttm_kept_life_add(struct ttm_kept_process *proc, const struct ttm_recorded_life *born,
                      uint32_t section, uint32_t *ret);

/* Of a life that was taken out of 'by_serial'. */
void ttm_kept_life_leave(struct ttm_kept_process *proc, uint32_t place);

#endif /* TTM_RECORDING_KEPT_H */
