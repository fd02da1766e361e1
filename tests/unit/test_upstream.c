/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "telemetry/upstream.h"

#define SIZE TTM_UPSTREAM_FILE_SIZE
#define CHIP_AT(i) (88 + 48 * (i))
#define PROCESS_AT(i) (856 + 120 * (i))

static uint8_t file[SIZE];

/* An empty file as the runtime makes it. */
static void make_file(uint32_t version)
{
    memset(file, 0, SIZE);
    put_le32(file, version);
    for (size_t i = 0; i < TTM_UPSTREAM_CHIPS && version >= 3; i++)
        put_le32(file + CHIP_AT(i), UINT32_MAX);
    if (version == 4)
        put_le32(file + 8536, 0x52454459);
}

static void put_totals(uint8_t *at, uint64_t first)
{
    for (size_t i = 0; i < TTM_UPSTREAM_REGION_COUNT; i++)
        put_le64(at + 8 * i, first + i);
}

static void put_process(size_t place, int32_t pid, uint64_t first, uint64_t time_ns)
{
    uint8_t *at = file + PROCESS_AT(place);

    put_le32(at, (uint32_t)pid);
    put_totals(at + 8, first);
    put_le64(at + 48, time_ns);
    memcpy(at + 56, "python", 7);
}

static int decode(const uint8_t *buf, size_t len)
{
    struct ttm_upstream_file ret;

    return ttm_upstream_decode(buf, len, &ret);
}

/* Written by the real ttnn 0.81.1 with one tensor of 2 MiB in DRAM and one of 8 KiB in L1. */
static void a_file_of_the_real_runtime_is_understood(void **state)
{
    struct ttm_upstream_file ret;
    uint8_t buf[SIZE + 1];
    char path[512];
    (void)state;

    (void)snprintf(path, sizeof(path), "%s/upstream/ttnn-0.81.1-n150", TTM_TEST_DATA);
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    const size_t length = fread(buf, 1, sizeof(buf), stream);
    (void)fclose(stream);
    assert_int_equal(ttm_upstream_decode(buf, length, &ret), 0);
    assert_int_equal(ret.version, 3);
    assert_int_equal(ret.references, 1);
    assert_int_equal(ret.device_id, 0);
    assert_int_equal(ret.totals.bytes[TTM_UPSTREAM_DRAM], 2 << 20);
    assert_int_equal(ret.totals.bytes[TTM_UPSTREAM_L1], 8 << 10);
    assert_int_equal(ret.chip_count, 1);
    assert_int_equal(ret.chips[0].id, 0);
    assert_int_equal(ret.chips[0].totals.bytes[TTM_UPSTREAM_DRAM], 2 << 20);
    assert_int_equal(ret.process_count, 1);
    assert_int_equal(ret.processes[0].pid, 19463);
    assert_string_equal(ret.processes[0].name, "python");
    assert_int_equal(ret.processes[0].totals.bytes[TTM_UPSTREAM_L1], 8 << 10);
    assert_true(ret.processes[0].time_ns > 1700000000 * TTM_NS_PER_S); /* since the epoch */
}

static void every_field_is_at_its_place(void **state)
{
    struct ttm_upstream_file ret;
    (void)state;

    make_file(3);
    put_le32(file + 16, 7);
    put_le64(file + 32, 0x123456789abcdef0);
    put_le32(file + 40, 5);
    put_totals(file + 48, 1000);
    put_le32(file + CHIP_AT(15), 6);
    put_le32(file + CHIP_AT(15) + 4, 1);
    put_totals(file + CHIP_AT(15) + 8, 2000);
    put_process(63, 4194304, 3000, 77);
    assert_int_equal(ttm_upstream_decode(file, SIZE, &ret), 0);
    assert_int_equal(ret.unique_id, 0);
    assert_int_equal(ret.references, 7);
    assert_int_equal(ret.asic_id, 0x123456789abcdef0);
    assert_int_equal(ret.device_id, 5);
    assert_int_equal(ret.totals.bytes[TTM_UPSTREAM_CB], 1004);
    assert_int_equal(ret.chip_count, 1);
    assert_int_equal(ret.chips[0].id, 6);
    assert_true(ret.chips[0].is_remote);
    assert_int_equal(ret.chips[0].totals.bytes[TTM_UPSTREAM_L1_SMALL], 2002);
    assert_int_equal(ret.process_count, 1);
    assert_int_equal(ret.processes[0].pid, 4194304);
    assert_int_equal(ret.processes[0].time_ns, 77);
    assert_int_equal(ret.processes[0].totals.bytes[TTM_UPSTREAM_DRAM], 3000);
    assert_int_equal(ret.processes[0].totals.bytes[TTM_UPSTREAM_TRACE], 3003);
}

