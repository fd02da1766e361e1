/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <fcntl.h>
#include <unistd.h>

#include "cli/terminal.h"

static const struct ttm_terminal plain = {.columns = 80, .rows = 24};
static const struct ttm_terminal utf8 = {.has_utf8 = true};
static const struct ttm_terminal colour = {.has_colour = true, .is_terminal = true};

static void assert_bar(const struct ttm_terminal *terminal, uint64_t part, uint64_t whole,
                       size_t columns, const char *expected)
{
    struct ttm_text text;

    ttm_text_init(&text);
    ttm_terminal_bar(terminal, &text, part, whole, columns);
    assert_string_equal(ttm_text_string(&text), expected);
    ttm_text_done(&text);
}

static void a_bar_is_filled_by_its_share(void **state)
{
    (void)state;
    assert_bar(&plain, 0, 100, 4, "    ");
    assert_bar(&plain, 50, 100, 4, "##  ");
    assert_bar(&plain, 100, 100, 4, "####");
    assert_bar(&utf8, 50, 100, 4, "██  ");
    assert_bar(&utf8, 56, 100, 4, "██▎ ");
}

static void more_than_all_is_a_full_bar(void **state)
{
    (void)state;
    assert_bar(&plain, 101, 100, 4, "####");
    assert_bar(&utf8, UINT64_MAX, 1, 3, "███");
}

static void a_little_is_not_nothing(void **state)
{
    (void)state;
    assert_bar(&plain, 1, 1000000, 4, "#   ");
    assert_bar(&utf8, 1, 1000000, 4, "▏   ");
}

static void of_an_unknown_whole_a_bar_shows_no_full_cell(void **state)
{
    (void)state;
    assert_bar(&utf8, 0, 0, 3, "   ");
    assert_bar(&utf8, 5, 0, 3, "▏  ");
    assert_bar(&plain, 0, 10, 0, "");
    assert_bar(&plain, 5, 10, 0, "");
}

static void the_load_is_green_then_yellow_from_75_and_red_from_90_percent(void **state)
{
    (void)state;
    assert_int_equal(ttm_terminal_load_colour(0, 0), TTM_GREEN);
    assert_int_equal(ttm_terminal_load_colour(0, 100), TTM_GREEN);
    assert_int_equal(ttm_terminal_load_colour(7499, 10000), TTM_GREEN);
    assert_int_equal(ttm_terminal_load_colour(75, 100), TTM_YELLOW);
    assert_int_equal(ttm_terminal_load_colour(8999, 10000), TTM_YELLOW);
    assert_int_equal(ttm_terminal_load_colour(90, 100), TTM_RED);
    assert_int_equal(ttm_terminal_load_colour(200, 100), TTM_RED);
}

static void colour_codes_are_written_only_where_there_is_colour(void **state)
{
    struct ttm_text text;
    (void)state;

    ttm_text_init(&text);
    ttm_terminal_colour(&plain, &text, TTM_RED);
    assert_string_equal(ttm_text_string(&text), "");
    ttm_terminal_colour(&colour, &text, TTM_RED);
    ttm_terminal_colour(&colour, &text, TTM_PLAIN);
    assert_string_equal(ttm_text_string(&text), "\033[31m\033[0m");
    ttm_text_done(&text);
}

static void marks_are_ascii_without_utf8(void **state)
{
    (void)state;
    assert_string_equal(ttm_terminal_dot(&plain), " - ");
    assert_string_equal(ttm_terminal_dot(&utf8), " · ");
    assert_string_equal(ttm_terminal_ellipsis(&plain), "...");
}

static void a_command_is_shown_without_its_folder_and_harmlessly(void **state)
{
    static const char *const commands[][2] = {
        {"/usr/bin/python3 /srv/model/run.py", "python3 /srv/model/run.py"},
        {"python3", "python3"},
        {"", ""},
        {"/", ""},
        {"./a\033[2J b", "a\\x1b[2J b"},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        struct ttm_text text;
        ttm_text_init(&text);
        ttm_terminal_command(&text, commands[i][0]);
        assert_string_equal(ttm_text_string(&text), commands[i][1]);
        ttm_text_done(&text);
    }
}

