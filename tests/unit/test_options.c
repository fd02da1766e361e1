/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <sys/mman.h>
#include <unistd.h>

#include "cli/options.h"

#define OPTION_ONCE 256
#define OPTION_SECRET 257

static const struct ttm_option table[] = {
    TTM_OPTION_DEVICE,
    {.id = 'r', .name = "refresh", .arg = "MS", .help = "how often"},
    {.id = OPTION_ONCE, .name = "once", .help = "once only"},
    {.id = 'q', .help = "quiet, short form only"},
    {.id = OPTION_SECRET, .name = "secret", .help = "not for people", .is_hidden = true},
    TTM_OPTION_JSON,
    TTM_OPTION_HELP_ROW,
    {0},
};

static const struct ttm_command command = {
    .name = "look",
    .synopsis = "[OPTION…]",
    .summary = "Looks.",
    .details = "In detail.",
    .options = table,
};

static const struct ttm_option run_table[] = {
    {.id = 'v', .name = "verbose", .help = "say more"},
    {.id = OPTION_ONCE, .name = "limit", .arg = "[=BYTES]", .help = "a limit, if any"},
    TTM_OPTION_HELP_ROW,
    {0},
};

static const struct ttm_command run_command = {
    .name = "do",
    .synopsis = "CMD",
    .summary = "Does.",
    .options = run_table,
    .takes_command = true,
};

static char said[4096]; /* by the last call, on stdout or stderr */

/* Catches what is written to 'fd'; returns what it was before. */
static int catch_begin(int fd, int *ret_file)
{
    (void)fflush(NULL);
    *ret_file = memfd_create("said", MFD_CLOEXEC);
    assert_true(*ret_file >= 0);
    const int before = dup(fd);
    assert_true(before >= 0);
    assert_int_equal(dup2(*ret_file, fd), fd);
    return before;
}

static void catch_end(int fd, int before, int file)
{
    (void)fflush(NULL);
    assert_int_equal(dup2(before, fd), fd);
    (void)close(before);
    const ssize_t n = pread(file, said, sizeof(said) - 1, 0);
    said[n > 0 ? n : 0] = '\0';
    (void)close(file);
}

static int next_caught(struct ttm_options *options, int fd)
{
    int file;
    const int before = catch_begin(fd, &file);
    const int id = ttm_options_next(options);

    catch_end(fd, before, file);
    return id;
}

static void options_come_in_the_order_they_were_given(void **state)
{
    struct ttm_options options;
    char *argv[] = {"look", "-r", "500", "--once", "-q", "--device=0,2", "-j", "-d7", NULL};
    (void)state;

    ttm_options_init(&options, &command, 8, argv);
    assert_int_equal(ttm_options_next(&options), 'r');
    assert_string_equal(options.value, "500");
    assert_int_equal(ttm_options_next(&options), OPTION_ONCE);
    assert_null(options.value);
    assert_int_equal(ttm_options_next(&options), 'q');
    assert_int_equal(ttm_options_next(&options), 'd');
    assert_string_equal(options.value, "0,2");
    assert_int_equal(ttm_options_next(&options), 'j');
    assert_int_equal(ttm_options_next(&options), 'd');
    assert_string_equal(options.value, "7");
    assert_int_equal(ttm_options_next(&options), TTM_OPTION_END);
}

static void without_options_there_is_nothing_to_do(void **state)
{
    struct ttm_options options;
    char *argv[] = {"look", NULL};
    (void)state;

    ttm_options_init(&options, &command, 1, argv);
    assert_int_equal(ttm_options_next(&options), TTM_OPTION_END);
}

static void a_second_command_line_is_read_from_its_start(void **state)
{
    struct ttm_options options;
    char *first[] = {"look", "-q", "-q", "-q", NULL};
    char *second[] = {"look", "-j", NULL};
    (void)state;

    ttm_options_init(&options, &command, 4, first);
    assert_int_equal(ttm_options_next(&options), 'q');
    ttm_options_init(&options, &command, 2, second);
    assert_int_equal(ttm_options_next(&options), 'j');
    assert_int_equal(ttm_options_next(&options), TTM_OPTION_END);
}

