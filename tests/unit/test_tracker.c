/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/hash.h"
#include "client/tracker.h"
#include "live_count.h"
#include "ring/reader.h"

static struct ttm_tracker tracker;
static struct ttm_ring_reader reader;

static int set_up(void **state)
{
    (void)state;
    if (ttm_tracker_init(&tracker, 0x5eed) < 0)
        return -1;
    return ttm_ring_reader_open(tracker.producer.fd.fd, &reader);
}

static int tear_down(void **state)
{
    (void)state;
    ttm_ring_reader_close(&reader);
    ttm_tracker_done(&tracker);
    return 0;
}

static struct ttm_happening birth_of(uint64_t id)
{
    const uint64_t mixed = ttm_hash_u64(id);

    return (struct ttm_happening){
        .op = TTM_HAPPENING_BIRTH,
        .live = {.id = id,
                 .address = mixed & TTM_LIVE_NUMBER_MAX,
                 .bytes = mixed >> 8 & TTM_LIVE_NUMBER_MAX,
                 .footprint_bytes = mixed >> 16 & TTM_LIVE_NUMBER_MAX,
                 .devices = (uint32_t)mixed & TTM_LIVE_NOTE_MAX,
                 .origin = (uint32_t)(mixed >> 32) & TTM_LIVE_NOTE_MAX,
                 .allocator = (uint16_t)(id % 5),
                 .region = (uint8_t)(id % 7),
                 .kind = mixed >> 8 & TTM_LIVE_KIND_MAX,
                 .flags = mixed >> 16 & (TTM_LIVE_FLAGS_MAX & ~TTM_LIVE_PROGRAM)},
    };
}

static void birth(struct ttm_slot *slot, uint64_t id)
{
    const struct ttm_happening report = birth_of(id);

    ttm_tracker_report(&tracker, slot, &report);
}

static void end(struct ttm_slot *slot, uint64_t id)
{
    const struct ttm_happening report = {
        .op = TTM_HAPPENING_END,
        .live = {.id = id, .allocator = (uint16_t)(id % 5), .region = (uint8_t)(id % 7)},
    };

    ttm_tracker_report(&tracker, slot, &report);
}

/* An end says no more than what has ended. */
static bool is_end_of(const struct ttm_record *record, uint64_t id)
{
    const struct ttm_record expected = {
        .op = record->op, .time_ns = record->time_ns, .serial = record->serial, .id = id};

    return record->serial != 0 && memcmp(record, &expected, sizeof(expected)) == 0;
}

static bool is_record_of(const struct ttm_record *record, uint64_t id)
{
    const struct ttm_live live = birth_of(id).live;

    if (record->op == TTM_RECORD_END || record->op == TTM_RECORD_REPLACED ||
        record->op == TTM_RECORD_CLOSED)
        return is_end_of(record, id);
    return record->id == id && record->address == live.address && record->bytes == live.bytes &&
           record->footprint_bytes == live.footprint_bytes && record->devices == live.devices &&
           record->origin == live.origin && record->allocator == live.allocator &&
           record->region == live.region && record->kind == live.kind &&
           record->flags == live.flags && record->serial != 0;
}

static uint32_t read_some(struct ttm_record *records, uint32_t max)
{
    uint64_t passed = 0;

    return ttm_ring_reader_read(&reader, records, max, &passed);
}

static struct ttm_record assert_record(uint8_t op, uint64_t id)
{
    struct ttm_record record;

    assert_int_equal(read_some(&record, 1), 1);
    assert_int_equal(record.op, op);
    assert_true(is_record_of(&record, id));
    return record;
}

static void assert_no_record(void)
{
    struct ttm_record record;

    assert_int_equal(read_some(&record, 1), 0);
}

/* ---- one thread ---- */

static void a_life_is_told_in_the_ring_and_kept_in_the_table_until_it_ends(void **state)
{
    struct ttm_slot *slot = ttm_tracker_claim(&tracker);
    struct ttm_live live;
    struct ttm_live_walk walk = {0};
    (void)state;

    birth(slot, 7);
    assert_true(ttm_live_table_next(&tracker.table, &walk, &live));
    const struct ttm_record born = assert_record(TTM_RECORD_BIRTH, 7);
    assert_true(live.serial == born.serial);
    assert_true(live.birth_ns == born.time_ns / 64 * 64);
    end(slot, 7);
    const struct ttm_record ended = assert_record(TTM_RECORD_END, 7);
    assert_true(ended.serial == born.serial);
    assert_true(ended.time_ns >= born.time_ns);
    assert_no_record();
    assert_int_equal(live_count(&tracker.table), 0);
}

static void a_key_born_again_ends_the_life_it_had_first(void **state)
{
    struct ttm_slot *slot = ttm_tracker_claim(&tracker);
    (void)state;

    birth(slot, 7);
    birth(slot, 7);
    const struct ttm_record first = assert_record(TTM_RECORD_BIRTH, 7);
    const struct ttm_record replaced = assert_record(TTM_RECORD_REPLACED, 7);
    const struct ttm_record second = assert_record(TTM_RECORD_BIRTH, 7);
    assert_true(replaced.serial == first.serial);
    assert_true(second.serial != first.serial);
    assert_int_equal(live_count(&tracker.table), 1);
}

static void the_end_of_what_was_never_born_is_counted_and_not_told(void **state)
{
    struct ttm_slot *slot = ttm_tracker_claim(&tracker);
    (void)state;

    end(slot, 7);
    assert_no_record();
    assert_int_equal(atomic_load(&tracker.producer.segment->unknown_ends), 1);
}

