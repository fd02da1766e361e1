/* SPDX-License-Identifier: Apache-2.0 */
#include "log_testing.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/heard_failures.h"
#include "wire/frame.h"
#include "wire/origin_row.h"
#include "wire/totals.h"

#define PID 77

static const struct ttm_terminal plain = {.has_utf8 = true, .columns = 100, .rows = 24};

static struct ttm_heard_failures heard;
static struct ttm_heard_process *ours;
static FILE *file; /* where the log writes */

static int set_up(void **state)
{
    (void)state;
    file = tmpfile();
    assert_non_null(file);
    ttm_heard_failures_init(&heard, &plain);
    ours = ttm_heard_process_new(&heard, PID);
    assert_non_null(ours);
    assert_int_equal(ttm_log_start(fileno(file)), 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_heard_process_end(&heard, ours);
    ttm_log_stop(10000);
    (void)fclose(file);
    ttm_heard_failures_done(&heard);
    return faults_pages_out() == 0 ? 0 : -1;
}

/* ---- what the server says ---- */

static void hear(uint16_t type, const uint8_t *payload, size_t length)
{
    const struct ttm_frame frame = {.type = type, .payload = payload, .length = (uint32_t)length};

    assert_int_equal(ttm_heard_failures_take(&heard, &frame), 0);
}

static void hear_device(void)
{
    const struct ttm_device_row row = {
        .id = 2, .capacity_bytes = {[TTM_REGION_L1] = 262144}, .bank_count = {[TTM_REGION_L1] = 4}};
    uint8_t buf[TTM_ROW_SIZE_MAX];

    hear(TTM_FRAME_DEVICE, buf, ttm_device_row_encode(&row, buf));
}

static void hear_origin(uint32_t number, const char *python, const char *operation)
{
    const struct ttm_origin_row row = {.process_index = PID,
                                       .number = number,
                                       .context = "",
                                       .name = "",
                                       .thread = "",
                                       .operation = operation,
                                       .python = python,
                                       .native = ""};
    uint8_t buf[TTM_ORIGIN_ROW_SIZE_MAX];

    hear(TTM_FRAME_ORIGIN, buf, ttm_origin_row_encode(&row, buf));
}

/* The failure of that number. */
static void hear_failure(uint64_t number, uint64_t time_ns)
{
    const struct ttm_failure_row row = {.process_index = PID,
                                        .time_ns = time_ns,
                                        .wanted_bytes = 4096 * number,
                                        .bank_wanted_bytes = 1024 * number,
                                        .device_id = 2,
                                        .region = TTM_REGION_L1,
                                        .origin = 3,
                                        .owners = {{2, 5, 7000, 8192}},
                                        .owner_count = 1};
    uint8_t buf[TTM_ROW_SIZE_MAX];

    ttm_heard_failures_row(&heard, ours, number);
    hear(TTM_FRAME_FAILURE, buf, ttm_failure_row_encode(&row, buf));
}

/* ---- and what is made of it ---- */

static void it_says_what_the_server_said(void **state)
{
    (void)state;
    ttm_heard_failures_row(&heard, ours, 1);
    hear_device();
    hear_origin(3, "model.py:9:step\n", "ttnn.matmul");
    hear_origin(2, "model.py:5:load\nmain.py:1:a\n", "ttnn.zeros");
    hear_origin(4, "model.py:5:load\nmain.py:2:b\n", "ttnn.zeros");
    hear_failure(1, TTM_NS_PER_S);
    const char *text = log_said(file);
    assert_has(text, "out of memory in L1 of device 2 at model.py:9 step (ttnn.matmul)");
    assert_has(text, "4.0 KiB wanted, 1.0 KiB in each of 4 banks\n");
    assert_has(text, "  8.0 KiB       5 buffers  model.py:5 ← a (ttnn.zeros)\n");
    assert_null(strstr(text, "in process"));
}

static void of_several_processes_it_says_which(void **state)
{
    struct ttm_heard_process *other = ttm_heard_process_new(&heard, 78);
    (void)state;

    hear_failure(1, TTM_NS_PER_S);
    ttm_heard_process_end(&heard, other);
    assert_has(log_said(file), "out of memory in L1 of device 2 in process 77");
}

static void what_others_fail_with_is_not_said(void **state)
{
    uint8_t nonsense[4] = {0};
    (void)state;

    hear(TTM_FRAME_FAILURE, nonsense, sizeof(nonsense)); /* nobody was named */
    ttm_heard_failures_row(&heard, NULL, 5);
    hear_device();
    hear_origin(3, "", "");
    hear(TTM_FRAME_FAILURE, nonsense, sizeof(nonsense));
    assert_string_equal(log_said(file), "");
}

static void those_that_did_not_come_are_counted(void **state)
{
    (void)state;
    hear_failure(1, TTM_NS_PER_S);
    hear_failure(2, TTM_NS_PER_S + 1);
    hear_failure(1000, TTM_NS_PER_S + 2);
    hear_failure(2000, 2 * TTM_NS_PER_S);
    const char *text = log_said(file);
    assert_int_equal(count_of(text, "out of memory"), 2);
    assert_has(text, "tt-mem: 1,998 more failures since\n");
}

static void the_last_comes_again_at_the_end_and_is_said_once(void **state)
{
    (void)state;
    hear_failure(1, TTM_NS_PER_S);
    hear_failure(1, TTM_NS_PER_S);
    ttm_heard_process_end(&heard, ours);
    ours = NULL;
    assert_int_equal(count_of(log_said(file), "out of memory"), 1);
}

static void the_last_is_said_at_the_end_though_others_were_left_out(void **state)
{
    (void)state;
    hear_failure(1, TTM_NS_PER_S);
    hear_failure(30, TTM_NS_PER_S + 9);
    ttm_heard_process_end(&heard, ours);
    ours = NULL;
    const char *last =
        strstr(log_said(file), "tt-mem: 29 more failures since, the last of them:\n");
    assert_non_null(last);
    assert_has(last, "120 KiB wanted");
}

static void after_so_many_the_summary_is_pointed_to(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= 2 * TTM_FAILURE_REPORTS_MAX; i++)
        hear_failure(i, i * TTM_NS_PER_S);
    const char *text = log_said(file);
    assert_int_equal(count_of(text, "out of memory"), TTM_FAILURE_REPORTS_MAX);
    assert_has(text, "tt-mem: … more failures, which the summary counts\n");
}

