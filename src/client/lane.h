/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lane - the short way of what the hook tells of all the time: a birth, into the nursery and the
 * ring, and its end.
 *
 * ttmem_guest_born() and ttmem_guest_ended() do the same and see to all that is unusual. Between two
 * events the program drives our code out of the caches, and each line that has to come back costs
 * as much as a dozen instructions (docs/overhead.md). So this is a part of the hook's functions, has
 * what is usual and no more, and where anything is not so it does nothing: the caller then goes the
 * long way.
 *
 * Called by the thread that has the slot, while tracking is on: within the hook's gate, at its
 * first depth.
 */
#ifndef TTM_CLIENT_LANE_H
#define TTM_CLIENT_LANE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/tick_clock.h"
#include "client/guest.h"
#include "client/nursery.h"
#include "client/tracker.h"
#include "ring/producer.h"

/* What lives of one size have in common, as records and places have it. */
struct ttm_lane_size {
    uint64_t bytes;
    uint64_t footprint_bytes;
    uint64_t key; /* ttm_live_key() */
    struct {      /* as in a record */
        uint16_t allocator;
        uint16_t banks;
        uint32_t devices;
    } spread;
    uint64_t place_bytes; /* TTM_PLACE_BYTES */
    uint64_t place_banks; /* of TTM_PLACE_BIRTH */
};

/* A number of where the lane finds what it looks at. */
static inline uint64_t ttm_lane_layout(void)
{
    const size_t places[] = {
        sizeof(struct ttm_tracker),
        offsetof(struct ttm_tracker, clock),
        offsetof(struct ttm_tracker, table),
        offsetof(struct ttm_tracker, producer),
        sizeof(struct ttm_slot),
        offsetof(struct ttm_slot, busy_id),
        offsetof(struct ttm_slot, deferred),
        offsetof(struct ttm_slot, is_busy),
        sizeof(struct ttm_tick_clock),
        sizeof(struct ttm_nursery_line),
        TTM_NURSERY_LINES,
        TTM_RING_SLOTS,
        offsetof(struct ttm_slot, context),
        offsetof(struct ttm_slot, lasting_origin),
        offsetof(struct ttm_tick_clock, ns),
        offsetof(struct ttm_slot, context_epoch),
    };
    uint64_t layout = 1;

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        layout = layout * 1000003 + places[i];
    return layout;
}

/* Of a life that is as they all are. */
static inline struct ttm_lane_size ttm_lane_size_of(const struct ttm_live *live)
{
    return (struct ttm_lane_size){
        .bytes = live->bytes,
        .footprint_bytes = live->footprint_bytes,
        .key = ttm_live_key_of(live),
        .spread = {live->allocator, live->banks, live->devices},
        .place_bytes = live->bytes | (uint64_t)live->devices << 40,
        .place_banks = (uint64_t)live->banks << TTM_PLACE_BANKS_AT,
    };
}

/* Whether that can be told of in here. */
static inline bool ttm_lane_takes(const struct ttm_live *live)
{
    return (live->bytes | live->footprint_bytes) <= TTM_LIVE_NUMBER_MAX && live->bytes != 0 &&
           live->kind == 0 && live->flags == 0;
}

_Static_assert(offsetof(struct ttm_record, devices) - offsetof(struct ttm_record, allocator) == 4 &&
                   sizeof(((struct ttm_lane_size *)0)->spread) == 8,
               "a copy of eight bytes");

/* Not in a child, nor in a handler that has interrupted an event which is none of the hook's. */
static inline bool ttm_lane_is_free(const struct ttm_slot *slot)
{
    /* relaxed: of this thread. */
    return __builtin_expect(slot->ring != NULL, 1) &&
           __builtin_expect(!atomic_load_explicit(&slot->is_busy, memory_order_relaxed), 1);
}

/* From here on the thread's handlers find it busy with 'id'. */
static inline void ttm_lane_enter(struct ttm_slot *slot, uint64_t id)
{
    slot->busy_id = id;
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&slot->is_busy, true, memory_order_relaxed); /* see set_busy() */
    atomic_signal_fence(memory_order_seq_cst);
}

/* Nothing was done. What handlers have left is seen to on the long way. */
static inline bool ttm_lane_turn_back(struct ttm_slot *slot)
{
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&slot->is_busy, false, memory_order_relaxed); /* likewise */
    return false;
}

