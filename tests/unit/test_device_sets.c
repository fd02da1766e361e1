/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "model/device_sets.h"

static struct ttm_device_sets sets;

static int set_up(void **state)
{
    (void)state;
    ttm_device_sets_init(&sets, 0x5eed);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_device_sets_done(&sets);
    return 0;
}

static uint32_t intern(const uint16_t *devices, uint32_t count)
{
    uint32_t number = UINT32_MAX;

    assert_int_equal(ttm_device_sets_intern(&sets, devices, count, &number), 0);
    return number;
}

static void one_device_is_the_set_of_its_own_number(void **state)
{
    (void)state;
    for (uint16_t i = 0; i < TTM_DEVICE_COUNT; i++) {
        const struct ttm_device_set set = ttm_device_sets_get(&sets, i);
        assert_int_equal(set.count, 1);
        assert_int_equal(set.devices[0], i);
        assert_int_equal(intern(&i, 1), i);
    }
    assert_int_equal(sets.count, 0);
}

static void doubles_are_ignored(void **state)
{
    (void)state;
    assert_int_equal(intern((uint16_t[]){7, 7, 7}, 3), 7);
    const uint32_t pair = intern((uint16_t[]){3, 9, 3, 9}, 4);
    assert_int_equal(ttm_device_sets_get(&sets, pair).count, 2);
}

static void the_order_does_not_matter_and_the_set_is_ascending(void **state)
{
    (void)state;
    const uint32_t number = intern((uint16_t[]){1023, 0, 5}, 3);
    assert_int_equal(number, TTM_DEVICE_COUNT);
    assert_int_equal(intern((uint16_t[]){5, 1023, 0}, 3), number);
    const struct ttm_device_set set = ttm_device_sets_get(&sets, number);
    assert_int_equal(set.count, 3);
    assert_int_equal(set.devices[0], 0);
    assert_int_equal(set.devices[1], 5);
    assert_int_equal(set.devices[2], 1023);
}

static void sets_that_differ_have_different_numbers_that_stay(void **state)
{
    (void)state;
    const uint32_t a = intern((uint16_t[]){0, 1}, 2);
    const uint32_t b = intern((uint16_t[]){0, 1, 2}, 3);
    const uint32_t c = intern((uint16_t[]){0, 2}, 2);
    assert_true(a != b && b != c && a != c);
    for (uint16_t i = 3; i < 300; i++)
        (void)intern((uint16_t[]){0, i}, 2);
    assert_int_equal(intern((uint16_t[]){0, 1}, 2), a);
    assert_int_equal(intern((uint16_t[]){0, 1, 2}, 3), b);
    assert_int_equal(ttm_device_sets_get(&sets, c).devices[1], 2);
}

static void all_devices_are_one_set(void **state)
{
    uint16_t all[TTM_DEVICE_COUNT];
    (void)state;

    for (uint16_t i = 0; i < TTM_DEVICE_COUNT; i++)
        all[i] = (uint16_t)(TTM_DEVICE_COUNT - 1 - i);
    const struct ttm_device_set set = ttm_device_sets_get(&sets, intern(all, TTM_DEVICE_COUNT));
    assert_int_equal(set.count, TTM_DEVICE_COUNT);
    assert_int_equal(set.devices[0], 0);
    assert_int_equal(set.devices[1023], 1023);
}

static void no_device_and_devices_out_of_range_are_refused(void **state)
{
    uint32_t number;
    (void)state;

    assert_int_equal(ttm_device_sets_intern(&sets, NULL, 0, &number), -EINVAL);
    assert_int_equal(ttm_device_sets_intern(&sets, (uint16_t[]){1024}, 1, &number), -EINVAL);
    assert_int_equal(ttm_device_sets_intern(&sets, (uint16_t[]){0, 65535}, 2, &number), -EINVAL);
    assert_int_equal(sets.count, 0);
}

static void a_number_that_was_never_given_is_the_empty_set(void **state)
{
    (void)state;
    assert_int_equal(ttm_device_sets_get(&sets, TTM_DEVICE_COUNT).count, 0);
    (void)intern((uint16_t[]){0, 1}, 2);
    assert_int_equal(ttm_device_sets_get(&sets, TTM_DEVICE_COUNT).count, 2);
    assert_int_equal(ttm_device_sets_get(&sets, TTM_DEVICE_COUNT + 1).count, 0);
    assert_int_equal(ttm_device_sets_get(&sets, UINT32_MAX).count, 0);
}

