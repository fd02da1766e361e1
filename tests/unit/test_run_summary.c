/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <signal.h>

#include "analysis/report.h"
#include "base/clock.h"
#include "cli/run_summary.h"
#include "own_place.h"

static const struct ttm_terminal plain = {.has_utf8 = true, .columns = 80, .rows = 24};

static struct ttm_departed departed;
static struct ttm_run_summary summary;
static struct ttm_text text;

static int set_up(void **state)
{
    (void)state;
    ttm_departed_init(&departed, 1);
    ttm_text_init(&text);
    summary = (struct ttm_run_summary){
        .command = "/usr/bin/python decode.py",
        .end = {.duration_ns = 12400 * TTM_NS_PER_MS},
        .departed = &departed,
        .fd_limit = 1024,
    };
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_departed_done(&departed);
    ttm_text_done(&text);
    return 0;
}

static const char *text_on(const struct ttm_terminal *terminal)
{
    ttm_text_clear(&text);
    ttm_run_summary_text(&summary, terminal, &text);
    assert_false(ttm_text_failed(&text));
    return ttm_text_string(&text);
}

static size_t count_lines(const char *string)
{
    size_t lines = 0;

    for (; *string; string++)
        lines += *string == '\n';
    return lines;
}

static void add_process(int32_t pid, uint64_t births, uint64_t remaining, uint64_t bytes)
{
    const struct ttm_departed_process process = {
        .pid = pid,
        .sums = {.births = births,
                 .ends = births - remaining,
                 .remaining = remaining,
                 .remaining_footprint_bytes = bytes},
        .command = "worker",
    };

    ttm_departed_put_process(&departed, &process);
}

static struct ttm_departed_device *add_device(uint16_t id, uint64_t now, uint64_t peak)
{
    struct ttm_departed_device *device = ttm_departed_device_of(&departed, id);

    assert_non_null(device);
    device->arch = TTM_ARCH_WORMHOLE_B0;
    device->totals.region[TTM_REGION_DRAM] =
        (struct ttm_totals){.births = 1, .footprint_bytes = now, .peak_footprint_bytes = peak};
    device->capacity_bytes[TTM_REGION_DRAM] = 12ull << 30;
    (void)snprintf(device->board, sizeof(device->board), "n150");
    return device;
}

/* 'count' of 'bytes' each on that many devices from 0 on. */
static void add_remains(uint64_t count, uint64_t bytes, uint16_t devices)
{
    struct ttm_remains remains = {
        .bytes = bytes,
        .footprint_bytes = bytes,
        .count = count,
        .device_count = devices,
        .last_device = (uint16_t)(devices - 1),
        .device_set = devices,
    };

    for (uint16_t i = 0; i < TTM_REMAINS_DEVICES; i++)
        remains.devices[i] = i;
    ttm_remains_add(&departed.remains, &remains);
}

static void a_program_that_was_not_heard_of_is_one_line(void **state)
{
    (void)state;
    assert_string_equal(
        text_on(&plain),
        "tt-mem: python decode.py exited 0 after 12.4 s; no TT-Metal library was loaded, so "
        "nothing was tracked\n");
    summary.program = TTM_PROGRAM_STATIC;
    assert_has(text_on(&plain), "linked statically\n");
    summary.program = TTM_PROGRAM_PRIVILEGED;
    assert_has(text_on(&plain), "runs as another user\n");
    summary.program = TTM_PROGRAM_FOREIGN;
    assert_has(text_on(&plain), "built for another system\n");
    summary.is_untracked = true;
    assert_has(text_on(&plain), "it was not tracked\n");
    assert_int_equal(count_lines(text_on(&plain)), 1);
}

static void a_program_that_may_open_few_files_is_said_to_be(void **state)
{
    (void)state;
    summary.fd_limit = 4;
    assert_has(text_on(&plain),
               " exited 0 after 12.4 s; not tracked: it may have 4 files open, tracking needs 32 "
               "(ulimit -n)\n");
}