static void versions_2_to_4_are_known_and_others_refused(void **state)
{
    (void)state;

    for (uint32_t version = 2; version <= 4; version++) {
        make_file(version);
        assert_int_equal(decode(file, SIZE), 0);
    }
    make_file(1);
    assert_int_equal(decode(file, SIZE), -EPROTONOSUPPORT);
    make_file(5);
    assert_int_equal(decode(file, SIZE), -EPROTONOSUPPORT);
    make_file(UINT32_MAX);
    assert_int_equal(decode(file, SIZE), -EPROTONOSUPPORT);
}

static void a_file_that_is_not_filled_in_is_told_apart(void **state)
{
    (void)state;

    make_file(0);
    assert_int_equal(decode(file, SIZE), -EAGAIN);
    make_file(4);
    put_le32(file + 8536, 0);
    assert_int_equal(decode(file, SIZE), -EAGAIN);
}

static void a_file_cut_off_anywhere_is_refused(void **state)
{
    struct bytes whole;
    (void)state;

    make_file(3);
    put_process(63, 1, 1, 1);
    whole = bytes_of(file, SIZE);
    assert_truncation_refused(&whole, decode);
    bytes_done(&whole);
}

/* The experiment's files counted kernels too; all behind the totals lies elsewhere. */
static void a_longer_file_has_another_layout(void **state)
{
    uint8_t longer[9248] = {2};
    (void)state;

    assert_int_equal(decode(longer, sizeof(longer)), -EPROTONOSUPPORT);
    assert_int_equal(decode(longer, SIZE + 1), -EPROTONOSUPPORT);
}

static void version_2_marks_empty_places_of_chips_with_0(void **state)
{
    struct ttm_upstream_file ret;
    (void)state;

    make_file(2);
    assert_int_equal(ttm_upstream_decode(file, SIZE, &ret), 0);
    assert_int_equal(ret.chip_count, 0);
    put_totals(file + CHIP_AT(0) + 8, 10);
    assert_int_equal(ttm_upstream_decode(file, SIZE, &ret), 0);
    assert_int_equal(ret.chip_count, 1);
    assert_int_equal(ret.chips[0].id, 0);
}

static void absurd_counts_are_marked_and_read_as_0(void **state)
{
    struct ttm_upstream_file ret;
    (void)state;

    make_file(3);
    put_le32(file + 4, UINT32_MAX); /* how many are active, which nobody needs */
    put_le64(file + 48, 100);
    put_le64(file + 56, UINT64_MAX - 5);
    put_le32(file + CHIP_AT(0), 0);
    put_le64(file + CHIP_AT(0) + 8, TTM_UPSTREAM_BYTES_MAX + 1);
    put_process(0, 10, 1, 1);
    put_le64(file + PROCESS_AT(0) + 8, UINT64_MAX);
    put_process(1, 11, TTM_UPSTREAM_BYTES_MAX - 4, 1);
    assert_int_equal(ttm_upstream_decode(file, SIZE, &ret), 0);
    assert_true(ret.totals.is_absurd);
    assert_int_equal(ret.totals.bytes[TTM_UPSTREAM_DRAM], 0);
    assert_true(ret.chips[0].totals.is_absurd);
    assert_int_equal(ret.broken_count, 1);
    assert_int_equal(ret.process_count, 1);
    assert_int_equal(ret.processes[0].pid, 11);
}

