/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/core_set.h"

#include "testing.h"

static void rectangles_that_overlap_are_counted_once(void **state)
{
    struct ttm_core_set set = {.count = 1, .ranges = {{0, 0, 3, 1}}};
    const struct ttm_core_set more = {.count = 2, .ranges = {{2, 1, 5, 2}, {0, 0, 0, 0}}};
    (void)state;

    ttm_core_set_join(&set, &more);
    assert_int_equal(ttm_cores_count(set.ranges, set.count), 8 + 8 - 2);
}

static void the_whole_of_a_row_is_one_rectangle(void **state)
{
    struct ttm_core_set set = {.count = 2, .ranges = {{0, 0, 31, 63}, {32, 0, 63, 63}}};
    const struct ttm_core_set none = {.count = 0};
    (void)state;

    ttm_core_set_join(&set, &none);
    assert_int_equal(set.count, 1);
    assert_int_equal(ttm_cores_count(set.ranges, set.count), 64 * 64);
}

static void cores_that_no_chip_has_are_left_out(void **state)
{
    struct ttm_core_set set = {.count = 3, .ranges = {{0, 0, 64, 0}, {0, 64, 0, 64}, {5, 0, 4, 0}}};
    const struct ttm_core_set more = {.count = 1, .ranges = {{63, 63, 63, 63}}};
    (void)state;

    ttm_core_set_join(&set, &more);
    assert_int_equal(ttm_cores_count(set.ranges, set.count), 1);
}

static void sets_that_only_touch_do_not_intersect(void **state)
{
    const struct ttmem_core_range left = {0, 0, 3, 3}, right = {4, 0, 7, 3}, corner = {3, 3, 4, 4};
    (void)state;

    assert_false(ttm_cores_intersect(&left, 1, &right, 1));
    assert_true(ttm_cores_intersect(&left, 1, &corner, 1));
    assert_true(ttm_cores_intersect(&corner, 1, &right, 1));
    assert_false(ttm_cores_intersect(&left, 0, &left, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rectangles_that_overlap_are_counted_once),
        cmocka_unit_test(the_whole_of_a_row_is_one_rectangle),
        cmocka_unit_test(cores_that_no_chip_has_are_left_out),
        cmocka_unit_test(sets_that_only_touch_do_not_intersect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