static void more_sets_than_the_limit_are_refused_and_the_known_ones_stay(void **state)
{
    uint32_t number;
    uint32_t made = 0;
    (void)state;

    for (uint16_t a = 0; made < TTM_DEVICE_SETS_MAX; a++) {
        for (uint16_t b = (uint16_t)(a + 1); b < TTM_DEVICE_COUNT && made < TTM_DEVICE_SETS_MAX;
             b++)
            assert_int_equal(intern((uint16_t[]){a, b}, 2), TTM_DEVICE_COUNT + made++);
    }
    assert_int_equal(ttm_device_sets_intern(&sets, (uint16_t[]){1000, 1001}, 2, &number), -ENOSPC);
    assert_int_equal(intern((uint16_t[]){0, 1}, 2), TTM_DEVICE_COUNT);
    assert_int_equal(intern((uint16_t[]){1000}, 1), 1000);
    ttm_device_sets_unref(&sets, TTM_DEVICE_COUNT + 5);
    assert_int_equal(intern((uint16_t[]){1000, 1001}, 2), TTM_DEVICE_COUNT + 5);
}

static void short_memory_adds_no_set(void **state)
{
    bool has_failed = true;
    uint32_t number;
    (void)state;

    for (unsigned grants = 0; has_failed; grants++) {
        faults_begin(grants);
        const int r = ttm_device_sets_intern(&sets, (uint16_t[]){1, 2}, 2, &number);
        has_failed = faults_end();
        assert_int_equal(r, has_failed ? -ENOMEM : 0);
        assert_int_equal(ttm_device_sets_get(&sets, TTM_DEVICE_COUNT).count, has_failed ? 0 : 2);
    }
    assert_int_equal(number, TTM_DEVICE_COUNT);
}

static void a_set_is_gone_with_its_last_reference_and_its_number_is_used_again(void **state)
{
    (void)state;
    const uint32_t a = intern((uint16_t[]){0, 1}, 2);
    const uint32_t b = intern((uint16_t[]){4, 5}, 2);
    assert_int_equal(intern((uint16_t[]){1, 0}, 2), a);
    ttm_device_sets_unref(&sets, a);
    assert_int_equal(ttm_device_sets_get(&sets, a).count, 2);
    ttm_device_sets_unref(&sets, a);
    assert_int_equal(ttm_device_sets_get(&sets, a).count, 0);
    assert_int_equal(sets.count, 1);
    assert_int_equal(intern((uint16_t[]){8, 9, 10}, 3), a);
    assert_int_equal(ttm_device_sets_get(&sets, a).devices[0], 8);
    assert_int_equal(ttm_device_sets_get(&sets, b).devices[0], 4);
    assert_true(intern((uint16_t[]){0, 1}, 2) != a);
    ttm_device_sets_unref(&sets, 7); /* of one device: nothing is counted */
    assert_int_equal(ttm_device_sets_get(&sets, 7).count, 1);
}

/* Sets come and go; what is there is compared with a plain list. */
static void random_sets_are_found_while_they_have_a_reference(void **state)
{
    struct {
        uint16_t devices[3];
        uint32_t number;
        uint32_t refs;
    } known[200] = {0};
    uint64_t seed = 0x5eed;
    uint32_t in_use = 0;
    (void)state;

    for (uint32_t i = 0; i < COUNT_OF(known); i++) {
        known[i].devices[0] = (uint16_t)i;
        known[i].devices[1] = (uint16_t)(i + 300);
        known[i].devices[2] = (uint16_t)(i * 2 + 301);
    }
    for (uint32_t step = 0; step < 20000; step++) {
        const uint32_t i = random_below(&seed, COUNT_OF(known));
        if (known[i].refs == 0 || random_below(&seed, 5) < 2) {
            const uint32_t number = intern(known[i].devices, 3);
            assert_true(known[i].refs == 0 || known[i].number == number);
            in_use += known[i].refs++ == 0;
            known[i].number = number;
        } else {
            ttm_device_sets_unref(&sets, known[i].number);
            in_use -= --known[i].refs == 0;
        }
        assert_int_equal(sets.count, in_use);
    }
    for (uint32_t i = 0; i < COUNT_OF(known); i++) {
        if (known[i].refs > 0)
            assert_memory_equal(ttm_device_sets_get(&sets, known[i].number).devices,
                                known[i].devices, sizeof(known[i].devices));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_device_is_the_set_of_its_own_number),
        TEST(doubles_are_ignored),
        TEST(the_order_does_not_matter_and_the_set_is_ascending),
        TEST(sets_that_differ_have_different_numbers_that_stay),
        TEST(all_devices_are_one_set),
        TEST(no_device_and_devices_out_of_range_are_refused),
        TEST(a_number_that_was_never_given_is_the_empty_set),
        TEST(more_sets_than_the_limit_are_refused_and_the_known_ones_stay),
        TEST(a_set_is_gone_with_its_last_reference_and_its_number_is_used_again),
        TEST(random_sets_are_found_while_they_have_a_reference),
        TEST(short_memory_adds_no_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
