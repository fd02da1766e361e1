/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest - what libttmem-hook and libttmem have to do with each other besides
 * ttmem.h. Both come from one build; nothing here is promised to anybody else.
 */
#ifndef TTM_CLIENT_GUEST_H
#define TTM_CLIENT_GUEST_H

#include <stdbool.h>
#include <stdint.h>

#include <ttmem/ttmem.h>

#include "client/live_table.h"
#include "ring/segment.h"

/* Numbers of notes (wire/origin.h), 0 for what is not known. */
struct ttmem_guest_origin {
    uint32_t thread;
    uint32_t operation;
    uint32_t python;
    uint32_t native;
};

struct ttm_slot;
struct ttm_tracker;

struct ttmem_guest {
    /*
     * Tracking was switched on and nothing is known of what is live: say it with
     * ttmem_device_open() and ttmem_alloc(). On the thread that switched it on, which may be the
     * helper's or be in the middle of an event of the hook.
     */
    void (*on_enable)(void);
    /*
     * Tracking is about to be switched off: nothing may be reported between the return of this
     * and the next on_enable(). On any thread but one that is in the middle of an event.
     */
    void (*on_disable)(void);
    /*
     * Where the event that this thread is about to report comes from: what ttmem_guest_origin_note()
     * has for it and 'context', 0 when it is not known.
     */
    uint32_t (*origin)(uint32_t context);
    /*
     * What this thread has of libttmem from here on, NULL for nothing, to be given with each event:
     * it is found faster among what the guest has of the thread than by libttmem itself.
     */
    void (*on_slot)(struct ttm_slot *slot);
    /* It is the same for each event of a thread in a context while tracking is on. Set in time for the first. */
    bool is_lasting;
};

/* Kept, not copied. Once, before any event. */
TTMEM_EXPORT void ttmem_guest_register(const struct ttmem_guest *guest);

/*
 * The number of a note of that kind (enum ttm_note_kind) and content, the same
 * for the same content; 0 when tracking is off or there is no room.
 */
TTMEM_EXPORT uint32_t ttmem_guest_note(uint32_t kind, const void *bytes, uint32_t length);

/* The number of a note that says an origin, within a context; likewise. */
TTMEM_EXPORT uint32_t ttmem_guest_origin_note(const struct ttmem_guest_origin *from,
                                              uint32_t context);

/* In the flags of a ttmem_alloc() by the hook, which knows by itself what is live of it. */
#define TTMEM_GUEST_ALLOCATION 0x80u

/*
 * As ttmem_alloc() of a buffer, without the checks of what somebody else might say. Its origin,
 * serial and time are set here. It has neither kind nor flags; 'key' is its ttm_live_key_of(). 'slot'
 * is what on_slot() said, NULL where it has not.
 */
TTMEM_EXPORT void ttmem_guest_born(struct ttm_slot *slot, struct ttm_live *live, uint64_t key);

/*
 * For lane.h alone. The tracker of this process, which is always the same; NULL where it is laid out
 * otherwise than the caller takes it to be: then both are not of one build.
 */
TTMEM_EXPORT struct ttm_tracker *ttmem_guest_tracker(uint64_t layout);

/* For lane.h, after an event: wakes a reader that sleeps, and reports what handlers have left. */
TTMEM_EXPORT void ttmem_guest_look_after(struct ttm_slot *slot);

/* For lane.h: ends a birth that was told of while tracking was switched off. */
TTMEM_EXPORT void ttmem_guest_take_back(struct ttm_slot *slot, uint64_t key, uint64_t id,
                                        uint64_t serial);

/* Devices whose ids follow each other. */
struct ttm_device_span {
    uint32_t first;
    uint32_t count; /* 0: none */
};

/* The span that such a set is; none when its ids do not follow each other. */
TTMEM_EXPORT struct ttm_device_span ttmem_guest_span(uint32_t devices);

