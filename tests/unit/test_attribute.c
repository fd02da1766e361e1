/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#include "telemetry/attribute.h"

static int folder_fd;

static int set_up(void **state)
{
    if (tree_set_up(state) < 0)
        return -1;
    folder_fd = ttm_folder_open(root, "/");
    return folder_fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)close(folder_fd);
    return tree_tear_down(state);
}

static void the_first_line_is_read_without_its_newline(void **state)
{
    char text[8];
    (void)state;

    tree_text("/a", "n300\n");
    assert_int_equal(ttm_attribute_text(folder_fd, "a", text, sizeof(text)), 4);
    assert_string_equal(text, "n300");
    tree_text("/a", "first\nsecond\n");
    assert_int_equal(ttm_attribute_text(folder_fd, "a", text, sizeof(text)), 5);
    assert_string_equal(text, "first");
}

static void a_line_that_is_too_long_is_cut(void **state)
{
    char text[8];
    (void)state;

    tree_text("/a", "0123456789\n");
    assert_int_equal(ttm_attribute_text(folder_fd, "a", text, sizeof(text)), 7);
    assert_string_equal(text, "0123456");
}

static void an_empty_file_and_an_absent_one_are_told_apart(void **state)
{
    char text[8] = "before";
    (void)state;

    tree_text("/a", "");
    assert_int_equal(ttm_attribute_text(folder_fd, "a", text, sizeof(text)), -ENODATA);
    assert_string_equal(text, "");
    assert_int_equal(ttm_attribute_text(folder_fd, "b", text, sizeof(text)), -ENOENT);
    tree_folder("/c");
    assert_int_equal(ttm_attribute_text(folder_fd, "c", text, sizeof(text)), -EISDIR);
}

static void an_error_of_the_driver_says_what_is_wrong_with_the_chip(void **state)
{
    (void)state;

    assert_int_equal(ttm_validity_of(0), TTM_VALID);
    assert_int_equal(ttm_validity_of(12), TTM_VALID);
    assert_int_equal(ttm_validity_of(-ENODATA), TTM_IN_RESET);
    assert_int_equal(ttm_validity_of(-EBUSY), TTM_IN_RESET);
    assert_int_equal(ttm_validity_of(-ENODEV), TTM_REMOVED);
    assert_int_equal(ttm_validity_of(-ENXIO), TTM_REMOVED);
    assert_int_equal(ttm_validity_of(-EACCES), TTM_DENIED);
    assert_int_equal(ttm_validity_of(-ENOENT), TTM_ABSENT);
    assert_int_equal(ttm_validity_of(-EIO), TTM_ABSENT);
}

static struct ttm_value number_in(const char *text)
{
    tree_text("/n", text);
    return ttm_attribute_number(folder_fd, "n", 10, 150000);
}

static void a_number_within_its_bounds_is_valid(void **state)
{
    (void)state;

    assert_int_equal(number_in("54312\n").validity, TTM_VALID);
    assert_int_equal(number_in("54312\n").number, 54312);
    assert_int_equal(number_in("10").number, 10);
    assert_int_equal(number_in("150000\n").number, 150000);
}

static void a_number_that_cannot_be_true_is_kept_away(void **state)
{
    static const char *const wrong[] = {
        "9\n", "150001\n", "-54312\n", "+54312\n", " 54312\n",    "54312 \n",
        "5e3", "0x100",    "x",        "54.3",     "99999999999", "99999999999999999999999",
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        const struct ttm_value value = number_in(wrong[i]);
        if (value.validity != TTM_IMPLAUSIBLE || value.number != 0)
            fail_msg("'%s' was taken: %d", wrong[i], value.validity);
    }
    assert_int_equal(number_in("").validity, TTM_IN_RESET);
    assert_int_equal(ttm_attribute_number(folder_fd, "none", 0, 1).validity, TTM_ABSENT);
}

static void ids_are_hexadecimal(void **state)
{
    (void)state;

    tree_text("/a", "F5DDD9F78D7E0BEE\n");
    assert_int_equal(ttm_attribute_hex(folder_fd, "a").number, 0xf5ddd9f78d7e0bee);
    tree_text("/a", "0x1e52\n");
    assert_int_equal(ttm_attribute_hex(folder_fd, "a").number, 0x1e52);
    tree_text("/a", "1F5DDD9F78D7E0BEE\n");
    assert_int_equal(ttm_attribute_hex(folder_fd, "a").validity, TTM_IMPLAUSIBLE);
    tree_text("/a", "-1\n");
    assert_int_equal(ttm_attribute_hex(folder_fd, "a").validity, TTM_IMPLAUSIBLE);
    tree_text("/a", "none\n");
    assert_int_equal(ttm_attribute_hex(folder_fd, "a").validity, TTM_IMPLAUSIBLE);
}

static void a_link_gives_the_last_part_of_its_target(void **state)
{
    char name[16];
    (void)state;

    tree_link("/a", "../../../0000:41:00.0");
    ttm_attribute_link(folder_fd, "a", name, sizeof(name));
    assert_string_equal(name, "0000:41:00.0");
    tree_link("/b", "plain");
    ttm_attribute_link(folder_fd, "b", name, sizeof(name));
    assert_string_equal(name, "plain");
    ttm_attribute_link(folder_fd, "c", name, sizeof(name));
    assert_string_equal(name, "");
}

static void a_root_that_is_too_long_is_refused(void **state)
{
    char *longest = calloc(1, 5000);
    (void)state;

    assert_non_null(longest);
    memset(longest, 'x', 4999);
    assert_int_equal(ttm_folder_open(longest, "/sys"), -ENAMETOOLONG);
    free(longest);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_line_is_read_without_its_newline),
        TEST(a_line_that_is_too_long_is_cut),
        TEST(an_empty_file_and_an_absent_one_are_told_apart),
        TEST(an_error_of_the_driver_says_what_is_wrong_with_the_chip),
        TEST(a_number_within_its_bounds_is_valid),
        TEST(a_number_that_cannot_be_true_is_kept_away),
        TEST(ids_are_hexadecimal),
        TEST(a_link_gives_the_last_part_of_its_target),
        TEST(a_root_that_is_too_long_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