static void a_free_is_a_mistake_where_all_was_taken_in(void **state)
{
    struct ttm_segment *segment = tracker.producer.segment;
    struct ttm_slot *slot = ttm_tracker_claim(&tracker);
    (void)state;

    birth(slot, 7);
    assert_true(ttm_tracker_end(&tracker, slot, 2, 0, 7, 1));
    assert_false(ttm_tracker_end(&tracker, slot, 2, 0, 7, 1));
    ttm_tracker_count_unknown_free(&tracker);
    ttm_tracker_refuse_senseless(&tracker); /* which the program did itself */
    ttm_tracker_count_unknown_free(&tracker);
    assert_int_equal(atomic_load(&segment->unknown_frees), 2);
    ttm_tracker_refuse(&tracker); /* it may be that one's */
    ttm_tracker_count_unknown_free(&tracker);
    assert_int_equal(atomic_load(&segment->unknown_frees), 2);
    assert_int_equal(atomic_load(&segment->untracked), 2);
    assert_int_equal(atomic_load(&segment->senseless), 1);
}

static void a_birth_for_which_the_table_has_no_room_is_counted_and_not_told(void **state)
{
    const uint32_t place_count = tracker.table.place_count;
    struct ttm_slot *slot = ttm_tracker_claim(&tracker);
    (void)state;

    tracker.table.place_count = 1;
    birth(slot, 1);
    birth(slot, 2);
    assert_int_equal(atomic_load(&tracker.producer.segment->untracked), 1);
    (void)assert_record(TTM_RECORD_BIRTH, 1);
    assert_no_record();
    tracker.table.place_count = place_count;
}

#define ALL_SLOTS ((uint64_t)(1 + TTM_SPARE_RINGS) * TTM_RING_SLOTS)

static void what_full_rings_lose_is_in_the_table_all_the_same(void **state)
{
    struct ttm_slot *slot = ttm_tracker_claim(&tracker);
    (void)state;

    for (uint64_t id = 0; id < ALL_SLOTS + 500; id++)
        birth(slot, id);
    assert_int_equal(ttm_ring_reader_lost(&reader), 500);
    assert_int_equal(live_count(&tracker.table), ALL_SLOTS + 500);
    for (uint64_t id = 0; id < ALL_SLOTS + 500; id++)
        end(slot, id);
    assert_int_equal(live_count(&tracker.table), 0);
    assert_int_equal(atomic_load(&tracker.producer.segment->unknown_ends), 0);
}

/* Reads births of ids from '*id' on, as many as there are. */
static void read_births(uint64_t *id)
{
    static struct ttm_record records[1000];

    for (uint32_t n = read_some(records, 1000); n > 0; n = read_some(records, 1000)) {
        for (uint32_t i = 0; i < n; i++)
            assert_int_equal(records[i].id, (*id)++);
    }
}

static void a_thread_whose_ring_is_full_goes_on_in_others_and_comes_back(void **state)
{
    struct ttm_slot *slot = ttm_tracker_claim(&tracker);
    struct ttm_ring *own = slot->ring;
    uint64_t born = 0, read = 0;
    (void)state;

    for (; born < ALL_SLOTS; born++)
        birth(slot, born);
    assert_ptr_not_equal(slot->ring, own);
    read_births(&read); /* in order, whichever ring they are in */
    assert_int_equal(read, ALL_SLOTS);
    for (; born < ALL_SLOTS + TTM_RING_SLOTS + 10; born++)
        birth(slot, born);
    assert_ptr_equal(slot->ring, own);
    read_births(&read);
    assert_int_equal(read, born);
    assert_int_equal(ttm_ring_reader_lost(&reader), 0);
}

static void threads_that_end_leave_their_rings_to_those_that_need_more(void **state)
{
    struct ttm_slot *slots[3];
    uint64_t read = 0;
    (void)state;

    for (size_t i = 0; i < 3; i++)
        slots[i] = ttm_tracker_claim(&tracker);
    const uint32_t used = atomic_load(&tracker.producer.segment->rings_used);
    ttm_tracker_release(&tracker, slots[1]);
    for (uint64_t id = 0; id < TTM_RING_SLOTS + 1; id++)
        birth(slots[0], id);
    assert_int_equal(atomic_load(&tracker.producer.segment->rings_used), used);
    /* It has that one until it ends: a thread that begins gets another. */
    struct ttm_slot *other = ttm_tracker_claim(&tracker);
    assert_int_equal(other->number, used);
    ttm_tracker_release(&tracker, slots[0]);
    read_births(&read);
    assert_int_equal(read, TTM_RING_SLOTS + 1);
    assert_ptr_equal(ttm_tracker_claim(&tracker), slots[0]);
    assert_ptr_equal(ttm_tracker_claim(&tracker), slots[1]);
}

static void a_thread_that_had_no_other_ring_finds_room_in_its_own_again(void **state)
{
    struct ttm_slot *slot = ttm_tracker_claim(&tracker);
    uint64_t born = 0, read = 0;
    (void)state;

    for (; born < ALL_SLOTS + 5; born++)
        birth(slot, born);
    assert_int_equal(ttm_ring_reader_lost(&reader), 5);
    read_births(&read);
    assert_int_equal(read, ALL_SLOTS);
    read = born;
    for (; born < 2 * ALL_SLOTS; born++)
        birth(slot, born);
    assert_int_equal(ttm_ring_reader_lost(&reader), 5);
    read_births(&read);
    assert_int_equal(read, born);
}

