/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#include "base/clock.h"
#include "telemetry/process.h"

static void put_process(int pid, const char *name, const char *text)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    tree_text(path, text);
}

static void what_proc_tells_of_a_process_is_read(void **state)
{
    static const char cmdline[] = "python3\0-m\0serve me\0";
    struct ttm_process process;
    (void)state;

    put_process(42, "stat",
                "42 (py) (3) S 1 42 42 34816 42 4194304 5 0 3 0 8 3 0 0 20 0 9 0 884213 9 1\n");
    put_process(42, "status", "Name:\tpy\nUid:\t1000\t1001\t1000\t1000\nGid:\t7\t7\t7\t7\n");
    put_process(42, "maps", "7f12-7f13 r-xp 0 00:06 1   /usr/lib/libc.so.6\n");
    tree_bytes("/proc/42/cmdline", cmdline, sizeof(cmdline) - 1);
    assert_int_equal(ttm_process_read(root, 42, &process), 0);
    assert_int_equal(process.pid, 42);
    assert_true(process.has_uid);
    assert_int_equal(process.uid, 1001);
    assert_int_equal(process.start_ns, 884213 * (TTM_NS_PER_S / 100));
    assert_int_equal(process.library, TTM_LIBRARY_NONE);
    assert_string_equal(process.command, "python3 -m serve me");
}

static void a_process_that_is_gone_is_told(void **state)
{
    struct ttm_process process;
    uint64_t start_ns = 1;
    (void)state;

    assert_int_equal(ttm_process_read(root, 42, &process), -ESRCH);
    assert_int_equal(ttm_process_start_ns(root, 42, &start_ns), -ESRCH);
    assert_int_equal(start_ns, 0);
    put_process(42, "stat", "42 (a) Z 1 1 1 0 -1 4 1 0 0 0 1 1 0 0 20 0 1 0 100 9 9\n");
    assert_int_equal(ttm_process_read(root, 42, &process), -ESRCH);
}

static void a_main_thread_that_ended_first_is_no_end(void **state)
{
    struct ttm_process process;
    (void)state;

    put_process(42, "stat", "42 (a) Z 1 1 1 0 -1 4 1 0 0 0 1 1 0 0 20 0 2 0 100 9 9\n");
    assert_int_equal(ttm_process_read(root, 42, &process), 0);
    assert_int_equal(process.start_ns, TTM_NS_PER_S);
}

static void nonsense_in_every_file_leaves_things_unknown(void **state)
{
    static const char *const nonsense[] = {
        "", "\n", "((((", "))) x", "\377\376\001\n", "Uid:\n", "1 (a) S 1 2 3"};
    static const char *const files[] = {"stat", "status", "cmdline", "comm", "maps"};
    struct ttm_process process;
    (void)state;

    for (size_t i = 0; i < COUNT_OF(nonsense); i++) {
        for (size_t f = 0; f < COUNT_OF(files); f++)
            put_process(42, files[f], nonsense[i]);
        assert_int_equal(ttm_process_read(root, 42, &process), 0);
        assert_false(process.has_uid);
        assert_int_equal(process.start_ns, 0);
        assert_int_equal(process.library, TTM_LIBRARY_NONE);
    }
}

static void a_process_without_a_command_line_has_its_name(void **state)
{
    struct ttm_process process;
    (void)state;

    put_process(42, "comm", "kworker/0:1\n");
    put_process(42, "cmdline", "");
    assert_int_equal(ttm_process_read(root, 42, &process), 0);
    assert_string_equal(process.command, "kworker/0:1");
    tree_bytes("/proc/42/cmdline", "\0\0\0", 3);
    assert_int_equal(ttm_process_read(root, 42, &process), 0);
    assert_string_equal(process.command, "kworker/0:1");
}

static void a_long_command_is_cut(void **state)
{
    char longest[1000];
    struct ttm_process process;
    (void)state;

    memset(longest, 'x', sizeof(longest));
    tree_bytes("/proc/42/cmdline", longest, sizeof(longest));
    assert_int_equal(ttm_process_read(root, 42, &process), 0);
    assert_int_equal(strlen(process.command), TTM_PROCESS_COMMAND_SIZE - 1);
}

