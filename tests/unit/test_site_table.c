/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "model/site_table.h"

static struct ttm_site_table table;

static int set_up(void **state)
{
    (void)state;
    ttm_site_table_init(&table, 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_site_table_done(&table);
    return 0;
}

static uint32_t intern(struct ttm_site site)
{
    uint32_t number = UINT32_MAX;

    assert_int_equal(ttm_site_table_intern(&table, &site, &number), 0);
    return number;
}

static void sites_are_numbered_in_order_and_the_same_site_once(void **state)
{
    const struct ttm_site a = {.allocator = 1};
    const struct ttm_site b = {.allocator = 2};
    (void)state;

    assert_int_equal(intern(a), 0);
    assert_int_equal(intern(a), 0);
    assert_int_equal(intern(b), 1);
    assert_int_equal(intern(a), 0);
    assert_int_equal(intern(b), 1);
    assert_int_equal(table.count, 2);
}

static void every_field_makes_a_site_another(void **state)
{
    const struct ttm_site sites[] = {
        {0},          {.allocator = 1}, {.device_set = 1},  {.region = 1}, {.kind = 1},
        {.flags = 1}, {.banks = 1},     {.banks = 1 << 12}, {.origin = 1},
    };
    (void)state;

    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < COUNT_OF(sites); i++)
            assert_int_equal(intern(sites[i]), i);
    }
}

static void numbers_stay_valid_while_the_table_grows(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 5000; i++)
        assert_int_equal(intern((struct ttm_site){.allocator = i / 7, .region = (uint8_t)(i % 7)}),
                         i);
    for (uint32_t i = 0; i < 5000; i++) {
        assert_int_equal(ttm_site_table_get(&table, i)->allocator, i / 7);
        assert_int_equal(ttm_site_table_get(&table, i)->region, i % 7);
        assert_int_equal(intern((struct ttm_site){.allocator = i / 7, .region = (uint8_t)(i % 7)}),
                         i);
    }
}

static void counts_begin_at_zero_and_are_kept_while_the_table_grows(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 1000; i++) {
        const uint32_t number = intern((struct ttm_site){.allocator = i});
        assert_int_equal(table.counts[number].births, 0);
        assert_int_equal(table.counts[number].ends, 0);
        table.counts[number].births = i;
        table.counts[number].ends = i / 2;
    }
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(table.counts[i].births, i);
        assert_int_equal(table.counts[i].ends, i / 2);
    }
}

static void more_sites_than_the_limit_are_refused_and_the_known_ones_stay(void **state)
{
    const struct ttm_site more = {.allocator = TTM_SITES_MAX};
    uint32_t number;
    (void)state;

    for (uint32_t i = 0; i < TTM_SITES_MAX; i++)
        (void)intern((struct ttm_site){.allocator = i});
    assert_int_equal(ttm_site_table_intern(&table, &more, &number), -ENOSPC);
    assert_int_equal(table.count, TTM_SITES_MAX);
    assert_int_equal(intern((struct ttm_site){.allocator = 12345}), 12345);
}

static void short_memory_refuses_a_new_site_and_keeps_the_others(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 100; i++) {
        const struct ttm_site site = {.allocator = i};
        uint32_t number;
        for (unsigned grants = 0;; grants++) {
            faults_begin(grants);
            const int r = ttm_site_table_intern(&table, &site, &number);
            if (!faults_end()) {
                assert_int_equal(r, 0);
                assert_int_equal(number, i);
                break;
            }
            assert_int_equal(r, -ENOMEM);
            assert_int_equal(table.count, i);
            for (uint32_t k = 0; k < i; k++)
                assert_int_equal(intern((struct ttm_site){.allocator = k}), k);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sites_are_numbered_in_order_and_the_same_site_once),
        TEST(every_field_makes_a_site_another),
        TEST(numbers_stay_valid_while_the_table_grows),
        TEST(counts_begin_at_zero_and_are_kept_while_the_table_grows),
        TEST(more_sites_than_the_limit_are_refused_and_the_known_ones_stay),
        TEST(short_memory_refuses_a_new_site_and_keeps_the_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
