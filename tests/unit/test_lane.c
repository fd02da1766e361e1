/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "base/clock.h"
#include "client/lane.h"
#include "live_count.h"
#include "ring/reader.h"

#define EPOCH 3
#define ORIGIN 4711

static struct ttm_tracker tracker;
static struct ttm_ring_reader reader;
static struct ttm_slot *slot;
static unsigned looks;

/* In place of api.c, whose tracker is that of the process. */
void ttmem_guest_look_after(struct ttm_slot *of)
{
    looks++;
    ttm_tracker_look_after(&tracker, of);
}

void ttmem_guest_take_back(struct ttm_slot *of, uint64_t key, uint64_t id, uint64_t serial)
{
    ttm_tracker_take_back(&tracker, of, key, id, serial);
}

#ifdef __x86_64__

/* Sets the clock so that its time is that of the kernel, as half a second of events would. */
static void set_clock(void)
{
    const uint64_t ticks = __builtin_ia32_rdtsc(), ns = ttm_clock_monotonic_ns();

    atomic_store(&tracker.clock.is_trusted, true);
    (void)ttm_tick_clock_set(&tracker.clock, ticks - 200 * TTM_NS_PER_MS, ns - 100 * TTM_NS_PER_MS);
    (void)ttm_tick_clock_set(&tracker.clock, ticks, ns);
}

static int set_up(void **state)
{
    (void)state;
    looks = 0;
    if (ttm_tracker_init(&tracker, 0x5eed) < 0)
        return -1;
    atomic_store(&tracker.epoch, EPOCH);
    slot = ttm_tracker_claim(&tracker);
    if (!slot || ttm_ring_reader_open(tracker.producer.fd.fd, &reader) < 0)
        return -1;
    set_clock();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_ring_reader_close(&reader);
    ttm_tracker_done(&tracker);
    return 0;
}

static const struct ttm_live usual = {
    .address = 0x123456780,
    .bytes = 131072,
    .footprint_bytes = 147456,
    .allocator = 7,
    .banks = 12,
    .devices = 1030,
    .region = 1,
};

static bool begin(uint64_t id)
{
    const struct ttm_lane_size size = ttm_lane_size_of(&usual);

    return ttm_lane_begin(&tracker, slot, &size, id, usual.address, ORIGIN, EPOCH);
}

static bool end(uint64_t id)
{
    return ttm_lane_end(&tracker, slot, id);
}

static uint32_t read_records(struct ttm_record *records, uint32_t max)
{
    uint64_t passed = 0;

    return ttm_ring_reader_read(&reader, records, max, &passed);
}

static void assert_nothing_was_done(void)
{
    struct ttm_record record;

    assert_int_equal(read_records(&record, 1), 0);
    assert_false(atomic_load(&slot->is_busy));
}

static void a_life_is_told_and_kept_as_on_the_long_way(void **state)
{
    struct ttm_live_walk walk = {0};
    struct ttm_record records[4];
    struct ttm_live live = usual, kept;
    (void)state;

    assert_true(begin(40));
    assert_true(ttm_live_table_next(&tracker.table, &walk, &kept));
    live.id = 41;
    live.origin = ORIGIN;
    ttm_tracker_begin_plain(&tracker, slot, &live, ttm_live_key_of(&live), EPOCH);

    assert_int_equal(read_records(records, 4), 2);
    assert_true(records[0].serial != 0 && records[1].serial == records[0].serial + 1);
    assert_true(records[0].time_ns != 0 && records[1].time_ns >= records[0].time_ns);
    assert_int_equal(records[0].id, 40);
    assert_true(kept.serial == records[0].serial && kept.id == 40);
    assert_true(kept.birth_ns == records[0].time_ns / 64 * 64);
    records[0].id = records[1].id;
    records[0].serial = records[1].serial;
    records[0].time_ns = records[1].time_ns;
    assert_memory_equal(&records[0], &records[1], sizeof(records[0]));

    kept.unused = TTM_RECORD_BIRTH;
    kept.id = records[1].id;
    kept.serial = records[1].serial;
    kept.birth_ns = records[1].time_ns;
    assert_memory_equal(&kept, &records[1], sizeof(kept));
}

