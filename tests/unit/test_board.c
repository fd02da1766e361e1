/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "model/board.h"

#define GIB (1ull << 30)
#define MIB (1ull << 20)

/* L1 and DRAM that the allocator has, per chip, as TT-Metal's descriptors and tt-smi give them. */
static const struct {
    const char *name;
    unsigned arch;
    uint32_t cores;
    uint64_t l1_bytes;
    uint64_t dram_bytes;
    uint32_t dram_channels;
} chips[] = {
    {"n150", TTM_ARCH_WORMHOLE_B0, 72, 107937792, 12 * GIB, 12},
    {"n300", TTM_ARCH_WORMHOLE_B0, 64, 95944704, 12 * GIB, 12},
    {"galaxy-wormhole", TTM_ARCH_WORMHOLE_B0, 80, 119930880, 12 * GIB, 12},
    {"p100a", TTM_ARCH_BLACKHOLE, 120, 188743680, 7 * 4080 * MIB, 7},
    {"p150a", TTM_ARCH_BLACKHOLE, 120, 188743680, 8 * 4080 * MIB, 8},
    {"p150b", TTM_ARCH_BLACKHOLE, 120, 188743680, 8 * 4080 * MIB, 8},
    {"p150c", TTM_ARCH_BLACKHOLE, 120, 188743680, 8 * 4080 * MIB, 8},
    {"p300a", TTM_ARCH_BLACKHOLE, 120, 188743680, 8 * 4080 * MIB, 8},
    {"p300b", TTM_ARCH_BLACKHOLE, 120, 188743680, 8 * 4080 * MIB, 8},
    {"p300c", TTM_ARCH_BLACKHOLE, 120, 188743680, 8 * 4080 * MIB, 8},
    {"galaxy-blackhole", TTM_ARCH_BLACKHOLE, 130, 204472320, 8 * 4080 * MIB, 8},
};

static void every_board_has_the_capacity_of_its_data_sheet(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(chips); i++) {
        const struct ttm_board *board = ttm_board_find(chips[i].name);
        assert_non_null(board);
        assert_string_equal(board->name, chips[i].name);
        assert_int_equal(board->arch, chips[i].arch);
        assert_int_equal(board->core_count, chips[i].cores);
        assert_int_equal(board->dram_channels, chips[i].dram_channels);
        assert_int_equal(ttm_board_capacity(board, TTM_REGION_L1), chips[i].l1_bytes);
        assert_int_equal(ttm_board_capacity(board, TTM_REGION_DRAM), chips[i].dram_bytes);
        assert_int_equal(ttm_board_capacity(board, TTM_REGION_CB), chips[i].l1_bytes);
    }
}

static void grayskull_is_history_but_known(void **state)
{
    (void)state;
    assert_int_equal(ttm_board_capacity(ttm_board_find("e150"), TTM_REGION_L1), 120 * MIB);
    assert_int_equal(ttm_board_capacity(ttm_board_find("e150"), TTM_REGION_DRAM), 8 * GIB);
    assert_int_equal(ttm_board_find("e75")->core_count, 96);
}

static void names_that_are_no_board_are_refused(void **state)
{
    (void)state;
    assert_null(ttm_board_find(""));
    assert_null(ttm_board_find("N150"));
    assert_null(ttm_board_find("n1500"));
    assert_null(ttm_board_find("n15"));
}

static void an_architecture_alone_has_a_typical_board_without_a_name(void **state)
{
    (void)state;
    const struct ttm_board *board = ttm_board_of_arch(TTM_ARCH_WORMHOLE_B0);
    assert_non_null(board);
    assert_string_equal(board->name, "");
    assert_int_equal(board->arch, TTM_ARCH_WORMHOLE_B0);
    assert_int_equal(ttm_board_capacity(board, TTM_REGION_DRAM), 12 * GIB);
    assert_int_equal(ttm_board_of_arch(TTM_ARCH_BLACKHOLE)->l1_per_core_bytes, 1572864);
    assert_int_equal(ttm_board_of_arch(TTM_ARCH_GRAYSKULL)->core_count, 120);
}

static void an_architecture_without_a_board_has_none(void **state)
{
    (void)state;
    assert_null(ttm_board_of_arch(TTM_ARCH_UNKNOWN));
    assert_null(ttm_board_of_arch(TTM_ARCH_QUASAR));
    assert_null(ttm_board_of_arch(TTM_ARCH_COUNT));
    assert_null(ttm_board_of_arch(UINT32_MAX));
}

static void what_is_chosen_when_a_device_is_opened_is_not_fixed_by_its_board(void **state)
{
    const struct ttm_board *board = ttm_board_find("n150");
    (void)state;

    assert_int_equal(ttm_board_capacity(board, TTM_REGION_SYSTEM_MEMORY), 0);
    assert_int_equal(ttm_board_capacity(board, TTM_REGION_L1_SMALL), 0);
    assert_int_equal(ttm_board_capacity(board, TTM_REGION_TRACE), 0);
    assert_int_equal(ttm_board_capacity(board, TTM_REGION_KERNEL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_board_has_the_capacity_of_its_data_sheet),
        cmocka_unit_test(grayskull_is_history_but_known),
        cmocka_unit_test(names_that_are_no_board_are_refused),
        cmocka_unit_test(an_architecture_alone_has_a_typical_board_without_a_name),
        cmocka_unit_test(an_architecture_without_a_board_has_none),
        cmocka_unit_test(what_is_chosen_when_a_device_is_opened_is_not_fixed_by_its_board),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
