/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "wire/region.h"

static void the_numbers_on_the_wire_never_change(void **state)
{
    (void)state;
    assert_int_equal(TTM_REGION_DRAM, 0);
    assert_int_equal(TTM_REGION_L1, 1);
    assert_int_equal(TTM_REGION_SYSTEM_MEMORY, 2);
    assert_int_equal(TTM_REGION_L1_SMALL, 3);
    assert_int_equal(TTM_REGION_TRACE, 4);
    assert_int_equal(TTM_REGION_CB, 5);
    assert_int_equal(TTM_REGION_KERNEL, 6);
    assert_int_equal(TTM_KERNEL_APPLICATION, 0);
    assert_int_equal(TTM_KERNEL_FABRIC, 1);
    assert_int_equal(TTM_KERNEL_DISPATCH, 2);
    assert_int_equal(TTM_ARCH_GRAYSKULL, 1);
    assert_int_equal(TTM_ARCH_WORMHOLE_B0, 2);
    assert_int_equal(TTM_ARCH_BLACKHOLE, 3);
    assert_int_equal(TTM_ARCH_QUASAR, 4);
}

static void every_region_has_a_name_that_parses_back(void **state)
{
    (void)state;
    for (unsigned i = 0; i < TTM_REGION_COUNT; i++)
        assert_int_equal(ttm_region_parse(ttm_region_name(i)), i);
    assert_string_equal(ttm_region_name(TTM_REGION_L1_SMALL), "L1_SMALL");
}

static void numbers_and_names_that_are_none_are_refused(void **state)
{
    (void)state;
    assert_string_equal(ttm_region_name(TTM_REGION_COUNT), "?");
    assert_string_equal(ttm_region_name(255), "?");
    assert_int_equal(ttm_region_parse(""), -EINVAL);
    assert_int_equal(ttm_region_parse("dram"), -EINVAL);
    assert_int_equal(ttm_region_parse("L1_"), -EINVAL);
    assert_string_equal(ttm_kernel_kind_name(TTM_KERNEL_KIND_COUNT), "?");
    assert_string_equal(ttm_arch_name(TTM_ARCH_COUNT), "unknown");
    assert_string_equal(ttm_arch_name(0), "unknown");
    assert_string_equal(ttm_source_name(TTM_SOURCE_COUNT), "?");
}

static void kinds_architectures_and_sources_have_their_names(void **state)
{
    (void)state;
    assert_string_equal(ttm_kernel_kind_name(TTM_KERNEL_APPLICATION), "application");
    assert_string_equal(ttm_kernel_kind_name(TTM_KERNEL_FABRIC), "fabric");
    assert_string_equal(ttm_kernel_kind_name(TTM_KERNEL_DISPATCH), "dispatch");
    assert_string_equal(ttm_arch_name(TTM_ARCH_WORMHOLE_B0), "wormhole_b0");
    assert_string_equal(ttm_arch_name(TTM_ARCH_QUASAR), "quasar");
    assert_string_equal(ttm_source_name(TTM_SOURCE_ORIGINAL), "original");
    assert_string_equal(ttm_source_name(TTM_SOURCE_RUNTIME), "runtime");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_numbers_on_the_wire_never_change),
        cmocka_unit_test(every_region_has_a_name_that_parses_back),
        cmocka_unit_test(numbers_and_names_that_are_none_are_refused),
        cmocka_unit_test(kinds_architectures_and_sources_have_their_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