static void when_all_slots_are_taken_a_thread_gets_none_and_it_is_counted(void **state)
{
    struct ttm_slot *last = NULL;
    (void)state;

    for (uint32_t i = 0; i < TTM_RINGS; i++) {
        last = ttm_tracker_claim(&tracker);
        assert_non_null(last);
    }
    assert_null(ttm_tracker_claim(&tracker));
    assert_int_equal(atomic_load(&tracker.producer.segment->untracked), 1);
    ttm_tracker_release(&tracker, last);
    assert_ptr_equal(ttm_tracker_claim(&tracker), last);
}

static void no_serial_is_used_twice_whoever_has_the_slot(void **state)
{
    static uint64_t seen[3000];
    struct ttm_record records[10];
    size_t count = 0;
    (void)state;

    for (uint64_t round = 0; round < 100; round++) {
        struct ttm_slot *slots[3];
        for (uint64_t i = 0; i < 3; i++) {
            slots[i] = ttm_tracker_claim(&tracker);
            for (uint64_t n = 0; n < 10; n++)
                birth(slots[i], round * 30 + i * 10 + n);
        }
        for (uint64_t i = 0; i < 3; i++)
            ttm_tracker_release(&tracker, slots[i]);
        for (uint32_t n; (n = read_some(records, 10)) > 0;) {
            for (uint32_t i = 0; i < n; i++)
                seen[count++] = records[i].serial;
        }
    }
    assert_int_equal(count, COUNT_OF(seen));
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++)
            assert_true(seen[i] != seen[j]);
    }
}

/* ---- a handler that finds its own thread in here, without a signal ---- */

#define MANY 5000u

static void what_a_handler_has_allocated_others_may_free_at_once(void **state)
{
    struct ttm_slot *slot = ttm_tracker_claim(&tracker);
    struct ttm_slot *other = ttm_tracker_claim(&tracker);
    (void)state;

    slot->is_busy = true;
    slot->busy_id = 1;
    birth(slot, 2);
    (void)assert_record(TTM_RECORD_BIRTH, 2);
    end(other, 2);
    (void)assert_record(TTM_RECORD_END, 2);
    birth(slot, 3);
    end(slot, 3);
    (void)assert_record(TTM_RECORD_BIRTH, 3);
    (void)assert_record(TTM_RECORD_END, 3);
    slot->is_busy = false;
    birth(slot, 4);
    (void)assert_record(TTM_RECORD_BIRTH, 4);
    assert_int_equal(live_count(&tracker.table), 1);
    assert_int_equal(atomic_load(&tracker.producer.segment->unknown_ends), 0);
    /* The slot that the handler had is there for others. */
    assert_int_equal(ttm_tracker_claim(&tracker)->number, 2);
}

static void where_no_ring_is_left_a_handler_waits_until_its_thread_has_done(void **state)
{
    struct ttm_slot *slot = ttm_tracker_claim(&tracker);
    (void)state;

    for (uint32_t i = 1; i < TTM_RINGS; i++)
        assert_non_null(ttm_tracker_claim(&tracker));
    slot->is_busy = true;
    slot->busy_id = 1;
    birth(slot, 2);
    assert_no_record();
    slot->is_busy = false;
    birth(slot, 3);
    (void)assert_record(TTM_RECORD_BIRTH, 2);
    (void)assert_record(TTM_RECORD_BIRTH, 3);
    assert_int_equal(atomic_load(&tracker.producer.segment->untracked), 0);
}

static void what_a_handler_reports_of_the_same_id_is_told_in_order(void **state)
{
    struct ttm_slot *slot = ttm_tracker_claim(&tracker);
    (void)state;

    slot->is_busy = true;
    slot->busy_id = 1;
    birth(slot, 1);
    birth(slot, 2);
    end(slot, 1);
    assert_no_record();
    slot->is_busy = false;
    end(slot, 2); /* may not overtake them */
    (void)assert_record(TTM_RECORD_BIRTH, 1);
    (void)assert_record(TTM_RECORD_BIRTH, 2);
    (void)assert_record(TTM_RECORD_END, 1);
    (void)assert_record(TTM_RECORD_END, 2);
    assert_no_record();
    assert_int_equal(atomic_load(&tracker.producer.segment->unknown_ends), 0);
}

/* A handler that frees a table and fills it again, in the middle of one event of its thread. */
static void a_handler_may_report_any_number_within_one_event(void **state)
{
    struct ttm_slot *slot = ttm_tracker_claim(&tracker);
    (void)state;

    for (uint64_t id = 0; id < MANY; id++)
        birth(slot, id);
    for (int round = 0; round < 2; round++) {
        errno = 1234;
        slot->is_busy = true;
        slot->busy_id = 0;
        for (uint64_t id = 0; id < MANY; id++)
            end(slot, id);
        for (uint64_t id = 0; id < MANY; id++)
            birth(slot, id);
        end(slot, 7);
        slot->is_busy = false;
        assert_int_equal(live_count(&tracker.table), MANY); /* nothing has happened yet */
        birth(slot, 7);                                     /* what they said comes first */
        assert_int_equal(errno, 1234);
        assert_int_equal(live_count(&tracker.table), MANY);
    }
    assert_int_equal(atomic_load(&tracker.producer.segment->unknown_ends), 0);
    assert_int_equal(atomic_load(&tracker.producer.segment->untracked), 0);
}

