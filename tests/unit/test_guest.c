/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "client/guest.h"
#include "ring/segment.h"

#define DEVICES 5

static struct ttm_device_cell cells[DEVICES];

static void dispatch(uint32_t first, uint32_t count, uint64_t program)
{
    ttmem_guest_dispatch(cells, (struct ttm_device_span){.first = first, .count = count}, program);
}

/* The program that was noted last but 'back' for a device. */
static uint64_t noted(uint32_t device, uint32_t back)
{
    return cells[device].programs[(cells[device].dispatched - 1 - back) % TTM_SEGMENT_PROGRAMS];
}

static int set_up(void **state)
{
    (void)state;
    memset(cells, 0, sizeof(cells));
    return 0;
}

static void a_program_is_noted_on_each_device_of_its_span(void **state)
{
    (void)state;

    dispatch(1, 3, 7);
    assert_int_equal(cells[0].dispatched, 0);
    assert_int_equal(cells[4].dispatched, 0);
    for (uint32_t device = 1; device < 4; device++) {
        assert_int_equal(cells[device].dispatched, 1);
        assert_int_equal(noted(device, 0), 7);
    }
}

static void one_that_is_sent_again_is_noted_where_another_came_between(void **state)
{
    (void)state;

    dispatch(0, DEVICES, 7);
    dispatch(2, 1, 8);
    dispatch(0, DEVICES, 7);
    for (uint32_t device = 0; device < DEVICES; device++)
        assert_int_equal(cells[device].dispatched, device == 2 ? 3 : 1);
    assert_int_equal(noted(2, 0), 7);
    assert_int_equal(noted(2, 1), 8);
    assert_int_equal(noted(2, 2), 7);
}

/* As if each device had been sent the program by itself. */
static void spans_that_overlap_leave_what_single_devices_would(void **state)
{
    static struct ttm_device_cell together[DEVICES];
    uint64_t random = 5;
    (void)state;

    for (uint32_t i = 0; i < 10000; i++) {
        const uint32_t first = random_below(&random, DEVICES);
        const uint32_t count = 1 + random_below(&random, DEVICES - first);
        const uint64_t program = 1 + random_below(&random, 3);

        ttmem_guest_dispatch(together, (struct ttm_device_span){.first = first, .count = count},
                             program);
        for (uint32_t device = first; device < first + count; device++)
            dispatch(device, 1, program);
        assert_memory_equal(cells, together, sizeof(cells));
    }
    assert_true(cells[0].dispatched > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_program_is_noted_on_each_device_of_its_span, set_up),
        cmocka_unit_test_setup(one_that_is_sent_again_is_noted_where_another_came_between, set_up),
        cmocka_unit_test_setup(spans_that_overlap_leave_what_single_devices_would, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
