/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "model/bank_map.h"
#include "model/registry.h"

#define BANKS 4

static struct ttm_registry *reg;
static struct ttm_process *proc;
static struct ttm_bank_map map;
static uint64_t next_id;

static int set_up(void **state)
{
    const struct ttm_process_info info = {.pid = 1};
    (void)state;

    reg = ttm_registry_new(0x5eed5eed5eed5eedull);
    assert_non_null(reg);
    assert_int_equal(ttm_registry_add_process(reg, &info, &proc), 0);
    next_id = 1;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_registry_free(reg);
    return faults_pages_out() == 0 ? 0 : -1;
}

/* 'bank_bytes' in each bank from 'address' on. */
static void hold(uint16_t device, uint64_t address, uint64_t bank_bytes, uint32_t origin)
{
    const struct ttm_birth birth = {
        .id = next_id++,
        .address = address,
        .bytes = 1,
        .footprint_bytes = bank_bytes * BANKS,
        .site = {.device_set = device, .region = TTM_REGION_L1, .origin = origin},
    };

    assert_int_equal(ttm_registry_birth(reg, proc, &birth, NULL), 0);
}

static const char *drawing(uint32_t cells)
{
    static char text[TTM_BANK_CELLS_MAX + 1];

    assert_int_equal(ttm_bank_map_draw(reg, proc, 0, TTM_REGION_L1, BANKS, cells, &map), 0);
    for (uint32_t i = 0; i < map.cell_count; i++)
        text[i] = ".+#"[map.cells[i]];
    text[map.cell_count] = '\0';
    return text;
}

static void it_shows_what_is_held_and_what_is_not(void **state)
{
    (void)state;
    hold(0, 0x1000, 0x200, 1);
    hold(0, 0x1400, 0x180, 1);
    hold(0, 0x1a00, 0x600, 1);
    hold(1, 0x0, 0x1000, 1); /* another device */
    assert_string_equal(drawing(8), "#.+..###");
    assert_int_equal(map.start, 0x1000);
    assert_int_equal(map.end, 0x2000);
}

static void the_last_cell_may_be_smaller(void **state)
{
    (void)state;
    hold(0, 0, 10, 1);
    assert_string_equal(drawing(4), "####"); /* of 3, 3, 3 and 1 */
    hold(0, 20, 5, 1);
    assert_string_equal(drawing(5), "##..#");
}

static void the_lowest_are_named_in_order(void **state)
{
    (void)state;
    for (uint32_t i = 9; i > 0; i--)
        hold(0, i * 0x100, 0x10, i);
    hold(0, 0x150, 0x10, 77);
    (void)drawing(8);
    assert_int_equal(map.lowest_count, TTM_BANK_LOWEST_MAX);
    assert_int_equal(map.lowest[0].address, 0x100);
    assert_int_equal(map.lowest[0].origin, 1);
    assert_int_equal(map.lowest[0].footprint_bytes, 0x10 * BANKS);
    assert_int_equal(map.lowest[1].origin, 77);
    assert_int_equal(map.lowest[2].origin, 2);
}

static void without_banks_there_is_no_map(void **state)
{
    (void)state;
    hold(0, 0x100, 0x10, 5);
    assert_int_equal(ttm_bank_map_draw(reg, proc, 0, TTM_REGION_L1, 0, 8, &map), 0);
    assert_int_equal(map.cell_count, 0);
    assert_int_equal(map.lowest_count, 1);
}

/* What a program says is its own business, and never a place beyond the cells. */
static void addresses_that_no_device_has_are_left_out(void **state)
{
    (void)state;
    hold(0, UINT64_MAX, 0x1000, 1);
    hold(0, UINT64_MAX - 100, 0x1000, 1);
    hold(0, (1ull << 40) + 1, 0x1000, 1);
    assert_string_equal(drawing(8), "");
    hold(0, 1ull << 40, 1ull << 38, 1);
    hold(0, 0, 1, 1);
    hold(0, 0, 1ull << 38, 1); /* over another */
    assert_string_equal(drawing(TTM_BANK_CELLS_MAX + 9), drawing(TTM_BANK_CELLS_MAX));
    assert_int_equal(map.cell_count, TTM_BANK_CELLS_MAX);
}

static void when_memory_is_short_it_says_so(void **state)
{
    (void)state;
    hold(0, 0x100, 0x10, 5);
    faults_begin(0);
    const int r = ttm_bank_map_draw(reg, proc, 0, TTM_REGION_L1, BANKS, 8, &map);
    assert_true(faults_end());
    assert_int_equal(r, -ENOMEM);
    assert_int_equal(map.cell_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_shows_what_is_held_and_what_is_not, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_last_cell_may_be_smaller, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_lowest_are_named_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_banks_there_is_no_map, set_up, tear_down),
        cmocka_unit_test_setup_teardown(addresses_that_no_device_has_are_left_out, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(when_memory_is_short_it_says_so, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
