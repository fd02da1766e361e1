/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#include "cli/process_list.h"

static struct ttm_machine machine;
static struct ttm_telemetry_chip chips[2];
static struct ttm_upstream_file files[1];
static struct ttm_answer_process tracked[1];
static struct ttm_process_device_row tracked_devices[2];

static int set_up(void **state)
{
    memset(&machine, 0, sizeof(machine));
    memset(chips, 0, sizeof(chips));
    memset(files, 0, sizeof(files));
    memset(tracked, 0, sizeof(tracked));
    memset(tracked_devices, 0, sizeof(tracked_devices));
    machine.telemetry.chips = chips;
    machine.upstream.files = files;
    return tree_set_up(state);
}

static int tear_down(void **state)
{
    free(machine.devices);
    return tree_tear_down(state);
}

/* Two chips whose holders the driver tells, numbered against their addresses. */
static void add_chips(void)
{
    machine.telemetry.count = 2;
    for (unsigned i = 0; i < 2; i++) {
        chips[i].chip.number = i;
        chips[i].metal_id = 1 - (int)i;
        chips[i].chip.arch = "unknown";
        chips[i].has_reading = true;
        chips[i].chip.holders_validity = TTM_VALID;
    }
}

static void add_holder(unsigned number, int32_t pid)
{
    struct ttm_chip *chip = &chips[number].chip;

    chip->holders[chip->holder_count++] = (struct ttm_chip_holder){pid, 1};
}

static void add_process(int32_t pid)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
    tree_text(path, "python\n");
}

static void add_tracked(int32_t pid, uint64_t bytes)
{
    struct ttm_answer *answer = &machine.answers[machine.answer_count++];

    answer->processes = tracked;
    answer->process_count = 1;
    tracked[0].row.pid = pid;
    tracked[0].row.uid = 77;
    tracked[0].row.source = TTM_SOURCE_TRACKED;
    (void)snprintf(tracked[0].row.command, sizeof(tracked[0].row.command), "by the server");
    tracked[0].devices = tracked_devices;
    tracked[0].device_count = 2;
    tracked_devices[1].device_id = 1;
    for (size_t i = 0; i < 2; i++) {
        struct ttm_totals *totals = &tracked_devices[i].totals.region[TTM_REGION_DRAM];
        totals->bytes = bytes;
        totals->footprint_bytes = bytes + 24;
    }
}

static void read_list(struct ttm_process_list *list)
{
    assert_int_equal(ttm_machine_join(&machine), 0);
    assert_int_equal(ttm_process_list_read(root, &machine, NULL, list), 0);
}

static void a_process_is_listed_once_with_all_its_devices(void **state)
{
    struct ttm_process_list list;
    (void)state;

    add_chips();
    add_process(10);
    add_holder(1, 10);
    add_holder(0, 10);
    read_list(&list);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.processes[0].device_count, 2);
    assert_int_equal(list.processes[0].devices[0], 0);
    assert_int_equal(list.processes[0].devices[1], 1);
    assert_int_equal(list.processes[0].reporting, TTM_REPORTING_NO);
    assert_int_equal(list.processes[0].source, -1);
    ttm_process_list_done(&list);
}

static void what_a_server_says_is_taken_where_proc_says_nothing(void **state)
{
    struct ttm_process_list list;
    (void)state;

    add_chips();
    add_tracked(10, 500);
    read_list(&list);
    assert_int_equal(list.count, 1);
    assert_string_equal(list.processes[0].process.command, "by the server");
    assert_int_equal(list.processes[0].process.uid, 77);
    assert_int_equal(list.processes[0].regions[TTM_REGION_DRAM].bytes, 1000);
    assert_int_equal(ttm_listed_process_bytes(&list.processes[0]), 1048); /* the footprint */
    ttm_process_list_done(&list);
}

static void a_process_that_is_switched_off_is_not_tracked(void **state)
{
    struct ttm_process_list list;
    (void)state;

    add_process(10);
    add_tracked(10, 500);
    tracked[0].row.is_disabled = true;
    read_list(&list);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.processes[0].reporting, TTM_REPORTING_DISABLED);
    assert_int_equal(list.processes[0].source, -1);
    assert_false(list.processes[0].regions[TTM_REGION_DRAM].is_known);
    assert_null(ttm_machine_tracked(&machine, 10));
    ttm_process_list_done(&list);
}

static void two_processes_that_the_server_cannot_see_are_two(void **state)
{
    struct ttm_process_list list;
    (void)state;

    add_tracked(0, 1);
    add_tracked(0, 1);
    read_list(&list);
    assert_int_equal(list.count, 2);
    ttm_process_list_done(&list);
}

static void a_chip_that_was_not_read_tells_of_nobody(void **state)
{
    struct ttm_process_list list;
    (void)state;

    add_chips();
    chips[0].has_reading = false;
    chips[1].chip.state = TTM_CHIP_REMOVED;
    add_process(10);
    add_holder(0, 10);
    add_holder(1, 10);
    read_list(&list);
    assert_int_equal(list.count, 0);
    ttm_process_list_done(&list);
}

static void proc_is_searched_only_where_the_driver_does_not_tell(void **state)
{
    struct ttm_process_list list;
    (void)state;

    add_chips();
    add_process(10);
    tree_link("/proc/10/fd/3", "/dev/tenstorrent/1");
    assert_int_equal(ttm_machine_join(&machine), 0);
    assert_int_equal(ttm_process_list_read(root, &machine, NULL, &list), 0);
    assert_int_equal(list.count, 0);
    ttm_process_list_done(&list);
    chips[0].chip.holders_validity = TTM_ABSENT;
    assert_int_equal(ttm_process_list_read(root, &machine, NULL, &list), 0);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.processes[0].devices[0], 1);
    ttm_process_list_done(&list);
}

static void every_way_of_reporting_has_its_name(void **state)
{
    (void)state;

    assert_string_equal(ttm_reporting_name(TTM_REPORTING_TRACKED), "tracked");
    assert_string_equal(ttm_reporting_name(TTM_REPORTING_DISABLED), "disabled");
    assert_string_equal(ttm_reporting_name(TTM_REPORTING_RUNTIME), "runtime");
    assert_string_equal(ttm_reporting_name(TTM_REPORTING_NO), "no");
}

static void short_memory_is_told_and_leaks_nothing(void **state)
{
    struct ttm_process_list list;
    bool has_failed = true;
    (void)state;

    add_chips();
    add_process(10);
    add_process(11);
    add_holder(0, 10);
    add_holder(1, 11);
    add_tracked(10, 1);
    assert_int_equal(ttm_machine_join(&machine), 0);
    for (unsigned grants = 0; has_failed; grants++) {
        assert_in_range(grants, 0, 100);
        faults_begin(grants);
        const int r = ttm_process_list_read(root, &machine, NULL, &list);
        has_failed = faults_end();
        assert_int_equal(r, has_failed ? -ENOMEM : 0);
        ttm_process_list_done(&list);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_process_is_listed_once_with_all_its_devices),
        TEST(what_a_server_says_is_taken_where_proc_says_nothing),
        TEST(a_process_that_is_switched_off_is_not_tracked),
        TEST(two_processes_that_the_server_cannot_see_are_two),
        TEST(a_chip_that_was_not_read_tells_of_nobody),
        TEST(proc_is_searched_only_where_the_driver_does_not_tell),
        TEST(every_way_of_reporting_has_its_name),
        TEST(short_memory_is_told_and_leaks_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