static void what_became_of_a_tt_metal_without_a_device_is_said(void **state)
{
    (void)state;
    ttm_departed_put_runtime(&departed, "", "", false); /* a process without one */
    assert_has(text_on(&plain), "; no TT-Metal library was loaded, so nothing was tracked\n");
    ttm_departed_put_runtime(&departed, "ttnn 0.81.1", "", true);
    assert_has(text_on(&plain),
               "; ttnn 0.81.1 was loaded, but tracking was off, so nothing was tracked\n");
    ttm_departed_put_runtime(&departed, "ttnn 0.81.1", "", false);
    assert_has(text_on(&plain),
               "; ttnn 0.81.1 was loaded, but no device was opened, so nothing was tracked\n");
    ttm_departed_put_runtime(&departed, "ttnn 0.81.1", "opening a device failed: none\033", false);
    ttm_departed_put_runtime(&departed, "ttnn 0.81.1", "", false); /* says less */
    assert_has(text_on(&plain), "; ttnn 0.81.1: opening a device failed: none\\x1b, so nothing was "
                                "tracked\n");
    assert_int_equal(count_lines(text_on(&plain)), 1);
}

static void one_that_was_killed_may_have_loaded_it(void **state)
{
    (void)state;
    summary.end.signal = SIGKILL;
    assert_has(text_on(&plain), " was killed by SIGKILL after 12.4 s; no TT-Metal device was "
                                "opened, so nothing was tracked\n");
}

static void a_program_that_could_not_be_tracked_is_one_line_too(void **state)
{
    (void)state;
    add_process(1, 0, 0, 0);
    (void)snprintf(departed.processes[0].trouble, sizeof(departed.processes[0].trouble),
                   "ttnn 0.78.2 is not tracked: too\033old");
    assert_string_equal(text_on(&plain), "tt-mem: python decode.py exited 0 after 12.4 s; "
                                         "ttnn 0.78.2 is not tracked: too\\x1bold\n");
    summary.leak_verdict = "leaks were not looked for";
    assert_has(text_on(&plain), "\n  leaks were not looked for\n");
    summary.leak_verdict = NULL;
    add_device(0, 0, 4096); /* in part it was */
    assert_has(text_on(&plain), "\n  ttnn 0.78.2 is not tracked: too\\x1bold\n");
    assert_has(text_on(&plain), "device 0");
}

static void a_long_command_is_cut_and_a_terminal_gets_two_lines(void **state)
{
    struct ttm_terminal terminal = plain;
    (void)state;

    summary.command = "python -m pytest tests/a/long/path/to/a/test/file.py -k one_of_them -x -q";
    const char *string = text_on(&plain);
    assert_int_equal(count_lines(string), 1);
    assert_has(string, "tt-mem: python -m pytest tests/a/long/");
    assert_has(string, "… exited 0 after 12.4 s; no TT-Metal");
    terminal.is_terminal = true;
    string = text_on(&terminal);
    assert_has(string, " exited 0 after 12.4 s;\n  no TT-Metal library was loaded, so nothing was "
                       "tracked\n");
    assert_true(ttm_terminal_width(string) <= 2 * (80 + 1));
}

static void how_it_ended_is_said(void **state)
{
    (void)state;
    summary.end.exit_code = 3;
    assert_has(text_on(&plain), " exited 3 after ");
    summary.end = (struct ttm_child_end){.signal = SIGSEGV, .has_dumped_core = true};
    assert_has(text_on(&plain), "killed by SIGSEGV (core dumped)");
    summary.end = (struct ttm_child_end){.signal = SIGRTMIN + 1};
    assert_has(text_on(&plain), "killed by signal ");
}

