/* SPDX-License-Identifier: Apache-2.0 */
#include "log_testing.h"

#include "base/clock.h"
#include "base/log.h"
#include "cli/failure_report.h"
#include "model/registry.h"
#include "wire/life_row.h"

static const struct ttm_terminal plain = {.has_utf8 = true, .columns = 100, .rows = 24};

static struct ttm_registry *reg;
static struct ttm_process *proc;
static struct ttm_failure_reporter reporter;
static FILE *file; /* where the log writes */

static int set_up(void **state)
{
    const struct ttm_process_info info = {.pid = 77};
    (void)state;

    reg = ttm_registry_new(0x5eed5eed5eed5eedull);
    file = tmpfile();
    assert_non_null(reg);
    assert_non_null(file);
    assert_int_equal(ttm_registry_add_process(reg, &info, &proc), 0);
    proc->has_serials = true;
    ttm_failure_reporter_init(&reporter, &plain);
    assert_int_equal(ttm_log_start(fileno(file)), 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_log_stop(10000);
    (void)fclose(file);
    ttm_registry_free(reg);
    return faults_pages_out() == 0 ? 0 : -1;
}

static struct ttm_failure_row failure_at(uint64_t time_ns)
{
    return (struct ttm_failure_row){.time_ns = time_ns,
                                    .wanted_bytes = 4096,
                                    .bank_wanted_bytes = 1024,
                                    .region = TTM_REGION_L1,
                                    .origin = 3};
}

static void fail_at(uint64_t time_ns)
{
    const struct ttm_failure_row failure = failure_at(time_ns);

    ttm_failure_report(&reporter, reg, proc, &failure);
}

static void add_origin(uint32_t number, const char *python, const char *operation)
{
    const struct ttm_origin origin = {
        .number = number,
        .text = {[TTM_ORIGIN_CONTEXT] = "",
                 [TTM_ORIGIN_NAME] = "",
                 [TTM_ORIGIN_THREAD] = "",
                 [TTM_ORIGIN_OPERATION] = operation,
                 [TTM_ORIGIN_PYTHON] = python,
                 [TTM_ORIGIN_NATIVE] = ""},
    };

    assert_int_equal(ttm_origin_table_add(&proc->origins, &origin), 0);
}

static void give_birth(uint64_t serial, uint8_t region, uint64_t address, uint32_t origin)
{
    const struct ttm_birth birth = {
        .serial = serial,
        .id = serial,
        .address = address,
        .bytes = 4096,
        .footprint_bytes = 4096,
        .site = {.region = region, .origin = origin},
    };

    assert_int_equal(ttm_registry_birth(reg, proc, &birth, NULL), 0);
}

static void it_says_what_the_registry_knows(void **state)
{
    const struct ttm_device_note note = {.arch = TTM_ARCH_WORMHOLE_B0,
                                         .bank_bytes = {[TTM_REGION_L1] = 65536},
                                         .bank_count = {[TTM_REGION_L1] = 4}};
    (void)state;

    add_origin(2, "model.py:5:load\n", "ttnn.zeros");
    add_origin(3, "model.py:9:step\n", "ttnn.matmul");
    give_birth(1, TTM_REGION_L1, 0x1000, 2);
    give_birth(2, TTM_REGION_L1, 0x2000, 2);
    give_birth(3, TTM_REGION_CB, 0x0, 3);
    ttm_device_set_note(ttm_registry_device(reg, 0), &note);
    fail_at(TTM_NS_PER_S);
    const char *text = log_said(file);
    assert_has(text, "out of memory in L1 of device 0 at model.py:9 step (ttnn.matmul)");
    assert_has(text, "4.0 KiB wanted, 1.0 KiB in each of 4 banks\n");
    assert_has(text, "  8.0 KiB       2 buffers  model.py:5 load (ttnn.zeros)\n");
    assert_has(text, "  4.0 KiB  circular buffers (ttnn.matmul)\n");
    assert_has(text, " 0x1000 … 0x2400 of 64.0 KiB ");
}

static void callers_of_a_line_that_several_come_through_are_told(void **state)
{
    (void)state;
    add_origin(1, "p.py:4:alloc\np.py:5:<listcomp>\np.py:5:weights\n", "ttnn.empty");
    add_origin(2, "p.py:4:alloc\np.py:6:<listcomp>\np.py:6:cache\n", "ttnn.empty");
    add_origin(3, "p.py:4:alloc\np.py:7:scratch\np.py:8:<module>\n", "ttnn.empty");
    add_origin(4, "q.py:1:other\n", "ttnn.empty");
    give_birth(1, TTM_REGION_L1, 0x1000, 1);
    give_birth(2, TTM_REGION_L1, 0x2000, 2);
    give_birth(3, TTM_REGION_L1, 0x3000, 4);
    fail_at(TTM_NS_PER_S);
    fail_at(TTM_NS_PER_S + 1);
    ttm_failure_report_end(&reporter, reg, proc);
    const char *text = log_said(file);
    assert_int_equal(count_of(text, "of device 0 at p.py:4 ← scratch (ttnn.empty)"), 2);
    assert_int_equal(count_of(text, "1 buffer   p.py:4 ← weights (ttnn.empty)\n"), 1);
    assert_int_equal(count_of(text, "1 buffer   p.py:4 ← cache (ttnn.empty)\n"), 1);
    assert_int_equal(count_of(text, "1 buffer   q.py:1 other (ttnn.empty)\n"), 1);
}

static void odd_frames_do_no_harm(void **state)
{
    (void)state;
    add_origin(2, "p.py:4:alloc\n:\n\nx\n::\n", "ttnn.empty");
    add_origin(3, "p.py:4:alloc\n:9\na:b:c:d\nends without", "ttnn.empty");
    fail_at(TTM_NS_PER_S);
    assert_has(log_said(file), "of device 0 at p.py:4 ← ");
}

static void a_storm_is_told_of_once_a_second(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 1000; i++)
        fail_at(TTM_NS_PER_S + i);
    fail_at(5); /* of another thread, and older */
    assert_int_equal(reporter.told, 1);
    fail_at(2 * TTM_NS_PER_S);
    const char *text = log_said(file);
    assert_int_equal(count_of(text, "out of memory"), 2);
    assert_int_equal(count_of(text, "tt-mem: 1,000 more failures since\n"), 1);
}

