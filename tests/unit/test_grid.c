/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "dashboard/grid.h"

static struct ttm_grid grid;
static struct ttm_text text;

static int set_up(void **state)
{
    (void)state;
    grid = (struct ttm_grid){.has_utf8 = true, .has_braille = true};
    ttm_text_init(&text);
    return ttm_grid_resize(&grid, 12, 2);
}

static int tear_down(void **state)
{
    (void)state;
    ttm_grid_done(&grid);
    ttm_text_done(&text);
    return 0;
}

static const char *printed(void)
{
    ttm_text_clear(&text);
    ttm_grid_print(&grid, false, &text);
    return ttm_text_string(&text);
}

static void text_is_cut_with_an_ellipsis(void **state)
{
    (void)state;
    assert_int_equal(ttm_grid_text(&grid, 0, 1, 6, TTM_STYLE_PLAIN, "abcdef"), 7);
    assert_int_equal(ttm_grid_text(&grid, 1, 1, 6, TTM_STYLE_PLAIN, "abcdefg"), 7);
    assert_string_equal(printed(), " abcdef\n abcde…\n");
}

static void nothing_is_drawn_outside(void **state)
{
    (void)state;
    (void)ttm_grid_text(&grid, 0, 10, 40, TTM_STYLE_PLAIN, "abcdef");
    (void)ttm_grid_text(&grid, 7, 0, 40, TTM_STYLE_PLAIN, "abcdef");
    ttm_grid_put(&grid, 0, SIZE_MAX, 'x', TTM_STYLE_PLAIN);
    ttm_grid_restyle(&grid, 1, 11, 100, TTM_STYLE_BAD);
    assert_string_equal(printed(), "          ab\n\n");
}

static void control_characters_cannot_reach_the_terminal(void **state)
{
    (void)state;
    (void)ttm_grid_text(&grid, 0, 0, 12, TTM_STYLE_PLAIN, "a\033[2J\x80z\xc2\x9b");
    assert_string_equal(printed(), "a?[2J?z?\n\n");
}

static void without_utf8_every_character_is_ascii(void **state)
{
    (void)state;
    grid.has_utf8 = false;
    (void)ttm_grid_text(&grid, 0, 0, 12, TTM_STYLE_PLAIN, "54 °C · ü—");
    for (size_t i = 0; i < 24; i++)
        assert_true(grid.cells[i].character < 0x7f);
    assert_string_equal(printed(), "54  C - ?-\n\n");
}

static void a_bar_shows_eighths_and_never_nothing_for_something(void **state)
{
    const struct ttm_bar_part half = {125, TTM_STYLE_GOOD, 0x2588, '#'};
    const struct ttm_bar_part little = {1, TTM_STYLE_GOOD, 0x2588, '#'};
    (void)state;

    ttm_grid_bar(&grid, 0, 0, 10, &half, 1, 1000);
    ttm_grid_bar(&grid, 1, 0, 10, &little, 1, 100000);
    assert_string_equal(printed(), "█▎\n▏\n");
}

static void parts_of_a_bar_stand_behind_each_other_and_end_at_its_end(void **state)
{
    const struct ttm_bar_part parts[] = {
        {500, TTM_STYLE_L1, 0x2588, '#'},
        {0, TTM_STYLE_CB, 0x2592, '='},
        {1, TTM_STYLE_KERNEL, 0x2593, '%'},
        {2000, TTM_STYLE_SMALL, 0x2591, '+'},
    };
    (void)state;

    ttm_grid_bar(&grid, 0, 1, 10, parts, COUNT_OF(parts), 1000);
    grid.has_utf8 = false;
    ttm_grid_bar(&grid, 1, 1, 10, parts, COUNT_OF(parts), 1000);
    assert_string_equal(printed(), " █████░░░░░\n #####+++++\n");
}

static void the_length_of_a_bar_is_that_of_all_its_parts(void **state)
{
    const struct ttm_bar_part parts[] = {
        {150, TTM_STYLE_L1, 0x2588, '#'},
        {100, TTM_STYLE_CB, 0x2592, '='},
        {10, TTM_STYLE_KERNEL, 0x2593, '%'},
    };
    (void)state;

    ttm_grid_bar(&grid, 0, 0, 10, parts, COUNT_OF(parts), 1000);
    ttm_grid_bar(&grid, 1, 0, 10, parts, COUNT_OF(parts), 100000);
    assert_string_equal(printed(), "█▒▋\n▏\n"); /* 2.6 cells, and next to nothing */
}

static void a_colour_ends_with_its_line(void **state)
{
    (void)state;
    (void)ttm_grid_text(&grid, 0, 0, 12, TTM_STYLE_BAD, "hot");
    ttm_text_clear(&text);
    ttm_grid_print(&grid, true, &text);
    assert_string_equal(ttm_text_string(&text), "\033[0;31mhot\033[0m\n\n");
}

static void a_grid_that_cannot_grow_stays(void **state)
{
    (void)state;
    faults_begin(0);
    assert_int_equal(ttm_grid_resize(&grid, 500, 100), -ENOMEM);
    assert_true(faults_end());
    assert_int_equal(grid.columns, 12);
    assert_int_equal(ttm_grid_resize(&grid, 1 << 20, 1 << 20), 0);
    assert_int_equal(grid.columns, TTM_GRID_COLUMNS_MAX);
    assert_int_equal(grid.rows, TTM_GRID_ROWS_MAX);
}

#define GRID_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        GRID_TEST(text_is_cut_with_an_ellipsis),
        GRID_TEST(nothing_is_drawn_outside),
        GRID_TEST(control_characters_cannot_reach_the_terminal),
        GRID_TEST(without_utf8_every_character_is_ascii),
        GRID_TEST(a_bar_shows_eighths_and_never_nothing_for_something),
        GRID_TEST(the_length_of_a_bar_is_that_of_all_its_parts),
        GRID_TEST(parts_of_a_bar_stand_behind_each_other_and_end_at_its_end),
        GRID_TEST(a_colour_ends_with_its_line),
        GRID_TEST(a_grid_that_cannot_grow_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
