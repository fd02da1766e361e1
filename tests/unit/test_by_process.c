/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "analysis/by_process.h"

static void an_object_is_found_by_the_number_of_its_process(void **state)
{
    struct ttm_by_process list;
    static int objects[5000];
    (void)state;

    ttm_by_process_init(&list, 42);
    assert_null(ttm_by_process_find(&list, 0));
    for (uint32_t i = 0; i < COUNT_OF(objects); i++)
        assert_int_equal(ttm_by_process_add(&list, i * 7919, &objects[i]), 0);
    for (uint32_t i = 0; i < COUNT_OF(objects); i++)
        assert_ptr_equal(ttm_by_process_find(&list, i * 7919), &objects[i]);
    assert_null(ttm_by_process_find(&list, 1));
    assert_int_equal(list.count, COUNT_OF(objects));
    assert_ptr_equal(list.objects[17], &objects[17]);
    ttm_by_process_done(&list);
}

static void a_process_has_one_object(void **state)
{
    struct ttm_by_process list;
    int first, second;
    (void)state;

    ttm_by_process_init(&list, 42);
    assert_int_equal(ttm_by_process_add(&list, 3, &first), 0);
    assert_int_equal(ttm_by_process_add(&list, 3, &second), -EEXIST);
    assert_ptr_equal(ttm_by_process_find(&list, 3), &first);
    assert_int_equal(list.count, 1);
    ttm_by_process_done(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_is_found_by_the_number_of_its_process),
        cmocka_unit_test(a_process_has_one_object),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