static void assert_wrong(char **argv, const char *expected)
{
    struct ttm_options options;
    int argc = 0;
    int id;

    while (argv[argc])
        argc++;
    ttm_options_init(&options, &command, argc, argv);
    while ((id = next_caught(&options, STDERR_FILENO)) > 0)
        ;
    assert_int_equal(id, TTM_OPTION_WRONG);
    assert_string_equal(said, expected);
}

static void wrong_options_are_named_with_where_to_read_on(void **state)
{
    (void)state;
    assert_wrong((char *[]){"look", "-x", NULL},
                 "tt-mem look: unknown option '-x' (see tt-mem look --help)\n");
    assert_wrong((char *[]){"look", "-qx", NULL},
                 "tt-mem look: unknown option '-x' (see tt-mem look --help)\n");
    assert_wrong(
        (char *[]){"look", "--frobnicate", NULL},
        "tt-mem look: unknown or ambiguous option '--frobnicate' (see tt-mem look --help)\n");
    assert_wrong((char *[]){"look", "-r", NULL},
                 "tt-mem look: option '-r' needs a value (see tt-mem look --help)\n");
    assert_wrong((char *[]){"look", "--refresh", NULL},
                 "tt-mem look: option '--refresh' needs a value (see tt-mem look --help)\n");
    assert_wrong((char *[]){"look", "extra", NULL},
                 "tt-mem look: 'extra' is one word too many (see tt-mem look --help)\n");
    assert_wrong((char *[]){"look", "-q", "extra", "-j", NULL},
                 "tt-mem look: 'extra' is one word too many (see tt-mem look --help)\n");
}

static void help_shows_every_option_that_is_not_hidden(void **state)
{
    struct ttm_options options;
    char *argv[] = {"look", "--help", NULL};
    (void)state;

    ttm_options_init(&options, &command, 2, argv);
    assert_int_equal(next_caught(&options, STDOUT_FILENO), TTM_OPTION_HELP);
    assert_non_null(strstr(said, "usage: tt-mem look [OPTION…]\n"));
    assert_non_null(strstr(said, "Looks.\n"));
    assert_non_null(strstr(said, "In detail.\n"));
    assert_non_null(strstr(said, "  -r, --refresh MS           how often\n"));
    assert_non_null(strstr(said, "      --once                 once only\n"));
    assert_non_null(strstr(said, "  -q                         quiet, short form only\n"));
    assert_null(strstr(said, "secret"));
}

/* Returns what the function does with that value, and what it said in 'said'. */
static int number_of(const char *value, uint64_t min, uint64_t max, uint64_t *ret)
{
    const struct ttm_options options = {.command = &command, .value = value};
    int file;
    const int before = catch_begin(STDERR_FILENO, &file);
    const int r = ttm_options_number(&options, "a number of ms", min, max, ret);

    catch_end(STDERR_FILENO, before, file);
    return r;
}

static void numbers_within_their_bounds_are_taken(void **state)
{
    uint64_t n = 0;
    (void)state;

    assert_int_equal(number_of("50", 50, 100, &n), 0);
    assert_int_equal(n, 50);
    assert_int_equal(number_of("100", 50, 100, &n), 0);
    assert_int_equal(n, 100);
    assert_int_equal(number_of("007", 0, 100, &n), 0);
    assert_int_equal(n, 7);
    assert_int_equal(number_of("18446744073709551615", 0, UINT64_MAX, &n), 0);
    assert_true(n == UINT64_MAX);
}

static void what_is_no_number_within_bounds_is_refused(void **state)
{
    static const char *const wrong[] = {"",
                                        "49",
                                        "101",
                                        "-1",
                                        "+60",
                                        " 60",
                                        "60 ",
                                        "60ms",
                                        "0x40",
                                        "6e1",
                                        "60.0",
                                        "18446744073709551676",
                                        "99999999999999999999999"};
    uint64_t n;
    (void)state;

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_int_equal(number_of(wrong[i], 50, 100, &n), TTM_OPTION_WRONG);
        assert_non_null(strstr(said, "is not a number of ms from 50 to 100"));
    }
}

