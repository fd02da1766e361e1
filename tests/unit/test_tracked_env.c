/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "cli/tracked_env.h"

static void assert_preload(const char *before, const char *expected)
{
    struct ttm_text text;

    ttm_text_init(&text);
    ttm_preload_append(&text, "/lib/hook.so", before);
    assert_string_equal(ttm_text_string(&text), expected);
    ttm_text_done(&text);
}

static void the_hook_comes_before_what_is_preloaded_already(void **state)
{
    (void)state;
    assert_preload(NULL, "/lib/hook.so");
    assert_preload("", "/lib/hook.so");
    assert_preload("a.so", "/lib/hook.so:a.so");
    assert_preload("a.so:b.so c.so", "/lib/hook.so:a.so:b.so c.so");
    assert_preload(" : a.so", "/lib/hook.so:a.so");
}

static void the_hook_is_preloaded_once(void **state)
{
    (void)state;
    assert_preload("/lib/hook.so", "/lib/hook.so");
    assert_preload("a.so:/lib/hook.so", "a.so:/lib/hook.so");
    assert_preload("a.so /lib/hook.so b.so", "a.so /lib/hook.so b.so");
    /* Another library whose path begins or ends the same is another one. */
    assert_preload("/lib/hook.so.1", "/lib/hook.so:/lib/hook.so.1");
    assert_preload("/old/lib/hook.so", "/lib/hook.so:/old/lib/hook.so");
}

static void a_sanitizer_stays_in_front(void **state)
{
    (void)state;
    assert_preload("/usr/lib/libasan.so.8", "/usr/lib/libasan.so.8:/lib/hook.so");
    assert_preload("libtsan.so.2 a.so", "libtsan.so.2:/lib/hook.so:a.so");
    assert_preload("libasan.so.8:/x/libubsan.so.1:a.so",
                   "libasan.so.8:/x/libubsan.so.1:/lib/hook.so:a.so");
    assert_preload("a.so:libasan.so.8", "/lib/hook.so:a.so:libasan.so.8");
    assert_preload("/libasan/a.so", "/lib/hook.so:/libasan/a.so"); /* a folder of that name */
}

static void assert_word(const char *text, const char *expected)
{
    struct ttm_text out;

    ttm_text_init(&out);
    ttm_shell_word_append(&out, text);
    assert_string_equal(ttm_text_string(&out), expected);
    ttm_text_done(&out);
}

static void a_shell_reads_a_word_as_it_was(void **state)
{
    (void)state;
    assert_word("/usr/lib/a-b_c.so:x", "/usr/lib/a-b_c.so:x");
    assert_word("", "''");
    assert_word("a b", "'a b'");
    assert_word("it's", "'it'\\''s'");
    assert_word("$HOME`id`\\", "'$HOME`id`\\'");
    assert_word("~/x", "'~/x'");
    assert_word("a\nb", "'a\nb'");
    assert_word("\xc3\xa4", "'\xc3\xa4'");
}

static char *base[] = {"ONE=1", "TWO=2", "ONE_MORE=x", "NOEQUALS", "TWO=second", NULL};

static void variables_are_set_and_replaced_and_others_stay(void **state)
{
    struct ttm_env env;
    (void)state;

    ttm_env_init(&env, base);
    assert_string_equal(ttm_env_get(&env, "ONE"), "1");
    assert_null(ttm_env_get(&env, "THREE"));
    assert_null(ttm_env_get(&env, "NOEQUALS"));
    ttm_env_set(&env, "TWO", "zwei");
    ttm_env_set(&env, "THREE", "3");
    ttm_env_set(&env, "THREE", "drei");
    const char *const expected[] = {"ONE=1", "ONE_MORE=x", "NOEQUALS", "TWO=zwei", "THREE=drei"};
    assert_int_equal(env.count, COUNT_OF(expected));
    for (size_t i = 0; i < COUNT_OF(expected); i++)
        assert_string_equal(env.list[i], expected[i]);
    assert_null(env.list[env.count]);
    assert_string_equal(base[1], "TWO=2"); /* where it came from is as it was */
    ttm_env_done(&env);
}

static void an_empty_environment_can_be_filled(void **state)
{
    struct ttm_env env;
    char *none[] = {NULL};
    (void)state;

    ttm_env_init(&env, none);
    ttm_env_set(&env, "A", "");
    assert_string_equal(env.list[0], "A=");
    assert_null(env.list[1]);
    assert_string_equal(ttm_env_get(&env, "A"), "");
    ttm_env_done(&env);
}

static void when_memory_is_short_there_is_no_environment_rather_than_half_of_one(void **state)
{
    bool has_failed = true;
    (void)state;

    for (unsigned grants = 0; has_failed; grants++) {
        struct ttm_env env;
        faults_begin(grants);
        ttm_env_init(&env, base);
        ttm_env_set(&env, "TWO", "zwei");
        ttm_env_set(&env, "THREE", "3");
        has_failed = faults_end();
        if (has_failed) {
            assert_null(env.list);
            assert_null(ttm_env_get(&env, "ONE"));
        } else {
            assert_string_equal(ttm_env_get(&env, "THREE"), "3");
        }
        ttm_env_done(&env);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hook_comes_before_what_is_preloaded_already),
        cmocka_unit_test(the_hook_is_preloaded_once),
        cmocka_unit_test(a_sanitizer_stays_in_front),
        cmocka_unit_test(a_shell_reads_a_word_as_it_was),
        cmocka_unit_test(variables_are_set_and_replaced_and_others_stay),
        cmocka_unit_test(an_empty_environment_can_be_filled),
        cmocka_unit_test(when_memory_is_short_there_is_no_environment_rather_than_half_of_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
