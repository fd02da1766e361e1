/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "cli/completeness.h"
#include "wire/region.h"

static struct ttm_process_row tracked(void)
{
    return (struct ttm_process_row){.source = TTM_SOURCE_TRACKED, .events = 100, .lives = 5};
}

static void assert_is(const struct ttm_process_row *row, bool is_exact, bool is_whole,
                      const char *why)
{
    assert_int_equal(ttm_completeness_is_live_set_exact(row), is_exact);
    assert_int_equal(ttm_completeness_is_history_whole(row), is_whole);
    assert_non_null(strstr(ttm_completeness_why(row), why));
    assert_int_equal(why[0] == '\0', ttm_completeness_why(row)[0] == '\0');
}

static void nothing_wrong_is_complete(void **state)
{
    struct ttm_process_row row = tracked();
    (void)state;

    assert_is(&row, true, true, "");
    row.resyncs = 3;
    row.replaced = 7; /* a finding, and no doubt about what is live */
    row.unknown_ends = 4;
    row.events_per_s = 1000;
    row.ring_permille = 1000;
    memcpy(row.runtime, "ttnn", 5);
    assert_is(&row, true, true, "");
}

static void a_tracked_process_that_lost_events_knows_what_is_live_all_the_same(void **state)
{
    struct ttm_process_row row = tracked();
    (void)state;

    row.lost_events = 1;
    assert_is(&row, true, false, "lost");
    row.source = TTM_SOURCE_ORIGINAL;
    assert_is(&row, false, false, "lost");
}

static void a_gap_costs_the_history_alone(void **state)
{
    struct ttm_process_row row = tracked();
    (void)state;

    row.has_gap = true;
    assert_is(&row, true, false, "without a break");
}

static void each_doubt_about_what_is_live_is_said(void **state)
{
    struct ttm_process_row row = tracked();
    (void)state;

    row.unknown_frees = 1;
    assert_is(&row, false, false, "freed it twice");
    row.source = TTM_SOURCE_ORIGINAL; /* which says nothing of what was there before */
    assert_is(&row, false, false, "before tracking began");
    row = tracked();
    row.refused = 1;
    assert_is(&row, false, false, "made no sense");
    row = tracked();
    row.untracked = 1;
    assert_is(&row, false, false, "no room");
    row = tracked();
    row.is_disabled = true;
    assert_is(&row, false, false, "switched off");
    row = tracked();
    row.is_behind = true;
    assert_is(&row, false, false, "still to tell");
    row = tracked();
    memcpy(row.trouble, "no symbol", 10);
    assert_is(&row, false, false, "no symbol");
}

static void of_several_reasons_the_weightiest_is_said(void **state)
{
    struct ttm_process_row row = tracked();
    (void)state;

    row.has_gap = true;
    row.lost_events = 1;
    assert_is(&row, true, false, "lost");
    row.is_behind = true;
    assert_is(&row, false, false, "still to tell");
    row.untracked = 1;
    assert_is(&row, false, false, "no room");
    row.is_disabled = true;
    assert_is(&row, false, false, "switched off");
    memcpy(row.trouble, "no symbol", 10);
    assert_is(&row, false, false, "no symbol");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_wrong_is_complete),
        cmocka_unit_test(a_tracked_process_that_lost_events_knows_what_is_live_all_the_same),
        cmocka_unit_test(a_gap_costs_the_history_alone),
        cmocka_unit_test(each_doubt_about_what_is_live_is_said),
        cmocka_unit_test(of_several_reasons_the_weightiest_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
