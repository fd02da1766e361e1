/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of ttmem.h that tell of something. Each looks whether tracking is
 * on, checks what it was given, and hands a report to the tracker.
 */
#include <ttmem/ttmem.h>

#include <stdlib.h>
#include <string.h>

#include "client/lane.h"
#include "client/switch.h"
#include "wire/keepers.h"
#include "wire/note.h"
#include "wire/region.h"

_Static_assert(TTM_REGION_COUNT - 1 <= TTM_LIVE_REGION_MAX, "fits a place of the table");
_Static_assert(TTM_KERNEL_KIND_COUNT - 1 <= TTM_LIVE_KIND_MAX, "fits a place of the table");
_Static_assert(TTM_NOTE_FIRST + TTM_NOTES_BYTES / 8 <= TTM_LIVE_NOTE_MAX, "fits a place too");
_Static_assert((int)TTMEM_REGIONS == (int)TTM_REGION_COUNT, "the same regions");
_Static_assert(TTM_RECORD_PROGRAM == TTM_LIVE_PROGRAM, "the same flag");
_Static_assert((int)TTMEM_ALIAS == (int)TTM_RECORD_ALIAS, "the same flag");

#define TEXT_MAX 255

/* What the hook calls where its lane does not do: as few lines of code as it can be. */
#define HOT __attribute__((hot, flatten, aligned(64)))

/* ---- notes ---- */

/* Of a text that is cut to so many bytes, and not within a character. NULL is as "". */
static size_t length_of(const char *text, size_t max)
{
    size_t length = text ? strnlen(text, max + 1) : 0;

    if (length <= max)
        return length;
    do
        length--;
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80);
    return length;
}

static uint32_t note_text(const char *text)
{
    return ttm_tracker_note(&ttm_own_tracker, TTM_NOTE_STRING, text ? text : "",
                            (uint32_t)length_of(text, TEXT_MAX));
}

/* Ascending and each once, so that a set has one note however it is told. */
static uint32_t sort_devices(uint16_t *ids, uint32_t count)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < count; i++) {
        const uint16_t id = ids[i];
        uint32_t at = kept;
        while (at > 0 && ids[at - 1] > id)
            at--;
        if (at > 0 && ids[at - 1] == id)
            continue;
        memmove(&ids[at + 1], &ids[at], (kept - at) * sizeof(ids[0]));
        ids[at] = id;
        kept++;
    }
    return kept;
}

uint32_t ttmem_devices(const uint16_t *ids, uint32_t count)
{
    uint16_t sorted[TTM_DEVICE_COUNT + 1];

    if (!ttm_switch_is_on() || !ids || count == 0 || count > TTM_DEVICE_COUNT)
        return 0;
    memcpy(sorted, ids, count * sizeof(ids[0]));
    count = sort_devices(sorted, count);
    if (sorted[count - 1] >= TTM_DEVICE_COUNT)
        return 0;
    if (count == 1)
        return sorted[0];
    return ttm_tracker_note(&ttm_own_tracker, TTM_NOTE_DEVICES, sorted,
                            count * (uint32_t)sizeof(sorted[0]));
}

uint32_t ttmem_cores(const struct ttmem_core_range *ranges, uint32_t count)
{
    uint8_t buf[TTM_CORE_RANGES_MAX * TTM_CORE_RANGE_SIZE];

    if (!ttm_switch_is_on() || !ranges || count == 0 || count > TTM_CORE_RANGES_MAX)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct ttm_core_range range = {ranges[i].start_x, ranges[i].start_y, ranges[i].end_x,
                                             ranges[i].end_y};
        ttm_cores_note_encode(&range, 1, buf + (size_t)TTM_CORE_RANGE_SIZE * i);
    }
    return ttm_tracker_note(&ttm_own_tracker, TTM_NOTE_CORES, buf, TTM_CORE_RANGE_SIZE * count);
}

uint32_t ttmem_guest_note(uint32_t kind, const void *bytes, uint32_t length)
{
    return ttm_switch_is_on() ? ttm_tracker_note(&ttm_own_tracker, kind, bytes, length) : 0;
}

