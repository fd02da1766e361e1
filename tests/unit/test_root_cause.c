/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/root_cause.h"

#include "testing.h"

#define COUNT 6
#define LIST ", held by list ERRORS in module m"

static struct ttm_report_origin origins[COUNT];
static const char *texts[COUNT];
static uint32_t roots[COUNT];
static struct ttm_frame_words lines[COUNT];
static const struct ttm_report_process process = {.origins = origins, .origin_count = COUNT};
static struct ttm_root_causes causes;

/* A suspect at a line of its own, of i + 1 buffers, held by nothing that is known. */
static int set_up(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < COUNT; i++) {
        lines[i] = (struct ttm_frame_words){"m.py", "step", i + 1};
        roots[i] = 0;
        origins[i] = (struct ttm_report_origin){
            .words = {.python = &lines[i], .python_count = 1, .operation = "ttnn.add"},
            .remaining = {.count = i + 1, .bytes = 10 * (i + 1), .footprint_bytes = 32 * (i + 1)},
            .verdict = {.class = TTM_CLASS_GROWING, .is_suspect = true},
        };
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_root_causes_done(&causes);
    return 0;
}

static void hold(uint32_t i, uint8_t cause, uint32_t root, const char *text)
{
    texts[i] = text;
    roots[i] = root;
    origins[i].keepers = (struct ttm_keepers){.is_known = true,
                                              .cause = cause,
                                              .round = 1,
                                              .count = 1,
                                              .texts = &texts[i],
                                              .roots = &roots[i]};
}

static void find(void)
{
    assert_int_equal(ttm_root_causes_find(&process, NULL, NULL, &causes), 0);
}

static void what_one_object_holds_is_one_cause_and_its_total_the_sum(void **state)
{
    (void)state;
    hold(0, TTM_CAUSE_CONTAINER, 7, "Model model in module m: model.cache");
    hold(2, TTM_CAUSE_CONTAINER, 7, "Model model in module m: model.history");
    hold(3, TTM_CAUSE_CONTAINER, 8, "list OTHER in module m");
    find();
    assert_int_equal(causes.count, 1);
    assert_string_equal(causes.list[0].text, "Model model in module m");
    assert_int_equal(causes.list[0].cause, TTM_CAUSE_CONTAINER);
    assert_non_null(strstr(causes.list[0].advice, "outlives the step"));
    assert_int_equal(causes.list[0].count, 2);
    assert_int_equal(causes.origins[causes.list[0].first], 0);
    assert_int_equal(causes.origins[causes.list[0].first + 1], 2);
    assert_int_equal(causes.list[0].held.count, 1 + 3);
    assert_int_equal(causes.list[0].held.bytes, 10 + 30);
    assert_int_equal(causes.list[0].held.footprint_bytes, 32 + 96);
    assert_int_equal(causes.of_origin[0], 1);
    assert_int_equal(causes.of_origin[2], 1);
    assert_int_equal(causes.of_origin[3], 0);
}

static void an_exception_is_one_cause_whichever_variable_holds_it(void **state)
{
    (void)state;
    hold(1, TTM_CAUSE_TRACEBACK, 3, "traceback of ValueError: variable x of step (m.py:9)" LIST);
    hold(2, TTM_CAUSE_TRACEBACK, 3, "traceback of ValueError: variable y of step (m.py:9)" LIST);
    find();
    assert_int_equal(causes.count, 1);
    assert_string_equal(causes.list[0].text, "traceback of ValueError" LIST);
}

static void exceptions_in_one_list_are_one_cause(void **state)
{
    (void)state;
    hold(1, TTM_CAUSE_TRACEBACK, 3, "traceback of ValueError: variable x of step (m.py:9)" LIST);
    hold(2, TTM_CAUSE_TRACEBACK, 4, "traceback of KeyError: variable y of step (m.py:9)" LIST);
    hold(3, TTM_CAUSE_TRACEBACK, 5, "traceback of KeyError: variable z of f (m.py:9)");
    find();
    assert_int_equal(causes.count, 1);
    assert_int_equal(causes.list[0].count, 2);
    assert_string_equal(causes.list[0].text, "tracebacks held by list ERRORS in module m");
}

