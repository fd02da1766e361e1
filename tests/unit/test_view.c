/* SPDX-License-Identifier: Apache-2.0 */
#include "dashboard_testing.h"

static struct ttm_view view;
static struct ttm_origins_source source;

static int set_up(void **state)
{
    (void)state;
    ttm_view_init(&view, &ttm_view_defaults);
    make_facts(2, 100);
    source = make_lives();
    return ttm_view_take(&view, &made_facts);
}

static int tear_down(void **state)
{
    (void)state;
    ttm_view_done(&view);
    return 0;
}

static void press(const char *keys)
{
    for (; *keys; keys++)
        (void)ttm_view_key(&view, &source, (uint32_t)*keys);
}

static void assert_pids(int32_t first, int32_t second, int32_t third)
{
    assert_int_equal(view.process_count, 3);
    assert_int_equal(view.processes[0].process->pid, first);
    assert_int_equal(view.processes[1].process->pid, second);
    assert_int_equal(view.processes[2].process->pid, third);
}

static void those_with_most_memory_come_first_until_s_is_pressed(void **state)
{
    (void)state;
    assert_pids(4242, 4310, 4399);
    press("r");
    assert_pids(4399, 4310, 4242);
    press("r"); /* and back */
    press("ssss");
    assert_int_equal(view.settings.process_sort, TTM_SORT_COMMAND);
    assert_pids(4399, 4242, 4310);
    press("s");
    assert_int_equal(view.settings.process_sort, TTM_SORT_MEMORY);
}

static void growth_is_known_after_a_while_and_can_be_sorted_by(void **state)
{
    (void)state;
    assert_false(view.processes[0].has_growth);
    make_facts(2, 104);
    made_processes[1].regions[TTM_REGION_DRAM].used_bytes += 400;
    assert_int_equal(ttm_view_take(&view, &made_facts), 0);
    press("s");
    assert_int_equal(view.settings.process_sort, TTM_SORT_GROWTH);
    assert_int_equal(view.processes[0].process->pid, 4310);
    assert_true(view.processes[0].has_growth);
    assert_int_equal(view.processes[0].growth_bytes_per_s, 100);
    assert_false(view.processes[2].has_growth); /* nobody knows what it has */
}

static void a_filter_is_typed_and_every_word_has_to_match(void **state)
{
    (void)state;
    press("/PYTHON s");
    assert_true(view.is_typing);
    assert_int_equal(view.process_count, 2);
    press("erve");
    assert_int_equal(view.process_count, 1);
    assert_int_equal(view.processes[0].process->pid, 4310);
    (void)ttm_view_key(&view, &source, TTM_KEY_ENTER);
    assert_false(view.is_typing);
    assert_string_equal(view.filter, "PYTHON serve");
    press("q"); /* a command again */
    assert_true(view.has_ended);
}

static void escape_clears_the_filter(void **state)
{
    (void)state;
    press("/zzz");
    assert_int_equal(view.process_count, 0);
    (void)ttm_view_key(&view, &source, TTM_KEY_BACKSPACE);
    assert_string_equal(view.filter, "zz");
    (void)ttm_view_key(&view, &source, TTM_KEY_ESCAPE);
    assert_int_equal(view.process_count, 3);
    press("/no");
    (void)ttm_view_key(&view, &source, TTM_KEY_ENTER);
    assert_int_equal(view.process_count, 1);
    (void)ttm_view_key(&view, &source, TTM_KEY_ESCAPE);
    assert_int_equal(view.process_count, 3);
}

static void a_filter_that_is_too_long_is_cut(void **state)
{
    (void)state;
    press("/");
    for (int i = 0; i < 500; i++)
        press("x");
    assert_int_equal(strlen(view.filter), TTM_FILTER_SIZE - 1);
}

static void the_selected_process_stays_selected_as_rows_move(void **state)
{
    (void)state;
    (void)ttm_view_key(&view, &source, TTM_KEY_DOWN);
    assert_int_equal(view.process_list.selected, 1);
    make_facts(2, 101);
    made_processes[1].regions[TTM_REGION_DRAM].used_bytes = 900 * GIB;
    assert_int_equal(ttm_view_take(&view, &made_facts), 0);
    assert_int_equal(view.process_list.selected, 0);
    assert_int_equal(view.processes[0].process->pid, 4310);
}

static void a_selection_ends_at_both_ends(void **state)
{
    (void)state;
    (void)ttm_view_key(&view, &source, TTM_KEY_UP);
    assert_int_equal(view.process_list.selected, 0);
    (void)ttm_view_key(&view, &source, TTM_KEY_PAGE_DOWN);
    (void)ttm_view_key(&view, &source, TTM_KEY_END);
    (void)ttm_view_key(&view, &source, TTM_KEY_DOWN);
    assert_int_equal(view.process_list.selected, 2);
    made_facts.process_count = 1; /* the others have ended */
    assert_int_equal(ttm_view_take(&view, &made_facts), 0);
    assert_int_equal(view.process_list.selected, 0);
}