static void nothing_remains_is_said_in_one_line(void **state)
{
    (void)state;
    add_process(1, 24687, 0, 0);
    add_device(0, 0, 21 << 20);
    const char *string = text_on(&plain);
    assert_has(string, "tracked on 1 device · 24,687 allocations, 24,687 frees, nothing lost\n");
    assert_has(string, "  nothing remains: all that was allocated was freed\n");
    departed.sums.replaced = 1;
    assert_has(text_on(&plain),
               "  nothing remains: all that was allocated was freed or replaced\n");
    assert_lacks(string, "count");
    assert_lacks(string, "tt-mem dump");
}

static void remains_are_listed_with_the_largest_first(void **state)
{
    (void)state;
    add_process(1, 300, 183, 100ull << 20);
    add_device(0, 1 << 20, 2 << 20);
    add_remains(3, 1024, 1);
    add_remains(100, 132 << 10, 1);
    add_remains(80, 128 << 10, 8);
    const char *string = text_on(&plain);
    const char *first = strstr(string, "80    128 KiB   10.0 MiB  DRAM           0-7 each\n");
    const char *second = strstr(string, "100    132 KiB   12.9 MiB  DRAM           0\n");
    const char *third = strstr(string, "3    1.0 KiB    3.0 KiB  DRAM           0\n");
    assert_true(first && second && third && first < second && second < third);
    assert_has(string, "183 allocations remain, 100 MiB\n");
    assert_has(string, "tt-mem dump");
}

static void what_reads_the_same_is_one_row(void **state)
{
    (void)state;
    add_process(1, 30, 30, 30 << 20);
    for (uint64_t i = 0; i < 3; i++)
        add_remains(10, (1 << 20) + i, 1);
    assert_has(text_on(&plain), "\n           30    1.0 MiB   30.0 MiB  DRAM           0\n");
}

static void add_of(const char *python, const char *native, const char *name, uint64_t count,
                   uint64_t bytes)
{
    const struct ttm_origin origin = {
        .text = {[TTM_ORIGIN_CONTEXT] = "",
                 [TTM_ORIGIN_NAME] = name,
                 [TTM_ORIGIN_THREAD] = "",
                 [TTM_ORIGIN_OPERATION] = "ttnn.zeros",
                 [TTM_ORIGIN_PYTHON] = python,
                 [TTM_ORIGIN_NATIVE] = native},
    };
    const struct ttm_remains remains = {
        .bytes = bytes,
        .footprint_bytes = bytes,
        .count = count,
        .origin = ttm_origin_book_add(&departed.origins, &origin),
        .device_count = 1,
    };

    assert_true(remains.origin > 0);
    ttm_remains_add(&departed.remains, &remains);
}

static void add_from(const char *python, const char *name, uint64_t count, uint64_t bytes)
{
    add_of(python, "", name, count, bytes);
}

static void native_places_have_the_names_of_their_functions(void **state)
{
    char place[4096];
    (void)state;

    own_place(what_reads_the_same_is_one_row, place, sizeof(place));
    add_process(1, 200, 185, 24 << 20);
    add_device(0, 24 << 20, 24 << 20);
    add_of("", place, "", 4, 144 << 10);
    assert_has(text_on(&plain), " what_reads_the_same_is_one_row (ttnn.zeros)\n");
    assert_null(strstr(ttm_text_string(&text), "+0x"));
}

static void where_they_come_from_is_said_with_the_largest_first(void **state)
{
    (void)state;
    add_process(1, 200, 185, 24 << 20);
    add_device(0, 24 << 20, 24 << 20);
    add_from("decode.py:55:main\n", "weights", 4, 144 << 10);
    add_from("decode.py:28:cache_kv\ndecode.py:61:main\n", "", 100, 132 << 10);
    add_from("decode.py:28:cache_kv\n", "", 1, 16); /* another size from there: one row */
    add_remains(80, 128 << 10, 1);                  /* from nowhere */
    const char *string = text_on(&plain);
    assert_has(string, "    count      each     takes  region  device  from\n"
                       "      101   various  12.9 MiB  DRAM    0       decode.py:28 cache_kv "
                       "(ttnn.zeros)\n"
                       "       80   128 KiB  10.0 MiB  DRAM    0\n"
                       "        4   144 KiB   576 KiB  DRAM    0       decode.py:55 main "
                       "(ttnn.zeros) \"weights\"\n");
}

