/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "ring/segment.h"
#include "server/pairs.h"

#define THREAD (1ull << 48)

static struct ttm_pairs pairs;
static struct ttm_record records[TTM_PAIRS_MAX];
static uint16_t order[TTM_PAIRS_MAX];
static uint32_t count;

static void add(uint8_t op, uint64_t serial)
{
    order[count] = (uint16_t)count;
    records[count++] = (struct ttm_record){.op = op, .serial = serial};
}

static void find(void)
{
    ttm_pairs_find(&pairs, records, order, count);
}

static int set_up(void **state)
{
    (void)state;
    count = 0;
    memset(&pairs, 0, sizeof(pairs));
    return 0;
}

static void an_end_meets_the_birth_before_it(void **state)
{
    (void)state;
    add(TTM_RECORD_BIRTH, THREAD + 1);
    add(TTM_RECORD_BIRTH, THREAD + 2);
    add(TTM_RECORD_END, THREAD + 1);
    add(TTM_RECORD_BIRTH, THREAD + 3);
    find();
    assert_int_equal(pairs.mate[0], 2);
    assert_int_equal(pairs.mate[2], 0);
    assert_int_equal(pairs.mate[1], TTM_PAIR_NONE);
    assert_int_equal(pairs.mate[3], TTM_PAIR_NONE);
}

static void the_order_is_what_counts(void **state)
{
    (void)state;
    add(TTM_RECORD_END, THREAD + 1);
    add(TTM_RECORD_BIRTH, THREAD + 1);
    find();
    assert_int_equal(pairs.mate[0], TTM_PAIR_NONE);
    order[0] = 1;
    order[1] = 0;
    find();
    assert_int_equal(pairs.mate[0], 1);
    assert_int_equal(pairs.mate[1], 0);
}

static void all_pairs_of_two_threads_in_a_full_slice_are_found(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < TTM_PAIRS_MAX / 4; i++) {
        add(TTM_RECORD_BIRTH, 1 * THREAD + 70000 + i);
        add(TTM_RECORD_BIRTH, 2 * THREAD + 70000 + i);
        add(TTM_RECORD_END, 1 * THREAD + 70000 + i);
        add(TTM_RECORD_END, 2 * THREAD + 70000 + i);
    }
    find();
    for (uint32_t i = 0; i < TTM_PAIRS_MAX; i++)
        assert_int_equal(pairs.mate[i], i % 4 < 2 ? i + 2 : i - 2);
}

static void a_record_about_the_same_life_parts_a_pair(void **state)
{
    static const uint8_t ops[] = {TTM_RECORD_NAMED, TTM_RECORD_REPLACED, TTM_RECORD_CLOSED,
                                  TTM_RECORD_BIRTH};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(ops); i++) {
        count = 0;
        add(TTM_RECORD_BIRTH, THREAD + 1);
        add(ops[i], THREAD + 1);
        add(TTM_RECORD_END, THREAD + 1);
        find();
        assert_int_equal(pairs.mate[0], TTM_PAIR_NONE);
        assert_int_equal(pairs.mate[1], TTM_PAIR_NONE);
        assert_int_equal(pairs.mate[2], TTM_PAIR_NONE);
    }
}

static void a_failure_parts_all_pairs_as_its_owners_are_looked_for(void **state)
{
    (void)state;
    add(TTM_RECORD_BIRTH, THREAD + 1);
    add(TTM_RECORD_FAILURE, 0);
    add(TTM_RECORD_END, THREAD + 1);
    add(TTM_RECORD_BIRTH, THREAD + 2);
    add(TTM_RECORD_END, THREAD + 2);
    find();
    assert_int_equal(pairs.mate[0], TTM_PAIR_NONE);
    assert_int_equal(pairs.mate[2], TTM_PAIR_NONE);
    assert_int_equal(pairs.mate[3], 4);
}

static void the_name_of_a_mark_is_no_serial(void **state)
{
    (void)state;
    add(TTM_RECORD_BIRTH, THREAD + 1);
    add(TTM_RECORD_MARK, THREAD + 1);
    add(TTM_RECORD_END, THREAD + 1);
    find();
    assert_int_equal(pairs.mate[0], 2);
    assert_int_equal(pairs.mate[1], TTM_PAIR_NONE);
}

static void a_life_ends_once(void **state)
{
    (void)state;
    add(TTM_RECORD_BIRTH, THREAD + 1);
    add(TTM_RECORD_END, THREAD + 1);
    add(TTM_RECORD_END, THREAD + 1);
    add(TTM_RECORD_BIRTH, THREAD + 1);
    add(TTM_RECORD_END, THREAD + 1);
    find();
    assert_int_equal(pairs.mate[0], 1);
    assert_int_equal(pairs.mate[2], TTM_PAIR_NONE);
    assert_int_equal(pairs.mate[3], 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_end_meets_the_birth_before_it, set_up),
        cmocka_unit_test_setup(the_order_is_what_counts, set_up),
        cmocka_unit_test_setup(all_pairs_of_two_threads_in_a_full_slice_are_found, set_up),
        cmocka_unit_test_setup(a_record_about_the_same_life_parts_a_pair, set_up),
        cmocka_unit_test_setup(a_failure_parts_all_pairs_as_its_owners_are_looked_for, set_up),
        cmocka_unit_test_setup(the_name_of_a_mark_is_no_serial, set_up),
        cmocka_unit_test_setup(a_life_ends_once, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