void ttmem_guest_say(const char *runtime, const char *trouble)
{
    if (!ttm_switch_is_on())
        return;
    struct ttm_segment *segment = ttm_own_tracker.producer.segment;
    /* release: the note is whole before its number is there. */
    atomic_store_explicit(&segment->runtime_note, runtime[0] ? note_text(runtime) : 0,
                          memory_order_release);
    atomic_store_explicit(&segment->trouble_note,
                          trouble[0] ? note_text(trouble) : ttm_switch_trouble(),
                          memory_order_release);
}

void ttmem_guest_say_opening(const char *outcome)
{
    if (!ttm_switch_is_on())
        return;
    /* release: the note is whole before its number is there. */
    atomic_store_explicit(&ttm_own_tracker.producer.segment->opening_note,
                          outcome[0] ? note_text(outcome) : 0, memory_order_release);
}

/* ---- contexts ---- */

/* Those of an earlier spell of tracking have gone. */
static void forget_old_contexts(struct ttm_slot *slot, uint32_t epoch)
{
    if (slot->context_epoch == epoch)
        return;
    slot->context_epoch = epoch;
    slot->context_depth = 0;
    slot->context = 0;
    slot->context_origin = 0;
}

static struct ttm_slot *contexts_of_thread(uint32_t epoch)
{
    struct ttm_slot *slot = ttm_switch_slot();

    if (slot)
        forget_old_contexts(slot, epoch);
    return slot;
}

static uint32_t innermost(const struct ttm_slot *slot)
{
    const uint32_t depth =
        slot->context_depth < TTM_CONTEXTS_MAX ? slot->context_depth : TTM_CONTEXTS_MAX;

    return depth > 0 ? slot->contexts[depth - 1] : 0;
}

static void set_context(struct ttm_slot *slot)
{
    const struct ttm_origin_note origin = {.context = innermost(slot)};

    slot->context = origin.context;
    slot->context_origin = origin.context != 0 ? ttm_tracker_origin(&ttm_own_tracker, &origin) : 0;
}

/* "outer/inner", or 'name' alone. */
static uint32_t note_path(uint32_t outer, const char *name)
{
    char path[TEXT_MAX + 1];
    uint32_t length = 0;
    const void *text =
        ttm_producer_read_note(&ttm_own_tracker.producer, outer, TTM_NOTE_STRING, &length);

    if (!text || length > TEXT_MAX - 1)
        return note_text(name);
    memcpy(path, text, length);
    path[length++] = '/';
    const size_t n = length_of(name, TEXT_MAX - length);
    if (n > 0)
        memcpy(path + length, name, n);
    path[length + n] = '\0';
    return note_text(path);
}

void ttmem_context_push(const char *name)
{
    const uint32_t epoch = ttm_switch_epoch();
    struct ttm_slot *slot = epoch != 0 ? contexts_of_thread(epoch) : NULL;

    if (!slot || slot->context_depth == UINT32_MAX)
        return;
    if (slot->context_depth < TTM_CONTEXTS_MAX)
        slot->contexts[slot->context_depth] = note_path(innermost(slot), name);
    slot->context_depth++;
    set_context(slot);
}

void ttmem_context_pop(void)
{
    const uint32_t epoch = ttm_switch_epoch();
    struct ttm_slot *slot = epoch != 0 ? contexts_of_thread(epoch) : NULL;

    if (!slot || slot->context_depth == 0)
        return;
    slot->context_depth--;
    set_context(slot);
}

void ttmem_context_set(const char *path)
{
    const uint32_t epoch = ttm_switch_epoch();
    struct ttm_slot *slot = epoch != 0 ? contexts_of_thread(epoch) : NULL;

    if (!slot)
        return;
    slot->context_depth = 0;
    if (path && *path)
        slot->contexts[slot->context_depth++] = note_text(path);
    set_context(slot);
}

uint32_t ttmem_guest_origin_note(const struct ttmem_guest_origin *from, uint32_t context)
{
    const struct ttm_origin_note origin = {
        .context = context,
        .thread = from->thread,
        .operation = from->operation,
        .python = from->python,
        .native = from->native,
    };

    return ttm_switch_epoch() == 0 ? 0 : ttm_tracker_origin(&ttm_own_tracker, &origin);
}