static void what_was_held_when_a_device_was_closed_remains(void **state)
{
    (void)state;
    add_process(1, 20, 10, 4096);
    departed.sums.closed = 4;
    add_device(0, 1024, 8192)->totals.region[TTM_REGION_DRAM].closed_footprint_bytes = 3072;
    assert_has(text_on(&plain),
               "  10 allocations remain, 4.0 KiB · 4 until the device was closed\n");
    assert_has(text_on(&plain), "   4.0 KiB    8.0 KiB");
    assert_lacks(text_on(&plain), "than the peak");
    departed.devices[0].totals.region[TTM_REGION_DRAM].peak_footprint_bytes = 3072;
    assert_has(text_on(&plain), "   4.0 KiB    3.0 KiB");
    assert_has(text_on(&plain), "  more remains than the peak: it was left at several times, ");
    departed.sums.closed = 10;
    assert_has(text_on(&plain), " · all held until the device was closed\n");
}

/* Of the worst process its suspects are listed; others are not taken for clean. */
static void suspects_of_other_processes_are_told(void **state)
{
    const uint16_t device = 0;
    const struct ttm_report_stay stay = {.held = {.count = 3, .footprint_bytes = 4096}};
    const struct ttm_report_session session = {.last = 3};
    struct ttm_report_origin suspect = {
        .words = {.operation = "ttnn.add", .name = "", .context = "", .thread = ""},
        .devices = &device,
        .device_count = 1,
        .allocs = 3,
        .remaining = {.count = 3, .bytes = 4096, .footprint_bytes = 4096},
        .judged = {.count = 3, .bytes = 4096, .footprint_bytes = 4096},
        .stays = &stay,
        .stay_count = 1,
        .verdict = {.class = TTM_CLASS_GROWING, .is_suspect = true},
    };
    struct ttm_report_device devices[] = {{.id = device, .board = ""}};
    struct ttm_report_process processes[] = {
        {.pid = 1, .allocs = 3, .origins = &suspect, .origin_count = 1},
        {.pid = 2, .allocs = 3, .origins = &suspect, .origin_count = 1},
        {.pid = 3},
    };
    struct ttm_report report = {.processes = processes, .process_count = 3};
    (void)state;

    for (unsigned i = 0; i < 2; i++) {
        processes[i].devices = devices;
        processes[i].device_count = 1;
        processes[i].sessions = &session;
        processes[i].session_count = 1;
    }
    summary.report = &report;
    add_process(1, 20, 10, 4096);
    assert_has(text_on(&plain), "  2 suspects in 2 of 3 processes: 6 buffers");
    report.process_count = 1;
    assert_has(text_on(&plain), "  1 suspect: 3 buffers that keep growing, 4.0 KiB\n");
}

