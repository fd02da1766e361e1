/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "base/u64_map.h"

static void the_map_holds_what_a_plain_array_holds(void **state)
{
    static uint32_t values[3000]; /* 0: not in it */
    struct ttm_u64_map map;
    uint64_t random = 4711;
    size_t count = 0;
    (void)state;

    ttm_u64_map_init(&map, 99);
    for (int i = 0; i < 200000; i++) {
        const uint32_t n = random_below(&random, COUNT_OF(values));
        const uint64_t key =
            n < 2 ? n * UINT64_MAX : (n + 1ull) << 48 | n; /* 0 and the largest too */
        uint32_t value = 0;
        assert_int_equal(ttm_u64_map_find(&map, key, &value), values[n] != 0);
        assert_int_equal(value, values[n]);
        if (random_below(&random, 2) == 0) {
            const int r = ttm_u64_map_add(&map, key, (uint32_t)i + 1);
            assert_int_equal(r, values[n] ? -EEXIST : 0);
            count += r == 0;
            if (r == 0)
                values[n] = (uint32_t)i + 1;
        } else {
            value = 0;
            assert_int_equal(ttm_u64_map_take(&map, key, &value), values[n] != 0);
            assert_int_equal(value, values[n]);
            count -= values[n] != 0;
            values[n] = 0;
        }
        assert_int_equal(map.count, count);
    }
    ttm_u64_map_done(&map);
}

static void memory_follows_what_it_holds(void **state)
{
    struct ttm_u64_map map;
    uint32_t value;
    (void)state;

    ttm_u64_map_init(&map, 1);
    for (uint64_t k = 0; k < 10000; k++)
        assert_int_equal(ttm_u64_map_add(&map, k, (uint32_t)k), 0);
    assert_true(map.size >= 10000);
    for (uint64_t k = 0; k < 9990; k++)
        assert_true(ttm_u64_map_take(&map, k, &value) && value == k);
    assert_true(map.size <= 128);
    for (uint64_t k = 9990; k < 10000; k++)
        assert_true(ttm_u64_map_find(&map, k, &value) && value == k);
    ttm_u64_map_done(&map);
    assert_false(ttm_u64_map_find(&map, 9999, &value));
}

static void without_memory_the_map_stays_as_it_was(void **state)
{
    struct ttm_u64_map map;
    uint32_t value;
    (void)state;

    ttm_u64_map_init(&map, 1);
    faults_begin(0);
    assert_int_equal(ttm_u64_map_add(&map, 1, 1), -ENOMEM);
    assert_true(faults_end());
    for (uint64_t k = 0; k < 48; k++)
        assert_int_equal(ttm_u64_map_add(&map, k, 1), 0);
    faults_begin(0);
    assert_int_equal(ttm_u64_map_add(&map, 48, 1), -ENOMEM);
    assert_true(faults_end());
    assert_false(ttm_u64_map_find(&map, 48, &value));
    assert_true(ttm_u64_map_find(&map, 47, &value));
    for (uint64_t k = 48; k < 1000; k++)
        assert_int_equal(ttm_u64_map_add(&map, k, 1), 0);
    faults_begin(0); /* it cannot shrink, and goes on */
    for (uint64_t k = 0; k < 1000; k++)
        assert_true(ttm_u64_map_take(&map, k, &value));
    assert_true(faults_end());
    ttm_u64_map_done(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_map_holds_what_a_plain_array_holds),
        cmocka_unit_test(memory_follows_what_it_holds),
        cmocka_unit_test(without_memory_the_map_stays_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
