/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <unistd.h>

#include "analysis/suppressions.h"

static int read_text(const char *text, struct ttm_suppressions *ret, unsigned *ret_line)
{
    char path[] = "/tmp/ttm-suppressions-XXXXXX";
    const int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
    const int r = ttm_suppressions_read(path, ret, ret_line);
    assert_int_equal(unlink(path), 0);
    return r;
}

static void a_file_has_a_pattern_a_line_and_comments(void **state)
{
    struct ttm_suppressions suppressions = {0};
    unsigned line;
    (void)state;

    assert_int_equal(
        read_text("# known\n\n  leak:cache_kv \r\nleak:ttnn.zeros", &suppressions, &line), 0);
    assert_int_equal(suppressions.count, 2);
    assert_string_equal(suppressions.list[0].pattern, "cache_kv");
    assert_string_equal(suppressions.list[1].pattern, "ttnn.zeros");
    ttm_suppressions_done(&suppressions);
}

static void a_line_that_is_none_is_named_and_nothing_is_kept(void **state)
{
    struct ttm_suppressions suppressions = {0};
    unsigned line;
    (void)state;

    assert_int_equal(read_text("leak:x\nrace:y\n", &suppressions, &line), -EBADMSG);
    assert_int_equal(line, 2);
    assert_int_equal(read_text("leak:\n", &suppressions, &line), -EBADMSG);
    assert_int_equal(suppressions.count, 0);
    assert_int_equal(ttm_suppressions_read("/no/such/file", &suppressions, &line), -ENOENT);
}

static void patterns_fit_as_those_of_the_sanitizers_do(void **state)
{
    static const struct {
        const char *pattern, *text;
        bool fits;
    } cases[] = {
        {"cache", "cache_kv", true},
        {"kv", "cache_kv", true},
        {"^kv", "cache_kv", false},
        {"^cache", "cache_kv", true},
        {"kv$", "cache_kv", true},
        {"cache$", "cache_kv", false},
        {"^cache_kv$", "cache_kv", true},
        {"c*kv", "cache_kv", true},
        {"^c*k", "cache_kv", true},
        {"^c*k$", "cache_kv", false},
        {"a*b*c", "xxaxxbxxcxx", true},
        {"a*b*c", "xxaxxcxxbxx", false},
        {"*", "anything", true},
        {"*", "", true},
        {"decode.py", "/m/decode.py", true},
        {"x", "", false},
        {"^a*b$", "aab", true},
        {"^*.py$", "model.py", true},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (ttm_suppression_fits(cases[i].pattern, cases[i].text) != cases[i].fits)
            fail_msg("'%s' and '%s'", cases[i].pattern, cases[i].text);
    }
}

static void suspects_that_fit_are_none_any_more(void **state)
{
    const struct ttm_frame_words frames[] = {{"/data/x/decode.py", "cache_kv", 28}};
    const char *native[] = {"ttnn::zeros"};
    struct ttm_report_origin origins[2] = {
        {.words = {frames, 1, native, 1, "ttnn.zeros", "", "", "", false, false}},
        {.words = {NULL, 0, native, 1, "ttnn.full", "weights", "load", "", false, false}},
    };
    struct ttm_report_process process = {.origins = origins, .origin_count = 2};
    struct ttm_report report = {.processes = &process, .process_count = 1};
    struct ttm_suppressions suppressions = {0};
    unsigned line;
    (void)state;

    origins[0].verdict.is_suspect = origins[1].verdict.is_suspect = true;
    assert_int_equal(read_text("leak:^cache_kv$\n", &suppressions, &line), 0);
    assert_int_equal(ttm_suppressions_apply(&suppressions, &report), 1);
    assert_false(origins[0].verdict.is_suspect);
    assert_true(origins[1].verdict.is_suspect);
    assert_int_equal(suppressions.list[0].matches, 1);
    ttm_suppressions_done(&suppressions);
    assert_int_equal(read_text("leak:weights\n", &suppressions, &line), 0);
    assert_int_equal(ttm_suppressions_apply(&suppressions, &report), 1);
    assert_false(origins[1].verdict.is_suspect);
    ttm_suppressions_done(&suppressions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_has_a_pattern_a_line_and_comments),
        cmocka_unit_test(a_line_that_is_none_is_named_and_nothing_is_kept),
        cmocka_unit_test(patterns_fit_as_those_of_the_sanitizers_do),
        cmocka_unit_test(suspects_that_fit_are_none_any_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
