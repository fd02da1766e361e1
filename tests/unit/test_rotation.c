/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording/rotation.h"

static char folder[] = "/tmp/ttm-test-rotation-XXXXXX";

static int set_up(void **state)
{
    (void)state;
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[128];
    (void)state;

    (void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command); /* NOLINT(cert-env33-c): a path of our own */
}

static void put_file(const char *name, size_t bytes)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    (void)close(fd);
}

static bool is_there(const char *name)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static void a_name_tells_when_the_file_was_begun(void **state)
{
    char name[TTM_ROTATION_NAME_SIZE];
    (void)state;

    ttm_rotation_name(1790756100123456789ull, 0, name);
    assert_string_equal(name, "tt-mem-20260930T081500Z.ttmem");
    assert_true(ttm_rotation_is_name(name));
    ttm_rotation_name(1790756100123456789ull, 12, name);
    assert_string_equal(name, "tt-mem-20260930T081500Z-12.ttmem");
    assert_true(ttm_rotation_is_name(name));
}

static void only_names_of_our_form_are_ours(void **state)
{
    static const char *const others[] = {
        "",
        ".ttmem",
        "tt-mem-.ttmem",
        "tt-mem-20260930T081500Z",
        "tt-mem-20260930T081500Z.ttmem.bak",
        "tt-mem-20260930T081500Z-.ttmem",
        "tt-mem-20260930T081500Z-x.ttmem",
        "tt-mem-20260930T081500Zx.ttmem",
        "tt-mem-2026093xT081500Z.ttmem",
        "my-tt-mem-20260930T081500Z.ttmem",
        "tt-mem.4242.ttmem",
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(others); i++)
        assert_false(ttm_rotation_is_name(others[i]));
}

static void the_oldest_go_first_and_others_files_stay(void **state)
{
    (void)state;

    put_file("tt-mem-20260930T081500Z.ttmem", 1000);
    put_file("tt-mem-20260930T081500Z-2.ttmem", 1000);
    put_file("tt-mem-20260930T081500Z-10.ttmem", 1000);
    put_file("tt-mem-20251231T235959Z.ttmem", 1000);
    put_file("tt-mem.4242.ttmem", 100000);
    put_file("notes.txt", 100000);
    assert_int_equal(ttm_rotation_trim(folder, 4000, NULL), 0);
    assert_int_equal(ttm_rotation_trim(folder, 2500, NULL), 2);
    assert_false(is_there("tt-mem-20251231T235959Z.ttmem"));
    assert_false(is_there("tt-mem-20260930T081500Z.ttmem"));
    assert_true(is_there("tt-mem-20260930T081500Z-2.ttmem"));
    assert_int_equal(ttm_rotation_trim(folder, 1000, NULL), 1);
    assert_false(is_there("tt-mem-20260930T081500Z-2.ttmem"));
    assert_true(is_there("tt-mem-20260930T081500Z-10.ttmem"));
    assert_true(is_there("tt-mem.4242.ttmem"));
    assert_true(is_there("notes.txt"));
}

static void a_file_that_is_kept_or_being_written_stays(void **state)
{
    char path[256];
    (void)state;

    put_file("tt-mem-20260101T000000Z.ttmem", 1000);
    put_file("tt-mem-20260102T000000Z.ttmem", 1000);
    put_file("tt-mem-20260103T000000Z.ttmem", 1000);
    (void)snprintf(path, sizeof(path), "%s/tt-mem-20260101T000000Z.ttmem", folder);
    const int fd = open(path, O_WRONLY);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(ttm_rotation_trim(folder, 0, "tt-mem-20260103T000000Z.ttmem"), 1);
    assert_true(is_there("tt-mem-20260101T000000Z.ttmem"));
    assert_false(is_there("tt-mem-20260102T000000Z.ttmem"));
    assert_true(is_there("tt-mem-20260103T000000Z.ttmem"));
    (void)close(fd);
}

static void a_folder_that_is_not_there_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(ttm_rotation_trim("/nonexistent/folder", 0, NULL), -ENOENT);
}

static void zeros_mean_the_stated_defaults(void **state)
{
    struct ttm_rotation_limits limits = {.file_bytes = 5};
    (void)state;

    ttm_rotation_limits_fill(&limits);
    assert_int_equal(limits.file_bytes, 5);
    assert_int_equal(limits.file_age_ns, 86400000000000ull);
    assert_int_equal(limits.total_bytes, 1 << 30);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_tells_when_the_file_was_begun),
        cmocka_unit_test(only_names_of_our_form_are_ours),
        WITH_FOLDER(the_oldest_go_first_and_others_files_stay),
        WITH_FOLDER(a_file_that_is_kept_or_being_written_stays),
        cmocka_unit_test(a_folder_that_is_not_there_is_an_error),
        cmocka_unit_test(zeros_mean_the_stated_defaults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