static uint32_t ask_origin(struct ttm_slot *slot, const struct ttmem_guest *guest, uint32_t context,
                           uint32_t epoch)
{
    const uint32_t note = guest->origin(context);

    if (__builtin_expect(note == 0, 0))
        return context != 0 ? slot->context_origin : 0;
    if (__builtin_expect(guest->is_lasting, 0)) {
        slot->lasting_epoch = 0; /* a signal handler of this thread may come in between */
        atomic_signal_fence(memory_order_seq_cst);
        slot->lasting_context = context;
        slot->lasting_origin = note;
        atomic_signal_fence(memory_order_seq_cst);
        slot->lasting_epoch = epoch;
    }
    return note;
}

static __attribute__((noinline, hot)) uint32_t find_origin(struct ttm_slot *slot, uint32_t epoch)
{
    const struct ttmem_guest *guest = ttm_own_guest;

    if (__builtin_expect(slot->context != 0, 0)) /* else there is nothing to forget */
        forget_old_contexts(slot, epoch);
    if (__builtin_expect(!guest, 0) || __builtin_expect(!guest->origin, 0))
        return slot->context != 0 ? slot->context_origin : 0;
    return ask_origin(slot, guest, slot->context, epoch);
}

static inline uint32_t origin_of_event(struct ttm_slot *slot, uint32_t epoch)
{
    /* Only with a guest. A context of an earlier epoch is none of this one's. */
    if (__builtin_expect(slot->lasting_epoch == epoch && slot->lasting_context == slot->context, 1))
        return slot->lasting_origin;
    return find_origin(slot, epoch);
}

/* ---- allocations ---- */

static bool is_sound(const struct ttmem_allocation *a)
{
    return a->address <= TTM_LIVE_NUMBER_MAX && a->bytes <= TTM_LIVE_NUMBER_MAX &&
           a->footprint_bytes <= TTM_LIVE_NUMBER_MAX && a->bytes != 0 &&
           a->region < TTM_REGION_COUNT && a->kind < ttm_region_kinds(a->region) &&
           a->devices <= TTM_LIVE_NOTE_MAX && a->cores <= TTM_LIVE_NOTE_MAX &&
           (a->program == 0 || a->id <= UINT16_MAX);
}

/*
 * Apart, so that a call while tracking is off has no frame to set up; so is end_tracked(). All that
 * is not rare is a part of it: a call of a function that the caches have forgotten costs more than
 * what most of them do.
 */
static __attribute__((noinline, hot, flatten)) void begin_tracked(const struct ttmem_allocation *a,
                                                                  uint32_t epoch)
{
    struct ttm_slot *slot = ttm_switch_slot();

    if (!slot)
        return;
    if (!a || !is_sound(a)) {
        ttm_tracker_refuse_senseless(&ttm_own_tracker);
        return;
    }
    if ((a->flags & TTMEM_GUEST_ALLOCATION) == 0)
        /* relaxed: see ttm_tracker_has_own(). */
        atomic_store_explicit(&slot->has_own, true, memory_order_relaxed);
    struct ttm_live live = {
        .id = a->id,
        .address = a->address,
        .bytes = a->bytes,
        .footprint_bytes = a->footprint_bytes ? a->footprint_bytes : a->bytes,
        .devices = a->devices,
        .origin = origin_of_event(slot, epoch),
        .allocator = a->allocator,
        .banks = (uint16_t)(a->banks <= TTM_LIVE_BANKS_MAX ? a->banks : 0),
        .region = a->region,
        .kind = a->kind,
        .flags = (uint8_t)(a->flags & TTM_RECORD_ALIAS),
    };
    if (a->program != 0) {
        live.id = a->program;
        live.allocator = (uint16_t)a->id;
        live.flags |= TTM_RECORD_PROGRAM;
    }
    if (a->cores != 0 && a->region == TTM_REGION_CB) {
        live.bytes = a->cores;
        live.flags |= TTM_RECORD_CORES;
    }
    ttm_tracker_begin(&ttm_own_tracker, slot, &live, epoch);
}

__attribute__((hot)) void ttmem_alloc(const struct ttmem_allocation *a)
{
    const uint32_t epoch = ttm_switch_epoch();

    if (__builtin_expect(epoch != 0, 1))
        begin_tracked(a, epoch);
    else
        ttm_switch_miss();
}

/* The guest has none for this thread, or one of a parent. */
static __attribute__((noinline, cold)) struct ttm_slot *find_guest_slot(void)
{
    struct ttm_slot *slot = ttm_switch_slot();

    ttm_own_guest->on_slot(slot);
    return slot;
}