static void a_list_is_moved_so_that_the_selected_row_is_seen(void **state)
{
    struct ttm_view_list list = {.count = 100, .selected = 50};
    (void)state;

    ttm_view_list_show(&list, 10);
    assert_int_equal(list.first, 41);
    list.selected = 3;
    ttm_view_list_show(&list, 10);
    assert_int_equal(list.first, 3);
    list.count = 5;
    ttm_view_list_show(&list, 10);
    assert_int_equal(list.first, 0);
    ttm_view_list_show(&list, 0);
    assert_true(list.first <= 5);
}

static void windows_go_from_half_a_minute_to_an_hour(void **state)
{
    (void)state;
    press("-----");
    assert_int_equal(view.settings.window_s, 30);
    press("++++++++++");
    assert_int_equal(view.settings.window_s, 3600);
}

static void a_closer_look_is_wanted_at_the_selected_origin(void **state)
{
    struct ttm_closer_look look;
    (void)state;

    (void)ttm_view_key(&view, &source, '3');
    assert_false(ttm_view_wants_closer(&view, &look)); /* nothing is selected */
    source.is_partial = true;
    source.lives_count = 0;
    assert_int_equal(ttm_view_take_lives(&view, &source, 1), 0);
    assert_true(ttm_view_wants_closer(&view, &look));
    assert_int_equal(look.device, 0);
    assert_int_equal(look.region, TTM_REGION_L1);
    assert_int_equal(look.pid, 4242);
    assert_int_equal(look.origin, 7);
    assert_false(ttm_view_is_told(&view));
    (void)ttm_view_key(&view, &source, 'p'); /* also when paused, as long as it is not there */
    assert_true(ttm_view_wants_closer(&view, &look));

    source.has_look = true;
    source.look = look;
    source.lives_count = 1;
    assert_int_equal(ttm_view_take_closer(&view, &source), 0);
    assert_true(ttm_view_is_told(&view));
    assert_false(ttm_view_wants_closer(&view, &look));
    (void)ttm_view_key(&view, &source, TTM_KEY_DOWN);
    assert_false(ttm_view_is_told(&view));
    assert_true(ttm_view_wants_closer(&view, &look));
    assert_int_equal(look.origin, 9);
    assert_int_equal(look.region, TTM_REGION_DRAM);
    (void)ttm_view_key(&view, &source, '1');
    assert_false(ttm_view_wants_closer(&view, &look));
}

static void the_bank_of_another_device_can_be_looked_at(void **state)
{
    struct ttm_closer_look look;
    (void)state;

    (void)ttm_view_key(&view, &source, '3');
    (void)ttm_view_key(&view, &source, TTM_KEY_RIGHT); /* there is no origin yet */
    assert_int_equal(ttm_view_take_lives(&view, &source, 1), 0);
    assert_int_equal(view.bank_device, 0);
    (void)ttm_view_key(&view, &source, TTM_KEY_RIGHT);
    assert_int_equal(view.bank_device, 1);
    assert_int_equal(view.bank.count, 3); /* without the one that is on the first alone */
    assert_true(ttm_view_wants_closer(&view, &look));
    assert_int_equal(look.device, 1);
    (void)ttm_view_key(&view, &source, TTM_KEY_RIGHT); /* it is on no third one */
    assert_int_equal(view.bank_device, 1);
    (void)ttm_view_key(&view, &source, TTM_KEY_DOWN); /* one that is on the first alone */
    assert_int_equal(view.bank_device, 0);
    (void)ttm_view_key(&view, &source, TTM_KEY_UP); /* which changes nothing for this one */
    assert_int_equal(view.bank_device, 1);
    (void)ttm_view_key(&view, &source, TTM_KEY_LEFT);
    assert_int_equal(view.bank_device, 0);
    (void)ttm_view_key(&view, &source, TTM_KEY_LEFT);
    assert_int_equal(view.bank_device, 0);
}

static void a_bank_is_built_anew_when_its_lives_are_others(void **state)
{
    (void)state;
    (void)ttm_view_key(&view, &source, '3');
    source.lives_version = 1;
    assert_int_equal(ttm_view_take_lives(&view, &source, 1), 0);
    const uint64_t before = view.bank.free_bytes;
    made_lives[0].footprint_bytes /= 2;
    assert_int_equal(ttm_view_take_lives(&view, &source, 2), 0);
    assert_int_equal(view.bank.free_bytes, before); /* said to be the same */
    source.lives_version = 2;
    assert_int_equal(ttm_view_take_closer(&view, &source), 0);
    assert_true(view.bank.free_bytes > before);
}

