/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "base/json.h"

static struct ttm_text text;
static struct ttm_json json;

static int set_up(void **state)
{
    (void)state;
    ttm_text_init(&text);
    ttm_json_init(&json, &text);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_text_done(&text);
    return 0;
}

static void assert_json(const char *expected)
{
    assert_false(ttm_text_failed(&text));
    assert_string_equal(ttm_text_string(&text), expected);
}

static void decimals_are_exact_and_have_no_zeros_behind(void **state)
{
    (void)state;
    ttm_json_object_begin(&json);
    ttm_json_put_decimal(&json, "a", 54312, 3);
    ttm_json_put_decimal(&json, "b", 12000000, 6);
    ttm_json_put_decimal(&json, "c", 5, 3);
    ttm_json_put_decimal(&json, "d", 0, 3);
    ttm_json_put_decimal(&json, "e", 1050, 3);
    ttm_json_put_decimal(&json, "f", 7, 0);
    ttm_json_put_decimal(&json, "g", UINT64_MAX, 3);
    ttm_json_object_end(&json);
    assert_json("{\"a\":54.312,\"b\":12,\"c\":0.005,\"d\":0,\"e\":1.05,\"f\":7,"
                "\"g\":18446744073709551.615}");
}

static void empty_containers_have_no_comma(void **state)
{
    (void)state;
    ttm_json_array_begin(&json);
    ttm_json_object_begin(&json);
    ttm_json_object_end(&json);
    ttm_json_array_begin(&json);
    ttm_json_array_end(&json);
    ttm_json_array_end(&json);
    assert_json("[{},[]]");
}

static void members_and_elements_are_separated_by_one_comma(void **state)
{
    (void)state;
    ttm_json_object_begin(&json);
    ttm_json_put_u64(&json, "a", 1);
    ttm_json_key(&json, "b");
    ttm_json_array_begin(&json);
    ttm_json_u64(&json, 1);
    ttm_json_i64(&json, -2);
    ttm_json_object_begin(&json);
    ttm_json_put_null(&json, "x");
    ttm_json_object_end(&json);
    ttm_json_bool(&json, true);
    ttm_json_array_end(&json);
    ttm_json_put_bool(&json, "c", false);
    ttm_json_key(&json, "d");
    ttm_json_object_begin(&json);
    ttm_json_object_end(&json);
    ttm_json_put_string(&json, "e", "");
    ttm_json_object_end(&json);
    assert_json("{\"a\":1,\"b\":[1,-2,{\"x\":null},true],\"c\":false,\"d\":{},\"e\":\"\"}");
}

static void numbers_keep_all_their_digits(void **state)
{
    (void)state;
    ttm_json_array_begin(&json);
    ttm_json_u64(&json, 0);
    ttm_json_u64(&json, UINT64_MAX);
    ttm_json_i64(&json, INT64_MIN);
    ttm_json_i64(&json, INT64_MAX);
    ttm_json_array_end(&json);
    assert_json("[0,18446744073709551615,-9223372036854775808,9223372036854775807]");
}

static void quotes_backslashes_and_control_characters_are_escaped(void **state)
{
    (void)state;
    ttm_json_string(&json, "say \"hi\" \\ \n\t\x01\x1f\x7f / '");
    assert_json("\"say \\\"hi\\\" \\\\ \\u000a\\u0009\\u0001\\u001f\\u007f / '\"");
}

static void characters_that_act_are_escaped_and_others_stand_as_they_are(void **state)
{
    (void)state;
    ttm_json_string(&json, "\xc2\x80\xc2\x9b\xc2\x9f\u00a0é\u2028\u2029\u202a\u202e\u2066\u2069");
    assert_json("\"\\u0080\\u009b\\u009f\u00a0é\\u2028\\u2029\\u202a\\u202e\\u2066\\u2069\"");
    ttm_text_clear(&text);
    ttm_json_init(&json, &text);
    ttm_json_string(&json, "\u061c\u200e\u200f\u200d€𝄞");
    assert_json("\"\\u061c\\u200e\\u200f\u200d€𝄞\"");
}

static void well_formed_utf8_stays_as_it_is(void **state)
{
    (void)state;
    ttm_json_string(&json, "grün … 日本 😀");
    assert_json("\"grün … 日本 😀\"");
}

static void each_broken_byte_becomes_the_replacement_character(void **state)
{
    (void)state;
    ttm_json_string(&json, "a\xff"
                           "b\xc3(\xe2\x82\xed\xa0\x80");
    assert_json("\"a\\ufffdb\\ufffd(\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\"");
}

static void a_key_is_escaped_as_a_string_is(void **state)
{
    (void)state;
    ttm_json_object_begin(&json);
    ttm_json_put_string(&json, "k\"\n", "v");
    ttm_json_object_end(&json);
    assert_json("{\"k\\\"\\u000a\":\"v\"}");
}

static void deep_nesting_closes_as_it_opened(void **state)
{
    struct ttm_text expected;
    (void)state;

    ttm_text_init(&expected);
    ttm_text_repeat(&expected, "[", 500);
    ttm_text_repeat(&expected, "]", 500);
    for (int i = 0; i < 500; i++)
        ttm_json_array_begin(&json);
    for (int i = 0; i < 500; i++)
        ttm_json_array_end(&json);
    assert_json(ttm_text_string(&expected));
    ttm_text_done(&expected);
}

static void two_documents_can_be_written_one_after_the_other(void **state)
{
    (void)state;
    ttm_json_object_begin(&json);
    ttm_json_object_end(&json);
    ttm_text_append(&text, "\n");
    ttm_json_init(&json, &text);
    ttm_json_object_begin(&json);
    ttm_json_object_end(&json);
    assert_json("{}\n{}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            characters_that_act_are_escaped_and_others_stand_as_they_are, set_up, tear_down),
        cmocka_unit_test_setup_teardown(decimals_are_exact_and_have_no_zeros_behind, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(empty_containers_have_no_comma, set_up, tear_down),
        cmocka_unit_test_setup_teardown(members_and_elements_are_separated_by_one_comma, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(numbers_keep_all_their_digits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(quotes_backslashes_and_control_characters_are_escaped,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(well_formed_utf8_stays_as_it_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_broken_byte_becomes_the_replacement_character, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_key_is_escaped_as_a_string_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(deep_nesting_closes_as_it_opened, set_up, tear_down),
        cmocka_unit_test_setup_teardown(two_documents_can_be_written_one_after_the_other, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