static void what_cannot_be_deferred_is_counted_and_tried_again_later(void **state)
{
    struct ttm_slot *slot = ttm_tracker_claim(&tracker);
    struct rlimit before, tight;
    (void)state;

    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    tight = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0); /* no page more than there are */
    slot->is_busy = true;
    slot->busy_id = 0;
    for (uint64_t id = 0; id < TTM_DEFERRED_AT_HAND + 3; id++)
        birth(slot, id);
    slot->is_busy = false;
    birth(slot, 100);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(atomic_load(&tracker.producer.segment->untracked), 3);
    assert_int_equal(live_count(&tracker.table), TTM_DEFERRED_AT_HAND + 1);
    slot->is_busy = true;
    slot->busy_id = 200;
    for (uint64_t id = 200; id < 200 + MANY; id++)
        birth(slot, id);
    slot->is_busy = false;
    birth(slot, 101);
    assert_int_equal(atomic_load(&tracker.producer.segment->untracked), 3);
    assert_int_equal(live_count(&tracker.table), TTM_DEFERRED_AT_HAND + 2 + MANY);
}

static void a_thread_cancelled_in_mid_event_leaves_a_loss_and_a_slot_that_works(void **state)
{
    struct ttm_slot *slot = ttm_tracker_claim(&tracker);
    (void)state;

    slot->is_busy = true;
    slot->busy_id = 1;
    birth(slot, 1); /* from a handler, before it was cancelled */
    ttm_tracker_release(&tracker, slot);
    assert_int_equal(ttm_ring_reader_lost(&reader), 1);
    (void)assert_record(TTM_RECORD_BIRTH, 1);
    assert_ptr_equal(ttm_tracker_claim(&tracker), slot);
    birth(slot, 2);
    (void)assert_record(TTM_RECORD_BIRTH, 2);
    ttm_tracker_release(&tracker, slot);
    assert_int_equal(ttm_ring_reader_lost(&reader), 1);
}

/* ---- ended at any instruction ---- */

/* A sanitizer holds locks of its own in between, and makes thousands of instructions of an event. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define TRAP_FLAG 0x100 /* of the processor: a signal after each instruction */
#define OTHERS 200      /* more than a thread has places at hand */

static struct {
    sigjmp_buf out;
    uint32_t left; /* instructions until the thread ends */
    bool is_on;
} steps;

static void step(int number, siginfo_t *info, void *context)
{
    greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];
    (void)number;
    (void)info;

    *flags = steps.is_on ? *flags | TRAP_FLAG : *flags & ~TRAP_FLAG;
    if (steps.is_on && steps.left-- == 0)
        siglongjmp(steps.out, 1);
}

typedef void event_function(struct ttm_slot *slot, uint64_t id);

/* Returns whether the event took no more than so many instructions. */
static bool leave_after(uint32_t instructions, event_function *event, struct ttm_slot *slot,
                        uint64_t id)
{
    const bool has_left = sigsetjmp(steps.out, 1) != 0;

    if (!has_left) {
        steps.left = instructions;
        steps.is_on = true;
        (void)raise(SIGTRAP);
        event(slot, id);
    }
    steps.is_on = false;
    return !has_left;
}

/* All that comes through here has a place of its own, and gives it back. */
static void assert_places_are_sound(struct ttm_slot *slot, uint64_t first)
{
    struct ttm_record records[64];

    for (uint64_t id = first; id < first + OTHERS; id++)
        birth(slot, id);
    assert_int_equal(live_count(&tracker.table), OTHERS);
    for (uint64_t id = first; id < first + OTHERS; id++)
        end(slot, id);
    assert_int_equal(live_count(&tracker.table), 0);
    while (read_some(records, 64) > 0)
        ;
}

/* The thread of a new slot ends in the middle of that event; 'other' is another thread's. */
static bool end_thread_after(uint32_t instructions, event_function *event, bool is_warm,
                             struct ttm_slot *other)
{
    /* Each its own: an entry that is nobody's stays in its bucket. */
    const uint64_t id = 10000 + instructions, before = tracker.producer.segment->unknown_ends;
    struct ttm_slot *slot = ttm_tracker_claim(&tracker);

    assert_non_null(slot);
    if (is_warm) {
        birth(slot, 1000);
        end(slot, 1000);
    }
    if (event == end)
        birth(slot, id);
    const bool is_done = leave_after(instructions, event, slot, id);
    ttm_tracker_release(&tracker, slot);
    const uint64_t live = live_count(&tracker.table);
    end(other, id);
    assert_int_equal(tracker.producer.segment->unknown_ends - before, live == 0 ? 1 : 0);
    assert_places_are_sound(other, 100);
    return is_done;
}

static void a_thread_that_ends_at_any_instruction_leaves_a_life_that_can_end_or_none(void **state)
{
    const struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
    event_function *const events[] = {birth, end};
    struct ttm_slot *other = ttm_tracker_claim(&tracker);
    struct sigaction before;
    (void)state;

    assert_int_equal(sigaction(SIGTRAP, &action, &before), 0);
    for (uint32_t i = 0; i < 4; i++) {
        const bool is_warm = i % 2 != 0; /* else it takes places first, which is long */
        uint32_t instructions = 0;
        while (!end_thread_after(instructions, events[i / 2], is_warm, other))
            instructions += is_warm ? 1 : 31;
        assert_true(instructions > 50);
    }
    assert_int_equal(sigaction(SIGTRAP, &before, NULL), 0);
}
#else
static void a_thread_that_ends_at_any_instruction_leaves_a_life_that_can_end_or_none(void **state)
{
    (void)state;
    skip();
}
#endif

/* ---- signals at any instruction ---- */

#define IN_HANDLER (1ull << 32) /* ids that handlers use, the number of the handler above them */
#define SIGNALS 2
#define BURST_EVERY 8
#define BURST 50 /* more than there are places for at hand */