/* What is said in one line is what the evidence and the limit on leaks speak of. */
static void what_sessions_left_is_told_as_its_evidence_is(void **state)
{
    const uint16_t device = 0;
    const struct ttm_held each = {.count = 3, .bytes = 4096, .footprint_bytes = 4096};
    const struct ttm_report_stay stays[] = {{.session = 0, .held = each},
                                            {.session = 2, .held = each}};
    const struct ttm_report_session sessions[] = {
        {.first = 0, .last = 3}, {.first = 3, .last = 4}, {.first = 4, .last = 7}};
    struct ttm_report_device devices[] = {{.id = device, .board = ""}};
    struct ttm_report_origin suspect = {
        .words = {.operation = "ttnn.add", .name = "", .context = "", .thread = ""},
        .devices = &device,
        .device_count = 1,
        .allocs = 7,
        .remaining = {.count = 7, .bytes = 9216, .footprint_bytes = 9216},
        .judged = each,
        .stays = stays,
        .stay_count = 1,
        .verdict = {.class = TTM_CLASS_GROWING, .is_suspect = true},
    };
    struct ttm_report_process process = {.pid = 1,
                                         .allocs = 7,
                                         .origins = &suspect,
                                         .origin_count = 1,
                                         .devices = devices,
                                         .device_count = 1,
                                         .sessions = sessions,
                                         .session_count = 3};
    const struct ttm_report report = {.processes = &process, .process_count = 1};
    (void)state;

    summary.report = &report;
    add_process(1, 7, 7, 9216);
    assert_has(text_on(&plain), "  1 suspect: 3 buffers that keep growing, 4.0 KiB\n");
    suspect.stay_count = 2;
    suspect.judged = (struct ttm_held){.count = 6, .bytes = 8192, .footprint_bytes = 8192};
    assert_has(text_on(&plain),
               "  1 suspect: 6 buffers that keep growing, 8.0 KiB, 4.0 KiB at a time\n");
}

static void failures_are_counted(void **state)
{
    const struct ttm_departed_process process = {.pid = 1, .sums = {.births = 1, .failures = 1234}};
    (void)state;

    ttm_departed_put_process(&departed, &process);
    assert_has(text_on(&plain), "  1,234 allocations failed\n");
}

static void kinds_that_do_not_fit_are_summed_up(void **state)
{
    (void)state;
    add_process(1, 20, 20, 1 << 20);
    for (uint64_t i = 0; i < 20; i++)
        add_remains(1, (i + 1) << 10, 1);
    departed.remains.others = 2;
    departed.remains.others_footprint_bytes = 1024;
    const char *string = text_on(&plain);
    /* Four rows; 16 kinds of 136 KiB in all, and 2 that the data had left out already. */
    assert_has(string, "           18               137 KiB  of other kinds");
    assert_has(string, "20.0 KiB");
    assert_lacks(string, "16.0 KiB");
}

static void the_bar_is_the_peak_of_the_capacity(void **state)
{
    (void)state;
    add_process(1, 1, 0, 0);
    add_device(0, 0, 6ull << 30);
    assert_has(text_on(&plain), "  device 0  n150 wormhole_b0     remains       peak   capacity\n");
    assert_has(text_on(&plain), "0   6.00 GiB  12.00 GiB  ███▌     50.0 %\n");
    departed.devices[0].capacity_bytes[TTM_REGION_DRAM] = 0;
    assert_has(text_on(&plain), "0   6.00 GiB\n");
    assert_lacks(text_on(&plain), "capacity");
}

static void devices_that_look_the_same_are_one_block(void **state)
{
    (void)state;
    add_process(1, 1, 0, 0);
    for (uint16_t id = 0; id < 32; id++)
        add_device(id, 0, 1 << 20);
    assert_has(text_on(&plain), "  devices 0-31 each n150 ");
    add_device(5, 0, 2 << 20);
    assert_has(text_on(&plain), "  devices 0,1,2,3,4,6… each n…  ");
    assert_has(text_on(&plain), "  device 5  n150 wormhole_b0\n");
}

static void devices_that_do_not_fit_are_those_with_the_lowest_peaks(void **state)
{
    (void)state;
    add_process(1, 1, 0, 0);
    for (uint16_t id = 0; id < 32; id++)
        add_device(id, 0, (uint64_t)(id + 1) << 20);
    const char *string = text_on(&plain);
    assert_has(string, "device 31  n150");
    assert_lacks(string, "device 0  n150");
    assert_has(string, "more devices with lower peaks\n");
    assert_true(count_lines(string) < 24);
    const struct ttm_terminal low = {.has_utf8 = true, .columns = 80, .rows = 3};
    assert_has(text_on(&low), "device 31  n150"); /* one is shown in any case */
    assert_has(text_on(&low), "… 31 more devices");
}