/* Hands the record of that number over, and sees to whoever waits for it. */
static inline __attribute__((always_inline)) void ttm_lane_leave(struct ttm_tracker *tracker,
                                                                 struct ttm_slot *slot,
                                                                 struct ttm_ring *ring,
                                                                 uint64_t tail)
{
    /* release: publishes the record to the reader's acquire of tail. */
    atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
    /* relaxed: see ttm_ring_publish(). */
    const uint32_t sleep =
        atomic_load_explicit(&tracker->producer.segment->reader_sleep, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    /* release: pairs with the acquire in ttm_tracker_settle(); the event is in the ring. */
    atomic_store_explicit(&slot->is_busy, false, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst);
    /* relaxed: of this thread. */
    const uint32_t deferred = atomic_load_explicit(&slot->deferred.count, memory_order_relaxed);
    if (__builtin_expect(((sleep & ~(uint32_t)TTM_READER_DOZING) | deferred) != 0, 0))
        ttmem_guest_look_after(slot);
}

/* Where the next record goes, NULL when the ring is filling up. */
static inline struct ttm_record *ttm_lane_record(struct ttm_ring *ring, uint64_t *ret_tail)
{
    struct ttm_record *slots = (struct ttm_record *)(ring + 1);
    /* relaxed: only we write it. */
    const uint64_t tail = *ret_tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

    if (__builtin_expect(tail - ring->head_seen >= TTM_RING_WAKE_AT - 1, 0))
        return NULL;
    struct ttm_record *record = &slots[tail % TTM_RING_SLOTS];
    /* As in ttm_ring_next(), but for the last few of the ring: what lies behind it is ours too. */
    __builtin_prefetch(record + TTM_RING_PREFETCH, 1);
    return record;
}

/* Where the processor has no ticks, this is no short way. */
static inline uint64_t ttm_lane_now(const struct ttm_tracker *tracker)
{
#ifdef __x86_64__
    return ttm_tick_clock_at(&tracker->clock, __builtin_ia32_rdtsc());
#else
    (void)tracker;
    return 0;
#endif
}

/* A birth; 'epoch' is the tracker's when the event was let in. Returns whether it was told of. */
static inline __attribute__((always_inline)) bool ttm_lane_begin(struct ttm_tracker *tracker,
                                                                 struct ttm_slot *slot,
                                                                 const struct ttm_lane_size *size,
                                                                 uint64_t id, uint64_t address,
                                                                 uint32_t origin, uint32_t epoch)
{
    uint64_t tail;

    if (__builtin_expect(!ttm_lane_is_free(slot), 0))
        return false;
    ttm_lane_enter(slot, id);
    struct ttm_ring *ring = slot->ring; /* a handler that came before may have gone on in another */
    struct ttm_record *record = ttm_lane_record(ring, &tail);
    const uint64_t now = ttm_lane_now(tracker);
    struct ttm_live_place *place = &ttm_nursery_line(tracker->table.nursery, id)->place;
    if (__builtin_expect(!record, 0) || __builtin_expect(now == 0, 0) ||
        __builtin_expect(!ttm_nursery_take(place), 0))
        return ttm_lane_turn_back(slot);

    const uint64_t serial = ++slot->serial;
    ttm_place_set(place, TTM_PLACE_ID, id);
    ttm_place_set(place, TTM_PLACE_BIRTH, now >> TTM_PLACE_BIRTH_SHIFT | size->place_banks);
    ttm_place_set(place, TTM_PLACE_ADDRESS, address | size->key);
    ttm_place_set(place, TTM_PLACE_BYTES, size->place_bytes);
    ttm_place_set(place, TTM_PLACE_TAKEN, size->footprint_bytes | (uint64_t)origin << 40);
    ttm_place_set(place, TTM_PLACE_SERIAL, serial);

    record->time_ns = now;
    record->serial = serial;
    record->id = id;
    record->address = address;
    record->bytes = size->bytes;
    record->footprint_bytes = size->footprint_bytes;
    memcpy(&record->allocator, &size->spread, sizeof(size->spread));
    record->origin = origin;
    record->op = TTM_RECORD_BIRTH;
    record->region = (uint8_t)(size->key >> 56);
    record->kind = record->flags = 0;
    ttm_lane_leave(tracker, slot, ring, tail);
    /* acquire: as in begin_life(). */
    if (__builtin_expect(atomic_load_explicit(&tracker->epoch, memory_order_acquire) != epoch, 0))
        ttmem_guest_take_back(slot, size->key, id, serial);
    return true;
}

/*
 * The end of a life that began in here and is still in the nursery: ids are the runtime's, which
 * gives none twice, so that is all there is to compare. Returns whether it was told of.
 */
static inline __attribute__((always_inline)) bool ttm_lane_end(struct ttm_tracker *tracker,
                                                               struct ttm_slot *slot, uint64_t id)
{
    uint64_t tail;

    if (__builtin_expect(!ttm_lane_is_free(slot), 0))
        return false;
    ttm_lane_enter(slot, id);
    struct ttm_ring *ring = slot->ring; /* a handler that came before may have gone on in another */
    struct ttm_live_place *place = &ttm_nursery_line(tracker->table.nursery, id)->place;
    const uint64_t serial = ttm_place_get(place, TTM_PLACE_SERIAL);
    struct ttm_record *record = ttm_lane_record(ring, &tail);
    /* Another id comes with another serial: when the swap succeeds, the id was of that life. */
    if (__builtin_expect(!record, 0) || __builtin_expect(!ttm_nursery_is_life(serial), 0) ||
        __builtin_expect(ttm_place_get(place, TTM_PLACE_ID) != id, 0) ||
        __builtin_expect(!ttm_place_swap_serial(place, serial, 0), 0))
        return ttm_lane_turn_back(slot);

    const uint64_t now = ttm_tick_clock_ns(&tracker->clock);
    *record = (struct ttm_record){.time_ns = now, .serial = serial, .id = id, .op = TTM_RECORD_END};
    ttm_lane_leave(tracker, slot, ring, tail);
    return true;
}

#endif /* TTM_CLIENT_LANE_H */