/* Whether the guest's slot can be used, or another in its place. */
static inline bool is_slot(struct ttm_slot **slot)
{
    if (__builtin_expect(!*slot || !(*slot)->ring, 0))
        *slot = find_guest_slot();
    return __builtin_expect(*slot != NULL, 1);
}

/* The long way of what the hook tells; the short one is lane.h. Both in one page. */
__attribute__((hot, flatten, aligned(4096))) void ttmem_guest_born(struct ttm_slot *slot,
                                                                   struct ttm_live *live,
                                                                   uint64_t key)
{
    const uint32_t epoch = ttm_switch_epoch();

    if (__builtin_expect(epoch == 0, 0) || !is_slot(&slot))
        return;
    /* The largest number has all bits that one may have. */
    if (__builtin_expect(
            (live->address | live->bytes | live->footprint_bytes) > TTM_LIVE_NUMBER_MAX, 0)) {
        ttm_tracker_refuse_senseless(&ttm_own_tracker);
        return;
    }
    live->origin = origin_of_event(slot, epoch);
    ttm_tracker_begin_plain(&ttm_own_tracker, slot, live, key, epoch);
}

struct ttm_tracker *ttmem_guest_tracker(uint64_t layout)
{
    return layout == ttm_lane_layout() ? &ttm_own_tracker : NULL;
}

__attribute__((cold)) void ttmem_guest_look_after(struct ttm_slot *slot)
{
    ttm_tracker_look_after(&ttm_own_tracker, slot);
}

__attribute__((cold)) void ttmem_guest_take_back(struct ttm_slot *slot, uint64_t key, uint64_t id,
                                                 uint64_t serial)
{
    ttm_tracker_take_back(&ttm_own_tracker, slot, key, id, serial);
}

/* What has no more to it than a key. */
static void report(enum ttm_happening_op op, const struct ttm_live *live)
{
    const uint32_t epoch = ttm_switch_epoch();

    if (__builtin_expect(epoch == 0, 0))
        return;
    struct ttm_slot *slot = ttm_switch_slot();
    if (!slot)
        return;
    const struct ttm_happening event = {.op = op, .epoch = epoch, .live = *live};
    ttm_tracker_report(&ttm_own_tracker, slot, &event);
}

/* A device or an allocator was closed: what it had may be freed later, and has ended. */
static _Atomic bool has_closed;

/* A mistake only where all that it can free was told of, and not forgotten at this moment. */
static __attribute__((noinline, cold)) void miss_free(uint32_t epoch)
{
    /* relaxed: a number to be shown. */
    if (atomic_load_explicit(&has_closed, memory_order_relaxed))
        return;
    /* acquire: pairs with the release of the switch, after which the table was forgotten. */
    if (atomic_load_explicit(&ttm_own_tracker.epoch, memory_order_acquire) == epoch &&
        ttm_switch_knows_all())
        ttm_tracker_count_unknown_free(&ttm_own_tracker);
}

static __attribute__((noinline, hot, flatten)) void end_tracked(uint16_t allocator, uint8_t region,
                                                                uint64_t id, uint32_t epoch)
{
    struct ttm_slot *slot = ttm_switch_slot();

    if (!slot)
        return;
    if (region >= TTM_REGION_COUNT) {
        ttm_tracker_count_unknown_end(&ttm_own_tracker);
        miss_free(epoch);
        return;
    }
    if (__builtin_expect(!ttm_tracker_end(&ttm_own_tracker, slot, allocator, region, id, epoch), 0))
        miss_free(epoch);
}

__attribute__((hot)) void ttmem_free(uint16_t allocator, uint8_t region, uint64_t id)
{
    const uint32_t epoch = ttm_switch_epoch();

    if (__builtin_expect(epoch != 0, 1))
        end_tracked(allocator, region, id, epoch);
}

HOT void ttmem_guest_ended(struct ttm_slot *slot, uint16_t allocator, uint8_t region, uint64_t id)
{
    const uint32_t epoch = ttm_switch_epoch();

    if (__builtin_expect(epoch != 0, 1) && is_slot(&slot))
        ttm_tracker_end_plain(&ttm_own_tracker, slot, allocator, region, id, epoch);
}

static bool has_python_stack(uint32_t number)
{
    struct ttm_origin_note origin;
    uint32_t length;
    const void *note =
        ttm_producer_read_note(&ttm_own_tracker.producer, number, TTM_NOTE_ORIGIN, &length);

    return note && ttm_origin_note_decode(note, length, &origin) == 0 && origin.python != 0;
}

