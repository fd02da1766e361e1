/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "cli/failure_text.h"
#include "wire/origin_row.h"

static struct ttm_device_sets sets;
static struct ttm_departed holders;
static struct ttm_text text;

static int set_up(void **state)
{
    (void)state;
    ttm_device_sets_init(&sets);
    ttm_departed_init(&holders);
    ttm_text_init(&text);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_device_sets_done(&sets);
    ttm_departed_done(&holders);
    ttm_text_done(&text);
    return 0;
}

static void add_holder(uint8_t region, uint32_t set, uint64_t count, uint64_t bytes)
{
    struct ttm_remains *grown =
        realloc(holders.remains, (holders.remains_count + 1) * sizeof(grown[0]));

    assert_non_null(grown);
    holders.remains = grown;
    grown[holders.remains_count++] = (struct ttm_remains){
        .bytes = bytes,
        .footprint_bytes = bytes,
        .count = count,
        .region = region,
        .device_set = set,
    };
}

static const char *text_of(const struct ttm_failure_row *failure, const struct ttm_origin *origin)
{
    ttm_text_clear(&text);
    ttm_failure_text(failure, origin, &holders, &sets, &text);
    assert_false(ttm_text_failed(&text));
    return ttm_text_string(&text);
}

static struct ttm_failure_row failure_in(uint8_t region, uint64_t left, uint64_t largest)
{
    return (struct ttm_failure_row){
        .wanted_bytes = 32 << 20,
        .bank_wanted_bytes = 512 << 10,
        .bank_free_bytes = left,
        .bank_largest_bytes = largest,
        .region = region,
    };
}

static void exhaustion_is_told_from_fragmentation(void **state)
{
    struct ttm_failure_row failure = failure_in(TTM_REGION_L1, 640 << 10, 320 << 10);
    (void)state;

    assert_string_equal(
        text_of(&failure, NULL),
        "out of memory in L1 of device 0: 32.0 MiB wanted, 512 KiB in each bank\n"
        "  free 640 KiB a bank, but the largest free block is 320 KiB: fragmented, not "
        "exhausted\n");
    failure.bank_free_bytes = 100 << 10;
    failure.bank_largest_bytes = 100 << 10;
    assert_non_null(strstr(text_of(&failure, NULL), "is 100 KiB: exhausted\n"));
    failure.bank_wanted_bytes = 0; /* the runtime did not say */
    assert_string_equal(text_of(&failure, NULL),
                        "out of memory in L1 of device 0: 32.0 MiB wanted\n");
}

static void the_line_that_wanted_it_is_named(void **state)
{
    const struct ttm_failure_row failure = failure_in(TTM_REGION_DRAM, 0, 0);
    const struct ttm_origin origin = {
        .text = {[TTM_ORIGIN_CONTEXT] = "",
                 [TTM_ORIGIN_NAME] = "",
                 [TTM_ORIGIN_THREAD] = "",
                 [TTM_ORIGIN_OPERATION] = "ttnn.matmul",
                 [TTM_ORIGIN_PYTHON] = "decode.py:61:main\ndecode.py:80:<module>",
                 [TTM_ORIGIN_NATIVE] = ""}};
    (void)state;

    assert_non_null(strstr(text_of(&failure, &origin),
                           "DRAM of device 0 at decode.py:61 main (ttnn.matmul): 32.0 MiB"));
}

static void those_who_hold_that_region_of_that_device_are_listed_largest_first(void **state)
{
    const uint16_t mesh[] = {0, 1};
    const struct ttm_failure_row failure = failure_in(TTM_REGION_L1, 0, 0);
    uint32_t set;
    (void)state;

    assert_int_equal(ttm_device_sets_intern(&sets, mesh, 2, &set), 0);
    add_holder(TTM_REGION_L1, 0, 2, 1 << 10);
    add_holder(TTM_REGION_L1, set, 4, 1 << 20);   /* a mesh that the device is in */
    add_holder(TTM_REGION_L1, 1, 100, 1 << 20);   /* another device */
    add_holder(TTM_REGION_DRAM, 0, 100, 1 << 20); /* another region */
    add_holder(TTM_REGION_L1, 0, 1, 2 << 10);     /* as large as the first */
    add_holder(TTM_REGION_L1, 0, 9, 1);
    add_holder(TTM_REGION_L1, 0, 8, 1); /* one more than is shown */
    const char *list = strstr(text_of(&failure, NULL), "  held by ");
    assert_non_null(list);
    assert_string_equal(list, "  held by    4.0 MiB  4 of 1.0 MiB in L1\n"
                              "             2.0 KiB  2 of 1.0 KiB in L1\n"
                              "             2.0 KiB  1 of 2.0 KiB in L1\n"
                              "                 9 B  9 of 1 B in L1\n");
}

static void a_clash_names_both_sides(void **state)
{
    struct ttm_failure_row failure = failure_in(TTM_REGION_CB, 0, 0);
    (void)state;

    failure.kind = TTM_FAILURE_CB_CLASH;
    failure.bank_wanted_bytes = 0;
    add_holder(TTM_REGION_CB, 0, 1, 1 << 10);
    add_holder(TTM_REGION_L1, 0, 1, 1 << 20);
    add_holder(TTM_REGION_DRAM, 0, 1, 1 << 30);
    assert_string_equal(text_of(&failure, NULL),
                        "circular buffers run into L1 buffers on device 0: 32.0 MiB wanted\n"
                        "  held by    1.0 MiB  1 of 1.0 MiB in L1\n"
                        "             1.0 KiB  1 of 1.0 KiB in CB\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(exhaustion_is_told_from_fragmentation, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_line_that_wanted_it_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            those_who_hold_that_region_of_that_device_are_listed_largest_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_clash_names_both_sides, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