static int seconds_of(const char *value, uint64_t *ret)
{
    const struct ttm_options options = {.command = &command, .value = value};
    int file;
    const int before = catch_begin(STDERR_FILENO, &file);
    const int r = ttm_options_seconds(&options, ret);

    catch_end(STDERR_FILENO, before, file);
    return r;
}

static void seconds_may_have_a_fraction(void **state)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } right[] = {
        {"0", 0},
        {"30", UINT64_C(30000000000)},
        {"0.5", 500000000},
        {"1.0000000019", 1000000001},
        {"1000000000", UINT64_C(1000000000000000000)},
    };
    static const char *const wrong[] = {"",    "s",    "-1",  "1.",         ".5", "1.5s",
                                        "1e3", "0x10", "1,5", "1000000001", "nan"};
    uint64_t ns;
    (void)state;

    for (size_t i = 0; i < COUNT_OF(right); i++) {
        assert_int_equal(seconds_of(right[i].text, &ns), 0);
        assert_int_equal(ns, right[i].ns);
    }
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_int_equal(seconds_of(wrong[i], &ns), TTM_OPTION_WRONG);
        assert_non_null(strstr(said, "is not a number of seconds such as 30 or 0.5"));
    }
}

static int size_of(const char *value, uint64_t *ret)
{
    const struct ttm_options options = {.command = &command, .value = value};
    int file;
    const int before = catch_begin(STDERR_FILENO, &file);
    const int r = ttm_options_bytes(&options, ret);

    catch_end(STDERR_FILENO, before, file);
    return r;
}

static void bytes_may_have_a_unit(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } right[] = {
        {"0", 0},
        {"4096", 4096},
        {"4096B", 4096},
        {"64K", 65536},
        {"64k", 65536},
        {"2M", 2097152},
        {"2MiB", 2097152},
        {"2mb", 2000000},
        {"3G", UINT64_C(3) << 30},
        {"1TiB", UINT64_C(1) << 40},
        {"1TB", UINT64_C(1000000000000)},
        {"9223372036854775807", INT64_MAX},
    };
    static const char *const wrong[] = {"",    "M",    "2X",         "2MM",  "2 M",
                                        "-2M", "2.5M", "2iB",        "2MiX", "9223372036854775808",
                                        "2Bi", "0x2M", "9999999999T"};
    uint64_t n;
    (void)state;

    for (size_t i = 0; i < COUNT_OF(right); i++) {
        assert_int_equal(size_of(right[i].text, &n), 0);
        assert_int_equal(n, right[i].bytes);
    }
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_int_equal(size_of(wrong[i], &n), TTM_OPTION_WRONG);
        assert_non_null(strstr(said, "is not a number of bytes such as 4096, 64K or 2M"));
    }
}

static int devices_of(const char *value, struct ttm_device_filter *filter)
{
    const struct ttm_options options = {.command = &command, .value = value};
    int file;
    const int before = catch_begin(STDERR_FILENO, &file);
    const int r = ttm_options_devices(&options, filter);

    catch_end(STDERR_FILENO, before, file);
    return r;
}

static void a_device_list_is_added_to_the_filter(void **state)
{
    struct ttm_device_filter filter = {.is_all = true};
    (void)state;

    assert_int_equal(devices_of("0,2,1023", &filter), 0);
    assert_false(filter.is_all);
    assert_true(ttm_device_filter_has(&filter, 0));
    assert_false(ttm_device_filter_has(&filter, 1));
    assert_true(ttm_device_filter_has(&filter, 2));
    assert_true(ttm_device_filter_has(&filter, 1023));
    assert_int_equal(devices_of("1", &filter), 0); /* repeatable */
    assert_true(ttm_device_filter_has(&filter, 0));
    assert_true(ttm_device_filter_has(&filter, 1));
    assert_int_equal(devices_of("5,5", &filter), 0);
    assert_true(ttm_device_filter_has(&filter, 5));
}