static void a_list_by_its_name_is_known_without_roots(void **state)
{
    (void)state;
    hold(0, TTM_CAUSE_CONTAINER, 0, "dict CACHE in module m: CACHE['k']");
    hold(1, TTM_CAUSE_CONTAINER, 0, "dict CACHE in module m: CACHE['v']");
    hold(2, TTM_CAUSE_CONTAINER, 0, "list … in module m");
    hold(3, TTM_CAUSE_CONTAINER, 0, "list … in module m");
    hold(4, TTM_CAUSE_CYCLE, 0, "cycle through Node.me");
    hold(5, TTM_CAUSE_CYCLE, 0, "cycle through Node.me");
    find();
    assert_int_equal(causes.count, 1);
    assert_string_equal(causes.list[0].text, "dict CACHE in module m");
}

static void objects_of_two_searches_are_not_compared(void **state)
{
    (void)state;
    hold(0, TTM_CAUSE_CYCLE, 1, "cycle through A.me");
    hold(1, TTM_CAUSE_CYCLE, 1, "cycle through B.me");
    origins[1].keepers.round = 2;
    find();
    assert_int_equal(causes.count, 0);
}

static void one_line_of_code_is_no_cause_of_several(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < COUNT; i++) {
        hold(i, TTM_CAUSE_CONTAINER, 1, "list KEPT in module m");
        lines[i].line = 5;
        origins[i].words.name = i % 2 ? "a" : "b";
    }
    find();
    assert_int_equal(causes.count, 0);
    ttm_root_causes_done(&causes);
    origins[4].words.operation = "ttnn.mul";
    find();
    assert_int_equal(causes.count, 1);
    assert_int_equal(causes.list[0].count, COUNT);
}

static void what_is_no_suspect_counts_where_an_exception_holds_it(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < COUNT; i++) {
        const bool is_exception = i < 3;
        hold(i, is_exception ? TTM_CAUSE_TRACEBACK : TTM_CAUSE_CONTAINER, is_exception ? 1 : 2,
             is_exception ? "traceback of E: variable x of f (m.py:1)" : "list KEPT in module m");
        origins[i].verdict.is_suspect = false;
    }
    origins[2].is_suppressed = true;
    origins[5].remaining.count = 0;
    find();
    assert_int_equal(causes.count, 1);
    assert_int_equal(causes.list[0].count, 2);
    assert_string_equal(causes.list[0].text, "traceback of E");
}

static bool is_even(const void *arg, const struct ttm_report_origin *origin)
{
    (void)arg;
    return (origin - origins) % 2 == 0;
}

static void the_largest_cause_is_first_and_only_of_those_that_are_chosen(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < COUNT; i++)
        hold(i, TTM_CAUSE_CONTAINER, i < 2 ? 1 : 2,
             i < 2 ? "list SMALL in module m" : "list LARGE in module m");
    find();
    assert_int_equal(causes.count, 2);
    assert_string_equal(causes.list[0].text, "list LARGE in module m");
    assert_string_equal(causes.list[1].text, "list SMALL in module m");
    ttm_root_causes_done(&causes);
    assert_int_equal(ttm_root_causes_find(&process, is_even, NULL, &causes), 0);
    assert_int_equal(causes.count, 1);
    assert_int_equal(causes.list[0].held.count, 3 + 5);
}

static void a_hostile_text_does_no_harm(void **state)
{
    static char text[400];
    static const char *const hostile[] = {"", ": ", ", held by ", ", held by , held by : ", text};
    (void)state;

    memset(text, 'x', sizeof(text) - 1);
    for (uint32_t i = 0; i < 5; i++) {
        hold(0, TTM_CAUSE_TRACEBACK, 1, hostile[i]);
        hold(1, TTM_CAUSE_TRACEBACK, 1, hostile[i]);
        find();
        assert_int_equal(causes.count, 1);
        assert_true(strlen(causes.list[0].text) < TTM_ROOT_CAUSE_TEXT);
        ttm_root_causes_done(&causes);
    }
}

#define WITH_ORIGINS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ORIGINS(what_one_object_holds_is_one_cause_and_its_total_the_sum),
        WITH_ORIGINS(an_exception_is_one_cause_whichever_variable_holds_it),
        WITH_ORIGINS(exceptions_in_one_list_are_one_cause),
        WITH_ORIGINS(a_list_by_its_name_is_known_without_roots),
        WITH_ORIGINS(objects_of_two_searches_are_not_compared),
        WITH_ORIGINS(one_line_of_code_is_no_cause_of_several),
        WITH_ORIGINS(what_is_no_suspect_counts_where_an_exception_holds_it),
        WITH_ORIGINS(the_largest_cause_is_first_and_only_of_those_that_are_chosen),
        WITH_ORIGINS(a_hostile_text_does_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
