/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "base/turn.h"

static void those_that_begin_together_come_one_after_the_other(void **state)
{
    (void)state;

    assert_int_equal(ttm_turn_first(5000, 1000, 0, 4), 5250);
    assert_int_equal(ttm_turn_first(5000, 1000, 1, 4), 5500);
    assert_int_equal(ttm_turn_first(5000, 1000, 3, 4), 6000); /* within the interval */
    assert_int_equal(ttm_turn_first(5000, 1000, 4, 4), 5250);
}

static void who_is_late_keeps_its_place(void **state)
{
    (void)state;

    assert_int_equal(ttm_turn_next(5250, 1000, 5250), 6250);
    assert_int_equal(ttm_turn_next(5250, 1000, 5400), 6250);
    assert_int_equal(ttm_turn_next(5250, 1000, 6249), 6250);
    assert_int_equal(ttm_turn_next(5250, 1000, 6250),
                     7250); /* what was missed is not made up for */
    assert_int_equal(ttm_turn_next(5250, 1000, 9999), 10250);
}

static void who_is_early_has_its_next_turn_an_interval_later(void **state)
{
    (void)state;

    assert_int_equal(ttm_turn_next(5250, 1000, 4000), 6250);
    assert_int_equal(ttm_turn_next(5250, 0, 6000), 5250); /* without an interval it does not hang */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_that_begin_together_come_one_after_the_other),
        cmocka_unit_test(who_is_late_keeps_its_place),
        cmocka_unit_test(who_is_early_has_its_next_turn_an_interval_later),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