static void what_is_no_device_list_is_refused(void **state)
{
    static const char *const wrong[] = {"",     ",",  "0,",  ",0",         "0,,1",
                                        "1024", "-1", "all", "0, 1",       "0-3",
                                        "0;1",  "1 ", "0x1", "4294967296", "18446744073709551616"};
    struct ttm_device_filter filter = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_int_equal(devices_of(wrong[i], &filter), TTM_OPTION_WRONG);
        assert_non_null(strstr(said, "is not a list of device ids from 0 to 1023"));
    }
}

static void what_comes_behind_a_program_is_the_programs(void **state)
{
    struct ttm_options options;
    char *plain[] = {"do", "-v", "prog", "-v", "--help", "--", "x", NULL};
    char *dashed[] = {"do", "--", "-v", "--limit", NULL};
    char *none[] = {"do", "-v", NULL};
    (void)state;

    ttm_options_init(&options, &run_command, 7, plain);
    assert_int_equal(ttm_options_next(&options), 'v');
    assert_int_equal(ttm_options_next(&options), TTM_OPTION_END);
    assert_ptr_equal(ttm_options_rest(&options), &plain[2]);
    ttm_options_init(&options, &run_command, 4, dashed);
    assert_int_equal(ttm_options_next(&options), TTM_OPTION_END);
    assert_ptr_equal(ttm_options_rest(&options), &dashed[2]);
    ttm_options_init(&options, &run_command, 2, none);
    assert_int_equal(ttm_options_next(&options), 'v');
    assert_int_equal(ttm_options_next(&options), TTM_OPTION_END);
    assert_null(ttm_options_rest(&options)[0]);
}

static void a_value_that_may_be_left_out_is_taken_with_an_equals_sign_only(void **state)
{
    struct ttm_options options;
    char *argv[] = {"do", "--limit", "--limit=5", "--limit=", "prog", NULL};
    (void)state;

    ttm_options_init(&options, &run_command, 5, argv);
    assert_int_equal(ttm_options_next(&options), OPTION_ONCE);
    assert_null(options.value);
    assert_int_equal(ttm_options_next(&options), OPTION_ONCE);
    assert_string_equal(options.value, "5");
    assert_int_equal(ttm_options_next(&options), OPTION_ONCE);
    assert_string_equal(options.value, "");
    assert_int_equal(ttm_options_next(&options), TTM_OPTION_END);
    assert_string_equal(ttm_options_rest(&options)[0], "prog");
}

static void help_shows_a_value_that_may_be_left_out_as_such(void **state)
{
    struct ttm_options options;
    char *argv[] = {"do", "--help", NULL};
    (void)state;

    ttm_options_init(&options, &run_command, 2, argv);
    assert_int_equal(next_caught(&options, STDOUT_FILENO), TTM_OPTION_HELP);
    assert_non_null(strstr(said, "--limit[=BYTES] "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_come_in_the_order_they_were_given),
        cmocka_unit_test(without_options_there_is_nothing_to_do),
        cmocka_unit_test(a_second_command_line_is_read_from_its_start),
        cmocka_unit_test(wrong_options_are_named_with_where_to_read_on),
        cmocka_unit_test(help_shows_every_option_that_is_not_hidden),
        cmocka_unit_test(numbers_within_their_bounds_are_taken),
        cmocka_unit_test(what_is_no_number_within_bounds_is_refused),
        cmocka_unit_test(bytes_may_have_a_unit),
        cmocka_unit_test(seconds_may_have_a_fraction),
        cmocka_unit_test(a_device_list_is_added_to_the_filter),
        cmocka_unit_test(what_is_no_device_list_is_refused),
        cmocka_unit_test(what_comes_behind_a_program_is_the_programs),
        cmocka_unit_test(a_value_that_may_be_left_out_is_taken_with_an_equals_sign_only),
        cmocka_unit_test(help_shows_a_value_that_may_be_left_out_as_such),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