static void lives_are_wanted_only_where_they_are_shown(void **state)
{
    (void)state;
    assert_false(ttm_view_wants_lives(&view));
    press("3");
    assert_true(ttm_view_wants_lives(&view));
    press("p"); /* there are none yet, so one picture is made */
    assert_true(ttm_view_wants_lives(&view));
    assert_int_equal(ttm_view_take_lives(&view, &source, 1), 0);
    assert_false(ttm_view_wants_lives(&view));
    press("p2");
    assert_false(ttm_view_wants_lives(&view));
}

static void an_origin_can_be_searched_and_looked_at(void **state)
{
    (void)state;
    press("3");
    assert_int_equal(ttm_view_take_lives(&view, &source, TTM_NS_PER_S), 0);
    assert_int_equal(view.line_count, 3);
    press("/weights");
    (void)ttm_view_key(&view, &source, TTM_KEY_ENTER);
    assert_int_equal(view.line_count, 1);
    (void)ttm_view_key(&view, &source, TTM_KEY_ENTER);
    assert_true(view.has_detail);
    assert_string_equal(view.detail.origin->name, "weights");
    assert_true(view.has_bank);
    assert_int_equal(view.bank_region, TTM_REGION_DRAM);
    press("q"); /* back, not out */
    assert_false(view.has_detail || view.has_ended);
}

static void an_origin_grows_from_one_answer_to_the_next(void **state)
{
    (void)state;
    press("3s");
    assert_int_equal(view.settings.origin_sort, TTM_ORIGIN_SORT_GROWTH);
    assert_int_equal(ttm_view_take_lives(&view, &source, 2 * TTM_NS_PER_S), 0);
    made_lives[3].footprint_bytes += 8000;
    assert_int_equal(ttm_view_take_lives(&view, &source, 10 * TTM_NS_PER_S), 0);
    assert_string_equal(view.lines[0].group->where, "\"weights\"");
    assert_int_equal(view.lines[0].growth_bytes_per_s, 1000);
}

static void help_is_left_by_any_key(void **state)
{
    (void)state;
    press("?");
    assert_true(view.has_help);
    press("q");
    assert_false(view.has_help || view.has_ended);
}

static void devices_are_paged_through(void **state)
{
    (void)state;
    make_facts(32, 101);
    assert_int_equal(ttm_view_take(&view, &made_facts), 0);
    view.devices_a_page = 10;
    for (int i = 0; i < 9; i++)
        (void)ttm_view_key(&view, &source, TTM_KEY_RIGHT);
    assert_int_equal(view.first_device, 22);
    (void)ttm_view_key(&view, &source, TTM_KEY_LEFT);
    assert_int_equal(view.first_device, 12);
    make_facts(2, 102); /* most of them are gone */
    assert_int_equal(ttm_view_take(&view, &made_facts), 0);
    assert_int_equal(view.first_device, 0);
}

static void keys_before_the_first_facts_are_harmless(void **state)
{
    (void)state;
    ttm_view_done(&view);
    ttm_view_init(&view, &ttm_view_defaults);
    press("123sr+-p/ab");
    for (uint32_t key = TTM_KEY_UP; key <= TTM_KEY_BACKSPACE; key++)
        (void)ttm_view_key(&view, NULL, key);
    assert_false(view.has_ended);
}

#define VIEW_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        VIEW_TEST(those_with_most_memory_come_first_until_s_is_pressed),
        VIEW_TEST(growth_is_known_after_a_while_and_can_be_sorted_by),
        VIEW_TEST(a_filter_is_typed_and_every_word_has_to_match),
        VIEW_TEST(escape_clears_the_filter),
        VIEW_TEST(a_filter_that_is_too_long_is_cut),
        VIEW_TEST(the_selected_process_stays_selected_as_rows_move),
        VIEW_TEST(a_selection_ends_at_both_ends),
        VIEW_TEST(a_list_is_moved_so_that_the_selected_row_is_seen),
        VIEW_TEST(windows_go_from_half_a_minute_to_an_hour),
        VIEW_TEST(a_closer_look_is_wanted_at_the_selected_origin),
        VIEW_TEST(the_bank_of_another_device_can_be_looked_at),
        VIEW_TEST(a_bank_is_built_anew_when_its_lives_are_others),
        VIEW_TEST(lives_are_wanted_only_where_they_are_shown),
        VIEW_TEST(an_origin_can_be_searched_and_looked_at),
        VIEW_TEST(an_origin_grows_from_one_answer_to_the_next),
        VIEW_TEST(help_is_left_by_any_key),
        VIEW_TEST(devices_are_paged_through),
        VIEW_TEST(keys_before_the_first_facts_are_harmless),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
