/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>

#include "server/early_ends.h"

static void an_end_is_handed_out_once(void **state)
{
    struct ttm_early_ends early;
    struct ttm_early_end end = {.time_ns = 5, .how = 2};
    (void)state;

    ttm_early_ends_init(&early, 9, NULL);
    assert_false(ttm_early_ends_take(&early, 7, &end));
    assert_int_equal(ttm_early_ends_add(&early, 7, &end), 0);
    end = (struct ttm_early_end){0};
    assert_true(ttm_early_ends_take(&early, 7, &end));
    assert_int_equal(end.time_ns, 5);
    assert_int_equal(end.how, 2);
    assert_false(ttm_early_ends_take(&early, 7, &end));
    ttm_early_ends_done(&early);
}

static void an_end_without_a_birth_is_forgotten_at_the_second_age(void **state)
{
    struct ttm_early_ends early;
    struct ttm_early_end end = {.time_ns = 5};
    (void)state;

    ttm_early_ends_init(&early, 9, NULL);
    for (uint64_t serial = 1; serial <= 1000; serial++)
        assert_int_equal(ttm_early_ends_add(&early, serial, &end), 0);
    ttm_early_ends_age(&early);
    assert_true(ttm_early_ends_has(&early, 1000));
    assert_true(ttm_early_ends_take(&early, 1000, &end));
    assert_false(ttm_early_ends_has(&early, 1000));
    assert_int_equal(ttm_early_ends_add(&early, 2000, &end), 0);
    ttm_early_ends_age(&early);
    assert_false(ttm_early_ends_take(&early, 1, &end));
    assert_true(ttm_early_ends_take(&early, 2000, &end));
    ttm_early_ends_done(&early);
}

static void what_a_process_says_twice_is_said_once(void **state)
{
    struct ttm_early_ends early;
    struct ttm_early_end first = {.time_ns = 5}, second = {.time_ns = 6}, end;
    (void)state;

    ttm_early_ends_init(&early, 9, NULL);
    assert_int_equal(ttm_early_ends_add(&early, 7, &first), 0);
    assert_int_equal(ttm_early_ends_add(&early, 7, &second), 0);
    assert_true(ttm_early_ends_take(&early, 7, &end));
    assert_int_equal(end.time_ns, 5);
    assert_false(ttm_early_ends_take(&early, 7, &end));
    ttm_early_ends_done(&early);
}

static void ends_of_all_processes_of_a_user_have_a_share(void **state)
{
    const struct ttm_early_end end = {.time_ns = 5};
    struct ttm_quota quota = {.max = 10};
    struct ttm_early_ends one, other;
    (void)state;

    ttm_early_ends_init(&one, 9, &quota);
    ttm_early_ends_init(&other, 9, &quota);
    for (uint64_t serial = 1; serial <= 6; serial++)
        assert_int_equal(ttm_early_ends_add(&one, serial, &end), 0);
    for (uint64_t serial = 1; serial <= 4; serial++)
        assert_int_equal(ttm_early_ends_add(&other, serial, &end), 0);
    assert_int_equal(ttm_early_ends_add(&other, 5, &end), -ENOSPC);
    ttm_early_ends_age(&one);
    ttm_early_ends_age(&one);
    assert_int_equal(quota.used, 4);
    assert_int_equal(ttm_early_ends_add(&other, 5, &end), 0);
    ttm_early_ends_done(&one);
    ttm_early_ends_done(&other);
    assert_int_equal(quota.used, 0);
}

static void there_is_a_bound(void **state)
{
    struct ttm_early_ends early;
    const struct ttm_early_end end = {0};
    uint64_t serial = 1;
    (void)state;

    ttm_early_ends_init(&early, 9, NULL);
    while (serial <= TTM_EARLY_ENDS_MAX && ttm_early_ends_add(&early, serial, &end) == 0)
        serial++;
    assert_int_equal(serial, TTM_EARLY_ENDS_MAX + 1);
    assert_int_equal(ttm_early_ends_add(&early, serial, &end), -ENOSPC);
    ttm_early_ends_done(&early);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_end_is_handed_out_once),
        cmocka_unit_test(an_end_without_a_birth_is_forgotten_at_the_second_age),
        cmocka_unit_test(what_a_process_says_twice_is_said_once),
        cmocka_unit_test(ends_of_all_processes_of_a_user_have_a_share),
        cmocka_unit_test(there_is_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
