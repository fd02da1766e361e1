/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "model/origin_brief.h"
#include "model/origin_table.h"

static struct ttm_origin_book book;

static int set_up(void **state)
{
    (void)state;
    ttm_origin_book_init(&book, 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_origin_book_done(&book);
    return 0;
}

static uint32_t add(const char *python, const char *native, const char *operation)
{
    const struct ttm_origin origin = {
        .number = 1,
        .text = {[TTM_ORIGIN_CONTEXT] = "ctx",
                 [TTM_ORIGIN_NAME] = "",
                 [TTM_ORIGIN_THREAD] = python, /* of no account */
                 [TTM_ORIGIN_OPERATION] = operation,
                 [TTM_ORIGIN_PYTHON] = python,
                 [TTM_ORIGIN_NATIVE] = native},
    };

    return ttm_origin_book_add(&book, &origin);
}

static void origins_that_read_the_same_are_one(void **state)
{
    (void)state;
    const uint32_t one = add("a.py:1:f\nb.py:2:g\n", "x+0x1\n", "ttnn.add");
    assert_int_equal(one, 1);
    assert_int_equal(add("a.py:1:f\nc.py:3:h\n", "y+0x1\n", "ttnn.add"), one);
    assert_int_equal(add("a.py:1:f\n", "", "ttnn.mul"), 2);
    assert_int_equal(add("a.py:11:f\n", "", "ttnn.add"), 3);
    assert_int_equal(add("", "a.py:1:f\n", "ttnn.add"),
                     one); /* whoever it was, it reads the same */
    const struct ttm_origin_brief *words = ttm_origin_book_get(&book, one);
    assert_string_equal(words->place, "a.py:1:f");
    assert_string_equal(words->operation, "ttnn.add");
    assert_string_equal(words->name, "");
    assert_string_equal(words->context, "ctx");
}

static void nothing_known_has_no_number(void **state)
{
    const struct ttm_origin nothing = {.text = {"", "", "MainThread", "", "", ""}};
    (void)state;

    assert_int_equal(ttm_origin_book_add(&book, &nothing), 0);
    assert_null(ttm_origin_book_get(&book, 0));
    assert_null(ttm_origin_book_get(&book, 1));
    const struct ttm_origin_brief words = ttm_origin_brief_of(NULL);
    assert_true(ttm_origin_brief_are_empty(&words));
}

static void a_full_book_takes_no_more_and_keeps_what_it_has(void **state)
{
    char text[32];
    (void)state;

    for (uint32_t i = 1; i <= TTM_ORIGIN_BRIEF_MAX; i++) {
        (void)snprintf(text, sizeof(text), "a.py:%u:f", i);
        assert_int_equal(add(text, "", ""), i);
    }
    assert_int_equal(add("b.py:1:f", "", ""), 0);
    assert_int_equal(add("a.py:77:f", "", ""), 77);
}

static void when_memory_is_short_there_is_no_number(void **state)
{
    bool has_failed = true;
    (void)state;

    for (unsigned grants = 0; has_failed; grants++) {
        faults_begin(grants);
        const uint32_t number = add("a.py:1:f", "", "");
        has_failed = faults_end();
        assert_int_equal(number, has_failed ? 0 : 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(origins_that_read_the_same_are_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_known_has_no_number, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_full_book_takes_no_more_and_keeps_what_it_has, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(when_memory_is_short_there_is_no_number, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