static void impossible_pids_are_passed_over_and_counted(void **state)
{
    struct ttm_upstream_file ret;
    (void)state;

    make_file(3);
    put_process(0, -1, 1, 1);
    put_process(1, INT32_MIN, 1, 1);
    put_process(2, 4194305, 1, 1);
    put_process(3, 42, 1, 1);
    assert_int_equal(ttm_upstream_decode(file, SIZE, &ret), 0);
    assert_int_equal(ret.broken_count, 3);
    assert_int_equal(ret.process_count, 1);
}

static void a_name_without_an_end_is_ended(void **state)
{
    struct ttm_upstream_file ret;
    (void)state;

    make_file(3);
    for (size_t i = 0; i < TTM_UPSTREAM_PROCESSES; i++) {
        put_process(i, 42, 1, 1);
        memset(file + PROCESS_AT(i) + 56, 'x', 64);
    }
    assert_int_equal(ttm_upstream_decode(file, SIZE, &ret), 0);
    assert_int_equal(ret.process_count, TTM_UPSTREAM_PROCESSES);
    for (size_t i = 0; i < ret.process_count; i++)
        assert_int_equal(strlen(ret.processes[i].name), TTM_UPSTREAM_NAME_SIZE - 1);
}

#define S TTM_NS_PER_S

static void an_entry_older_than_its_process_is_stale(void **state)
{
    const struct ttm_upstream_moment now = {
        .wall_ns = 1700000000 * S, .monotonic_ns = 5000 * S, .boot_ns = 5000 * S};
    struct ttm_upstream_process entry = {.pid = 1};
    (void)state;

    entry.time_ns = 4000 * S; /* since boot */
    assert_false(ttm_upstream_is_stale(&entry, 3000 * S, &now));
    assert_false(ttm_upstream_is_stale(&entry, 4001 * S, &now)); /* within the slack */
    assert_true(ttm_upstream_is_stale(&entry, 4003 * S, &now));
    entry.time_ns = now.wall_ns - 1000 * S; /* since the epoch */
    assert_false(ttm_upstream_is_stale(&entry, 3000 * S, &now));
    assert_false(ttm_upstream_is_stale(&entry, 4001 * S, &now));
    assert_true(ttm_upstream_is_stale(&entry, 4003 * S, &now));
}

static void an_entry_whose_time_is_not_known_is_believed(void **state)
{
    const struct ttm_upstream_moment now = {
        .wall_ns = 1700000000 * S, .monotonic_ns = 5000 * S, .boot_ns = 5000 * S};
    struct ttm_upstream_process entry = {.pid = 1};
    (void)state;

    assert_false(ttm_upstream_is_stale(&entry, 4000 * S, &now));
    entry.time_ns = 100 * S;
    assert_false(ttm_upstream_is_stale(&entry, 0, &now));        /* the start is not known */
    assert_false(ttm_upstream_is_stale(&entry, 6000 * S, &now)); /* the start is in the future */
    entry.time_ns = UINT64_MAX;
    assert_false(ttm_upstream_is_stale(&entry, 4000 * S, &now));
}

/* The start of a process counts the time that the machine slept; the entry's time does not. */
static void the_sleep_of_the_machine_makes_nothing_stale(void **state)
{
    const struct ttm_upstream_moment now = {
        .wall_ns = 1700000000 * S, .monotonic_ns = 2000 * S, .boot_ns = 9000 * S};
    struct ttm_upstream_process entry = {.pid = 1, .time_ns = 1500 * S};
    (void)state;

    assert_false(ttm_upstream_is_stale(&entry, 8400 * S, &now));
    assert_true(ttm_upstream_is_stale(&entry, 8600 * S, &now));
}

