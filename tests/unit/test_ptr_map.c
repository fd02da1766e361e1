/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/ptr_map.h"

#include <errno.h>

#include "testing.h"

#define KEYS 1000

static char objects[KEYS];

static void what_was_added_is_found_until_it_is_removed(void **state)
{
    TTM_PTR_MAP(map, 11);
    (void)state;

    for (int i = 0; i < KEYS; i++)
        assert_int_equal(ttm_ptr_map_add(&map, &objects[i], &objects[KEYS - 1 - i]), 0);
    assert_int_equal(ttm_ptr_map_add(&map, &objects[3], objects), -EEXIST);
    for (int i = 0; i < KEYS; i += 2)
        assert_ptr_equal(ttm_ptr_map_remove(&map, &objects[i]), &objects[KEYS - 1 - i]);
    for (int i = 0; i < KEYS; i++)
        assert_ptr_equal(ttm_ptr_map_find(&map, &objects[i]),
                         i % 2 ? &objects[KEYS - 1 - i] : NULL);
    assert_null(ttm_ptr_map_remove(&map, &objects[0]));
}

static void what_lies_where_it_is_looked_for_first_is_at_hand(void **state)
{
    TTM_PTR_MAP(map, 4);
    uint32_t at_hand = 0;
    (void)state;

    for (int i = 0; i < 16; i++) {
        const int r = ttm_ptr_map_add_first(&map, &objects[i], &objects[KEYS - 1 - i]);
        assert_true(r == 0 || r == -ENOSPC);
        assert_ptr_equal(ttm_ptr_map_find_first(&map, &objects[i]),
                         r == 0 ? &objects[KEYS - 1 - i] : NULL);
        at_hand += r == 0;
    }
    assert_in_range(at_hand, 2, 16);
    for (int i = 0; i < 16; i++)
        (void)ttm_ptr_map_remove(&map, &objects[i]);
    assert_null(ttm_ptr_map_find_first(&map, &objects[0]));
    assert_int_equal(ttm_ptr_map_add_first(&map, &objects[0], objects), 0);
}

static void a_walk_meets_each_key_once(void **state)
{
    TTM_PTR_MAP(map, 8);
    const void *key;
    uint32_t cursor = 0, met = 0;
    (void)state;

    for (int i = 0; i < 100; i++)
        assert_int_equal(ttm_ptr_map_add(&map, &objects[i], &objects[i]), 0);
    for (void *value = ttm_ptr_map_next(&map, &cursor, &key); value;
         value = ttm_ptr_map_next(&map, &cursor, &key)) {
        assert_ptr_equal(value, key);
        met++;
    }
    assert_int_equal(met, 100);
}

static void a_full_map_refuses_and_has_room_again(void **state)
{
    TTM_PTR_MAP(map, 4);
    (void)state;

    for (int i = 0; i < 16; i++)
        assert_int_equal(ttm_ptr_map_add(&map, &objects[i], objects), 0);
    assert_int_equal(ttm_ptr_map_add(&map, &objects[16], objects), -ENOSPC);
    assert_null(ttm_ptr_map_find(&map, &objects[16]));
    assert_ptr_equal(ttm_ptr_map_remove(&map, &objects[7]), objects);
    assert_int_equal(ttm_ptr_map_add(&map, &objects[16], objects), 0);
    assert_ptr_equal(ttm_ptr_map_find(&map, &objects[16]), objects);
}

static void coming_and_going_for_long_wears_nothing_out(void **state)
{
    TTM_PTR_MAP(map, 6);
    (void)state;

    for (int i = 0; i < 100000; i++) {
        const void *key = &objects[i % KEYS];

        assert_int_equal(ttm_ptr_map_add(&map, key, objects), 0);
        if (i >= 20)
            assert_ptr_equal(ttm_ptr_map_remove(&map, &objects[(i - 20) % KEYS]), objects);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_added_is_found_until_it_is_removed),
        cmocka_unit_test(what_lies_where_it_is_looked_for_first_is_at_hand),
        cmocka_unit_test(a_walk_meets_each_key_once),
        cmocka_unit_test(a_full_map_refuses_and_has_room_again),
        cmocka_unit_test(coming_and_going_for_long_wears_nothing_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