int ttmem_guest_next_live(struct ttm_live_walk *walk, struct ttmem_guest_live *ret)
{
    struct ttm_live live;

    if (!ttm_switch_is_on())
        return 0;
    while (ttm_live_table_next(&ttm_own_tracker.table, walk, &live)) {
        if ((live.flags & TTM_LIVE_PROGRAM) != 0 || !has_python_stack(live.origin))
            continue;
        *ret = (struct ttmem_guest_live){
            .id = live.id,
            .address = live.address,
            .birth_ns = live.birth_ns,
            .footprint_bytes = live.footprint_bytes,
            .origin = live.origin,
            .region = live.region,
        };
        return 1;
    }
    return 0;
}

void ttmem_guest_close(uint16_t allocator, uint8_t region, uint64_t id)
{
    const struct ttm_live live = {.id = id, .allocator = allocator, .region = region};

    if (region < TTM_REGION_COUNT)
        report(TTM_HAPPENING_CLOSE, &live);
}

void ttmem_allocator_close(uint16_t allocator)
{
    const struct ttm_live live = {.allocator = allocator};

    atomic_store_explicit(&has_closed, true, memory_order_relaxed); /* see miss_free() */
    report(TTM_HAPPENING_ALLOCATOR_CLOSE, &live);
}

void ttmem_name(uint16_t allocator, uint8_t region, uint64_t id, const char *name,
                const char *context)
{
    const uint32_t epoch = ttm_switch_epoch();

    if (epoch == 0 || region >= TTM_REGION_COUNT)
        return;
    struct ttm_slot *slot = ttm_switch_slot();
    if (!slot)
        return;
    const struct ttm_happening event = {
        .op = TTM_HAPPENING_NAME,
        .epoch = epoch,
        .live = {.id = id, .allocator = allocator, .region = region},
        .name = name ? note_text(name) : 0,
        .context = context ? note_text(context) : 0,
    };
    ttm_tracker_report(&ttm_own_tracker, slot, &event);
}

static bool is_on_device(const struct ttm_live *live, uint16_t device)
{
    uint32_t length;

    if (live->devices < TTM_NOTE_FIRST)
        return live->devices == device;
    const uint16_t *ids =
        ttm_producer_read_note(&ttm_own_tracker.producer, live->devices, TTM_NOTE_DEVICES, &length);
    for (uint32_t i = 0; ids && i < length / sizeof(ids[0]); i++) {
        if (ids[i] == device)
            return true;
    }
    return false;
}

/* Of the life that was named last. relaxed: a guess, and any will do. */
static _Atomic uint16_t named_allocator;

static bool is_named_last(const struct ttm_live *wanted, struct ttm_live *ret)
{
    struct ttm_live key = *wanted;

    key.allocator = atomic_load_explicit(&named_allocator, memory_order_relaxed);
    return ttm_live_table_get(&ttm_own_tracker.table, &key, ret) == 0 &&
           ret->address == wanted->address;
}

static bool found(struct ttm_live *ret, const struct ttm_live *live)
{
    ret->id = live->id;
    ret->region = live->region;
    ret->allocator = live->allocator;
    atomic_store_explicit(&named_allocator, live->allocator, memory_order_relaxed);
    return true;
}

/* 'ret' has region, address and id; its allocator is found. */
static bool find_at(uint16_t device, struct ttm_live *ret)
{
    struct ttm_live_walk walk = {0};
    struct ttm_live live, best = {0};
    uint64_t newest_ns = 0;

    if (is_named_last(ret, &live) && is_on_device(&live, device))
        return found(ret, &live);
    while (ttm_live_table_next(&ttm_own_tracker.table, &walk, &live)) {
        if (live.region != ret->region || live.address != ret->address ||
            (live.flags & TTM_LIVE_PROGRAM) != 0 || !is_on_device(&live, device))
            continue;
        if (newest_ns != 0 && live.id != ret->id && live.birth_ns < newest_ns)
            continue;
        newest_ns = live.id == ret->id ? UINT64_MAX : live.birth_ns;
        best = live;
    }
    return newest_ns != 0 && found(ret, &best);
}