static void what_is_no_terminal_has_no_colour_and_a_known_size(void **state)
{
    const int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    (void)state;

    assert_true(fd >= 0);
    (void)unsetenv("COLUMNS");
    (void)setenv("LINES", "nonsense", 1);
    struct ttm_terminal terminal = ttm_terminal_of(fd);
    assert_false(terminal.is_terminal);
    assert_false(terminal.has_colour);
    assert_int_equal(terminal.columns, 80);
    assert_int_equal(terminal.rows, 24);
    (void)setenv("COLUMNS", "132", 1);
    terminal = ttm_terminal_of(fd);
    assert_int_equal(terminal.columns, 132);
    (void)setenv("COLUMNS", "-5", 1);
    terminal = ttm_terminal_of(fd);
    assert_int_equal(terminal.columns, 80);
    (void)close(fd);
}

static void the_width_of_a_line_is_what_is_seen_of_it(void **state)
{
    (void)state;
    assert_int_equal(ttm_terminal_width(""), 0);
    assert_int_equal(ttm_terminal_width("abc"), 3);
    assert_int_equal(ttm_terminal_width("\033[1ma█c\033[0m"), 3);
    assert_int_equal(ttm_terminal_width("\xff"), 1);
}

static void assert_fits(const struct ttm_terminal *terminal, const char *line, const char *fitted)
{
    struct ttm_text text, out;

    ttm_text_init(&text);
    ttm_text_init(&out);
    ttm_text_append(&text, line);
    ttm_terminal_fit(terminal, &text, &out);
    assert_string_equal(ttm_text_string(&out), fitted);
    ttm_text_done(&text);
    ttm_text_done(&out);
}

static void a_line_that_is_cut_says_so_and_leaves_no_colour_behind(void **state)
{
    const struct ttm_terminal four = {.is_terminal = true, .has_utf8 = true, .columns = 4};
    const struct ttm_terminal ascii = {.is_terminal = true, .columns = 4};
    const struct ttm_terminal file = {.has_utf8 = true, .columns = 4};
    (void)state;

    assert_fits(&four, "abcd\nab\n\nxyz", "abcd\nab\n\nxyz");
    assert_fits(&four, "abcde\n12345678", "abc…\n123…");
    assert_fits(&four, "a\033[1mb█defg\033[0m\n", "a\033[1mb█…\033[0m\n");
    assert_fits(&ascii, "abcdef\n", "abcd\n");
    assert_fits(&file, "abcdef\n", "abcdef\n");
    assert_fits(&file, "a ← b ← c\n", "a ← b ← c\n");
    assert_fits(&plain, "a ← b ← c\n", "a < b < c\n");
    assert_fits(&ascii, "a ← b ← c\n", "a < \n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bar_is_filled_by_its_share),
        cmocka_unit_test(more_than_all_is_a_full_bar),
        cmocka_unit_test(a_little_is_not_nothing),
        cmocka_unit_test(of_an_unknown_whole_a_bar_shows_no_full_cell),
        cmocka_unit_test(the_load_is_green_then_yellow_from_75_and_red_from_90_percent),
        cmocka_unit_test(colour_codes_are_written_only_where_there_is_colour),
        cmocka_unit_test(marks_are_ascii_without_utf8),
        cmocka_unit_test(a_command_is_shown_without_its_folder_and_harmlessly),
        cmocka_unit_test(what_is_no_terminal_has_no_colour_and_a_known_size),
        cmocka_unit_test(the_width_of_a_line_is_what_is_seen_of_it),
        cmocka_unit_test(a_line_that_is_cut_says_so_and_leaves_no_colour_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