static void several_processes_get_a_row_each(void **state)
{
    (void)state;
    add_process(11, 5, 1, 1 << 10);
    assert_lacks(text_on(&plain), "processes");
    add_process(12, 1000, 7, 1 << 20);
    const char *string = text_on(&plain);
    assert_has(string, "  2 processes ");
    const char *first = strstr(string, "       12  worker");
    const char *second = strstr(string, "       11  worker");
    assert_true(first && second && first < second);
    assert_has(string, " 1,000       993         7    1.0 MiB\n");
    for (int32_t pid = 20; pid < 40; pid++)
        add_process(pid, 1, 0, 0);
    assert_has(text_on(&plain), "  22 processes ");
    assert_has(text_on(&plain), "… 20 more\n");
}

static void those_that_still_run_are_named(void **state)
{
    const struct ttm_departed_process daemon = {
        .pid = 4321, .is_running = true, .command = "/opt/bin/daemon\033[2J --flag"};
    (void)state;

    for (int i = 0; i < 6; i++)
        ttm_departed_put_process(&departed, &daemon);
    const char *string = text_on(&plain);
    assert_has(string, "still running, and tracked no longer: 4321 daemon\\x1b[2J --fl");
    assert_has(string, ", 2 more\n");
}

static void losses_are_not_hidden(void **state)
{
    const struct ttm_departed_process process = {
        .pid = 1, .sums = {.births = 10, .remaining = 4, .lost_events = 1234, .replaced = 1}};
    (void)state;

    ttm_departed_put_process(&departed, &process);
    assert_has(text_on(&plain), "1,234 events lost\n");
    assert_has(text_on(&plain), "what remains is exact");
    assert_has(text_on(&plain), "1 replaced without a free");
    assert_has(text_on(&plain), "  4 allocations remain");
    departed.inexact_count = 1;
    assert_has(text_on(&plain), "nothing below is exact");
    assert_has(text_on(&plain), "  as far as was heard, 4 allocations remain");
}

static void what_was_missed_is_not_hidden(void **state)
{
    (void)state;
    add_process(1, 10, 0, 0);
    assert_has(text_on(&plain), "nothing remains: all that was allocated was freed\n");
    departed.gap_count = 1;
    assert_has(text_on(&plain), "10 allocations, 10 frees, not all was heard\n");
    assert_has(text_on(&plain), "its history has a gap: what remains is exact, ");
    assert_has(text_on(&plain), "  nothing remains\n");
    departed.sums.notes_left_out = 9;
    assert_has(text_on(&plain), "9 names and contexts without room\n");
    departed.sums.untracked = 2000;
    assert_has(text_on(&plain), "nothing below is exact · 2,000 not tracked for want of room");
    assert_has(text_on(&plain), "  nothing remains, as far as was heard\n");
    departed.sums.refused = 1;
    assert_has(text_on(&plain), "1 refused, as it makes no sense");
    departed.off_count = 1;
    assert_has(text_on(&plain), "tracking was off in the end: nothing below is exact");
}

static void a_server_elsewhere_knows_less(void **state)
{
    (void)state;
    summary.server = "/run/tt-mem.sock";
    add_process(1, 5, 5, 4096);
    add_device(0, 0, 4096);
    const char *string = text_on(&plain);
    assert_has(string, "tracked on 1 device, nothing lost, by the server at /run/tt-mem.sock\n");
    assert_has(string,
               "5 allocations remained, 4.0 KiB requested; the table is what was last seen");
    assert_lacks(string, "frees");
    add_process(2, 7, 7, 4096);
    string = text_on(&plain);
    assert_has(string, "2 processes");
    assert_lacks(string, "frees"); /* in their list neither */
    departed.processes[1].is_running = true;
    departed.running_count = 1;
    assert_has(text_on(&plain), "still running, and tracked by the server: 2");
    departed.off_count = departed.gap_count = 1;
    string = text_on(&plain);
    assert_has(string, "tracked on 1 device, not all was heard, by the server at ");
    assert_has(string, "tracking was off in the end: nothing below is exact\n");
    assert_has(string, "  as far as was heard, 12 allocations remained");
    summary.is_server_gone = true;
    assert_has(text_on(&plain), "tracked on 1 device by the server at ");
    assert_has(text_on(&plain), "the server has gone: what remained at the end is not known\n");
    ttm_departed_done(&departed);
    assert_has(text_on(&plain), "the server has gone, nothing is known of it\n");
}