/* 'ret' has address and id; its allocator and region are found. */
static bool find_unique(struct ttm_live *ret)
{
    struct ttm_live_walk walk = {0};
    struct ttm_live live;

    for (ret->region = 0; ret->region < TTM_REGION_CB; ret->region++) {
        if (is_named_last(ret, &live))
            return found(ret, &live);
    }
    while (ttm_live_table_next(&ttm_own_tracker.table, &walk, &live)) {
        if (live.id == ret->id && live.address == ret->address &&
            (live.flags & TTM_LIVE_PROGRAM) == 0)
            return found(ret, &live);
    }
    return false;
}

int ttmem_name_unique(uint64_t id, uint64_t address, const char *name, const char *context)
{
    struct ttm_live live = {.id = id, .address = address};

    if (!ttm_switch_is_on() || !find_unique(&live))
        return 0;
    ttmem_name(live.allocator, live.region, live.id, name, context);
    return 1;
}

int ttmem_name_at(uint16_t device, uint8_t region, uint64_t address, uint64_t id, const char *name,
                  const char *context)
{
    struct ttm_live live = {.id = id, .address = address, .region = region};

    if (!ttm_switch_is_on() || region >= TTM_REGION_COUNT || !find_at(device, &live))
        return 0;
    ttmem_name(live.allocator, region, live.id, name, context);
    return 1;
}

/* ---- programs ---- */

void ttmem_program_free(uint64_t program, uint8_t region)
{
    const struct ttm_live live = {.id = program, .region = region};

    if (region < TTM_REGION_COUNT)
        report(TTM_HAPPENING_PROGRAM_FREE, &live);
}

void ttmem_program_end(uint64_t program)
{
    ttmem_program_free(program, TTM_REGION_CB);
    ttmem_program_free(program, TTM_REGION_KERNEL);
}

/* The ids of a set of devices, NULL when there is no such set. */
static const uint16_t *ids_of(uint32_t devices, uint32_t *ret_count)
{
    uint32_t length = 0;
    const uint16_t *ids =
        ttm_producer_read_note(&ttm_own_tracker.producer, devices, TTM_NOTE_DEVICES, &length);

    *ret_count = length / sizeof(ids[0]);
    return ids;
}

struct ttm_device_span ttmem_guest_span(uint32_t devices)
{
    const struct ttm_device_span none = {0};
    uint32_t count;

    if (devices < TTM_SEGMENT_DEVICES)
        return (struct ttm_device_span){.first = devices, .count = 1};
    const uint16_t *ids = ttm_switch_epoch() != 0 ? ids_of(devices, &count) : NULL;
    if (!ids || count == 0 || ids[count - 1] >= TTM_SEGMENT_DEVICES)
        return none;
    /* They are in order, and each is there once. */
    if ((uint32_t)(ids[count - 1] - ids[0]) != count - 1)
        return none;
    return (struct ttm_device_span){.first = ids[0], .count = count};
}

struct ttm_device_cell *ttmem_guest_cells(void)
{
    return ttm_own_tracker.producer.segment->devices;
}

static void dispatch_to(uint32_t device, uint64_t program)
{
    const struct ttm_device_span span = {.first = device, .count = 1};

    if (device < TTM_SEGMENT_DEVICES)
        ttmem_guest_dispatch(ttmem_guest_cells(), span, program);
}

void ttmem_program_dispatch(uint64_t program, uint32_t devices)
{
    uint32_t count;

    if (!ttm_switch_is_on())
        return;
    if (devices < TTM_SEGMENT_DEVICES) {
        dispatch_to(devices, program);
        return;
    }
    const uint16_t *ids = ids_of(devices, &count);
    for (uint32_t i = 0; ids && i < count; i++)
        dispatch_to(ids[i], program);
}

/* ---- devices, marks, failures ---- */

static void report_record(const struct ttm_record *record)
{
    const uint32_t epoch = ttm_switch_epoch();
    struct ttm_slot *slot = epoch != 0 ? ttm_switch_slot() : NULL;

    if (!slot)
        return;
    const struct ttm_happening event = {
        .op = TTM_HAPPENING_RECORD, .epoch = epoch, .record = *record};
    ttm_tracker_report(&ttm_own_tracker, slot, &event);
}