static void nonsense_is_refused(void **state)
{
    static const uint16_t types[] = {TTM_FRAME_DEVICE, TTM_FRAME_ORIGIN, TTM_FRAME_FAILURE};
    const uint8_t nonsense[4] = {0};
    (void)state;

    ttm_heard_failures_row(&heard, ours, 1);
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        const struct ttm_frame frame = {
            .type = types[i], .payload = nonsense, .length = sizeof(nonsense)};
        assert_int_equal(ttm_heard_failures_take(&heard, &frame), -EBADMSG);
    }
}

static void when_memory_is_short_less_is_said(void **state)
{
    bool has_failed = true;
    unsigned failed = 0;
    (void)state;

    for (unsigned grants = 0; has_failed; grants++) {
        struct ttm_heard_failures other;
        faults_begin(grants);
        ttm_heard_failures_init(&other, &plain);
        struct ttm_heard_process *process = ttm_heard_process_new(&other, PID);
        ttm_heard_process_end(&other, process);
        ttm_heard_failures_done(&other);
        has_failed = faults_end();
        failed += has_failed;
    }
    assert_true(failed > 0);
    has_failed = true;
    for (unsigned grants = 0; has_failed; grants++) {
        faults_begin(grants);
        ttm_heard_failures_row(&heard, ours, grants + 1);
        hear_device();
        hear_origin(grants + 1, "model.py:9:step\n", "ttnn.matmul");
        hear_failure(grants + 1, TTM_NS_PER_S * (grants + 1));
        has_failed = faults_end();
    }
    const char *text = log_said(file);
    assert_int_equal(count_of(text, "tt-mem: out of memory"), count_of(text, " wanted"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_says_what_the_server_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(of_several_processes_it_says_which, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_others_fail_with_is_not_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(those_that_did_not_come_are_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_last_comes_again_at_the_end_and_is_said_once, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_last_is_said_at_the_end_though_others_were_left_out,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(after_so_many_the_summary_is_pointed_to, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nonsense_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(when_memory_is_short_less_is_said, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