static void colours_are_only_where_they_are_wanted(void **state)
{
    struct ttm_terminal colour = plain;
    (void)state;

    add_process(1, 5, 5, 4096);
    add_device(0, 4096, 4096);
    assert_lacks(text_on(&plain), "\033");
    colour.has_colour = true;
    assert_has(text_on(&colour), "\033[1mpython decode.py\033[0m");
    assert_has(text_on(&colour), "\033[33m5 allocations remain");
}

static void without_utf8_all_is_ascii(void **state)
{
    const struct ttm_terminal ascii = {.columns = 80, .rows = 24};
    (void)state;

    add_process(1, 5, 5, 4096);
    for (uint16_t id = 0; id < 32; id++)
        add_device(id, 4096, (uint64_t)(id + 1) << 30);
    for (const char *c = text_on(&ascii); *c; c++)
        assert_in_range(*c, '\n', '~');
    assert_has(text_on(&ascii), "######");
}

static void when_memory_is_short_nothing_half_is_shown(void **state)
{
    bool has_failed = true;
    (void)state;

    add_process(1, 5, 5, 4096);
    add_process(2, 5, 5, 4096);
    add_device(0, 4096, 4096);
    add_remains(5, 1024, 1);
    for (unsigned grants = 0; has_failed; grants++) {
        struct ttm_text out;
        ttm_text_init(&out);
        faults_begin(grants);
        ttm_run_summary_text(&summary, &plain, &out);
        has_failed = faults_end();
        if (has_failed)
            assert_true(ttm_text_failed(&out));
        ttm_text_done(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_program_that_was_not_heard_of_is_one_line, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_program_that_may_open_few_files_is_said_to_be, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_became_of_a_tt_metal_without_a_device_is_said, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(one_that_was_killed_may_have_loaded_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_program_that_could_not_be_tracked_is_one_line_too, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_long_command_is_cut_and_a_terminal_gets_two_lines, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(how_it_ended_is_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_remains_is_said_in_one_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(remains_are_listed_with_the_largest_first, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_reads_the_same_is_one_row, set_up, tear_down),
        cmocka_unit_test_setup_teardown(native_places_have_the_names_of_their_functions, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(where_they_come_from_is_said_with_the_largest_first, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(suspects_of_other_processes_are_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_sessions_left_is_told_as_its_evidence_is, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_was_held_when_a_device_was_closed_remains, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(failures_are_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(kinds_that_do_not_fit_are_summed_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_bar_is_the_peak_of_the_capacity, set_up, tear_down),
        cmocka_unit_test_setup_teardown(devices_that_look_the_same_are_one_block, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(devices_that_do_not_fit_are_those_with_the_lowest_peaks,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(several_processes_get_a_row_each, set_up, tear_down),
        cmocka_unit_test_setup_teardown(those_that_still_run_are_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(losses_are_not_hidden, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_missed_is_not_hidden, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_server_elsewhere_knows_less, set_up, tear_down),
        cmocka_unit_test_setup_teardown(colours_are_only_where_they_are_wanted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_utf8_all_is_ascii, set_up, tear_down),
        cmocka_unit_test_setup_teardown(when_memory_is_short_nothing_half_is_shown, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