static void set_device(uint16_t id, uint32_t note)
{
    const struct ttm_record record = {.op = TTM_RECORD_DEVICE, .devices = id, .origin = note};

    /* release: the note is whole before its number is there. */
    atomic_store_explicit(&ttm_own_tracker.producer.segment->devices[id].note, note,
                          memory_order_release);
    report_record(&record);
}

void ttmem_device_open(const struct ttmem_device *device)
{
    uint8_t buf[TTM_DEVICE_NOTE_SIZE_MAX];

    if (!ttm_switch_is_on() || !device || device->id >= TTM_DEVICE_COUNT)
        return;
    struct ttm_device_note note = {
        .id = device->id,
        .arch = device->arch,
        .core_count = device->core_count,
        .asic_id = device->asic_id,
    };
    memcpy(note.bank_bytes, device->bank_bytes, sizeof(note.bank_bytes));
    memcpy(note.bank_count, device->bank_count, sizeof(note.bank_count));
    memcpy(note.board, device->board, strnlen(device->board, TTM_BOARD_NAME_MAX));
    const size_t length = ttm_device_note_encode(&note, buf);
    set_device(device->id,
               ttm_tracker_note(&ttm_own_tracker, TTM_NOTE_DEVICE, buf, (uint32_t)length));
}

void ttmem_device_close(uint16_t id)
{
    const struct ttm_live live = {.devices = id};

    if (!ttm_switch_is_on() || id >= TTM_DEVICE_COUNT)
        return;
    atomic_store_explicit(&has_closed, true, memory_order_relaxed); /* see miss_free() */
    report(TTM_HAPPENING_DEVICE_CLOSE, &live);
    set_device(id, 0);
}

void ttmem_mark(const char *name)
{
    struct ttm_record record = {.op = TTM_RECORD_MARK};
    const size_t length = length_of(name, TEXT_MAX);

    if (!ttm_switch_is_on())
        return;
    /* Short ones travel in the record: a program may make a new one at every step for weeks. */
    if (length > TTM_MARK_TEXT_MAX)
        record.origin = note_text(name);
    if (length > 0)
        memcpy((char *)&record + TTM_MARK_TEXT_AT, name,
               length < TTM_MARK_TEXT_MAX ? length : TTM_MARK_TEXT_MAX);
    report_record(&record);
}

void ttmem_reset_peaks(void)
{
    const struct ttm_record record = {.op = TTM_RECORD_PEAKS};

    report_record(&record);
}

void ttmem_failure(const struct ttmem_failed_allocation *failure)
{
    const uint32_t epoch = ttm_switch_epoch();
    struct ttm_slot *slot = epoch != 0 ? ttm_switch_slot() : NULL;

    if (!slot || !failure)
        return;
    const struct ttm_record record = {
        .op = TTM_RECORD_FAILURE,
        .id = failure->wanted_bytes,
        .address = failure->bank_wanted_bytes,
        .bytes = failure->bank_free_bytes,
        .footprint_bytes = failure->bank_largest_bytes,
        .devices = failure->devices,
        .allocator = failure->allocator,
        .region = failure->region,
        .kind = failure->kind,
        .origin = origin_of_event(slot, epoch),
    };
    report_record(&record);
}

_Static_assert(TTMEM_GUEST_KEEPERS_MAX == TTM_KEEPERS_MAX, "the same limit");
_Static_assert((int)TTMEM_GUEST_SEARCH_UNFINISHED == (int)TTM_SEARCH_UNFINISHED, "the same state");

void ttmem_guest_kept(const struct ttmem_guest_keepers *keepers)
{
    uint8_t buf[TTM_KEEPERS_NOTE_SIZE_MAX];
    struct ttm_keepers_note note = {
        .origin = keepers->origin,
        .round = keepers->round,
        .cause = keepers->cause,
        .search = keepers->search,
        .count = keepers->count,
    };

    for (uint8_t i = 0; i < note.count; i++) {
        note.keepers[i] = (struct ttm_note_text){
            keepers->texts[i], (uint16_t)strnlen(keepers->texts[i], TTM_KEEPER_TEXT_MAX + 1)};
        note.roots[i] = keepers->roots[i];
    }
    const size_t size = ttm_keepers_note_encode(&note, buf);
    const struct ttm_record record = {
        .op = TTM_RECORD_KEPT,
        .origin = ttmem_guest_note(TTM_NOTE_KEEPERS, buf, (uint32_t)size),
    };
    if (record.origin != 0)
        report_record(&record);
}
