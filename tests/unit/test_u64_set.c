/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "base/hash.h"
#include "base/u64_set.h"

#define SEED 1

static struct ttm_u64_set set;

static int set_up(void **state)
{
    (void)state;
    ttm_u64_set_init(&set, SEED);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_u64_set_done(&set);
    return 0;
}

static void an_empty_set_has_nothing_and_takes_no_memory(void **state)
{
    (void)state;
    assert_false(ttm_u64_set_has(&set, 1));
    assert_false(ttm_u64_set_remove(&set, 1));
    assert_null(set.places);
}

static void a_number_is_in_the_set_until_it_is_removed(void **state)
{
    (void)state;
    assert_int_equal(ttm_u64_set_add(&set, 7), 0);
    assert_int_equal(ttm_u64_set_add(&set, UINT64_MAX), 0);
    assert_int_equal(ttm_u64_set_add(&set, 7), 0);
    assert_int_equal(set.count, 2);
    assert_true(ttm_u64_set_has(&set, 7));
    assert_false(ttm_u64_set_has(&set, 8));
    assert_true(ttm_u64_set_remove(&set, 7));
    assert_false(ttm_u64_set_remove(&set, 7));
    assert_false(ttm_u64_set_has(&set, 7));
    assert_true(ttm_u64_set_has(&set, UINT64_MAX));
    assert_int_equal(set.count, 1);
}

static void numbers_of_any_upper_bits_are_found(void **state)
{
    (void)state;
    for (uint64_t upper = 0; upper < 40; upper++) {
        assert_int_equal(ttm_u64_set_add(&set, upper << 48 | (100 + upper)), 0);
        assert_int_equal(ttm_u64_set_add(&set, upper << 48 | (200 - upper)), 0);
    }
    for (uint64_t upper = 0; upper < 60; upper++) {
        for (uint64_t n = 90; n < 210; n++)
            assert_int_equal(ttm_u64_set_has(&set, upper << 48 | n),
                             upper < 40 && (n == 100 + upper || n == 200 - upper));
    }
}

/* The server passes on what a process says; a process may say 0. */
static void zero_is_refused_and_is_never_in_the_set(void **state)
{
    (void)state;
    assert_int_equal(ttm_u64_set_add(&set, 0), -EINVAL);
    assert_int_equal(ttm_u64_set_add(&set, 5), 0);
    assert_false(ttm_u64_set_has(&set, 0));
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(ttm_u64_set_add(&set, 0), -EINVAL);
        assert_false(ttm_u64_set_remove(&set, 0));
    }
    assert_int_equal(set.count, 1);
    assert_int_equal(set.size, 16);
}

/* Numbers whose search begins at the same place, the last one of a set of 32. */
static void numbers_that_collide_are_told_apart_in_any_order_of_removal(void **state)
{
    uint64_t numbers[12];
    size_t found = 0;
    (void)state;

    for (uint64_t n = 1; found < COUNT_OF(numbers); n++) {
        if ((ttm_hash_u64(n ^ SEED) & 31) == 31)
            numbers[found++] = n * 64 + n % 64;
    }
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        assert_int_equal(ttm_u64_set_add(&set, numbers[i]), 0);
    assert_true(set.places[31].members != 0 && set.places[10].members != 0); /* round the end */
    for (size_t shift = 0; shift < COUNT_OF(numbers); shift++) {
        for (size_t i = 0; i < COUNT_OF(numbers); i++)
            assert_int_equal(ttm_u64_set_add(&set, numbers[i]), 0);
        assert_int_equal(set.size, 32);
        for (size_t i = 0; i < COUNT_OF(numbers); i++) {
            const size_t gone = (i * 5 + shift) % COUNT_OF(numbers);
            assert_true(ttm_u64_set_remove(&set, numbers[gone]));
            for (size_t j = 0; j < COUNT_OF(numbers); j++) {
                const size_t other = (j * 5 + shift) % COUNT_OF(numbers);
                assert_int_equal(ttm_u64_set_has(&set, numbers[other]), j > i);
            }
        }
    }
}

static void the_set_holds_what_a_plain_array_holds(void **state)
{
    static bool has[3000];
    uint64_t random = 4711;
    size_t count = 0;
    (void)state;

    for (int i = 0; i < 100000; i++) {
        const uint32_t n = random_below(&random, COUNT_OF(has));
        /* As serials are: one of a thread, or some that follow each other. */
        const uint64_t number = n < 1000 ? (n + 1ull) << 48 | n : UINT64_C(7) << 48 | n;
        assert_int_equal(ttm_u64_set_has(&set, number), has[n]);
        if (random_below(&random, 2) == 0) {
            assert_int_equal(ttm_u64_set_add(&set, number), 0);
            count += !has[n];
            has[n] = true;
        } else {
            assert_int_equal(ttm_u64_set_remove(&set, number), has[n]);
            count -= has[n];
            has[n] = false;
        }
        assert_int_equal(set.count, count);
    }
}

