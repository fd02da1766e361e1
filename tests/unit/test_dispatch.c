/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/dispatch.h"

#include "testing.h"

static struct ttm_device_cell cell;

static struct ttm_dispatch on_cell(uint64_t program)
{
    return (struct ttm_dispatch){.program = program, .cell = &cell, .noted = UINT32_MAX};
}

static int set_up(void **state)
{
    (void)state;
    cell = (struct ttm_device_cell){0};
    return 0;
}

/* The programs that the cell has, the latest first. */
static void assert_latest(const uint64_t *programs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(cell.programs[(cell.dispatched - 1 - i) % TTM_SEGMENT_PROGRAMS],
                         programs[i]);
}

static void what_is_sent_is_noted_in_its_order(void **state)
{
    struct ttm_dispatch a = on_cell(11), b = on_cell(12);
    (void)state;

    for (int i = 0; i < 20; i++) {
        assert_true(ttm_dispatch_note(&a));
        assert_true(ttm_dispatch_note(&b));
        assert_true(atomic_load(&a.order) <= atomic_load(&b.order));
    }
    assert_int_equal(cell.dispatched, 40);
    assert_latest((const uint64_t[]){12, 11, 12, 11}, 4);
}

static void what_is_sent_again_is_noted_once(void **state)
{
    struct ttm_dispatch a = on_cell(11), b = on_cell(12);
    (void)state;

    for (int i = 0; i < 5; i++)
        assert_true(ttm_dispatch_note(&a));
    assert_int_equal(cell.dispatched, 1);
    assert_true(ttm_dispatch_note(&b));
    assert_true(ttm_dispatch_note(&a));
    assert_int_equal(cell.dispatched, 3);
    assert_latest((const uint64_t[]){11, 12, 11}, 3);
}

static void what_others_have_noted_since_is_seen(void **state)
{
    struct ttm_dispatch a = on_cell(11);
    const struct ttm_device_span span = {.first = 0, .count = 1};
    (void)state;

    assert_true(ttm_dispatch_note(&a));
    ttmem_guest_dispatch(&cell, span, 99); /* the long way */
    assert_true(ttm_dispatch_note(&a));
    assert_latest((const uint64_t[]){11, 99, 11}, 3);
}

static void of_two_at_once_the_one_that_was_overwritten_is_noted_the_next_time(void **state)
{
    struct ttm_dispatch a = on_cell(11), b = on_cell(12);
    (void)state;

    assert_true(ttm_dispatch_note(&a));
    atomic_store(&cell.dispatched, 0); /* as b has read it */
    assert_true(ttm_dispatch_note(&b));
    assert_int_equal(cell.dispatched, 1);
    assert_true(ttm_dispatch_note(&a));
    assert_latest((const uint64_t[]){11, 12}, 2);
}

static void what_is_on_a_mesh_is_noted_on_each_of_its_devices(void **state)
{
    static struct ttm_device_cell cells[5];
    struct ttm_dispatch a = {.program = 11, .cells = cells, .span = {.first = 1, .count = 3}};
    (void)state;

    assert_true(ttm_dispatch_note(&a));
    assert_true(ttm_dispatch_note(&a)); /* the same again */
    for (uint32_t i = 0; i < COUNT_OF(cells); i++) {
        assert_int_equal(cells[i].dispatched, i >= 1 && i <= 3);
        assert_int_equal(cells[i].programs[0], i >= 1 && i <= 3 ? 11 : 0);
    }
}

static void what_has_nothing_in_l1_is_not_noted(void **state)
{
    struct ttm_dispatch a = {.program = 11};
    (void)state;

    assert_true(ttm_dispatch_note(&a));
    assert_true(atomic_load(&a.order) != 0);
    assert_int_equal(cell.dispatched, 0);
}

static void what_is_on_scattered_devices_is_left_to_others(void **state)
{
    struct ttm_dispatch a = {.program = 11, .is_scattered = true};
    (void)state;

    assert_false(ttm_dispatch_note(&a));
    assert_int_equal(cell.dispatched, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_is_sent_is_noted_in_its_order, set_up),
        cmocka_unit_test_setup(what_is_sent_again_is_noted_once, set_up),
        cmocka_unit_test_setup(what_others_have_noted_since_is_seen, set_up),
        cmocka_unit_test_setup(of_two_at_once_the_one_that_was_overwritten_is_noted_the_next_time,
                               set_up),
        cmocka_unit_test_setup(what_is_on_a_mesh_is_noted_on_each_of_its_devices, set_up),
        cmocka_unit_test_setup(what_has_nothing_in_l1_is_not_noted, set_up),
        cmocka_unit_test_setup(what_is_on_scattered_devices_is_left_to_others, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
