/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "logs/server_line.h"
#include "wire/region.h"

static struct ttm_server_line line;

static int decode(const char *text)
{
    struct bytes copy = bytes_of(text, strlen(text));
    const int r = ttm_server_line_decode((const char *)copy.data, copy.length, &line);

    bytes_done(&copy);
    return r;
}

static void allocations_say_all_that_is_known(void **state)
{
    (void)state;

    assert_int_equal(
        decode("✓ [PID 42] Allocated 4096 bytes of L1 on device 7 (buffer_id=0x18b20)"), 1);
    assert_int_equal(line.event, TTM_LINE_ALLOCATED);
    assert_int_equal(line.pid, 42);
    assert_int_equal(line.device, 7);
    assert_int_equal(line.region, TTM_REGION_L1);
    assert_int_equal(line.id, 0x18b20);
    assert_int_equal(line.bytes, 4096);
    assert_int_equal(
        decode("✓ [PID 42] Allocated 1 bytes of DRAM on device 0 (buffer_id=101152, ref_count=12)"),
        1);
    assert_int_equal(line.id, 101152);
    assert_int_equal(line.region, TTM_REGION_DRAM);
}

static void each_region_has_its_name(void **state)
{
    static const struct {
        const char *name;
        int region;
    } cases[] = {{"DRAM", TTM_REGION_DRAM},
                 {"L1", TTM_REGION_L1},
                 {"SYSTEM_MEMORY", TTM_REGION_SYSTEM_MEMORY},
                 {"L1_SMALL", TTM_REGION_L1_SMALL},
                 {"TRACE", TTM_REGION_TRACE}};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[128];
        (void)snprintf(text, sizeof(text),
                       "✓ [PID 1] Allocated 8 bytes of %s on device 0 (buffer_id=1)",
                       cases[i].name);
        assert_int_equal(decode(text), 1);
        assert_int_equal(line.region, cases[i].region);
    }
    assert_int_equal(decode("✓ [PID 1] Allocated 8 bytes of L9 on device 0 (buffer_id=1)"),
                     -EBADMSG);
}

static void frees_say_what_is_left(void **state)
{
    (void)state;

    assert_int_equal(decode("✗ [PID 42] Freed buffer 0x18b20 on device 3 (4096 bytes, FINAL)"), 1);
    assert_int_equal(line.event, TTM_LINE_FREED);
    assert_int_equal(line.left, TTM_LEFT_NONE);
    assert_int_equal(line.region, -1);
    assert_int_equal(
        decode("✗ [PID 42] Freed buffer 101152 on device 3 (4096 bytes, ref_count=2 remaining)"),
        1);
    assert_int_equal(line.id, 101152);
    assert_int_equal(line.left, TTM_LEFT_SOME);
    assert_int_equal(
        decode("✗ [PID 42] Freed buffer 1 on device 3 (4096 bytes, ref_count=0 remaining)"), 1);
    assert_int_equal(line.left, TTM_LEFT_NONE);
    assert_int_equal(decode("✗ [PID 42] Freed buffer 1 on device 3 (4096 bytes)"), 1);
    assert_int_equal(line.left, TTM_LEFT_UNSAID);
}

static void what_tt_mem_tail_adds_is_read_too(void **state)
{
    (void)state;

    assert_int_equal(
        decode("✗ [PID 5] Freed buffer 0x7 on device 0 (64 bytes, REPLACED) of L1 Total: 0 MB"), 1);
    assert_int_equal(line.left, TTM_LEFT_REPLACED);
    assert_int_equal(line.region, TTM_REGION_L1);
    assert_int_equal(
        decode("✗ [PID 5] Freed buffer 0x7 on device 0 (64 bytes, DEVICE CLOSED) of DRAM Total: 0 "
               "MB"),
        1);
    assert_int_equal(line.left, TTM_LEFT_CLOSED);
    assert_int_equal(decode("✓ [CB_ALLOC] Device 1: +0.25 MB (Total: 0.5 MB) [PID 9] 262145 bytes, "
                            "id=0x4d"),
                     1);
    assert_int_equal(line.pid, 9);
    assert_int_equal(line.bytes, 262145);
    assert_int_equal(line.id, 0x4d);
    assert_int_equal(decode("✗ [PID 9] Ended, 3 allocations went with it (0.5 MB)"), 1);
    assert_int_equal(line.event, TTM_LINE_PROCESS_END);
}

static void circular_buffers_and_kernels_have_megabytes(void **state)
{
    (void)state;

    assert_int_equal(decode("✓ [CB_ALLOC] Device 3: +0.25 MB (Total: 0.25 MB)"), 1);
    assert_int_equal(line.region, TTM_REGION_CB);
    assert_int_equal(line.bytes, 262144);
    assert_int_equal(line.pid, 0);
    assert_int_equal(decode("✗ [CB_FREE] Device 3: -1.5e+00 MB (Total: 0 MB)"), 1);
    assert_int_equal(line.event, TTM_LINE_FREED);
    assert_int_equal(line.bytes, 1572864);
    assert_int_equal(decode("✓ [KERNEL_LOAD] Fabric kernel on Device 0: +0.05 MB (Total: 2 MB)"),
                     1);
    assert_int_equal(line.kind, TTM_KERNEL_FABRIC);
    assert_int_equal(
        decode("✗ [KERNEL_UNLOAD] Dispatch kernel on Device 0: -0.05 MB (Total: 2 MB)"), 1);
    assert_int_equal(line.kind, TTM_KERNEL_DISPATCH);
    assert_int_equal(decode("✓ [KERNEL_LOAD] Device 0: +2.1 MB (Total: 2.1 MB)"), 1);
    assert_int_equal(line.kind, TTM_KERNEL_APPLICATION);
    assert_int_equal(line.bytes, 2202010);
    assert_int_equal(decode("✓ [CB_ALLOC] Device 3: +9999999 MB (Total: 0.25 MB)"), -EBADMSG);
}

