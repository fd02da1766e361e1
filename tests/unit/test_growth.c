/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "base/clock.h"
#include "dashboard/growth.h"

static struct ttm_growth growth;

static int tear_down(void **state)
{
    (void)state;
    ttm_growth_done(&growth);
    return 0;
}

static void tell(uint64_t key, uint64_t at_s, uint64_t bytes)
{
    assert_int_equal(ttm_growth_tell(&growth, key, at_s * TTM_NS_PER_S, bytes), 0);
}

static int64_t rate(uint64_t key)
{
    int64_t found;

    assert_true(ttm_growth_rate(&growth, key, &found));
    return found;
}

static void one_telling_gives_no_rate(void **state)
{
    int64_t found;
    (void)state;

    tell(1, 10, 100);
    assert_false(ttm_growth_rate(&growth, 1, &found));
    assert_false(ttm_growth_rate(&growth, 2, &found));
}

static void a_rate_is_bytes_a_second_in_either_direction(void **state)
{
    (void)state;
    tell(1, 10, 100);
    tell(2, 10, 5000);
    tell(1, 14, 500);
    tell(2, 14, 1000);
    assert_int_equal(rate(1), 100);
    assert_int_equal(rate(2), -1000);
}

static void what_was_long_ago_does_not_count(void **state)
{
    (void)state;
    tell(1, 0, 0);
    tell(1, 2, 1000000); /* weights are loaded, and then nothing */
    for (uint64_t s = 4; s <= 40; s += 2)
        tell(1, s, 1000000);
    assert_int_equal(rate(1), 0);
}

static void who_is_not_told_of_is_forgotten_and_the_others_are_found(void **state)
{
    int64_t found;
    (void)state;

    for (uint64_t key = 1; key <= 100; key++)
        tell(key, 10, key);
    for (uint64_t key = 2; key <= 100; key += 2)
        tell(key, 20, key + 10 * key);
    ttm_growth_sweep(&growth, 20 * TTM_NS_PER_S);
    assert_int_equal(growth.count, 50);
    for (uint64_t key = 1; key <= 100; key++) {
        if (key % 2 == 0)
            assert_int_equal(rate(key), key);
        else
            assert_false(ttm_growth_rate(&growth, key, &found));
    }
}

#define GROWTH_TEST(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        GROWTH_TEST(one_telling_gives_no_rate),
        GROWTH_TEST(a_rate_is_bytes_a_second_in_either_direction),
        GROWTH_TEST(what_was_long_ago_does_not_count),
        GROWTH_TEST(who_is_not_told_of_is_forgotten_and_the_others_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
