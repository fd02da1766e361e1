/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "model/remains.h"

static struct ttm_remains_set set;

static int set_up(void **state)
{
    (void)state;
    ttm_remains_set_init(&set, 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_remains_set_done(&set);
    return 0;
}

static void add(uint64_t bytes, uint64_t count, uint32_t origin, uint16_t devices)
{
    const struct ttm_remains remains = {
        .bytes = bytes,
        .footprint_bytes = bytes * 2,
        .count = count,
        .origin = origin,
        .device_count = devices,
        .device_set = devices,
    };

    ttm_remains_add(&set, &remains);
}

static void those_alike_are_one_kind(void **state)
{
    (void)state;
    add(100, 1, 1, 1);
    add(100, 5, 1, 1);
    assert_int_equal(set.count, 1);
    assert_int_equal(set.list[0].count, 6);
    assert_int_equal(ttm_remains_taken(&set.list[0]), 6 * 200);
    add(100, 1, 2, 1); /* another origin */
    add(101, 1, 1, 1); /* another size */
    add(100, 1, 1, 2); /* other devices */
    assert_int_equal(set.count, 4);
    assert_int_equal(ttm_remains_taken(&set.list[3]), 400);
    assert_int_equal(set.others, 0);
}

static void over_the_bound_they_are_summed_up(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= TTM_REMAINS_MAX; i++)
        add(i, 1, 0, 1);
    add(TTM_REMAINS_MAX + 1, 3, 0, 8);
    add(1, 1, 0, 1); /* a kind that is there is found still */
    assert_int_equal(set.count, TTM_REMAINS_MAX);
    assert_int_equal(set.others, 3);
    assert_int_equal(set.total, TTM_REMAINS_MAX + 4);
    assert_int_equal(set.others_footprint_bytes, 3 * 8 * 2 * (TTM_REMAINS_MAX + 1));
    assert_int_equal(set.list[0].count, 2);
}

static void when_memory_is_short_they_are_summed_up(void **state)
{
    bool has_failed = true;
    (void)state;

    for (unsigned grants = 0; has_failed; grants++) {
        faults_begin(grants);
        add(100, 4, 0, 1);
        has_failed = faults_end();
        assert_int_equal(set.others, has_failed ? 4 : 0);
        assert_int_equal(set.others_footprint_bytes, has_failed ? 800 : 0);
        ttm_remains_set_done(&set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(those_alike_are_one_kind, set_up, tear_down),
        cmocka_unit_test_setup_teardown(over_the_bound_they_are_summed_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(when_memory_is_short_they_are_summed_up, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