static void an_end_says_no_more_than_what_has_ended(void **state)
{
    struct ttm_record records[4];
    (void)state;

    assert_true(begin(40));
    assert_true(end(40));
    assert_int_equal(read_records(records, 4), 2);
    const struct ttm_record expected = {
        .op = TTM_RECORD_END,
        .time_ns = records[1].time_ns,
        .serial = records[0].serial,
        .id = 40,
    };
    assert_memory_equal(&records[1], &expected, sizeof(expected));
    assert_true(records[1].time_ns >= records[0].time_ns);
    assert_int_equal(live_count(&tracker.table), 0);
    assert_false(atomic_load(&slot->is_busy));
    assert_int_equal(looks, 0);
}

static void what_began_on_one_way_may_end_on_the_other(void **state)
{
    struct ttm_live live = usual;
    (void)state;

    assert_true(begin(40));
    ttm_tracker_end_plain(&tracker, slot, usual.allocator, usual.region, 40, EPOCH);
    assert_int_equal(live_count(&tracker.table), 0);
    live.id = 41;
    ttm_tracker_begin_plain(&tracker, slot, &live, ttm_live_key_of(&live), EPOCH);
    assert_true(end(41));
    assert_int_equal(live_count(&tracker.table), 0);
    assert_true(atomic_load(&tracker.producer.segment->unknown_ends) == 0);
}

static void a_taken_place_sends_the_next_one_the_long_way(void **state)
{
    struct ttm_record record;
    (void)state;

    assert_true(begin(40));
    assert_int_equal(read_records(&record, 1), 1);
    const uint64_t serial = slot->serial;
    assert_false(begin(40 + TTM_NURSERY_LINES));
    assert_nothing_was_done();
    assert_true(slot->serial == serial);
    assert_int_equal(live_count(&tracker.table), 1);
}

static void an_end_of_what_is_not_there_is_left_to_the_long_way(void **state)
{
    struct ttm_record record;
    (void)state;

    assert_false(end(40));
    assert_nothing_was_done();
    assert_true(begin(40));
    assert_int_equal(read_records(&record, 1), 1);
    assert_false(end(40 + TTM_NURSERY_LINES));
    assert_nothing_was_done();
    assert_int_equal(live_count(&tracker.table), 1);
}

static void without_ticks_there_is_no_short_way(void **state)
{
    (void)state;

    tracker.clock = (struct ttm_tick_clock){0};
    assert_false(begin(40));
    assert_nothing_was_done();
    assert_int_equal(live_count(&tracker.table), 0);
}

static void an_end_is_told_with_the_kernels_time_where_the_clock_is_old(void **state)
{
    struct ttm_record records[2];
    (void)state;

    assert_true(begin(40));
    tracker.clock = (struct ttm_tick_clock){0};
    const uint64_t before = ttm_clock_monotonic_ns();
    assert_true(end(40));
    assert_int_equal(read_records(records, 2), 2);
    assert_in_range(records[1].time_ns, before, ttm_clock_monotonic_ns());
}

static void a_ring_that_fills_up_is_left_to_the_long_way(void **state)
{
    static struct ttm_record records[TTM_RING_SLOTS];
    uint32_t n = 0;
    (void)state;

    while (begin(40) && end(40))
        n += 2;
    if (live_count(&tracker.table) > 0) /* the last one begun had no room to end in here */
        n++;
    assert_int_equal(n, TTM_RING_WAKE_AT - 1);
    assert_false(atomic_load(&slot->is_busy));
    assert_int_equal(read_records(records, TTM_RING_SLOTS), n);
    assert_false(begin(41)); /* what it knows of the reader is old */
    ttm_tracker_end_plain(&tracker, slot, usual.allocator, usual.region, 40, EPOCH);
    assert_true(begin(41));
    assert_int_equal(ttm_ring_reader_lost(&reader), 0);
}

static void a_reader_that_sleeps_is_woken(void **state)
{
    (void)state;

    assert_true(ttm_ring_reader_sleep(&reader));
    assert_true(begin(40));
    assert_int_equal(looks, 1);
    assert_int_equal(atomic_load(&tracker.producer.segment->reader_sleep), TTM_READER_AWAKE);
    ttm_ring_reader_doze(&reader);
    assert_true(end(40));
    assert_int_equal(looks, 1);
}