static void what_lives_and_what_nobody_claims_is_added_up(void **state)
{
    struct ttm_upstream_file ret;
    struct ttm_upstream_totals sum;
    (void)state;

    make_file(3);
    put_totals(file + 48, 1000);
    put_process(0, 10, 100, 1);
    put_process(1, 11, 200, 1);
    assert_int_equal(ttm_upstream_decode(file, SIZE, &ret), 0);
    ret.processes[0].is_stale = true;
    ttm_upstream_live(&ret, &sum);
    assert_int_equal(sum.bytes[TTM_UPSTREAM_DRAM], 200);
    assert_int_equal(sum.bytes[TTM_UPSTREAM_CB], 204);
    ttm_upstream_unclaimed(&ret, &sum);
    assert_int_equal(sum.bytes[TTM_UPSTREAM_DRAM], 700);
    ret.totals.bytes[TTM_UPSTREAM_DRAM] = 150; /* read while it changed: never below 0 */
    ttm_upstream_unclaimed(&ret, &sum);
    assert_int_equal(sum.bytes[TTM_UPSTREAM_DRAM], 0);
}

static void put_stat(int pid, char state, unsigned long long start)
{
    char path[64], text[256];

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    (void)snprintf(text, sizeof(text),
                   "%d (a) b) %c 1 1 1 0 -1 4194304 1 0 0 0 1 1 0 0 20 0 1 0 %llu 9 9\n", pid,
                   state, start);
    tree_text(path, text);
}

static void files_are_found_sorted_and_checked_against_proc(void **state)
{
    struct ttm_upstream ret;
    (void)state;

    tree_text("/proc/uptime", "5000.00 1.00\n");
    put_stat(10, 'S', 100000);
    put_stat(11, 'Z', 100000);
    put_stat(13, 'S', 400000);
    make_file(3);
    put_process(0, 10, 100, 4500 * S);
    put_process(1, 11, 100, 4500 * S); /* a zombie */
    put_process(2, 12, 100, 4500 * S); /* gone */
    put_process(3, 13, 100, 3900 * S); /* another process with the same pid */
    tree_bytes("/dev/shm/tt_device_17716556166399396846_memory", file, SIZE);
    make_file(2);
    tree_bytes("/dev/shm/tt_device_9_memory", file, SIZE);
    assert_int_equal(ttm_upstream_read(root, &ret), 0);
    assert_int_equal(ret.count, 2);
    assert_int_equal(ret.files[0].unique_id, 9);
    assert_int_equal(ret.files[1].unique_id, 17716556166399396846ull);
    assert_int_equal(ret.files[1].process_count, 4);
    assert_false(ret.files[1].processes[0].is_stale);
    assert_true(ret.files[1].processes[1].is_stale);
    assert_true(ret.files[1].processes[2].is_stale);
    assert_true(ret.files[1].processes[3].is_stale);
    ttm_upstream_done(&ret);
}

static void other_names_are_passed_over(void **state)
{
    static const char *const names[] = {
        "/dev/shm/tt_device__memory",
        "/dev/shm/tt_device_x_memory",
        "/dev/shm/tt_device_-1_memory",
        "/dev/shm/tt_device_1_memory2",
        "/dev/shm/tt_device_99999999999999999999_memory",
        "/dev/shm/TT_UMD_LOCK.CHIP_IN_USE_0",
        "/dev/shm/tt_device_1",
    };
    struct ttm_upstream ret;
    (void)state;

    make_file(3);
    for (size_t i = 0; i < COUNT_OF(names); i++)
        tree_bytes(names[i], file, SIZE);
    assert_int_equal(ttm_upstream_read(root, &ret), 0);
    assert_int_equal(ret.count + ret.denied_count + ret.unknown_count + ret.broken_count, 0);
    ttm_upstream_done(&ret);
}

static void what_is_wrong_with_a_file_is_counted(void **state)
{
    struct ttm_upstream ret;
    (void)state;

    make_file(9);
    tree_bytes("/dev/shm/tt_device_1_memory", file, SIZE);
    make_file(3);
    tree_bytes("/dev/shm/tt_device_2_memory", file, SIZE / 2);
    tree_bytes("/dev/shm/tt_device_3_memory", file, 0);
    assert_int_equal(mkfifo(tree_path("/dev/shm/tt_device_4_memory"), 0600), 0);
    tree_folder("/dev/shm/tt_device_5_memory");
    tree_bytes("/secret", file, SIZE);
    tree_link("/dev/shm/tt_device_6_memory", "../../secret");
    assert_int_equal(ttm_upstream_read(root, &ret), 0);
    assert_int_equal(ret.count, 0);
    assert_int_equal(ret.unknown_count, 1);
    assert_int_equal(ret.broken_count, 5);
    ttm_upstream_done(&ret);
}

