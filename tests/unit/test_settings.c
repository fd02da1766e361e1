/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#include "dashboard/settings.h"

static void what_is_printed_is_parsed_again(void **state)
{
    const struct ttm_view_settings chosen = {
        .page = TTM_PAGE_ORIGINS,
        .process_sort = TTM_SORT_USER,
        .origin_sort = TTM_ORIGIN_SORT_AGE,
        .is_reversed = {[TTM_PAGE_DEVICES] = true},
        .window_s = 600,
    };
    struct ttm_view_settings found = ttm_view_defaults;
    struct ttm_text text;
    (void)state;

    ttm_text_init(&text);
    ttm_settings_print(&chosen, &text);
    ttm_settings_parse(ttm_text_string(&text), &found);
    ttm_text_done(&text);
    assert_memory_equal(&found, &chosen, sizeof(found));
}

static void nonsense_leaves_the_default(void **state)
{
    struct ttm_view_settings found = ttm_view_defaults;
    char line[4000];
    (void)state;

    ttm_settings_parse("view = 9\nview = -1\nprocesses_by = magic\nwindow_s = 61\n"
                       "unknown = 3\n= = =\n\n\xff\xfe\nview",
                       &found);
    assert_memory_equal(&found, &ttm_view_defaults, sizeof(found));
    memset(line, 'a', sizeof(line) - 1);
    line[sizeof(line) - 1] = '\0';
    ttm_settings_parse(line, &found);
    assert_memory_equal(&found, &ttm_view_defaults, sizeof(found));
    ttm_settings_parse("view = 9\r\n  origins_by=count  \n", &found);
    assert_int_equal(found.origin_sort, TTM_ORIGIN_SORT_COUNT);
}

static void settings_survive_in_a_folder_that_was_not_there(void **state)
{
    struct ttm_view_settings chosen = ttm_view_defaults, found;
    (void)state;

    assert_int_equal(setenv("XDG_CONFIG_HOME", tree_path("/config"), 1), 0);
    ttm_settings_load(&found);
    assert_memory_equal(&found, &ttm_view_defaults, sizeof(found));
    chosen.page = TTM_PAGE_CHARTS;
    assert_int_equal(ttm_settings_save(&chosen), 0);
    ttm_settings_load(&found);
    assert_int_equal(found.page, TTM_PAGE_CHARTS);
    chosen.page = TTM_PAGE_ORIGINS;
    assert_int_equal(ttm_settings_save(&chosen), 0);
    ttm_settings_load(&found);
    assert_int_equal(found.page, TTM_PAGE_ORIGINS);
    /* Nothing but the file is left behind. */
    assert_int_equal(unlink(tree_path("/config/tt-mem/top.conf")), 0);
    assert_int_equal(rmdir(tree_path("/config/tt-mem")), 0);
}

static void what_cannot_be_written_is_an_error(void **state)
{
    (void)state;
    tree_text("/file", "");
    assert_int_equal(setenv("XDG_CONFIG_HOME", tree_path("/file"), 1), 0);
    assert_int_equal(ttm_settings_save(&ttm_view_defaults), -ENOTDIR);
    assert_int_equal(unsetenv("XDG_CONFIG_HOME"), 0);
    assert_int_equal(setenv("HOME", "", 1), 0);
    assert_int_equal(ttm_settings_save(&ttm_view_defaults), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_printed_is_parsed_again),
        cmocka_unit_test(nonsense_leaves_the_default),
        TREE_TEST(settings_survive_in_a_folder_that_was_not_there),
        TREE_TEST(what_cannot_be_written_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