/* What the interrupted thread and its handlers share. */
static struct {
    struct ttm_slot *slot;
    _Atomic uint64_t progress;         /* reports of the thread itself */
    _Atomic uint64_t handled[SIGNALS]; /* reports of each handler: birth, end, birth, … */
    _Atomic bool is_over;
} storm;

static void report_from_handler(int number)
{
    const uint64_t which = number == SIGUSR1 ? 0 : 1;
    const uint64_t n = atomic_load(&storm.handled[which]);
    const uint64_t id = (which + 1) * IN_HANDLER + n / 2;

    if (n % 2 == 0)
        birth(storm.slot, id);
    else
        end(storm.slot, id);
    for (uint64_t i = 0; n % BURST_EVERY == 0 && i < BURST; i++)
        birth(storm.slot, (which + 3) * IN_HANDLER + i);
    for (uint64_t i = 0; n % BURST_EVERY == 0 && i < BURST; i++)
        end(storm.slot, (which + 3) * IN_HANDLER + i);
    atomic_store(&storm.handled[which], n + 1);
}

static void *report_under_signals(void *arg)
{
    sigset_t set;
    (void)arg;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    storm.slot = ttm_tracker_claim(&tracker);
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    for (uint64_t n = 0; !atomic_load(&storm.is_over); n++) {
        birth(storm.slot, n);
        atomic_store(&storm.progress, 2 * n + 1);
        end(storm.slot, n);
        atomic_store(&storm.progress, 2 * n + 2);
    }
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    ttm_tracker_release(&tracker, storm.slot);
    return NULL;
}

/* Births and ends by serial; what the rings say must make sense at every record. */
#define RINGS_OF_STORM 4 /* of the thread, and of handlers that interrupt each other */

struct account {
    uint64_t born, ended, wrong, last_serial[RINGS_OF_STORM];
};

/*
 * Whether a full ring was ever left for another. Then a slot that is given back and taken again
 * writes to its own ring once more, and what is there may be read before what is in the other.
 */
static bool has_gone_on(void)
{
    const uint32_t used = atomic_load(&tracker.producer.segment->rings_used);

    for (uint32_t i = 0; i < used; i++) {
        if (atomic_load(&ttm_producer_ring(&tracker.producer, i)->follows) != 0)
            return true;
    }
    return false;
}

static void drain(struct account *account)
{
    static struct ttm_record records[TTM_RING_SLOTS];

    for (uint32_t n; (n = read_some(records, TTM_RING_SLOTS)) > 0;) {
        for (uint32_t i = 0; i < n; i++) {
            account->wrong += !is_record_of(&records[i], records[i].id);
            if (records[i].op == TTM_RECORD_BIRTH) {
                uint64_t *last = &account->last_serial[(records[i].serial >> 48) % RINGS_OF_STORM];
                if (records[i].serial <= *last)
                    account->wrong += records[i].serial == *last || !has_gone_on();
                *last = records[i].serial;
                account->born++;
            } else {
                account->wrong += records[i].op != TTM_RECORD_END;
                account->ended++;
            }
        }
    }
}

/* Interrupts the thread, and waits until it has been and gone on: else it would only handle. */
static void interrupt_once(pthread_t thread, uint64_t *random, struct account *account)
{
    static const int numbers[SIGNALS] = {SIGUSR1, SIGUSR2};
    const uint64_t progress = atomic_load(&storm.progress);
    uint64_t before[SIGNALS];

    for (volatile uint32_t spin = random_below(random, 300); spin > 0;)
        spin = spin - 1;
    for (int i = 0; i < SIGNALS; i++) {
        before[i] = atomic_load(&storm.handled[i]);
        assert_int_equal(pthread_kill(thread, numbers[i]), 0);
    }
    while (atomic_load(&storm.handled[0]) == before[0] ||
           atomic_load(&storm.handled[1]) == before[1] ||
           atomic_load(&storm.progress) <= progress + 2) {
        drain(account);
        (void)sched_yield();
    }
}

static uint64_t reports_of_handler(int which)
{
    const uint64_t handled = atomic_load(&storm.handled[which]);

    return handled + (handled + BURST_EVERY - 1) / BURST_EVERY * 2 * BURST;
}