/* Sparse, so that it takes no room here. */
static void an_endless_file_is_not_read_to_its_end(void **state)
{
    struct ttm_upstream ret;
    (void)state;

    make_file(3);
    tree_bytes("/dev/shm/tt_device_1_memory", file, SIZE);
    assert_int_equal(truncate(tree_path("/dev/shm/tt_device_1_memory"), (off_t)1 << 40), 0);
    assert_int_equal(ttm_upstream_read(root, &ret), 0);
    assert_int_equal(ret.count, 0);
    assert_int_equal(ret.unknown_count, 1);
    ttm_upstream_done(&ret);
}

static void a_file_of_another_user_is_counted(void **state)
{
    struct ttm_upstream ret;
    (void)state;

    if (geteuid() == 0)
        skip(); /* root reads everything */
    make_file(3);
    tree_bytes("/dev/shm/tt_device_1_memory", file, SIZE);
    assert_int_equal(chmod(tree_path("/dev/shm/tt_device_1_memory"), 0), 0);
    assert_int_equal(ttm_upstream_read(root, &ret), 0);
    assert_int_equal(ret.denied_count, 1);
    ttm_upstream_done(&ret);
}

static void short_memory_is_told_and_leaks_nothing(void **state)
{
    struct ttm_upstream ret;
    bool has_failed = true;
    (void)state;

    make_file(3);
    tree_bytes("/dev/shm/tt_device_1_memory", file, SIZE);
    tree_bytes("/dev/shm/tt_device_2_memory", file, SIZE);
    for (unsigned grants = 0; has_failed; grants++) {
        assert_in_range(grants, 0, 100);
        faults_begin(grants);
        const int r = ttm_upstream_read(root, &ret);
        has_failed = faults_end();
        assert_int_equal(r, has_failed ? -ENOMEM : 0);
        ttm_upstream_done(&ret);
    }
}

static void without_the_folder_there_is_nothing(void **state)
{
    struct ttm_upstream ret;
    (void)state;

    assert_int_equal(ttm_upstream_read(root, &ret), 0);
    assert_int_equal(ret.count, 0);
    ttm_upstream_done(&ret);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(a_file_of_the_real_runtime_is_understood),
        TREE_TEST(every_field_is_at_its_place),
        TREE_TEST(versions_2_to_4_are_known_and_others_refused),
        TREE_TEST(a_file_that_is_not_filled_in_is_told_apart),
        TREE_TEST(a_file_cut_off_anywhere_is_refused),
        TREE_TEST(a_longer_file_has_another_layout),
        TREE_TEST(version_2_marks_empty_places_of_chips_with_0),
        TREE_TEST(absurd_counts_are_marked_and_read_as_0),
        TREE_TEST(impossible_pids_are_passed_over_and_counted),
        TREE_TEST(a_name_without_an_end_is_ended),
        TREE_TEST(an_entry_older_than_its_process_is_stale),
        TREE_TEST(an_entry_whose_time_is_not_known_is_believed),
        TREE_TEST(the_sleep_of_the_machine_makes_nothing_stale),
        TREE_TEST(what_lives_and_what_nobody_claims_is_added_up),
        TREE_TEST(files_are_found_sorted_and_checked_against_proc),
        TREE_TEST(other_names_are_passed_over),
        TREE_TEST(what_is_wrong_with_a_file_is_counted),
        TREE_TEST(an_endless_file_is_not_read_to_its_end),
        TREE_TEST(a_file_of_another_user_is_counted),
        TREE_TEST(short_memory_is_told_and_leaks_nothing),
        TREE_TEST(without_the_folder_there_is_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
