/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "cli/runtime.h"

/* The kernel gives pids below this one, so /proc does not know it. */
#define PID 4194304

static struct ttm_machine machine;
static struct ttm_upstream_file files[2];
static struct ttm_answer answer;

/* Two simulated devices, 3 and 1, on which one process has memory. */
static int set_up(void **state)
{
    (void)state;
    memset(&machine, 0, sizeof(machine));
    memset(files, 0, sizeof(files));
    ttm_answer_init(&answer);
    machine.upstream.files = files;
    machine.upstream.count = 2;
    for (int i = 0; i < 2; i++) {
        files[i].device_id = 3 - 2 * i;
        files[i].process_count = 1;
        files[i].processes[0].pid = PID;
        files[i].processes[0].totals.bytes[TTM_UPSTREAM_CB] = 100;
        (void)snprintf(files[i].processes[0].name, TTM_UPSTREAM_NAME_SIZE, "python");
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_answer_done(&answer);
    free(machine.devices);
    return 0;
}

static void a_process_is_added_with_its_bytes_on_each_device(void **state)
{
    (void)state;

    assert_int_equal(ttm_machine_join(&machine), 0);
    assert_int_equal(ttm_runtime_merge(&machine, &answer), 0);
    assert_int_equal(answer.process_count, 1);
    const struct ttm_answer_process *process = &answer.processes[0];
    assert_int_equal(process->row.pid, PID);
    assert_int_equal(process->row.source, TTM_SOURCE_RUNTIME);
    assert_false(process->row.has_lives);
    assert_string_equal(process->row.command, "python");
    assert_int_equal(process->device_count, 2);
    assert_int_equal(process->devices[0].device_id, 3);
    assert_int_equal(process->devices[0].totals.region[TTM_REGION_CB].bytes, 100);
    assert_int_equal(process->devices[1].device_id, 1);
    assert_int_equal(answer.device_count, 2);
    assert_int_equal(answer.devices[0].id, 1);
    assert_int_equal(answer.devices[1].id, 3);
    assert_int_equal(answer.devices[1].totals.region[TTM_REGION_CB].bytes, 0);
}

static void what_is_tracked_or_dead_is_left_out(void **state)
{
    struct ttm_answer_process tracked = {.row.pid = PID};
    (void)state;

    machine.answers[0] = (struct ttm_answer){.processes = &tracked, .process_count = 1};
    machine.answer_count = 1;
    assert_int_equal(ttm_machine_join(&machine), 0);
    assert_int_equal(ttm_runtime_merge(&machine, &answer), 0);
    assert_int_equal(answer.process_count, 0);
    machine.answer_count = 0;
    files[0].processes[0].is_stale = files[1].processes[0].is_stale = true;
    assert_int_equal(ttm_runtime_merge(&machine, &answer), 0);
    assert_int_equal(answer.process_count + answer.device_count, 0);
}

static void who_the_answer_itself_tracks_is_left_out(void **state)
{
    (void)state;

    answer.processes = calloc(1, sizeof(answer.processes[0]));
    assert_non_null(answer.processes);
    answer.process_count = 1;
    answer.processes[0].row = (struct ttm_process_row){.pid = PID, .source = TTM_SOURCE_TRACKED};
    assert_int_equal(ttm_machine_join(&machine), 0);
    assert_int_equal(ttm_runtime_merge(&machine, &answer), 0);
    assert_int_equal(answer.process_count, 1);
    assert_int_equal(answer.processes[0].row.source, TTM_SOURCE_TRACKED);
    assert_int_equal(answer.processes[0].device_count, 0);
    assert_false(ttm_runtime_has_any(&answer));
}

static void the_row_of_a_process_in_which_tracking_is_off_is_taken_over(void **state)
{
    (void)state;

    answer.processes = calloc(1, sizeof(answer.processes[0]));
    assert_non_null(answer.processes);
    answer.process_count = 1;
    answer.processes[0].row = (struct ttm_process_row){
        .pid = PID, .source = TTM_SOURCE_TRACKED, .is_disabled = true, .has_lives = true};
    assert_int_equal(ttm_machine_join(&machine), 0);
    assert_int_equal(ttm_runtime_merge(&machine, &answer), 0);
    assert_int_equal(answer.process_count, 1);
    assert_int_equal(answer.processes[0].row.source, TTM_SOURCE_RUNTIME);
    assert_true(answer.processes[0].row.is_disabled);
    assert_false(answer.processes[0].row.has_lives);
    assert_int_equal(answer.processes[0].device_count, 2);
}

static void bytes_of_the_runtime_are_summed_beside_the_devices(void **state)
{
    (void)state;

    files[0].process_count = 2;
    files[0].processes[1] = files[0].processes[0];
    files[0].processes[1].pid = PID - 1;
    assert_int_equal(ttm_machine_join(&machine), 0);
    assert_int_equal(ttm_runtime_merge(&machine, &answer), 0);
    assert_int_equal(ttm_runtime_bytes(&answer, 3, TTM_REGION_CB), 200);
    assert_int_equal(ttm_runtime_bytes(&answer, 1, TTM_REGION_CB), 100);
    assert_int_equal(ttm_runtime_bytes(&answer, 1, TTM_REGION_DRAM), 0);
    const struct ttm_answer_process *process = &answer.processes[0];
    assert_int_equal(ttm_runtime_used(process, &process->devices[0].totals, TTM_REGION_CB), 100);
    assert_true(ttm_runtime_has_any(&answer));
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++)
        assert_int_equal(ttm_runtime_counts(r),
                         r != TTM_REGION_KERNEL && r != TTM_REGION_SYSTEM_MEMORY);
}

static void short_memory_is_told_and_leaks_nothing(void **state)
{
    bool has_failed = true;
    (void)state;

    assert_int_equal(ttm_machine_join(&machine), 0);
    for (unsigned grants = 0; has_failed; grants++) {
        assert_in_range(grants, 0, 100);
        ttm_answer_done(&answer);
        faults_begin(grants);
        const int r = ttm_runtime_merge(&machine, &answer);
        has_failed = faults_end();
        assert_int_equal(r, has_failed ? -ENOMEM : 0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_process_is_added_with_its_bytes_on_each_device),
        TEST(what_is_tracked_or_dead_is_left_out),
        TEST(who_the_answer_itself_tracks_is_left_out),
        TEST(the_row_of_a_process_in_which_tracking_is_off_is_taken_over),
        TEST(bytes_of_the_runtime_are_summed_beside_the_devices),
        TEST(short_memory_is_told_and_leaks_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