static void signals_at_any_instruction_lose_and_tear_nothing(void **state)
{
    const struct sigaction action = {.sa_handler = report_from_handler};
    struct sigaction before[SIGNALS];
    struct account account = {0};
    uint64_t random = 17;
    pthread_t thread;
    (void)state;

    memset(&storm, 0, sizeof(storm));
    assert_int_equal(sigaction(SIGUSR1, &action, &before[0]), 0);
    assert_int_equal(sigaction(SIGUSR2, &action, &before[1]), 0);
    assert_int_equal(pthread_create(&thread, NULL, report_under_signals, NULL), 0);
    while (atomic_load(&storm.progress) == 0)
        (void)sched_yield();
    for (int i = 0; i < 3000; i++) /* each takes a slice of the scheduler's where it is busy */
        interrupt_once(thread, &random, &account);
    atomic_store(&storm.is_over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(sigaction(SIGUSR1, &before[0], NULL), 0);
    assert_int_equal(sigaction(SIGUSR2, &before[1], NULL), 0);
    drain(&account);

    assert_int_equal(account.wrong, 0);
    assert_int_equal(atomic_load(&tracker.producer.segment->unknown_ends), 0);
    assert_int_equal(atomic_load(&tracker.producer.segment->untracked), 0);
    assert_int_equal(account.born + account.ended + ttm_ring_reader_lost(&reader),
                     atomic_load(&storm.progress) + reports_of_handler(0) + reports_of_handler(1));
    assert_int_equal(live_count(&tracker.table),
                     atomic_load(&storm.handled[0]) % 2 + atomic_load(&storm.handled[1]) % 2);
}

/* ---- threads ---- */

static void *live_shortly(void *arg)
{
    const uint64_t first = (uint64_t)(uintptr_t)arg * 4;
    struct ttm_slot *slot = ttm_tracker_claim(&tracker);

    if (!slot)
        return NULL;
    for (uint64_t id = first; id < first + 4; id++)
        birth(slot, id);
    for (uint64_t id = first; id < first + 3; id++)
        end(slot, id);
    ttm_tracker_release(&tracker, slot);
    return slot;
}

static void threads_that_come_and_go_by_the_thousand_use_the_same_slots(void **state)
{
    struct account account = {0};
    uint64_t threads = 0;
    (void)state;

    while (threads < 2000) {
        pthread_t together[4];
        for (uint32_t i = 0; i < COUNT_OF(together); i++)
            assert_int_equal(
                pthread_create(&together[i], NULL, live_shortly, (void *)(uintptr_t)threads++), 0);
        for (uint32_t i = 0; i < COUNT_OF(together); i++) {
            void *slot = NULL;
            assert_int_equal(pthread_join(together[i], &slot), 0);
            assert_non_null(slot);
        }
        struct ttm_record records[64];
        for (uint32_t n; (n = read_some(records, 64)) > 0;) {
            for (uint32_t i = 0; i < n; i++) {
                account.wrong += !is_record_of(&records[i], records[i].id);
                account.born += records[i].op == TTM_RECORD_BIRTH;
                account.ended += records[i].op == TTM_RECORD_END;
            }
        }
    }
    assert_in_range(atomic_load(&tracker.producer.segment->rings_used), 1, 8);
    assert_int_equal(account.wrong, 0);
    assert_int_equal(account.born, threads * 4);
    assert_int_equal(account.ended, threads * 3);
    assert_int_equal(live_count(&tracker.table), threads);
    assert_in_range(atomic_load(&tracker.table.next_place), threads,
                    threads + 8ul * TTM_LIVE_CACHE);
    assert_int_equal(atomic_load(&tracker.producer.segment->untracked), 0);
}

/* ---- programs, devices, names ---- */

static void report_live(struct ttm_slot *slot, enum ttm_happening_op op, struct ttm_live live)
{
    const struct ttm_happening report = {.op = op, .live = live};

    ttm_tracker_report(&tracker, slot, &report);
}

static void birth_part(struct ttm_slot *slot, uint64_t program, uint8_t region, uint16_t part)
{
    report_live(slot, TTM_HAPPENING_BIRTH,
                (struct ttm_live){.id = program,
                                  .allocator = part,
                                  .region = region,
                                  .bytes = 1,
                                  .flags = TTM_RECORD_PROGRAM});
}

/* How many records of that op are next; reads them all. */
static uint32_t count_records(uint8_t op)
{
    struct ttm_record record;
    uint32_t count = 0;

    while (read_some(&record, 1) == 1) {
        assert_int_equal(record.op, op);
        count++;
    }
    return count;
}

static void a_program_ends_as_a_whole_and_leaves_others_alone(void **state)
{
    struct ttm_slot *slot = ttm_tracker_claim(&tracker);
    (void)state;

    for (uint16_t part = 0; part < 70; part++) {
        birth_part(slot, 1, 5, part);
        birth_part(slot, 2, 5, part);
    }
    birth_part(slot, 1, 6, 0);
    birth(slot, 1); /* no part of any, with the same number as its id */
    assert_int_equal(count_records(TTM_RECORD_BIRTH), 142);

    report_live(slot, TTM_HAPPENING_PROGRAM_FREE, (struct ttm_live){.id = 1, .region = 5});
    assert_int_equal(count_records(TTM_RECORD_END), 70);
    assert_int_equal(live_count(&tracker.table), 72);
    report_live(slot, TTM_HAPPENING_PROGRAM_FREE, (struct ttm_live){.id = 1, .region = 6});
    assert_int_equal(count_records(TTM_RECORD_END), 1);
    report_live(slot, TTM_HAPPENING_PROGRAM_FREE, (struct ttm_live){.id = 1, .region = 6});
    report_live(slot, TTM_HAPPENING_PROGRAM_FREE, (struct ttm_live){.id = 77, .region = 5});
    assert_no_record();
    assert_int_equal(live_count(&tracker.table), 71);
    assert_int_equal(atomic_load(&tracker.producer.segment->unknown_ends), 0);
}

static void a_program_may_have_as_many_parts_as_there_are_numbers(void **state)
{
    struct ttm_slot *slot = ttm_tracker_claim(&tracker);
    (void)state;

    for (uint32_t part = 0; part <= UINT16_MAX; part++)
        birth_part(slot, 1, 5, (uint16_t)part);
    assert_int_equal(live_count(&tracker.table), UINT16_MAX + 1);
    report_live(slot, TTM_HAPPENING_PROGRAM_FREE, (struct ttm_live){.id = 1, .region = 5});
    assert_int_equal(live_count(&tracker.table), 0); /* and it comes to an end */
}

static void birth_on(struct ttm_slot *slot, uint64_t id, uint16_t allocator, uint32_t devices,
                     uint8_t flags)
{
    report_live(
        slot, TTM_HAPPENING_BIRTH,
        (struct ttm_live){
            .id = id, .allocator = allocator, .bytes = 1, .devices = devices, .flags = flags});
}

static void closing_a_device_ends_what_stands_on_it_meshes_too(void **state)
{
    static const uint16_t ids[] = {1, 3};
    struct ttm_slot *slot = ttm_tracker_claim(&tracker);
    const uint32_t mesh = ttm_tracker_note(&tracker, TTM_NOTE_DEVICES, ids, sizeof(ids));
    const uint32_t no_devices = ttm_tracker_note(&tracker, TTM_NOTE_STRING, "\3\0", 2);
    (void)state;

    birth_on(slot, 1, 0, 3, 0);
    birth_on(slot, 2, 0, 1, 0);
    birth_on(slot, 3, 9, mesh, 0);
    birth_on(slot, 4, 9, no_devices, 0);
    birth_on(slot, 5, 0, 3, TTM_RECORD_PROGRAM);
    assert_int_equal(count_records(TTM_RECORD_BIRTH), 5);
    report_live(slot, TTM_HAPPENING_DEVICE_CLOSE, (struct ttm_live){.devices = 3});
    assert_int_equal(count_records(TTM_RECORD_CLOSED), 3);
    assert_int_equal(live_count(&tracker.table), 2);
    report_live(slot, TTM_HAPPENING_DEVICE_CLOSE, (struct ttm_live){.devices = 3});
    assert_no_record();
}

static void closing_an_allocator_ends_its_buffers_and_no_parts_of_programs(void **state)
{
    struct ttm_slot *slot = ttm_tracker_claim(&tracker);
    (void)state;

    for (uint64_t id = 1; id <= 10; id++)
        birth_on(slot, id, (uint16_t)(id % 2), 0, 0);
    birth_on(slot, 1, 1, 0, TTM_RECORD_PROGRAM); /* part 1 of program 1 */
    assert_int_equal(count_records(TTM_RECORD_BIRTH), 11);
    report_live(slot, TTM_HAPPENING_ALLOCATOR_CLOSE, (struct ttm_live){.allocator = 1});
    assert_int_equal(count_records(TTM_RECORD_CLOSED), 5);
    assert_int_equal(live_count(&tracker.table), 6);
}

static struct ttm_origin_note origin_of(uint32_t number)
{
    struct ttm_origin_note origin = {0};
    uint32_t length;
    const void *note = ttm_producer_read_note(&tracker.producer, number, TTM_NOTE_ORIGIN, &length);

    assert_non_null(note);
    assert_int_equal(ttm_origin_note_decode(note, length, &origin), 0);
    return origin;
}

static void report_name(struct ttm_slot *slot, uint64_t id, uint32_t name, uint32_t context)
{
    const struct ttm_happening report = {
        .op = TTM_HAPPENING_NAME, .live = {.id = id}, .name = name, .context = context};

    ttm_tracker_report(&tracker, slot, &report);
}

static void a_name_and_a_context_are_given_one_by_one_and_kept(void **state)
{
    struct ttm_slot *slot = ttm_tracker_claim(&tracker);
    struct ttm_live live;
    struct ttm_record record;
    struct ttm_live_walk walk = {0};
    (void)state;

    birth_on(slot, 1, 0, 0, 0);
    assert_int_equal(read_some(&record, 1), 1);
    const uint64_t serial = record.serial;
    report_name(slot, 1, 5000, 0);
    assert_int_equal(read_some(&record, 1), 1);
    assert_int_equal(record.op, TTM_RECORD_NAMED);
    assert_true(record.serial == serial);
    assert_int_equal(origin_of(record.origin).name, 5000);
    assert_int_equal(origin_of(record.origin).context, 0);
    report_name(slot, 1, 0, 6000);
    assert_int_equal(read_some(&record, 1), 1);
    assert_int_equal(origin_of(record.origin).name, 5000);
    assert_int_equal(origin_of(record.origin).context, 6000);
    assert_true(ttm_live_table_next(&tracker.table, &walk, &live));
    assert_int_equal(live.origin, record.origin);
    report_name(slot, 2, 5000, 0); /* is not live */
    assert_no_record();
}

static void a_birth_let_in_before_a_switch_is_taken_back(void **state)
{
    struct ttm_slot *slot = ttm_tracker_claim(&tracker);
    struct ttm_happening report = birth_of(7);
    (void)state;

    report.epoch = 1;
    atomic_store(&tracker.epoch, 1);
    ttm_tracker_report(&tracker, slot, &report);
    assert_int_equal(live_count(&tracker.table), 1);
    assert_record(TTM_RECORD_BIRTH, 7);
    ttm_tracker_forget(&tracker);
    assert_int_equal(live_count(&tracker.table), 0);

    atomic_store(&tracker.epoch, 2); /* off */
    ttm_tracker_report(&tracker, slot, &report);
    assert_int_equal(live_count(&tracker.table), 0);
    const struct ttm_record born = assert_record(TTM_RECORD_BIRTH, 7);
    const struct ttm_record ended = assert_record(TTM_RECORD_END, 7);
    assert_true(born.serial == ended.serial);

    atomic_store(&tracker.epoch, 3); /* on again: another spell */
    ttm_tracker_report(&tracker, slot, &report);
    assert_int_equal(live_count(&tracker.table), 0);
    report.epoch = 3;
    ttm_tracker_report(&tracker, slot, &report);
    assert_int_equal(live_count(&tracker.table), 1);
}

static void what_is_forgotten_gives_its_places_back(void **state)
{
    struct ttm_slot *slot = ttm_tracker_claim(&tracker);
    (void)state;

    for (uint64_t round = 0; round < 20; round++) {
        for (uint64_t id = 1; id <= 10000; id++)
            birth(slot, id);
        assert_int_equal(live_count(&tracker.table), 10000);
        ttm_tracker_forget(&tracker);
        assert_int_equal(live_count(&tracker.table), 0);
    }
    assert_in_range(atomic_load(&tracker.table.next_place), 10000, 10000 + 3 * TTM_LIVE_CACHE);
}

/* ---- a host without the means ---- */

static int lowest_free_fd(void)
{
    const int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);

    assert_int_equal(close(fd), 0);
    return fd;
}

