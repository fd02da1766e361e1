/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "analysis/spread.h"

static uint64_t sum_of(const struct ttm_spread *spread)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < TTM_SPREAD_BARS; i++)
        sum += spread->bars[i];
    return sum;
}

static void bars_widen_and_nothing_is_lost(void **state)
{
    struct ttm_spread spread = {0};
    (void)state;

    for (uint64_t i = 0; i < 1000; i++)
        ttm_spread_add(&spread, i);
    assert_int_equal(sum_of(&spread), 1000);
    assert_int_equal(spread.shift, 5);
    assert_int_equal(spread.bars[0], 32);
    assert_int_equal(spread.bars[30], 32);
    ttm_spread_add(&spread, UINT64_MAX);
    assert_int_equal(sum_of(&spread), 1001);
    assert_int_equal(spread.bars[0], 1000);
    assert_int_equal(spread.bars[31], 1);
}

static void two_of_different_width_add_up(void **state)
{
    struct ttm_spread narrow = {0}, wide = {0}, both;
    (void)state;

    ttm_spread_add(&narrow, 3);
    ttm_spread_add(&narrow, 20);
    ttm_spread_add(&wide, 1000);
    both = narrow;
    ttm_spread_merge(&both, &wide);
    ttm_spread_merge(&wide, &narrow);
    assert_memory_equal(&both, &wide, sizeof(both));
    assert_int_equal(sum_of(&both), 3);
}

static void bars_lie_over_the_range_that_is_asked_for(void **state)
{
    struct ttm_spread spread = {0};
    uint64_t bars[4];
    (void)state;

    for (uint64_t i = 0; i < 400; i++)
        ttm_spread_add(&spread, i);
    ttm_spread_bars(&spread, 400, 4, bars);
    for (unsigned i = 0; i < 4; i++)
        assert_in_range(bars[i], 80, 112); /* a bar is 16 wide */
    ttm_spread_bars(&spread, 4000, 4, bars);
    assert_int_equal(bars[0], 400);
    ttm_spread_bars(&spread, 0, 4, bars); /* no range at all */
    assert_int_equal(bars[0] + bars[3], 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bars_widen_and_nothing_is_lost),
        cmocka_unit_test(two_of_different_width_add_up),
        cmocka_unit_test(bars_lie_over_the_range_that_is_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
