/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/parts.h"

#include "testing.h"

static const struct ttm_core_set LEFT = {.count = 1, .ranges = {{0, 0, 3, 0}}};
static const struct ttm_core_set RIGHT = {.count = 1, .ranges = {{2, 0, 5, 0}}};

static void add(struct ttm_parts *list, enum ttm_part_source source, uint64_t address,
                uint64_t bytes, const struct ttm_core_set *cores)
{
    const struct ttm_part part = {
        .address = address, .core_bytes = bytes, .source = (uint8_t)source};

    assert_int_equal(ttm_parts_add(list, &part, cores), 0);
}

static void one_dataflow_buffer_on_two_sets_of_cores_is_one_part(void **state)
{
    struct ttm_parts list = {0};
    (void)state;

    add(&list, TTM_PART_DFB, 100, 64, &LEFT);
    add(&list, TTM_PART_DFB, 100, 64, &RIGHT);
    add(&list, TTM_PART_DFB, 164, 64, &RIGHT);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.items[0].cores, 6);
    assert_int_equal(list.items[1].cores, 4);
    ttm_parts_done(&list);
}

static void circular_buffers_at_one_address_stay_apart(void **state)
{
    struct ttm_parts list = {0};
    (void)state;

    add(&list, TTM_PART_CB, 100, 64, &LEFT);
    add(&list, TTM_PART_CB, 100, 64, &RIGHT);
    assert_int_equal(list.count, 2);
    ttm_parts_done(&list);
}

static void a_source_is_removed_and_the_rest_keeps_its_cores(void **state)
{
    struct ttm_parts list = {0};
    (void)state;

    add(&list, TTM_PART_CB, 100, 64, &LEFT);
    add(&list, TTM_PART_KERNEL, 0, 8, &RIGHT);
    assert_true(ttm_parts_remove(&list, TTM_PART_CB));
    assert_false(ttm_parts_remove(&list, TTM_PART_CB));
    assert_false(ttm_parts_have(&list, TTMEM_CB));
    assert_true(ttm_parts_have(&list, TTMEM_KERNEL));
    assert_int_equal(list.ranges[list.items[0].first_range].start_x, 2);
    ttm_parts_done(&list);
}

static void the_end_is_that_of_the_cores_in_question(void **state)
{
    struct ttm_parts list = {0};
    const struct ttm_core_set far = {.count = 1, .ranges = {{9, 9, 9, 9}}};
    (void)state;

    add(&list, TTM_PART_DFB, 100, 64, &LEFT);
    add(&list, TTM_PART_DFB, 200, 8, &far);
    add(&list, TTM_PART_KERNEL, 5000, 8, &LEFT);
    assert_int_equal(ttm_parts_end_on(&list, &RIGHT), 164);
    assert_int_equal(ttm_parts_end_on(&list, &far), 208);
    ttm_parts_done(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_dataflow_buffer_on_two_sets_of_cores_is_one_part),
        cmocka_unit_test(circular_buffers_at_one_address_stay_apart),
        cmocka_unit_test(a_source_is_removed_and_the_rest_keeps_its_cores),
        cmocka_unit_test(the_end_is_that_of_the_cores_in_question),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
