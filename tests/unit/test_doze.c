/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "server/doze.h"

#define SLOTS 8192u
#define MS UINT64_C(1000000)

static uint64_t next_of(struct ttm_doze *doze, uint64_t now_ns, uint64_t records)
{
    doze->records += records;
    return ttm_doze_next(doze, now_ns, SLOTS);
}

/* How long it is after many looks at rings that get so many records a millisecond. */
static uint64_t doze_at(uint32_t per_ms)
{
    struct ttm_doze doze = {0};
    uint64_t now_ns = 1000 * MS, next_ns = 10 * MS;

    for (int i = 0; i < 50; i++) {
        now_ns += next_ns;
        next_ns = next_of(&doze, now_ns, next_ns / MS * per_ms);
    }
    return next_ns;
}

static void what_is_filled_slowly_is_looked_at_seldom(void **state)
{
    (void)state;
    assert_int_equal(doze_at(1), TTM_DOZE_MOST_NS);
    assert_int_equal(doze_at(600), TTM_DOZE_NS);
    assert_in_range(doze_at(80), 62 * MS, 65 * MS); /* 5120 records */
}

static void it_gets_longer_by_and_by_and_shorter_at_once(void **state)
{
    struct ttm_doze doze = {.read_ns = 1000 * MS, .last_ns = 10 * MS};
    (void)state;

    assert_int_equal(next_of(&doze, 1010 * MS, 1), 12500000);
    assert_int_equal(next_of(&doze, 1022 * MS, 1), 15625000);
    assert_int_equal(next_of(&doze, 1030 * MS, 6144), TTM_DOZE_NS);
}

static void rings_that_are_empty_are_looked_at_less_and_less(void **state)
{
    struct ttm_doze doze = {.read_ns = 1000 * MS, .last_ns = 10 * MS};
    (void)state;

    assert_int_equal(next_of(&doze, 1010 * MS, 0), 20 * MS);
    assert_int_equal(next_of(&doze, 1030 * MS, 0), 40 * MS);
    assert_int_equal(next_of(&doze, 1070 * MS, 0), 80 * MS);
    assert_int_equal(next_of(&doze, 1150 * MS, 0), TTM_DOZE_MOST_NS);
}

static void the_first_look_and_one_after_a_sleep_say_nothing_of_the_rate(void **state)
{
    struct ttm_doze doze = {0};
    (void)state;

    assert_int_equal(next_of(&doze, 1000 * MS, 100), TTM_DOZE_NS);
    assert_int_equal(next_of(&doze, UINT64_MAX, 1), 12500000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_filled_slowly_is_looked_at_seldom),
        cmocka_unit_test(it_gets_longer_by_and_by_and_shorter_at_once),
        cmocka_unit_test(rings_that_are_empty_are_looked_at_less_and_less),
        cmocka_unit_test(the_first_look_and_one_after_a_sleep_say_nothing_of_the_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