static void what_a_handler_has_left_is_reported(void **state)
{
    const struct ttm_happening left = {
        .op = TTM_HAPPENING_END,
        .live = {.id = 40, .allocator = usual.allocator, .region = usual.region},
    };
    struct ttm_record records[4];
    (void)state;

    /* As if it had come while the thread was busy with the birth of the same id. */
    assert_true(ttm_deferred_add(&slot->deferred, &left));
    assert_true(begin(40));
    assert_int_equal(looks, 1);
    assert_int_equal(read_records(records, 4), 2);
    assert_int_equal(records[1].op, TTM_RECORD_END);
    assert_int_equal(live_count(&tracker.table), 0);
}

static void a_handler_amid_another_event_goes_the_long_way(void **state)
{
    (void)state;

    assert_true(begin(40));
    atomic_store(&slot->is_busy, true); /* the thread is in the middle of ttmem_mark() */
    assert_false(begin(41));
    assert_false(end(40));
    assert_true(atomic_load(&slot->is_busy));
    atomic_store(&slot->is_busy, false);
    assert_int_equal(live_count(&tracker.table), 1);
}

static void in_a_child_there_is_no_ring(void **state)
{
    struct ttm_ring *ring = slot->ring;
    (void)state;

    slot->ring = NULL;
    assert_false(begin(40));
    assert_false(end(40));
    slot->ring = ring;
}

static void a_birth_amid_a_switch_is_taken_back(void **state)
{
    const struct ttm_lane_size size = ttm_lane_size_of(&usual);
    struct ttm_record records[4];
    (void)state;

    assert_true(ttm_lane_begin(&tracker, slot, &size, 40, usual.address, ORIGIN, EPOCH - 2));
    assert_int_equal(live_count(&tracker.table), 0);
    assert_int_equal(read_records(records, 4), 2);
    assert_int_equal(records[1].op, TTM_RECORD_END);
    assert_true(records[1].serial == records[0].serial);
    assert_false(atomic_load(&slot->is_busy));
}

static void only_what_a_place_has_room_for_is_taken(void **state)
{
    struct ttm_live live = usual;
    (void)state;

    assert_true(ttm_lane_takes(&live));
    live.bytes = 0;
    assert_false(ttm_lane_takes(&live));
    live.bytes = TTM_LIVE_NUMBER_MAX + 1;
    assert_false(ttm_lane_takes(&live));
    live = usual;
    live.footprint_bytes = TTM_LIVE_NUMBER_MAX + 1;
    assert_false(ttm_lane_takes(&live));
    live = usual;
    live.flags = TTM_LIVE_PROGRAM;
    assert_false(ttm_lane_takes(&live));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_life_is_told_and_kept_as_on_the_long_way),
        cmocka_unit_test(an_end_says_no_more_than_what_has_ended),
        cmocka_unit_test(what_began_on_one_way_may_end_on_the_other),
        cmocka_unit_test(a_taken_place_sends_the_next_one_the_long_way),
        cmocka_unit_test(an_end_of_what_is_not_there_is_left_to_the_long_way),
        cmocka_unit_test(without_ticks_there_is_no_short_way),
        cmocka_unit_test(an_end_is_told_with_the_kernels_time_where_the_clock_is_old),
        cmocka_unit_test(a_ring_that_fills_up_is_left_to_the_long_way),
        cmocka_unit_test(a_reader_that_sleeps_is_woken),
        cmocka_unit_test(what_a_handler_has_left_is_reported),
        cmocka_unit_test(a_handler_amid_another_event_goes_the_long_way),
        cmocka_unit_test(in_a_child_there_is_no_ring),
        cmocka_unit_test(a_birth_amid_a_switch_is_taken_back),
        cmocka_unit_test(only_what_a_place_has_room_for_is_taken),
    };
    struct CMUnitTest each[COUNT_OF(tests)];

    for (size_t i = 0; i < COUNT_OF(tests); i++) {
        each[i] = tests[i];
        each[i].setup_func = set_up;
        each[i].teardown_func = tear_down;
    }
    return cmocka_run_group_tests(each, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* where the processor has no ticks to read there is no short way */
}

#endif
