/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "cli/debug_log_file.h"

static void the_environment_says_whether_and_where(void **state)
{
    static const struct {
        const char *value, *path;
    } cases[] = {{NULL, NULL},
                 {"", NULL},
                 {"0", NULL},
                 {"1", "/tmp/tt_buffer_debug.log"},
                 {"/a/b.log", "/a/b.log"},
                 {"b.log", "b.log"}};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (cases[i].value)
            assert_int_equal(setenv("TT_BUFFER_DEBUG_LOG", cases[i].value, 1), 0);
        else
            assert_int_equal(unsetenv("TT_BUFFER_DEBUG_LOG"), 0);
        const char *path = ttm_debug_log_wish();
        if (cases[i].path)
            assert_string_equal(path, cases[i].path);
        else
            assert_null(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_says_whether_and_where),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
