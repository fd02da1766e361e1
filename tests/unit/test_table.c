/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "cli/table.h"

static void put_word(const void *row, const struct ttm_terminal *terminal, struct ttm_text *cell)
{
    (void)terminal;
    ttm_text_append(cell, row);
}

static void put_nothing(const void *row, const struct ttm_terminal *terminal, struct ttm_text *cell)
{
    (void)row;
    (void)terminal;
    (void)cell;
}

static const struct ttm_table_column columns[] = {
    {"A", 5, true, 0, put_word},
    {"WIDE", 5, false, 90, put_word},
    {"B", 5, false, 0, put_nothing},
    {"C", 0, false, 0, put_word},
    {NULL},
};

static void assert_line(const struct ttm_terminal *terminal, const char *row, const char *expected)
{
    struct ttm_text out;

    ttm_text_init(&out);
    if (row)
        ttm_table_row(columns, terminal, row, &out);
    else
        ttm_table_head(columns, terminal, &out);
    assert_string_equal(ttm_text_string(&out), expected);
    ttm_text_done(&out);
}

static void cells_stand_under_their_titles(void **state)
{
    const struct ttm_terminal terminal = {.columns = 80, .rows = 24, .has_utf8 = true};
    (void)state;

    assert_line(&terminal, NULL, "    A B     C\n");
    assert_line(&terminal, "xy", "   xy -     xy\n");
    assert_line(&terminal, "1 °C", " 1 °C -     1 °C\n"); /* a character is a column */
}

static void what_is_too_long_is_cut_and_the_last_column_is_not(void **state)
{
    struct ttm_terminal terminal = {.columns = 80, .rows = 24, .has_utf8 = true};
    (void)state;

    assert_line(&terminal, "abcdefgh", "abcd… -     abcdefgh\n");
    terminal.has_utf8 = false;
    assert_line(&terminal, "abcdefgh", "abcd~ -     abcdefgh\n");
}

static void wider_screens_show_more_columns_and_more_room(void **state)
{
    struct ttm_terminal terminal = {.columns = 90, .rows = 24, .has_utf8 = true};
    (void)state;

    assert_line(&terminal, "xy", "   xy xy    -     xy\n");
    terminal.columns = 104;
    assert_line(&terminal, "xy", "   xy  xy     -      xy\n");
}

static void short_memory_shows_in_the_text(void **state)
{
    const struct ttm_terminal terminal = {.columns = 80, .rows = 24};
    struct ttm_text out;
    bool has_failed = true;
    (void)state;

    for (unsigned grants = 0; has_failed; grants++) {
        assert_in_range(grants, 0, 100);
        ttm_text_init(&out);
        faults_begin(grants);
        ttm_table_row(columns, &terminal, "xy", &out);
        has_failed = faults_end();
        assert_int_equal(ttm_text_failed(&out), has_failed);
        ttm_text_done(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_stand_under_their_titles),
        cmocka_unit_test(what_is_too_long_is_cut_and_the_last_column_is_not),
        cmocka_unit_test(wider_screens_show_more_columns_and_more_room),
        cmocka_unit_test(short_memory_shows_in_the_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