static void a_program_that_is_out_of_fds_is_refused_and_keeps_what_it_had(void **state)
{
    const int first = lowest_free_fd();
    int taken[TTM_OWN_FD_LIMIT_MIN];
    struct rlimit limit, small;
    (void)state;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    small = (struct rlimit){.rlim_cur = TTM_OWN_FD_LIMIT_MIN, .rlim_max = limit.rlim_max};
    for (int left = 0; left < 3; left++) { /* the segment, and two ends of what wakes */
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
        const int count = TTM_OWN_FD_LIMIT_MIN - first - left;
        for (int i = 0; i < count; i++)
            taken[i] = dup(STDERR_FILENO);
        const int r = ttm_tracker_init(&tracker, 1);
        for (int i = 0; i < count; i++)
            (void)close(taken[i]);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        assert_int_equal(r, -EMFILE);
        assert_int_equal(lowest_free_fd(), first);
    }
}

static void a_program_that_may_not_write_such_files_is_refused_without_a_signal(void **state)
{
    struct rlimit limit, small;
    (void)state;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = (struct rlimit){.rlim_cur = 1 << 20, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const int r = ttm_tracker_init(&tracker, 1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(r, -EFBIG);
}

/* ---- settling ---- */

static void *leave_event(void *arg)
{
    struct ttm_slot *slot = arg;

    (void)usleep(2000);
    atomic_store(&slot->is_busy, false);
    return NULL;
}

static void settling_waits_for_threads_that_are_in_the_middle_of_an_event(void **state)
{
    struct ttm_slot *slot = ttm_tracker_claim(&tracker);
    pthread_t thread;
    (void)state;

    assert_non_null(slot);
    assert_true(ttm_tracker_settle(&tracker));
    atomic_store(&slot->is_busy, true);
    assert_int_equal(pthread_create(&thread, NULL, leave_event, slot), 0);
    const bool has_settled = ttm_tracker_settle(&tracker);
    const bool is_busy = atomic_load(&slot->is_busy);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(!has_settled || !is_busy);

    atomic_store(&slot->is_busy, true); /* for ever: it was left by a jump */
    assert_false(ttm_tracker_settle(&tracker));
    atomic_store(&slot->is_busy, false);
    ttm_tracker_release(&tracker, slot);
}

#define WITH_TRACKER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TRACKER(a_life_is_told_in_the_ring_and_kept_in_the_table_until_it_ends),
        WITH_TRACKER(a_key_born_again_ends_the_life_it_had_first),
        WITH_TRACKER(the_end_of_what_was_never_born_is_counted_and_not_told),
        WITH_TRACKER(a_free_is_a_mistake_where_all_was_taken_in),
        WITH_TRACKER(a_birth_for_which_the_table_has_no_room_is_counted_and_not_told),
        WITH_TRACKER(what_full_rings_lose_is_in_the_table_all_the_same),
        WITH_TRACKER(a_thread_whose_ring_is_full_goes_on_in_others_and_comes_back),
        WITH_TRACKER(threads_that_end_leave_their_rings_to_those_that_need_more),
        WITH_TRACKER(a_thread_that_had_no_other_ring_finds_room_in_its_own_again),
        WITH_TRACKER(when_all_slots_are_taken_a_thread_gets_none_and_it_is_counted),
        WITH_TRACKER(no_serial_is_used_twice_whoever_has_the_slot),
        WITH_TRACKER(what_a_handler_has_allocated_others_may_free_at_once),
        WITH_TRACKER(where_no_ring_is_left_a_handler_waits_until_its_thread_has_done),
        WITH_TRACKER(what_a_handler_reports_of_the_same_id_is_told_in_order),
        WITH_TRACKER(a_handler_may_report_any_number_within_one_event),
        WITH_TRACKER(what_cannot_be_deferred_is_counted_and_tried_again_later),
        WITH_TRACKER(a_thread_cancelled_in_mid_event_leaves_a_loss_and_a_slot_that_works),
        WITH_TRACKER(a_thread_that_ends_at_any_instruction_leaves_a_life_that_can_end_or_none),
        WITH_TRACKER(signals_at_any_instruction_lose_and_tear_nothing),
        WITH_TRACKER(threads_that_come_and_go_by_the_thousand_use_the_same_slots),
        WITH_TRACKER(a_program_ends_as_a_whole_and_leaves_others_alone),
        WITH_TRACKER(a_program_may_have_as_many_parts_as_there_are_numbers),
        WITH_TRACKER(closing_a_device_ends_what_stands_on_it_meshes_too),
        WITH_TRACKER(closing_an_allocator_ends_its_buffers_and_no_parts_of_programs),
        WITH_TRACKER(a_name_and_a_context_are_given_one_by_one_and_kept),
        WITH_TRACKER(a_birth_let_in_before_a_switch_is_taken_back),
        WITH_TRACKER(what_is_forgotten_gives_its_places_back),
        WITH_TRACKER(settling_waits_for_threads_that_are_in_the_middle_of_an_event),
        cmocka_unit_test(a_program_that_is_out_of_fds_is_refused_and_keeps_what_it_had),
        cmocka_unit_test(a_program_that_may_not_write_such_files_is_refused_without_a_signal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
