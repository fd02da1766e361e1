/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "base/clock.h"
#include "dashboard/samples.h"

static struct ttm_samples history;

static int tear_down(void **state)
{
    (void)state;
    ttm_samples_done(&history);
    history = (struct ttm_samples){0};
    return 0;
}

static void tell(unsigned device, double at_s, uint64_t dram, uint64_t l1)
{
    const uint64_t bytes[TTM_TRACK_COUNT] = {dram, l1};

    assert_int_equal(
        ttm_samples_add(&history, device, (uint64_t)(at_s * (double)TTM_NS_PER_S), bytes), 0);
}

static uint64_t read_at(unsigned now_s, unsigned window_s, uint64_t *ret, size_t count)
{
    return ttm_samples_read(&history, 0, TTM_TRACK_DRAM, now_s * TTM_NS_PER_S, window_s, ret,
                            count);
}

static void the_newest_value_is_the_last_one(void **state)
{
    uint64_t values[4];
    (void)state;

    tell(0, 100, 10, 1);
    tell(0, 101, 20, 2);
    tell(0, 102, 15, 3);
    assert_int_equal(read_at(102, 4, values, 4), 20);
    assert_true(values[0] == TTM_SAMPLES_NONE);
    assert_int_equal(values[1], 10);
    assert_int_equal(values[2], 20);
    assert_int_equal(values[3], 15);
    assert_int_equal(ttm_samples_read(&history, 0, TTM_TRACK_L1, 102 * TTM_NS_PER_S, 1, values, 1),
                     3);
}

static void of_several_values_in_a_second_the_largest_stays(void **state)
{
    uint64_t value;
    (void)state;

    tell(0, 50.1, 5, 0);
    tell(0, 50.5, 9, 0);
    tell(0, 50.9, 7, 0);
    (void)read_at(50, 1, &value, 1);
    assert_int_equal(value, 9);
}

static void a_part_has_the_largest_of_its_seconds(void **state)
{
    uint64_t values[2];
    (void)state;

    for (unsigned s = 0; s < 10; s++)
        tell(0, 1000 + s, s == 3 ? 99 : s, 0);
    assert_int_equal(read_at(1009, 10, values, 2), 99);
    assert_int_equal(values[0], 99);
    assert_int_equal(values[1], 9);
}

static void more_parts_than_seconds_repeat_them(void **state)
{
    uint64_t values[8];
    (void)state;

    tell(0, 10, 1, 0);
    tell(0, 11, 2, 0);
    (void)read_at(11, 2, values, 8);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(values[i], i < 4 ? 1 : 2);
}

static void a_short_gap_is_bridged_and_a_long_one_is_not(void **state)
{
    uint64_t values[8];
    (void)state;

    history.bridge_s = 1;
    tell(0, 10, 4, 0);
    tell(0, 12, 6, 0);
    tell(0, 15, 8, 0);
    (void)read_at(15, 6, values, 6);
    assert_int_equal(values[1], 4);
    assert_int_equal(values[2], 6);
    assert_true(values[3] == TTM_SAMPLES_NONE && values[4] == TTM_SAMPLES_NONE);
    assert_int_equal(values[5], 8);
}

static void after_an_hour_the_oldest_is_gone(void **state)
{
    uint64_t value;
    (void)state;

    for (unsigned s = 0; s < 2 * TTM_SAMPLES_SECONDS; s++)
        tell(0, s, s == 0 ? 1000000 : s, 0);
    assert_int_equal(read_at(2 * TTM_SAMPLES_SECONDS - 1, TTM_SAMPLES_SECONDS, &value, 1),
                     2 * TTM_SAMPLES_SECONDS - 1);
    tell(0, 9.0 * TTM_SAMPLES_SECONDS, 1, 0); /* a long pause: nothing of before is left */
    assert_int_equal(read_at(9 * TTM_SAMPLES_SECONDS, TTM_SAMPLES_SECONDS, &value, 1), 1);
}

static void devices_are_kept_apart_and_an_unknown_one_has_nothing(void **state)
{
    uint64_t value;
    (void)state;

    tell(0, 5, 1, 0);
    tell(31, 5, 7, 0);
    assert_int_equal(ttm_samples_read(&history, 31, TTM_TRACK_DRAM, 5 * TTM_NS_PER_S, 1, &value, 1),
                     7);
    assert_int_equal(ttm_samples_read(&history, 3, TTM_TRACK_DRAM, 5 * TTM_NS_PER_S, 1, &value, 1),
                     0);
    assert_true(value == TTM_SAMPLES_NONE);
}

#define HISTORY_TEST(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HISTORY_TEST(the_newest_value_is_the_last_one),
        HISTORY_TEST(of_several_values_in_a_second_the_largest_stays),
        HISTORY_TEST(a_part_has_the_largest_of_its_seconds),
        HISTORY_TEST(more_parts_than_seconds_repeat_them),
        HISTORY_TEST(a_short_gap_is_bridged_and_a_long_one_is_not),
        HISTORY_TEST(after_an_hour_the_oldest_is_gone),
        HISTORY_TEST(devices_are_kept_apart_and_an_unknown_one_has_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