/* Where programs are noted that are sent to each device. Always the same, while tracking is on. */
TTMEM_EXPORT struct ttm_device_cell *ttmem_guest_cells(void);

/* As ttmem_program_dispatch() to a span of devices, one at least, while tracking is on. */
static inline void ttmem_guest_dispatch(struct ttm_device_cell *cells, struct ttm_device_span span,
                                        uint64_t program)
{
    struct ttm_device_cell *cell = &cells[span.first];
    const struct ttm_device_cell *last = cell + span.count - 1;
    /* relaxed: two threads that send to one device at once may overwrite each other's word. */
    uint32_t n = atomic_load_explicit(&cell->dispatched, memory_order_relaxed);

    for (;;) {
        const uint32_t at = n % TTM_SEGMENT_PROGRAMS, sent = n;
        const uint32_t before = at > 0 ? at - 1 : TTM_SEGMENT_PROGRAMS - 1;

        do { /* most often a mesh was sent the same everywhere, and the places are the same */
            /* No program has the number 0, which is what is there before the first. */
            if (atomic_load_explicit(&cell->programs[before], memory_order_relaxed) != program) {
                atomic_store_explicit(&cell->programs[at], program, memory_order_relaxed);
                /* release: the program is there before it is counted. */
                atomic_store_explicit(&cell->dispatched, n + 1, memory_order_release);
            }
            if (cell == last)
                return;
            cell++;
            n = atomic_load_explicit(&cell->dispatched, memory_order_relaxed);
        } while (n == sent);
    }
}

/* As ttmem_free(), of a region that there is. */
TTMEM_EXPORT void ttmem_guest_ended(struct ttm_slot *slot, uint16_t allocator, uint8_t region,
                                    uint64_t id);

/* As ttmem_free(), but it ends with its program and not because its owner gave it back. */
TTMEM_EXPORT void ttmem_guest_close(uint16_t allocator, uint8_t region, uint64_t id);

/*
 * What this process is ("ttnn 0.81.1") and why tracking does not work in it or lacks
 * something, one line each, "" for nothing. The server tells those who ask.
 */
TTMEM_EXPORT void ttmem_guest_say(const char *runtime, const char *trouble);

/*
 * Why this process has no device although it opened one ("opening a device failed: no such device"),
 * "" once it has one. One line.
 */
TTMEM_EXPORT void ttmem_guest_say_opening(const char *outcome);

/*
 * What this process was, as it exits, for one that never reported anything: 'runtime' as above, and
 * 'outcome' as for ttmem_guest_say_opening(). Connects to the server, and starts no thread.
 */
TTMEM_EXPORT void ttmem_guest_say_at_exit(const char *runtime, const char *outcome);

/* A live allocation of an allocator that has a Python stack in its origin. */
struct ttmem_guest_live {
    uint64_t id;
    uint64_t address;
    uint64_t birth_ns;
    uint64_t footprint_bytes;
    uint32_t origin; /* number of its note */
    uint8_t region;
};

/*
 * Visits them while others go on, as ttm_live_table_next(). Returns whether there was one.
 */
TTMEM_EXPORT int ttmem_guest_next_live(struct ttm_live_walk *walk, struct ttmem_guest_live *ret);

/* What keeps the allocations of an origin alive, as in wire/keepers.h. */
#define TTMEM_GUEST_KEEPERS_MAX 8
#define TTMEM_GUEST_SEARCH_UNFINISHED 1

struct ttmem_guest_keepers {
    uint32_t origin;
    uint16_t round;
    uint8_t cause;
    uint8_t count;
    uint8_t search; /* enum ttm_holder_search */
    const char *texts[TTMEM_GUEST_KEEPERS_MAX];
    uint32_t roots[TTMEM_GUEST_KEEPERS_MAX];
};

TTMEM_EXPORT void ttmem_guest_kept(const struct ttmem_guest_keepers *keepers);

#endif /* TTM_CLIENT_GUEST_H */