static void after_so_many_there_are_no_more(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= 3 * TTM_FAILURE_REPORTS_MAX; i++)
        fail_at(i * TTM_NS_PER_S);
    const char *text = log_said(file);
    assert_int_equal(count_of(text, "out of memory"), TTM_FAILURE_REPORTS_MAX);
    assert_int_equal(count_of(text, "tt-mem: … more failures, see the report\n"), 1);
}

static void what_differs_in_line_caller_region_or_verdict_is_told_at_once(void **state)
{
    struct ttm_failure_row failure = failure_at(TTM_NS_PER_S);
    (void)state;

    add_origin(2, "model.py:5:alloc\nmodel.py:7:load\n", "ttnn.zeros");
    add_origin(3, "model.py:5:alloc\nmodel.py:9:step\n", "ttnn.zeros");
    add_origin(4, "model.py:6:alloc\nmodel.py:9:step\n", "ttnn.zeros");
    for (uint32_t again = 0; again < 100; again++) {
        for (failure.origin = 2; failure.origin <= 4; failure.origin++)
            ttm_failure_report(&reporter, reg, proc, &failure);
        failure.region = TTM_REGION_DRAM;
        failure.origin = 2;
        ttm_failure_report(&reporter, reg, proc, &failure);
        failure.bank_free_bytes = failure.bank_wanted_bytes;
        ttm_failure_report(&reporter, reg, proc, &failure);
        failure = failure_at(TTM_NS_PER_S + again);
    }
    const char *text = log_said(file);
    assert_int_equal(count_of(text, "out of memory"), 5);
    assert_int_equal(count_of(text, "out of memory in DRAM"), 2);
    assert_int_equal(count_of(text, "fragmented"), 1);
    assert_int_equal(count_of(text, "at model.py:6"), 1);
}

static void a_new_kind_is_told_of_when_others_are_not_any_more(void **state)
{
    struct ttm_failure_row failure;
    (void)state;

    for (uint64_t i = 1; i <= 2 * TTM_FAILURE_REPORTS_MAX; i++)
        fail_at(i * TTM_NS_PER_S);
    failure = failure_at(2 * TTM_FAILURE_REPORTS_MAX * TTM_NS_PER_S);
    failure.region = TTM_REGION_DRAM;
    ttm_failure_report(&reporter, reg, proc, &failure);
    const char *text = log_said(file);
    const char *line = strstr(text, "tt-mem: out of memory in DRAM");
    assert_non_null(line);
    assert_true(strstr(text, "see the report") < line);
}

static void kinds_have_a_limit(void **state)
{
    struct ttm_failure_row failure = failure_at(TTM_NS_PER_S);
    (void)state;

    for (uint16_t i = 0; i < 1000; i++) {
        failure.device_id = i;
        ttm_failure_report(&reporter, reg, proc, &failure);
    }
    assert_int_equal(count_of(log_said(file), "out of memory"), TTM_FAILURE_KINDS_MAX);
}