/* It may lie across the end of any piece that is read. */
static void our_library_is_found_anywhere_in_the_maps(void **state)
{
    static const char line[] = "/opt/lib/libttmem-hook.so\n";
    char *maps = malloc(70000);
    struct ttm_process process;
    (void)state;

    assert_non_null(maps);
    for (size_t at = 16384 - 40; at < 16384 + 10; at++) {
        memset(maps, 'x', 70000);
        memcpy(maps + at, line, sizeof(line) - 1);
        tree_bytes("/proc/42/maps", maps, 70000);
        assert_int_equal(ttm_process_read(root, 42, &process), 0);
        assert_int_equal(process.library, TTM_LIBRARY_LOADED);
    }
    memset(maps, 'x', 70000);
    memcpy(maps + 69990, "/libttme", 9);
    tree_bytes("/proc/42/maps", maps, 70000);
    assert_int_equal(ttm_process_read(root, 42, &process), 0);
    assert_int_equal(process.library, TTM_LIBRARY_NONE);
    free(maps);
    tree_remove("/proc/42/maps");
    assert_int_equal(ttm_process_read(root, 42, &process), 0);
    assert_int_equal(process.library, TTM_LIBRARY_UNKNOWN);
}

static void the_time_since_boot_is_read(void **state)
{
    (void)state;

    assert_int_equal(ttm_process_uptime_ns(root), 0);
    tree_text("/proc/uptime", "18842.13 290011.02\n");
    assert_int_equal(ttm_process_uptime_ns(root), 18842130000000ull);
    tree_text("/proc/uptime", "soon\n");
    assert_int_equal(ttm_process_uptime_ns(root), 0);
    tree_text("/proc/uptime", "9999999999999999999.00\n");
    assert_int_equal(ttm_process_uptime_ns(root), 0);
}

static void this_process_is_seen_on_the_machine_itself(void **state)
{
    struct ttm_process process;
    (void)state;

    assert_int_equal(ttm_process_read("", getpid(), &process), 0);
    assert_true(process.has_uid);
    assert_int_equal(process.uid, geteuid());
    assert_true(process.start_ns > 0);
    assert_true(process.start_ns <= ttm_process_uptime_ns("") + TTM_NS_PER_S);
    assert_non_null(strstr(process.command, "test_process"));
}

static char found[256];

static void note(void *context, int32_t pid, unsigned number)
{
    const size_t length = strlen(found);
    (void)context;

    (void)snprintf(found + length, sizeof(found) - length, "%d:%u ", pid, number);
}

static void open_device_files_are_found(void **state)
{
    (void)state;

    tree_link("/proc/7/fd/0", "/dev/null");
    tree_link("/proc/7/fd/3", "/dev/tenstorrent/12");
    tree_link("/proc/7/fd/4", "socket:[1]");
    found[0] = '\0';
    assert_int_equal(ttm_process_scan(root, note, NULL), 0);
    assert_string_equal(found, "7:12 ");
}

static void a_device_file_that_was_deleted_is_still_held(void **state)
{
    (void)state;

    tree_link("/proc/7/fd/3", "/dev/tenstorrent/1 (deleted)");
    found[0] = '\0';
    assert_int_equal(ttm_process_scan(root, note, NULL), 0);
    assert_string_equal(found, "7:1 ");
}

static void other_links_and_folders_are_passed_over(void **state)
{
    (void)state;

    tree_link("/proc/7/fd/1", "/dev/tenstorrent/");
    tree_link("/proc/7/fd/2", "/dev/tenstorrent/by-id/wormhole-1");
    tree_link("/proc/7/fd/3", "/dev/tenstorrent/1x");
    tree_link("/proc/7/fd/4", "/dev/tenstorrent/99999999999999999999");
    tree_link("/proc/7/fd/5", "/data/dev/tenstorrent/1");
    tree_link("/proc/self/fd/5", "/dev/tenstorrent/1");
    tree_link("/proc/0/fd/5", "/dev/tenstorrent/1");
    tree_link("/proc/99999999999/fd/5", "/dev/tenstorrent/1");
    tree_text("/proc/8/stat", "no folder fd");
    found[0] = '\0';
    assert_int_equal(ttm_process_scan(root, note, NULL), 0);
    assert_string_equal(found, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(what_proc_tells_of_a_process_is_read),
        TREE_TEST(a_process_that_is_gone_is_told),
        TREE_TEST(a_main_thread_that_ended_first_is_no_end),
        TREE_TEST(nonsense_in_every_file_leaves_things_unknown),
        TREE_TEST(a_process_without_a_command_line_has_its_name),
        TREE_TEST(a_long_command_is_cut),
        TREE_TEST(our_library_is_found_anywhere_in_the_maps),
        TREE_TEST(the_time_since_boot_is_read),
        TREE_TEST(this_process_is_seen_on_the_machine_itself),
        TREE_TEST(open_device_files_are_found),
        TREE_TEST(a_device_file_that_was_deleted_is_still_held),
        TREE_TEST(other_links_and_folders_are_passed_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
