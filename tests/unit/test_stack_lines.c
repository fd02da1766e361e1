/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "stack/python_lines.h"

static void pairs_of_deltas_lead_to_the_line(void **state)
{
    /* Lines 10, 12, none, 11: 4, 2, 2 and 6 bytes of code. */
    const uint8_t table[] = {4, 0, 2, 2, 2, 0x80, 6, 0xff};
    (void)state;

    assert_int_equal(ttm_python_line_3_10(table, sizeof(table), 10, 0), 10);
    assert_int_equal(ttm_python_line_3_10(table, sizeof(table), 10, 2), 10);
    assert_int_equal(ttm_python_line_3_10(table, sizeof(table), 10, 4), 12);
    assert_int_equal(ttm_python_line_3_10(table, sizeof(table), 10, 6), 0);
    assert_int_equal(ttm_python_line_3_10(table, sizeof(table), 10, 8), 11);
    assert_int_equal(ttm_python_line_3_10(table, sizeof(table), 10, 12), 11);
    assert_int_equal(ttm_python_line_3_10(table, sizeof(table), 10, 14), 0);
    /* A frame that has not begun is at its first line, as in Python. */
    assert_int_equal(ttm_python_line_3_10(table, sizeof(table), 10, 2 * UINT32_MAX), 10);
}

static void locations_of_every_form_lead_to_the_line(void **state)
{
    const uint8_t table[] = {
        0x80 | 10 << 3 | 0, 1,        2,          /* one line, +0: 1 unit, line 10 */
        0x80 | 12 << 3 | 1, 1,        2,          /* +2: 2 units, line 12 */
        0x80 | 3 << 3 | 0,  1,                    /* short, +0: 1 unit, line 12 */
        0x80 | 13 << 3 | 0, 3,                    /* no columns, -1: line 11 */
        0x80 | 15 << 3 | 1,                       /* no line: 2 units */
        0x80 | 14 << 3 | 0, 0x40 | 8, 2, 0, 1, 2, /* long, +(8 + 2 * 64) / 2: line 79 */
    };
    (void)state;

    assert_int_equal(ttm_python_line_3_11(table, sizeof(table), 10, 0), 10);
    assert_int_equal(ttm_python_line_3_11(table, sizeof(table), 10, 2), 12);
    assert_int_equal(ttm_python_line_3_11(table, sizeof(table), 10, 4), 12);
    assert_int_equal(ttm_python_line_3_11(table, sizeof(table), 10, 6), 12);
    assert_int_equal(ttm_python_line_3_11(table, sizeof(table), 10, 8), 11);
    assert_int_equal(ttm_python_line_3_11(table, sizeof(table), 10, 10), 0);
    assert_int_equal(ttm_python_line_3_11(table, sizeof(table), 10, 12), 0);
    assert_int_equal(ttm_python_line_3_11(table, sizeof(table), 10, 14), 79);
    assert_int_equal(ttm_python_line_3_11(table, sizeof(table), 10, 16), 0);
}

static void an_empty_table_has_no_line(void **state)
{
    (void)state;

    assert_int_equal(ttm_python_line_3_10((const uint8_t *)"", 0, 10, 0), 0);
    assert_int_equal(ttm_python_line_3_11((const uint8_t *)"", 0, 10, 0), 0);
}

static void tables_of_nonsense_are_read_to_their_end_and_no_further(void **state)
{
    uint64_t seed = 0x1234567;
    (void)state;

    for (unsigned i = 0; i < 20000; i++) {
        uint8_t bytes[40];
        const uint32_t length = random_below(&seed, sizeof(bytes) + 1);

        for (uint32_t k = 0; k < sizeof(bytes); k++)
            bytes[k] = (uint8_t)next_random(&seed);
        struct bytes copy = bytes_of(bytes, length);
        const uint32_t offset = random_below(&seed, 200);

        (void)ttm_python_line_3_10(copy.data, length, 1, offset);
        (void)ttm_python_line_3_11(copy.data, length, 1, offset);
        bytes_done(&copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_of_deltas_lead_to_the_line),
        cmocka_unit_test(locations_of_every_form_lead_to_the_line),
        cmocka_unit_test(an_empty_table_has_no_line),
        cmocka_unit_test(tables_of_nonsense_are_read_to_their_end_and_no_further),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
