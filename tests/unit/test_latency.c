/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "server/latency.h"

static void without_durations_every_percentile_is_zero(void **state)
{
    const struct ttm_latency latency = {0};
    (void)state;

    assert_int_equal(ttm_latency_percentile(&latency, 0), 0);
    assert_int_equal(ttm_latency_percentile(&latency, 50), 0);
    assert_int_equal(ttm_latency_percentile(&latency, 100), 0);
}

static void a_percentile_is_at_most_an_eighth_above_the_truth(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit < 64; bit++) {
        for (unsigned low = 0; low < 16; low++) {
            struct ttm_latency latency = {0};
            const uint64_t v = (1ull << bit) | (bit >= 4 ? (uint64_t)low << (bit - 4) : 0);
            ttm_latency_add(&latency, v);
            ttm_latency_add(&latency, UINT64_MAX); /* so that the maximum does not help */
            const uint64_t p50 = ttm_latency_percentile(&latency, 50);
            assert_true(p50 >= v);
            assert_true(p50 - v <= v / 8);
        }
    }
}

static void a_percentile_never_exceeds_the_longest(void **state)
{
    struct ttm_latency latency = {0};
    (void)state;

    ttm_latency_add(&latency, 1000);
    assert_int_equal(ttm_latency_percentile(&latency, 50), 1000);
    assert_int_equal(ttm_latency_percentile(&latency, 100), 1000);
    assert_int_equal(latency.max_ns, 1000);
}

static void the_smallest_and_the_largest_duration_are_counted(void **state)
{
    struct ttm_latency latency = {0};
    (void)state;

    ttm_latency_add(&latency, 0);
    ttm_latency_add(&latency, UINT64_MAX);
    assert_int_equal(latency.count, 2);
    assert_int_equal(ttm_latency_percentile(&latency, 50), 0);
    assert_true(ttm_latency_percentile(&latency, 99) == UINT64_MAX);
}

static void of_a_hundred_durations_the_99th_percentile_is_the_99th(void **state)
{
    struct ttm_latency latency = {0};
    (void)state;

    for (unsigned i = 0; i < 99; i++)
        ttm_latency_add(&latency, 5);
    ttm_latency_add(&latency, 1000000);
    assert_int_equal(ttm_latency_percentile(&latency, 1), 5);
    assert_int_equal(ttm_latency_percentile(&latency, 99), 5);
    assert_int_equal(ttm_latency_percentile(&latency, 100), 1000000);
    ttm_latency_add(&latency, 1000000); /* now 99 of 101 are short: 98.02 % */
    assert_int_equal(ttm_latency_percentile(&latency, 99), 1000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_durations_every_percentile_is_zero),
        cmocka_unit_test(a_percentile_is_at_most_an_eighth_above_the_truth),
        cmocka_unit_test(a_percentile_never_exceeds_the_longest),
        cmocka_unit_test(the_smallest_and_the_largest_duration_are_counted),
        cmocka_unit_test(of_a_hundred_durations_the_99th_percentile_is_the_99th),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