static void numbers_that_follow_each_other_take_two_bits_each(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 64000; n++)
        assert_int_equal(ttm_u64_set_add(&set, UINT64_C(3) << 48 | n), 0);
    assert_int_equal(set.count, 63999);
    assert_int_equal(set.groups, 1000);
    assert_int_equal(set.size, 2048);
    for (uint64_t n = 1; n < 64000; n++)
        assert_true(ttm_u64_set_remove(&set, UINT64_C(3) << 48 | n));
    assert_int_equal(set.groups, 0);
}

static void without_memory_the_set_stays_as_it_was(void **state)
{
    (void)state;
    faults_begin(0);
    assert_int_equal(ttm_u64_set_add(&set, 1), -ENOMEM);
    assert_true(faults_end());
    assert_false(ttm_u64_set_has(&set, 1));
    for (uint64_t n = 1; n <= 8; n++)
        assert_int_equal(ttm_u64_set_add(&set, 64 * n), 0);
    faults_begin(0);
    assert_int_equal(ttm_u64_set_add(&set, 64 * 9), -ENOMEM);
    assert_true(faults_end());
    for (uint64_t n = 1; n <= 9; n++)
        assert_int_equal(ttm_u64_set_has(&set, 64 * n), n <= 8);
    assert_int_equal(ttm_u64_set_add(&set, 64 * 9), 0);
}

static void a_cleared_set_keeps_its_memory_if_it_was_in_use(void **state)
{
    (void)state;
    ttm_u64_set_clear(&set);
    for (uint64_t n = 1; n <= 1000; n++)
        assert_int_equal(ttm_u64_set_add(&set, n), 0);
    const size_t size = set.size;
    ttm_u64_set_clear(&set);
    assert_int_equal(set.count, 0);
    assert_int_equal(set.size, size);
    for (uint64_t n = 1; n <= 1000; n++)
        assert_false(ttm_u64_set_has(&set, n));
    assert_int_equal(ttm_u64_set_add(&set, 1), 0);
    ttm_u64_set_clear(&set);
    assert_int_equal(set.size, 0);
}

static void an_emptied_set_can_be_used_again(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 1000; n++)
        assert_int_equal(ttm_u64_set_add(&set, n), 0);
    ttm_u64_set_done(&set);
    assert_int_equal(set.count, 0);
    assert_false(ttm_u64_set_has(&set, 1));
    assert_int_equal(ttm_u64_set_add(&set, 1), 0);
    assert_true(ttm_u64_set_has(&set, 1));
}

#define WITH_SET(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

/* Where the number lies in a set that holds nothing else. */
static size_t place_of(uint64_t seed, uint64_t number)
{
    struct ttm_u64_set alone;
    size_t at = 0;

    ttm_u64_set_init(&alone, seed);
    assert_int_equal(ttm_u64_set_add(&alone, number), 0);
    while (alone.places[at].members == 0)
        at++;
    ttm_u64_set_done(&alone);
    assert_true(alone.seed == seed); /* it can be used again */
    return at;
}

static void numbers_chosen_to_collide_do_so_with_one_seed_alone(void **state)
{
    const size_t place = place_of(1, 64);
    uint32_t chosen = 0, still = 0;
    (void)state;

    for (uint64_t number = 64; chosen < 64; number += 64) {
        if (place_of(1, number) != place)
            continue;
        chosen++;
        still += place_of(2, number) == place_of(2, 64);
    }
    assert_in_range(still, 1, chosen / 2); /* the number itself, and few others */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SET(an_empty_set_has_nothing_and_takes_no_memory),
        WITH_SET(a_number_is_in_the_set_until_it_is_removed),
        WITH_SET(numbers_of_any_upper_bits_are_found),
        WITH_SET(zero_is_refused_and_is_never_in_the_set),
        WITH_SET(numbers_that_collide_are_told_apart_in_any_order_of_removal),
        WITH_SET(the_set_holds_what_a_plain_array_holds),
        WITH_SET(numbers_that_follow_each_other_take_two_bits_each),
        WITH_SET(without_memory_the_set_stays_as_it_was),
        WITH_SET(an_emptied_set_can_be_used_again),
        WITH_SET(a_cleared_set_keeps_its_memory_if_it_was_in_use),
        cmocka_unit_test(numbers_chosen_to_collide_do_so_with_one_seed_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
