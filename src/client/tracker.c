/* SPDX-License-Identifier: Apache-2.0 */
#include "client/tracker.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/tick_clock.h"

/* The ring's number takes the top of a serial, so threads need not ask each other for one. */
#define SERIAL_BITS 48
#define REFUSALS 16
/* An event takes a tenth of a microsecond, but its thread may be off the processor for long. */
#define SETTLE_AT_ONCE 64
#define SETTLE_PAUSE_NS 50000
#define SETTLE_LOOKS (200u * SETTLE_AT_ONCE) /* 20 ms, with what a sleep takes besides */

static size_t slots_bytes(void)
{
    return TTM_RINGS * sizeof(struct ttm_slot);
}

int ttm_tracker_init(struct ttm_tracker *tracker, uint64_t seed)
{
    int r;

    memset(tracker, 0, sizeof(*tracker));
    ttm_tick_clock_begin(&tracker->clock);
    r = ttm_producer_new(&tracker->producer);
    if (r < 0)
        return r;
    r = ttm_live_table_init(&tracker->table, seed);
    if (r == 0)
        r = ttm_note_table_init(&tracker->notes, seed);
    if (r < 0)
        goto fail;
    void *slots = mmap(NULL, slots_bytes(), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (slots == MAP_FAILED) {
        r = -errno;
        goto fail;
    }
    tracker->slots = slots;
    (void)madvise(slots, slots_bytes(), MADV_WIPEONFORK); /* see ttm_switch_slot() */
    return 0;

fail:
    ttm_tracker_done(tracker);
    return r;
}

static void free_slots(struct ttm_tracker *tracker)
{
    const uint32_t used = ttm_producer_rings_used(&tracker->producer);

    for (uint32_t i = 0; i < used; i++)
        ttm_deferred_done(&tracker->slots[i].deferred);
    (void)munmap(tracker->slots, slots_bytes());
}

void ttm_tracker_done(struct ttm_tracker *tracker)
{
    if (tracker->slots)
        free_slots(tracker);
    ttm_producer_done(&tracker->producer);
    if (tracker->table.places)
        ttm_live_table_done(&tracker->table);
    ttm_note_table_done(&tracker->notes);
    tracker->slots = NULL;
}

static struct ttm_slot *claim(struct ttm_tracker *tracker)
{
    struct ttm_ring *ring = ttm_producer_claim(&tracker->producer, (uint32_t)syscall(SYS_gettid));

    if (!ring)
        return NULL;
    const uint32_t number = ttm_producer_number(&tracker->producer, ring);
    struct ttm_slot *slot = &tracker->slots[number];
    slot->ring = ring;
    slot->number = number;
    slot->deferred.places = &slot->deferred_places;
    if (slot->serial == 0) /* it goes on from owner to owner */
        slot->serial = (uint64_t)(number + 1) << SERIAL_BITS;
    slot->context_epoch = 0; /* what another thread was about is not this one's */
    slot->lasting_epoch = 0;
    return slot;
}

struct ttm_slot *ttm_tracker_claim(struct ttm_tracker *tracker)
{
    struct ttm_slot *slot = claim(tracker);

    if (!slot)
        ttm_tracker_refuse(tracker);
    return slot;
}

#define IS_LAID_OUT_ALIKE(field, other)                                                            \
    _Static_assert(offsetof(struct ttm_live, field) == offsetof(struct ttm_record, other) &&       \
                       sizeof(((struct ttm_live *)0)->field) ==                                    \
                           sizeof(((struct ttm_record *)0)->other),                                \
                   "a record is a copy of a life")

IS_LAID_OUT_ALIKE(birth_ns, time_ns);
IS_LAID_OUT_ALIKE(serial, serial);
IS_LAID_OUT_ALIKE(id, id);
IS_LAID_OUT_ALIKE(address, address);
IS_LAID_OUT_ALIKE(bytes, bytes);
IS_LAID_OUT_ALIKE(footprint_bytes, footprint_bytes);
IS_LAID_OUT_ALIKE(allocator, allocator);
IS_LAID_OUT_ALIKE(banks, banks);
IS_LAID_OUT_ALIKE(devices, devices);
IS_LAID_OUT_ALIKE(origin, origin);
IS_LAID_OUT_ALIKE(unused, op);
IS_LAID_OUT_ALIKE(region, region);
IS_LAID_OUT_ALIKE(kind, kind);
IS_LAID_OUT_ALIKE(flags, flags);
_Static_assert(sizeof(struct ttm_live) == sizeof(struct ttm_record),
               "a record is a copy of a life");

/*
 * The ring is full: goes on in another, or counts a loss. Where there was no other, it is looked
 * for again with every few events only, or once something has been written.
 */
static __attribute__((noinline, cold)) struct ttm_ring *go_on(struct ttm_tracker *tracker,
                                                              struct ttm_slot *slot)
{
    struct ttm_producer *producer = &tracker->producer;
    /* relaxed: only we write it. */
    const uint64_t tail = atomic_load_explicit(&slot->ring->tail, memory_order_relaxed);
    struct ttm_ring *next = NULL;

    if (slot->refused_at != tail)
        slot->refusals = 0;
    slot->refused_at = tail;
    if (slot->refusals++ % REFUSALS == 0)
        next = ttm_producer_go_on(producer, ttm_producer_ring(producer, slot->number), slot->ring);
    if (!next) {
        ttm_ring_lose(producer, slot->ring);
        return NULL;
    }
    slot->refusals = 0;
    slot->ring = next;
    return next;
}

/* A place in a ring that is being written. */
struct writing {
    struct ttm_ring *ring;
    struct ttm_record *record; /* NULL: there is none, and the loss was counted */
    uint64_t tail;
};

static inline struct writing start_record(struct ttm_tracker *tracker, struct ttm_slot *slot)
{
    struct writing writing = {.ring = slot->ring};

    writing.record = ttm_ring_next(writing.ring, &writing.tail);
    if (__builtin_expect(!writing.record, 0)) {
        writing.ring = go_on(tracker, slot);
        if (writing.ring)
            writing.record = ttm_ring_next(writing.ring, &writing.tail);
    }
    return writing;
}

static inline void finish_record(struct ttm_tracker *tracker, const struct writing *writing)
{
    ttm_ring_publish(&tracker->producer, writing->ring, writing->tail);
}

static inline __attribute__((hot)) void push(struct ttm_tracker *tracker, struct ttm_slot *slot,
                                             uint8_t op, const struct ttm_live *live)
{
    const struct writing writing = start_record(tracker, slot);

    if (!writing.record)
        return;
    memcpy(writing.record, live, sizeof(*live));
    writing.record->op = op;
    finish_record(tracker, &writing);
}

/* The server knows what has ended by its serial, so its end says no more. */
static inline __attribute__((hot)) void push_end(struct ttm_tracker *tracker, struct ttm_slot *slot,
                                                 uint8_t how, uint64_t id, uint64_t serial,
                                                 uint64_t time_ns)
{
    const struct writing writing = start_record(tracker, slot);

    if (!writing.record)
        return;
    *writing.record =
        (struct ttm_record){.time_ns = time_ns, .serial = serial, .id = id, .op = how};
    finish_record(tracker, &writing);
}

void ttm_tracker_refuse(struct ttm_tracker *tracker)
{
    /* relaxed: a number to be shown. */
    atomic_fetch_add_explicit(&tracker->producer.segment->untracked, 1, memory_order_relaxed);
}

void ttm_tracker_refuse_senseless(struct ttm_tracker *tracker)
{
    ttm_tracker_refuse(tracker);
    /* relaxed: a number to be shown. */
    atomic_fetch_add_explicit(&tracker->producer.segment->senseless, 1, memory_order_relaxed);
}

void ttm_tracker_count_unknown_free(struct ttm_tracker *tracker)
{
    struct ttm_segment *segment = tracker->producer.segment;
    /* relaxed, both: numbers to be shown. */
    const uint64_t untracked = atomic_load_explicit(&segment->untracked, memory_order_relaxed);

    /* It may be the free of what there was no room for. */
    if (untracked == atomic_load_explicit(&segment->senseless, memory_order_relaxed))
        atomic_fetch_add_explicit(&segment->unknown_frees, 1, memory_order_relaxed);
}

void ttm_tracker_count_unknown_end(struct ttm_tracker *tracker)
{
    /* relaxed: a number to be shown. */
    atomic_fetch_add_explicit(&tracker->producer.segment->unknown_ends, 1, memory_order_relaxed);
}

uint32_t ttm_tracker_origin(struct ttm_tracker *tracker, const struct ttm_origin_note *origin)
{
    uint8_t buf[TTM_ORIGIN_NOTE_SIZE];

    ttm_origin_note_encode(origin, buf);
    return ttm_tracker_note(tracker, TTM_NOTE_ORIGIN, buf, sizeof(buf));
}

/* Ends a life (of that serial, unless it is 0). Returns whether there was one. */
static __attribute__((noinline)) bool end_life(struct ttm_tracker *tracker, struct ttm_slot *slot,
                                               const struct ttm_live *live, uint8_t how)
{
    const uint64_t ended = ttm_live_table_remove(&tracker->table, &slot->cache,
                                                 ttm_live_key_of(live), live->id, live->serial);

    if (ended == 0)
        return false;
    push_end(tracker, slot, how, live->id, ended, ttm_tick_clock_ns(&tracker->clock));
    return true;
}

/* What is rare at a birth, by what the table said of it. Returns whether the life has begun. */
static __attribute__((noinline, cold)) bool is_begun(struct ttm_tracker *tracker,
                                                     struct ttm_slot *slot,
                                                     const struct ttm_live *live, int r,
                                                     uint64_t replaced)
{
    if (r < 0)
        ttm_tracker_refuse(tracker);
    else
        push_end(tracker, slot, TTM_RECORD_REPLACED, live->id, replaced, live->birth_ns);
    return r >= 0;
}

static __attribute__((noinline, cold)) void take_back(struct ttm_tracker *tracker,
                                                      struct ttm_slot *slot,
                                                      const struct ttm_live *live)
{
    (void)end_life(tracker, slot, live, TTM_RECORD_END);
}

static inline __attribute__((always_inline)) int add_to_table(struct ttm_tracker *tracker,
                                                              struct ttm_slot *slot,
                                                              const struct ttm_live *live,
                                                              const uint64_t *key,
                                                              uint64_t *ret_replaced)
{
    return key ? ttm_live_table_add_plain(&tracker->table, &slot->cache, live, *key, ret_replaced)
               : ttm_live_table_add(&tracker->table, &slot->cache, live, ret_replaced);
}

/*
 * 'live' gets its serial and time here. 'epoch' is the tracker's when the event was let in, 'key' that
 * of what has neither kind nor flags, or NULL.
 */
static inline __attribute__((always_inline)) void begin_life(struct ttm_tracker *tracker,
                                                             struct ttm_slot *slot,
                                                             struct ttm_live *live,
                                                             const uint64_t *key, uint32_t epoch)
{
    uint64_t replaced;

    live->serial = ++slot->serial;
    live->birth_ns = ttm_tick_clock_ns(&tracker->clock);
    const int r = add_to_table(tracker, slot, live, key, &replaced);
    if (__builtin_expect(r != 0, 0) && !is_begun(tracker, slot, live, r, replaced))
        return;
    push(tracker, slot, TTM_RECORD_BIRTH, live);
    /* acquire: pairs with the release of the switch, after which the table was forgotten. */
    if (__builtin_expect(atomic_load_explicit(&tracker->epoch, memory_order_acquire) != epoch, 0))
        take_back(tracker, slot, live);
}

static void report_birth(struct ttm_tracker *tracker, struct ttm_slot *slot,
                         const struct ttm_happening *report)
{
    struct ttm_live live = report->live;

    begin_life(tracker, slot, &live, NULL, report->epoch);
}

static void report_end(struct ttm_tracker *tracker, struct ttm_slot *slot,
                       const struct ttm_live *key, uint8_t how)
{
    if (!end_life(tracker, slot, key, how))
        ttm_tracker_count_unknown_end(tracker);
}

/* The parts of a program are numbered from 0 on, without gaps. */
static void report_program_free(struct ttm_tracker *tracker, struct ttm_slot *slot,
                                const struct ttm_live *program)
{
    struct ttm_live part = *program;

    part.flags = TTM_LIVE_PROGRAM;
    for (part.allocator = 0; end_life(tracker, slot, &part, TTM_RECORD_END); part.allocator++)
        ;
}

/* Whether a life stands on that device. */
static bool is_on_device(const struct ttm_tracker *tracker, const struct ttm_live *live,
                         uint32_t device)
{
    uint32_t length;

    if (live->devices < TTM_NOTE_FIRST)
        return live->devices == device;
    const uint16_t *ids =
        ttm_producer_read_note(&tracker->producer, live->devices, TTM_NOTE_DEVICES, &length);
    for (uint32_t i = 0; ids && i < length / sizeof(ids[0]); i++) {
        if (ids[i] == device)
            return true;
    }
    return false;
}

/* Closing is rare, so it walks all that is live. What another thread adds meanwhile may stay. */
static void report_close(struct ttm_tracker *tracker, struct ttm_slot *slot,
                         const struct ttm_happening *report)
{
    struct ttm_live_walk walk = {0};
    struct ttm_live live;

    while (ttm_live_table_next(&tracker->table, &walk, &live)) {
        const bool has_ended =
            report->op == TTM_HAPPENING_DEVICE_CLOSE
                ? is_on_device(tracker, &live, report->live.devices)
                : live.allocator == report->live.allocator && (live.flags & TTM_LIVE_PROGRAM) == 0;
        if (has_ended)
            (void)end_life(tracker, slot, &live, TTM_RECORD_CLOSED);
    }
}

static void report_name(struct ttm_tracker *tracker, struct ttm_slot *slot,
                        const struct ttm_happening *report)
{
    struct ttm_origin_note origin = {0};
    struct ttm_live live;
    uint32_t length;

    if (ttm_live_table_get(&tracker->table, &report->live, &live) < 0)
        return;
    const void *note =
        ttm_producer_read_note(&tracker->producer, live.origin, TTM_NOTE_ORIGIN, &length);
    if (note)
        (void)ttm_origin_note_decode(note, length, &origin);
    if (report->name != 0)
        origin.name = report->name;
    if (report->context != 0)
        origin.context = report->context;
    live.origin = ttm_tracker_origin(tracker, &origin);
    if (live.origin == 0 || ttm_live_table_set_origin(&tracker->table, &live, live.origin) < 0)
        return;
    live.birth_ns = ttm_tick_clock_ns(&tracker->clock); /* of the record: when it was named */
    push(tracker, slot, TTM_RECORD_NAMED, &live);
}

static void report_record(struct ttm_tracker *tracker, struct ttm_slot *slot,
                          const struct ttm_record *given)
{
    const struct writing writing = start_record(tracker, slot);

    if (!writing.record)
        return;
    *writing.record = *given;
    writing.record->time_ns = ttm_tick_clock_ns(&tracker->clock);
    finish_record(tracker, &writing);
}

static void report_one(struct ttm_tracker *tracker, struct ttm_slot *slot,
                       const struct ttm_happening *report)
{
    switch (report->op) {
    case TTM_HAPPENING_BIRTH:
        report_birth(tracker, slot, report);
        break;
    case TTM_HAPPENING_END:
        report_end(tracker, slot, &report->live, TTM_RECORD_END);
        break;
    case TTM_HAPPENING_CLOSE:
        report_end(tracker, slot, &report->live, TTM_RECORD_CLOSED);
        break;
    case TTM_HAPPENING_PROGRAM_FREE:
        report_program_free(tracker, slot, &report->live);
        break;
    case TTM_HAPPENING_NAME:
        report_name(tracker, slot, report);
        break;
    case TTM_HAPPENING_DEVICE_CLOSE:
    case TTM_HAPPENING_ALLOCATOR_CLOSE:
        report_close(tracker, slot, report);
        break;
    case TTM_HAPPENING_RECORD:
        report_record(tracker, slot, &report->record);
        break;
    }
}

bool ttm_tracker_forget(struct ttm_tracker *tracker)
{
    struct ttm_live_cache cache = {0};
    struct ttm_live_walk walk = {0};
    struct ttm_live live;
    bool was_any = false;

    while (ttm_live_table_next(&tracker->table, &walk, &live)) {
        (void)ttm_live_table_remove(&tracker->table, &cache, ttm_live_key_of(&live), live.id,
                                    live.serial);
        was_any = true;
    }
    ttm_live_table_flush(&tracker->table, &cache);
    return was_any;
}

bool ttm_tracker_has_own(const struct ttm_tracker *tracker)
{
    const uint32_t used = ttm_producer_rings_used(&tracker->producer);

    for (uint32_t i = 0; i < used; i++) {
        /* relaxed: whoever allocates at this very moment may be missed. */
        if (atomic_load_explicit(&tracker->slots[i].has_own, memory_order_relaxed))
            return true;
    }
    return false;
}

static void defer(struct ttm_tracker *tracker, struct ttm_slot *slot,
                  const struct ttm_happening *report)
{
    if (!ttm_deferred_add(&slot->deferred, report))
        ttm_tracker_refuse(tracker);
}

static bool has_deferred(const struct ttm_slot *slot)
{
    return atomic_load_explicit(&slot->deferred.count, memory_order_relaxed) > 0; /* one thread */
}

/* Sees to what handlers have left, in their order; more may come meanwhile. */
static void report_deferred(struct ttm_tracker *tracker, struct ttm_slot *slot)
{
    const struct ttm_happening *next;
    uint32_t at = 0;

    if (!has_deferred(slot))
        return;
    while ((next = ttm_deferred_next(&slot->deferred, &at)) != NULL) {
        const struct ttm_happening deferred = *next;
        report_one(tracker, slot, &deferred);
    }
}

static bool is_busy(const struct ttm_slot *slot)
{
    return atomic_load_explicit(&slot->is_busy, memory_order_relaxed); /* of this thread */
}

static void set_busy(struct ttm_slot *slot, bool is_busy)
{
    atomic_signal_fence(memory_order_seq_cst);
    /* release: pairs with the acquire in ttm_tracker_settle(); the event is in the ring. */
    atomic_store_explicit(&slot->is_busy, is_busy, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst);
}

/* A handler that came just before we were idle was deferred; any later one found us so. */
static __attribute__((noinline, cold)) void report_rest(struct ttm_tracker *tracker,
                                                        struct ttm_slot *slot)
{
    while (has_deferred(slot)) {
        set_busy(slot, true);
        report_deferred(tracker, slot);
        set_busy(slot, false);
    }
}

/*
 * A signal handler reports while its own thread is in here. It does so as another thread would, in
 * a slot of its own: what it has allocated others may free as soon as it has said so. But what has
 * the id that the thread is busy with waits until that is done, or an end would find what was born
 * after it; so does what comes then, as it may belong to it.
 */
static void report_within(struct ttm_tracker *tracker, struct ttm_slot *slot,
                          const struct ttm_happening *report)
{
    struct ttm_slot *other = NULL;

    if (!has_deferred(slot) && report->live.id != slot->busy_id)
        other = claim(tracker);
    if (!other) {
        defer(tracker, slot, report);
        return;
    }
    set_busy(other, true);
    report_one(tracker, other, report);
    set_busy(other, false);
    ttm_tracker_release(tracker, other);
}

void ttm_tracker_report(struct ttm_tracker *tracker, struct ttm_slot *slot,
                        const struct ttm_happening *report)
{
    if (is_busy(slot)) {
        report_within(tracker, slot, report);
        return;
    }
    report_rest(tracker, slot); /* we may be a handler between the last two lines below */
    slot->busy_id = report->live.id;
    set_busy(slot, true);
    report_one(tracker, slot, report);
    set_busy(slot, false);
    report_rest(tracker, slot);
}

/* Whether this thread is not in here already, and no handler has left anything. */
static bool is_idle(const struct ttm_slot *slot)
{
    return __builtin_expect(!is_busy(slot) && !has_deferred(slot), 1);
}

static __attribute__((noinline, cold)) void report_slowly(struct ttm_tracker *tracker,
                                                          struct ttm_slot *slot,
                                                          enum ttm_happening_op op,
                                                          const struct ttm_live *live,
                                                          uint32_t epoch)
{
    const struct ttm_happening report = {.op = op, .epoch = epoch, .live = *live};

    ttm_tracker_report(tracker, slot, &report);
}

static inline __attribute__((always_inline)) void begin(struct ttm_tracker *tracker,
                                                        struct ttm_slot *slot,
                                                        struct ttm_live *live, const uint64_t *key,
                                                        uint32_t epoch)
{
    if (!is_idle(slot)) {
        report_slowly(tracker, slot, TTM_HAPPENING_BIRTH, live, epoch);
        return;
    }
    slot->busy_id = live->id;
    set_busy(slot, true);
    begin_life(tracker, slot, live, key, epoch);
    set_busy(slot, false);
    if (__builtin_expect(has_deferred(slot), 0))
        report_rest(tracker, slot);
}

__attribute__((hot)) void ttm_tracker_begin(struct ttm_tracker *tracker, struct ttm_slot *slot,
                                            struct ttm_live *live, uint32_t epoch)
{
    begin(tracker, slot, live, NULL, epoch);
}

__attribute__((hot)) void ttm_tracker_begin_plain(struct ttm_tracker *tracker,
                                                  struct ttm_slot *slot, struct ttm_live *live,
                                                  uint64_t key, uint32_t epoch)
{
    begin(tracker, slot, live, &key, epoch);
}

static __attribute__((noinline, cold)) void report_end_slowly(struct ttm_tracker *tracker,
                                                              struct ttm_slot *slot,
                                                              uint16_t allocator, uint8_t region,
                                                              uint64_t id, uint32_t epoch)
{
    const struct ttm_live key = {.id = id, .allocator = allocator, .region = region};

    report_slowly(tracker, slot, TTM_HAPPENING_END, &key, epoch);
}

static inline __attribute__((always_inline)) bool end(struct ttm_tracker *tracker,
                                                      struct ttm_slot *slot, uint16_t allocator,
                                                      uint8_t region, uint64_t id, uint32_t epoch,
                                                      bool is_plain)
{
    struct ttm_live_table *table = &tracker->table;
    const uint64_t key = ttm_live_key(allocator, region, 0);

    if (!is_idle(slot)) {
        report_end_slowly(tracker, slot, allocator, region, id, epoch);
        return true;
    }
    slot->busy_id = id;
    set_busy(slot, true);
    const uint64_t ended = is_plain ? ttm_live_table_remove_plain(table, &slot->cache, key, id)
                                    : ttm_live_table_remove(table, &slot->cache, key, id, 0);
    if (__builtin_expect(ended != 0, 1))
        push_end(tracker, slot, TTM_RECORD_END, id, ended, ttm_tick_clock_ns(&tracker->clock));
    else
        ttm_tracker_count_unknown_end(tracker);
    set_busy(slot, false);
    if (__builtin_expect(has_deferred(slot), 0))
        report_rest(tracker, slot);
    return ended != 0;
}

__attribute__((hot)) bool ttm_tracker_end(struct ttm_tracker *tracker, struct ttm_slot *slot,
                                          uint16_t allocator, uint8_t region, uint64_t id,
                                          uint32_t epoch)
{
    return end(tracker, slot, allocator, region, id, epoch, false);
}

__attribute__((hot)) void ttm_tracker_end_plain(struct ttm_tracker *tracker, struct ttm_slot *slot,
                                                uint16_t allocator, uint8_t region, uint64_t id,
                                                uint32_t epoch)
{
    (void)end(tracker, slot, allocator, region, id, epoch, true);
}

void ttm_tracker_look_after(struct ttm_tracker *tracker, struct ttm_slot *slot)
{
    struct ttm_producer *producer = &tracker->producer;
    /* relaxed, both: as in ttm_ring_publish(); only we write the tail. */
    const uint64_t tail = atomic_load_explicit(&slot->ring->tail, memory_order_relaxed);

    ttm_ring_call_reader(
        producer, slot->ring, tail,
        atomic_load_explicit(&producer->segment->reader_sleep, memory_order_relaxed));
    report_rest(tracker, slot);
}

void ttm_tracker_take_back(struct ttm_tracker *tracker, struct ttm_slot *slot, uint64_t key,
                           uint64_t id, uint64_t serial)
{
    const struct ttm_live live = {
        .id = id,
        .serial = serial,
        .allocator = (uint16_t)(key >> 40),
        .region = (uint8_t)(key >> 56 & TTM_LIVE_REGION_MAX),
    };

    set_busy(slot, true);
    take_back(tracker, slot, &live);
    set_busy(slot, false);
    report_rest(tracker, slot);
}

bool ttm_tracker_settle(struct ttm_tracker *tracker)
{
    const struct timespec pause = {.tv_nsec = SETTLE_PAUSE_NS};
    /* Whoever the walk has met took its ring before it wrote to the table, so it is among these. */
    const uint32_t used = ttm_producer_rings_used(&tracker->producer);
    uint32_t looks = 0;

    for (uint32_t i = 0; i < used; i++) {
        /* acquire: pairs with the release in set_busy(). */
        while (atomic_load_explicit(&tracker->slots[i].is_busy, memory_order_acquire)) {
            if (++looks == SETTLE_LOOKS)
                return false;
            if (looks % SETTLE_AT_ONCE == 0)
                (void)nanosleep(&pause, NULL);
        }
    }
    return true;
}

void ttm_tracker_release(struct ttm_tracker *tracker, struct ttm_slot *slot)
{
    /* The table may know of an event that the ring does not. */
    if (is_busy(slot))
        ttm_ring_lose(&tracker->producer, slot->ring);
    report_deferred(tracker, slot);
    set_busy(slot, false);
    ttm_live_table_flush(&tracker->table, &slot->cache);
    struct ttm_ring *own = ttm_producer_ring(&tracker->producer, slot->number);
    if (slot->ring != own)
        ttm_producer_release(&tracker->producer, slot->ring);
    ttm_producer_release(&tracker->producer, own);
}