static void deaths_and_unknown_frees_are_events(void **state)
{
    (void)state;

    assert_int_equal(decode("   PID 42 is dead, removing its buffers..."), 1);
    assert_int_equal(line.event, TTM_LINE_PROCESS_END);
    assert_int_equal(line.pid, 42);
    assert_int_equal(decode("⚠️  PID 43 is dead, removing its buffers..."), 1);
    assert_int_equal(line.pid, 43);
    assert_int_equal(
        decode("⚠ [PID 42] Deallocation for unknown buffer 0x55 on device 0 (allocated "
               "before tracking started)"),
        1);
    assert_int_equal(line.event, TTM_LINE_UNKNOWN_FREE);
    assert_int_equal(line.id, 0x55);
}

static void lines_that_were_lost_are_counted(void **state)
{
    (void)state;

    assert_int_equal(decode("⚠ 9463 lines lost: this reader is too slow"), 1);
    assert_int_equal(line.event, TTM_LINE_LOST);
    assert_int_equal(line.lost, 9463);
    assert_int_equal(decode("⚠ 1 line lost: this reader is too slow"), 1);
    assert_int_equal(line.lost, 1);
    assert_int_equal(decode("⚠ 99999999999999999999 lines lo"), -EBADMSG);
}

static void what_is_no_event_is_passed_over(void **state)
{
    static const char *const lines[] = {"",
                                        "   ",
                                        "📊 Current Statistics:",
                                        "  Device 0:",
                                        "    Buffers:",
                                        "    DRAM: 4096 bytes (4 KB)",
                                        "  Active allocations: 12",
                                        "╔══════════════════╗",
                                        "║ REMAINING ALLOCATED BUFFERS ║",
                                        "Total tracked allocations: 87",
                                        "  DRAM: 12 buffers, 3.5 MB total",
                                        "    - Buffer 0x18b20: 32 KB (PID 42, ref_count=2)",
                                        "   ✓ Removed 3 buffers (0.1 MB) from PID 42",
                                        "✓ No buffers remaining - perfect cleanup!",
                                        "Allocation Server listening",
                                        "========"};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        if (decode(lines[i]) != 0)
            fail_msg("'%s': %d", lines[i], decode(lines[i]));
    }
}

static void broken_lines_are_told_from_others(void **state)
{
    static const char *const lines[] = {
        "✓ [PID 42] Alloca",
        "✓ [PID 42",
        "✓ [PID 0] Allocated 8 bytes of L1 on device 0 (buffer_id=1)",
        "✓ [PID 42] Allocated 0 bytes of L1 on device 0 (buffer_id=1)",
        "✓ [PID 42] Allocated 8 bytes of L1 on device 1024 (buffer_id=1)",
        "✓ [PID 42] Allocated 99999999999999999999 bytes of L1 on device 0 (buffer_id=1)",
        "✓ [PID 42] Allocated 8 bytes of L1 on device 0 (buffer_id=0x11111111111111111)",
        "✓ [PID 42] Allocated 8 bytes of L1 on device 0 (buffer_id=0x)",
        "✗ [PID 42] Freed buffer 0x18b20 on device 0 (4096 bytes, FIN",
        "✓ [CB_ALLOC] Device 0: -0.25 MB (Total: 0.25 MB)",
        "#@!%^ rubbish",
        "\xff\xfe[PID ",
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        if (decode(lines[i]) != -EBADMSG)
            fail_msg("'%s': %d", lines[i], decode(lines[i]));
    }
}

static void every_cut_of_an_event_is_broken_or_none(void **state)
{
    static const char whole[] =
        "✓ [PID 42] Allocated 4096 bytes of L1_SMALL on device 7 (buffer_id=0x18b20, ref_count=3)";
    (void)state;

    for (size_t n = 0; n + 1 < sizeof(whole); n++) {
        char part[sizeof(whole)];
        memcpy(part, whole, n);
        part[n] = '\0';
        assert_int_not_equal(decode(part), 1);
    }
    assert_int_equal(decode(whole), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_say_all_that_is_known),
        cmocka_unit_test(each_region_has_its_name),
        cmocka_unit_test(frees_say_what_is_left),
        cmocka_unit_test(what_tt_mem_tail_adds_is_read_too),
        cmocka_unit_test(circular_buffers_and_kernels_have_megabytes),
        cmocka_unit_test(deaths_and_unknown_frees_are_events),
        cmocka_unit_test(lines_that_were_lost_are_counted),
        cmocka_unit_test(what_is_no_event_is_passed_over),
        cmocka_unit_test(broken_lines_are_told_from_others),
        cmocka_unit_test(every_cut_of_an_event_is_broken_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