static void the_last_failure_is_told_of_when_its_process_ends(void **state)
{
    struct ttm_failure_row failure;
    (void)state;

    add_origin(2, "model.py:5:load\n", "ttnn.zeros");
    for (uint64_t i = 0; i < 7; i++)
        fail_at(TTM_NS_PER_S + i);
    failure = failure_at(TTM_NS_PER_S + 7);
    failure.wanted_bytes = 12288;
    failure.owners[0] = (struct ttm_owner){2, 5, 7000, 8192}; /* then; there is nothing now */
    failure.owner_count = 1;
    ttm_failure_report(&reporter, reg, proc, &failure);
    ttm_failure_report_end(&reporter, reg, proc);
    ttm_failure_report_end(&reporter, reg, proc);
    const char *text = log_said(file);
    assert_int_equal(count_of(text, "out of memory"), 2);
    const char *last = strstr(text, "tt-mem: 7 more failures since, the last of them:\n");
    assert_non_null(last);
    assert_has(last, "12.0 KiB wanted");
    assert_has(last,
               "  who holds L1          8.0 KiB       5 buffers  model.py:5 load (ttnn.zeros)\n");
}

static void a_failure_that_was_told_of_is_not_told_of_again(void **state)
{
    (void)state;
    fail_at(TTM_NS_PER_S);
    fail_at(TTM_NS_PER_S + 1);
    fail_at(2 * TTM_NS_PER_S);
    ttm_failure_report_end(&reporter, reg, proc);
    const char *text = log_said(file);
    assert_int_equal(count_of(text, "out of memory"), 2);
    assert_int_equal(count_of(text, "tt-mem: 1 more failure since\n"), 1);
}

static void whose_owners_nobody_looked_for_are_not_said_to_be_none(void **state)
{
    (void)state;
    fail_at(TTM_NS_PER_S);
    fail_at(TTM_NS_PER_S + 1);
    ttm_failure_report_end(&reporter, reg, proc);
    assert_int_equal(count_of(log_said(file), "nothing that is tracked holds"),
                     1); /* of the first */
}

static void each_process_has_a_last_failure(void **state)
{
    const struct ttm_failure_row failure = failure_at(TTM_NS_PER_S);
    (void)state;

    for (int32_t pid = 1; pid <= 2 * TTM_FAILURE_PROCESSES_MAX; pid++) {
        const struct ttm_process_info info = {.pid = pid};
        struct ttm_process *other;
        assert_int_equal(ttm_registry_add_process(reg, &info, &other), 0);
        ttm_failure_report(&reporter, reg, other, &failure);
        ttm_failure_report(&reporter, reg, other, &failure);
    }
    assert_int_equal(reporter.held_count, TTM_FAILURE_PROCESSES_MAX);
    for (uint32_t i = 0; i < TTM_FAILURE_PROCESSES_MAX; i++)
        ttm_failure_report_end(&reporter, reg, reporter.held[0].process);
    assert_int_equal(reporter.held_count, 0);
    const char *text = log_said(file);
    assert_int_equal(count_of(text, "in process 1:"), 2);
    assert_int_equal(count_of(text, "in process 16:"), 2);
}

static void when_memory_is_short_it_says_all_or_nothing(void **state)
{
    bool has_failed = true;
    unsigned failed = 0;
    (void)state;

    give_birth(1, TTM_REGION_L1, 0x1000, 0);
    for (unsigned grants = 0; has_failed; grants++) {
        ttm_failure_reporter_init(&reporter, &plain);
        faults_begin(grants);
        fail_at(TTM_NS_PER_S);
        has_failed = faults_end();
        failed += has_failed;
    }
    assert_true(failed > 0);
    const char *text = log_said(file);
    assert_int_equal(count_of(text, "tt-mem: out of memory"), count_of(text, " wanted"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_says_what_the_registry_knows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(callers_of_a_line_that_several_come_through_are_told,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(odd_frames_do_no_harm, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_storm_is_told_of_once_a_second, set_up, tear_down),
        cmocka_unit_test_setup_teardown(after_so_many_there_are_no_more, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_differs_in_line_caller_region_or_verdict_is_told_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_new_kind_is_told_of_when_others_are_not_any_more, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(kinds_have_a_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_last_failure_is_told_of_when_its_process_ends, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_failure_that_was_told_of_is_not_told_of_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(whose_owners_nobody_looked_for_are_not_said_to_be_none,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_process_has_a_last_failure, set_up, tear_down),
        cmocka_unit_test_setup_teardown(when_memory_is_short_it_says_all_or_nothing, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
