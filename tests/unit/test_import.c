/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs of made-up programs whose truth is known, and what the report makes of them.
 */
#include "recording_testing.h"

#include "analysis/debug_log.h"
#include "analysis/report.h"
#include "logs/debug_block.h"
#include "logs/import.h"
#include "recording_story.h"

#define NOON_NS ((uint64_t)1699963200 * 1000000000) /* 14 November 2023, 12:00 UTC */

static struct ttm_import_result result;
static struct ttm_report report;

/* In windows of 'window' bytes; 0: all at once. */
static struct bytes import_text(const char *text, size_t length, size_t window)
{
    struct memory_file file;
    memory_begin(&file, 0);
    const struct ttm_import_options options = {
        .format = ttm_log_recognise(text, length),
        .name = "old.log",
        .written_wall_ns = NOON_NS,
        .seed = 77,
        .encoder = file.encoder,
    };
    struct ttm_import *import = ttm_import_new(&options);
    size_t at = 0, end = 0;

    assert_non_null(import);
    while (end < length) {
        size_t taken;
        end = window && length - end > window ? end + window : length;
        assert_int_equal(ttm_import_feed(import, text + at, end - at, end == length, &taken), 0);
        at += taken;
    }
    assert_int_equal(ttm_import_finish(import, &result), 0);
    ttm_import_free(import);
    return memory_end(&file, true);
}

static void read_bytes(const struct bytes *bytes)
{
    const struct ttm_report_options options = {.seed = 9};
    struct ttm_recording *recording;

    assert_int_equal(ttm_recording_open_fd(memory_fd(bytes->data, bytes->length), &recording), 0);
    assert_int_equal(ttm_report_read(recording, &options, &report), 0);
    ttm_recording_close(recording);
}

static void take(const char *text)
{
    struct bytes bytes = import_text(text, strlen(text), 0);

    read_bytes(&bytes);
    bytes_done(&bytes);
}

static const struct ttm_report_region *region_of(uint32_t process, unsigned device, unsigned region)
{
    for (uint32_t i = 0; i < report.processes[process].device_count; i++) {
        if (report.processes[process].devices[i].id == device)
            return &report.processes[process].devices[i].region[region];
    }
    fail_msg("device %u is not in it", device);
    return NULL;
}

static void assert_region(unsigned region, uint64_t allocs, uint64_t frees, uint64_t remaining,
                          uint64_t bytes)
{
    const struct ttm_report_region *found = region_of(0, 0, region);

    assert_int_equal(found->allocs, allocs);
    assert_int_equal(found->frees, frees);
    assert_int_equal(found->remaining.count, remaining);
    assert_int_equal(found->remaining.bytes, bytes);
}

/* ---- the server's output ---- */

static void an_address_that_is_used_again_is_a_new_life(void **state)
{
    (void)state;
    take("✓ [PID 42] Allocated 100 bytes of DRAM on device 0 (buffer_id=4096)\n"
         "✗ [PID 42] Freed buffer 4096 on device 0 (100 bytes, FINAL)\n"
         "✓ [PID 42] Allocated 300 bytes of DRAM on device 0 (buffer_id=4096)\n"
         "✓ [PID 42] Allocated 50 bytes of DRAM on device 1 (buffer_id=4096)\n");
    assert_int_equal(report.process_count, 1);
    assert_int_equal(report.processes[0].pid, 42);
    assert_int_equal(report.processes[0].source, TTM_SOURCE_ORIGINAL);
    assert_true(report.processes[0].is_complete && report.processes[0].is_untimed);
    assert_region(TTM_REGION_DRAM, 2, 1, 1, 300);
    assert_int_equal(region_of(0, 1, TTM_REGION_DRAM)->remaining.bytes, 50);
    assert_int_equal(result.events, 4);
    assert_int_equal(result.broken, 0);
    ttm_report_done(&report);
}

static void references_are_no_buffers(void **state)
{
    (void)state;
    /* A mesh buffer and its view; the view goes, then the buffer. */
    take("✓ [PID 42] Allocated 100 bytes of L1 on device 0 (buffer_id=0x1000)\n"
         "✓ [PID 42] Allocated 100 bytes of L1 on device 0 (buffer_id=0x1000, ref_count=2)\n"
         "✗ [PID 42] Freed buffer 0x1000 on device 0 (100 bytes, ref_count=1 remaining)\n"
         "✓ [PID 42] Allocated 64 bytes of L1 on device 0 (buffer_id=0x2000)\n"
         "✗ [PID 42] Freed buffer 0x1000 on device 0 (100 bytes, FINAL)\n");
    assert_region(TTM_REGION_L1, 3, 1, 1, 64);
    assert_int_equal(region_of(0, 0, TTM_REGION_L1)->peak_bytes, 164);
    assert_int_equal(report.processes[0].counters.replaced, 1);
    assert_int_equal(report.processes[0].counters.unknown_frees, 0);
    assert_int_equal(result.references, 1);
    ttm_report_done(&report);
}

static void a_free_among_references_of_several_sizes_is_of_the_newest(void **state)
{
    (void)state;
    take("✓ [PID 42] Allocated 100 bytes of L1 on device 0 (buffer_id=0x1000)\n"
         "✓ [PID 42] Allocated 300 bytes of L1 on device 0 (buffer_id=0x1000, ref_count=2)\n"
         "✗ [PID 42] Freed buffer 0x1000 on device 0 (100 bytes, ref_count=1 remaining)\n"
         "✗ [PID 42] Freed buffer 0x1000 on device 0 (100 bytes, FINAL)\n"
         "✗ [PID 42] Freed buffer 0x1000 on device 0 (100 bytes, FINAL)\n");
    assert_region(TTM_REGION_L1, 2, 1, 0, 0);
    assert_int_equal(report.processes[0].counters.replaced, 1);
    assert_int_equal(report.processes[0].counters.ambiguous_frees, 1);
    assert_int_equal(report.processes[0].counters.unknown_frees, 1);
    ttm_report_done(&report);
}

static void dram_and_l1_share_numbers_and_are_told_apart(void **state)
{
    (void)state;
    /* The server took them for two references of one buffer. */
    take("✓ [PID 42] Allocated 100 bytes of DRAM on device 0 (buffer_id=0x1000)\n"
         "✓ [PID 42] Allocated 900 bytes of L1 on device 0 (buffer_id=0x1000, ref_count=2)\n"
         "✗ [PID 42] Freed buffer 0x1000 on device 0 (100 bytes, ref_count=1 remaining)\n");
    assert_region(TTM_REGION_DRAM, 1, 1, 0, 0);
    assert_region(TTM_REGION_L1, 1, 0, 1, 900);
    assert_int_equal(report.processes[0].counters.replaced, 0);
    assert_int_equal(report.processes[0].counters.ambiguous_frees, 0);
    ttm_report_done(&report);

    take("✓ [PID 42] Allocated 100 bytes of DRAM on device 0 (buffer_id=0x1000)\n"
         "✓ [PID 42] Allocated 100 bytes of L1 on device 0 (buffer_id=0x1000, ref_count=2)\n"
         "✗ [PID 42] Freed buffer 0x1000 on device 0 (100 bytes, ref_count=1 remaining)\n"
         "✗ [PID 42] Freed buffer 0x1000 on device 0 (100 bytes, FINAL)\n");
    assert_region(TTM_REGION_DRAM, 1, 1, 0, 0);
    assert_region(TTM_REGION_L1, 1, 1, 0, 0);
    assert_int_equal(report.processes[0].counters.ambiguous_frees, 1);
    ttm_report_done(&report);
}

static void processes_are_apart_and_end_when_they_are_dead(void **state)
{
    (void)state;
    take("✓ [PID 42] Allocated 100 bytes of L1 on device 0 (buffer_id=1)\n"
         "✓ [PID 43] Allocated 200 bytes of L1 on device 0 (buffer_id=1)\n"
         "   PID 42 is dead, removing its buffers...\n"
         "   ✓ Removed 1 buffers (0.1 MB) from PID 42\n"
         "✓ [PID 42] Allocated 400 bytes of L1 on device 0 (buffer_id=1)\n"
         "⚠ [PID 43] Deallocation for unknown buffer 9 on device 0 (allocated before tracking "
         "started)\n"
         "✗ [PID 43] Freed buffer 8 on device 0 (100 bytes, FINAL)\n");
    assert_int_equal(report.process_count, 3); /* a number that comes again is another process */
    assert_int_equal(region_of(0, 0, TTM_REGION_L1)->remaining.bytes, 100);
    assert_int_equal(region_of(1, 0, TTM_REGION_L1)->remaining.bytes, 200);
    assert_int_equal(region_of(2, 0, TTM_REGION_L1)->remaining.bytes, 400);
    assert_int_equal(report.processes[1].counters.unknown_frees, 2);
    assert_false(report.processes[1].is_complete);
    assert_true(report.processes[2].is_complete);
    ttm_report_done(&report);
}

static void circular_buffers_and_kernels_are_counted(void **state)
{
    (void)state;
    take("✓ [CB_ALLOC] Device 0: +0.25 MB (Total: 0.25 MB)\n"
         "✓ [CB_ALLOC] Device 0: +0.25 MB (Total: 0.5 MB)\n"
         "✗ [CB_FREE] Device 0: -0.25 MB (Total: 0.25 MB)\n"
         "✗ [CB_FREE] Device 0: -0.5 MB (Total: 0 MB)\n"
         "✓ [KERNEL_LOAD] Fabric kernel on Device 0: +0.0625 MB (Total: 0.0625 MB)\n");
    assert_region(TTM_REGION_CB, 2, 1, 1, 262144);
    assert_region(TTM_REGION_KERNEL, 1, 0, 1, 65536);
    assert_int_equal(report.processes[0].devices[0].kernel_bytes[TTM_KERNEL_FABRIC], 65536);
    assert_int_equal(result.unknown_frees, 1);
    ttm_report_done(&report);
}

/* The numbers of the document: 176 allocations and one free at the base of L1. */
static void the_headline_leak_is_an_artefact_of_the_log(void **state)
{
    static const unsigned sizes[] = {32768, 4096, 12288, 134144, 8192};
    struct ttm_text text;
    (void)state;

    ttm_text_init(&text);
    for (unsigned i = 0; i < 176; i++) {
        ttm_text_format(&text, "✓ [PID 7] Allocated %u bytes of L1 on device 0 (buffer_id=0x18b20",
                        sizes[i % 5]);
        if (i > 0)
            ttm_text_format(&text, ", ref_count=%u", i + 1);
        ttm_text_append(&text, ")\n");
        ttm_text_format(&text,
                        "✓ [PID 7] Allocated 2048 bytes of L1 on device 0 (buffer_id=0x%x)\n"
                        "✗ [PID 7] Freed buffer 0x%x on device 0 (2048 bytes, FINAL)\n",
                        0x100000 + 64 * i, 0x100000 + 64 * i);
    }
    ttm_text_append(&text, "✗ [PID 7] Freed buffer 0x18b20 on device 0 (32768 bytes, ref_count=175 "
                           "remaining)\n"
                           "✓ [PID 7] Allocated 4096 bytes of L1 on device 0 (buffer_id=0x18b20, "
                           "ref_count=176)\n");
    take(ttm_text_string(&text));
    ttm_text_done(&text);
    assert_region(TTM_REGION_L1, 353, 177, 1, 4096);
    const struct ttm_report_origin *origin = &report.processes[0].origins[0];
    assert_int_equal(origin->allocs, 177);
    assert_int_equal(origin->frees, 1);
    assert_int_equal(origin->remaining.count, 1);
    assert_string_equal(origin->words.native[0], "address 0x18b20");
    assert_int_equal(origin->verdict.class, TTM_CLASS_UNSURE);
    assert_false(origin->verdict.is_suspect);
    assert_string_equal(
        origin->verdict.why,
        "175 of 177 were allocated again at the same address with no free between, so at most one "
        "can be live: an accounting artefact of the log, as circular buffers at the base of L1 "
        "came without frees");
    assert_int_equal(ttm_report_leaked_bytes(&report), 0);
    ttm_report_done(&report);
}

static void a_leak_among_all_that_is_still_seen(void **state)
{
    struct ttm_text text;
    (void)state;

    ttm_text_init(&text);
    for (unsigned i = 0; i < 100; i++)
        ttm_text_format(&text,
                        "✓ [PID 7] Allocated %u bytes of DRAM on device 0 (buffer_id=%u)\n"
                        "✓ [PID 7] Allocated 64 bytes of L1 on device 0 (buffer_id=1)\n"
                        "✗ [PID 7] Freed buffer 1 on device 0 (64 bytes, FINAL)\n",
                        1024 * (1 + i % 2), 4096 * (i + 1));
    take(ttm_text_string(&text));
    ttm_text_done(&text);
    const struct ttm_report_origin *origin = &report.processes[0].origins[0];
    assert_int_equal(origin->verdict.class, TTM_CLASS_GROWING);
    assert_true(origin->verdict.is_suspect);
    assert_has(origin->verdict.why, "100 were born over all of the log");
    ttm_report_done(&report);
}

static void broken_lines_are_counted_with_their_numbers(void **state)
{
    (void)state;
    take("🚀 Allocation Server started\n"
         "✓ [PID 42] Allocated 100 bytes of L1 on device 0 (buffer_id=1)\n"
         "✓ [PID 42] Alloc\n"
         "\n"
         "rubbish\n"
         "✗ [PID 42] Freed buffer 1 on dev");
    assert_int_equal(result.broken, 3);
    assert_int_equal(result.broken_lines[0], 3);
    assert_int_equal(result.broken_lines[1], 5);
    assert_int_equal(result.broken_lines[2], 6);
    assert_false(report.processes[0].is_complete);
    assert_string_equal(report.processes[0].why_incomplete, "some lines of its log cannot be read");
    ttm_report_done(&report);
}

/* ---- the debug log ---- */

static void put_block(struct ttm_text *out, enum ttm_debug_title title, const char *time,
                      uint64_t address, uint64_t pointer, uint64_t bytes, const char *stack)
{
    unsigned h, m, s;

    assert_int_equal(sscanf(time, "%u:%u:%u", &h, &m, &s), 3);
    const struct ttm_debug_block block = {
        .title = title,
        .second = h * 3600 + m * 60 + s,
        .region = TTM_REGION_L1,
        .address = address,
        .pointer = pointer,
        .bytes = bytes,
        .stack = {stack, (uint16_t)strlen(stack)},
    };

    ttm_debug_block_append(out, &block);
}

static void pointers_are_used_again_and_matched_in_order(void **state)
{
    struct ttm_text text;
    (void)state;

    ttm_text_init(&text);
    put_block(&text, TTM_DEBUG_ALLOCATED, "11:00:00", 0x1000, 0xaa, 10, "    a.so: f()\n");
    put_block(&text, TTM_DEBUG_DEALLOCATED, "11:00:01", 0x1000, 0xaa, 10, "");
    put_block(&text, TTM_DEBUG_ALLOCATED, "11:00:02", 0x2000, 0xaa, 20, "    a.so: g()\n");
    put_block(&text, TTM_DEBUG_ALLOCATED, "11:00:02", 0x1000, 0xbb, 30, "    a.so: f()\n");
    take(ttm_text_string(&text));
    ttm_text_done(&text);
    assert_region(TTM_REGION_L1, 3, 1, 2, 50);
    assert_false(report.processes[0].is_untimed);
    assert_true(report.processes[0].is_logged && report.processes[0].is_complete);
    const struct ttm_report_origin *origin = &report.processes[0].origins[0];
    assert_string_equal(origin->words.native[0], "f()");
    assert_string_equal(origin->words.native_modules[0], "a.so");
    assert_int_equal(origin->allocs, 2);
    assert_int_equal(origin->frees, 1);
    /* 11:00:02 of the day on which the log was written. */
    assert_int_equal(origin->last_ns / 1000000000, NOON_NS / 1000000000 - 3600 + 2);
    ttm_report_done(&report);
}

static void a_destructor_is_an_end_only_with_its_free(void **state)
{
    struct ttm_text text;
    (void)state;

    ttm_text_init(&text);
    put_block(&text, TTM_DEBUG_ALLOCATED, "11:00:00", 0x1000, 0xaa, 10, "");
    put_block(&text, TTM_DEBUG_ALLOCATED, "11:00:00", 0x2000, 0xbb, 20, "");
    put_block(&text, TTM_DEBUG_DESTRUCTOR, "11:00:01", 0x1000, 0xaa, 10, "");
    put_block(&text, TTM_DEBUG_DEALLOCATED, "11:00:01", 0x1000, 0xaa, 10, "");
    put_block(&text, TTM_DEBUG_DESTRUCTOR, "11:00:02", 0x2000, 0xbb, 20, "");
    put_block(&text, TTM_DEBUG_DESTRUCTOR, "11:00:02", 0x9000, 0xcc, 20, "");
    take(ttm_text_string(&text));
    ttm_text_done(&text);
    assert_region(TTM_REGION_L1, 2, 1, 1, 20);
    assert_int_equal(report.processes[0].counters.unknown_frees, 0);
    ttm_report_done(&report);
}

static void two_cannot_own_one_address(void **state)
{
    struct ttm_text text;
    (void)state;

    ttm_text_init(&text);
    for (unsigned i = 0; i < 176; i++)
        put_block(&text, TTM_DEBUG_ALLOCATED, "11:00:00", 0x18b20, 0x1000 + 16 * i,
                  4096 * (1 + i % 5), "    libtt.so: Program::allocate_circular_buffers()\n");
    put_block(&text, TTM_DEBUG_DEALLOCATED, "11:00:01", 0x18b20, 0x1000, 4096, "");
    take(ttm_text_string(&text));
    ttm_text_done(&text);
    assert_region(TTM_REGION_L1, 176, 0, 1, 4096);
    assert_int_equal(report.processes[0].counters.replaced, 175);
    assert_int_equal(report.processes[0].counters.ambiguous_frees, 1);
    assert_int_equal(report.processes[0].counters.unknown_frees, 0);
    const struct ttm_verdict *verdict = &report.processes[0].origins[0].verdict;
    assert_int_equal(verdict->class, TTM_CLASS_UNSURE);
    assert_false(verdict->is_suspect);
    assert_has(verdict->why, "accounting artefact of the log");
    ttm_report_done(&report);
}

static void views_and_hooked_buffers_add_nothing(void **state)
{
    struct ttm_debug_block view = {.title = TTM_DEBUG_ALLOCATED,
                                   .region = TTM_REGION_DRAM,
                                   .address = 0x1000,
                                   .pointer = 1,
                                   .bytes = 100,
                                   .stack = {"", 0}};
    struct ttm_text text;
    (void)state;

    ttm_text_init(&text);
    ttm_debug_block_append(&text, &view);
    view.pointer = 2;
    view.is_view = true;
    ttm_debug_block_append(&text, &view);
    view = (struct ttm_debug_block){
        .region = TTM_REGION_DRAM, .pointer = 3, .bytes = 7, .is_hooked = true, .stack = {"", 0}};
    ttm_debug_block_append(&text, &view);
    take(ttm_text_string(&text));
    ttm_text_done(&text);
    assert_region(TTM_REGION_DRAM, 1, 0, 1, 100);
    assert_int_equal(result.births, 3);
    assert_int_equal(result.replaced, 0);
    ttm_report_done(&report);
}

static void midnight_is_passed(void **state)
{
    struct ttm_text text;
    (void)state;

    ttm_text_init(&text);
    put_block(&text, TTM_DEBUG_ALLOCATED, "23:59:59", 0x1000, 1, 10, "");
    put_block(&text, TTM_DEBUG_ALLOCATED, "23:59:58", 0x2000, 2, 10, ""); /* another thread */
    put_block(&text, TTM_DEBUG_ALLOCATED, "00:00:01", 0x3000, 3, 10, "");
    take(ttm_text_string(&text));
    ttm_text_done(&text);
    const struct ttm_report_origin *origin = &report.processes[0].origins[0];
    const uint64_t midnight = NOON_NS / 1000000000 - 12 * 3600;
    assert_int_equal(origin->first_ns / 1000000000, midnight - 1);
    assert_int_equal(origin->last_ns / 1000000000, midnight + 1);
    ttm_report_done(&report);
}

static void python_lines_of_our_own_logs_come_back(void **state)
{
    struct ttm_text text;
    (void)state;

    ttm_text_init(&text);
    put_block(
        &text, TTM_DEBUG_ALLOCATED, "11:00:00", 0x1000, 1, 10,
        "    libtt.so: tt::create\n    /project/a.py:28: cache\n    /project/a.py:61: main\n");
    take(ttm_text_string(&text));
    ttm_text_done(&text);
    const struct ttm_origin_words *words = &report.processes[0].origins[0].words;
    assert_int_equal(words->python_count, 2);
    assert_string_equal(words->python[0].file, "/project/a.py");
    assert_string_equal(words->python[0].function, "cache");
    assert_int_equal(words->python[0].line, 28);
    assert_int_equal(words->native_count, 1);
    ttm_report_done(&report);
}

static const struct ttm_verdict *verdict_of(const char *native)
{
    for (uint32_t i = 0; i < report.processes[0].origin_count; i++) {
        const struct ttm_report_origin *origin = &report.processes[0].origins[i];
        if (strcmp(origin->words.native[0], native) == 0)
            return &origin->verdict;
    }
    fail_msg("nothing of %s", native);
    return NULL;
}

/* So many steps that give back, and keep one buffer each from 'first' on, if it is not 0. */
static void put_steps(struct ttm_text *out, unsigned steps, uint64_t first)
{
    for (unsigned i = 0; i < steps; i++) {
        put_block(out, TTM_DEBUG_ALLOCATED, "11:00:00", 0x90000, 0x9, 64, "    a.so: step()\n");
        if (first)
            put_block(out, TTM_DEBUG_ALLOCATED, "11:00:00", first + 64 * i, first + i, 64,
                      "    a.so: keep()\n");
        put_block(out, TTM_DEBUG_DEALLOCATED, "11:00:00", 0x90000, 0x9, 64, "");
    }
}

static void what_a_loop_of_a_log_kept_was_not_loaded(void **state)
{
    struct ttm_text text;
    (void)state;

    ttm_text_init(&text);
    for (unsigned i = 0; i < 30; i++)
        put_block(&text, TTM_DEBUG_ALLOCATED, "11:00:00", 0x1000 + 64 * i, 0x1000 + i, 64,
                  "    a.so: tt::tt_metal::to_device\n");
    put_steps(&text, 60, 0x20000);
    put_block(&text, TTM_DEBUG_ALLOCATED, "11:00:00", 0x80000, 0x8, 64, "    a.so: last()\n");
    take(ttm_text_string(&text));
    ttm_text_done(&text);
    assert_int_equal(verdict_of("keep()")->class, TTM_CLASS_GROWING);
    assert_true(verdict_of("keep()")->is_suspect);
    assert_int_equal(verdict_of("tt::tt_metal::to_device")->class, TTM_CLASS_STEADY);
    ttm_report_done(&report);
}

/* What a closed device took with it has a destructor in the log, and no free. */
static void what_each_session_of_a_log_left_does_not_grow(void **state)
{
    struct ttm_text text;
    (void)state;

    ttm_text_init(&text);
    for (unsigned session = 0; session < 6; session++) {
        for (unsigned i = 0; i < 3; i++)
            put_block(&text, TTM_DEBUG_ALLOCATED, "11:00:00", 0x1000 + 64 * i,
                      0x100 + 8 * session + i, 64, "    a.so: load()\n");
        put_steps(&text, 10, 0);
        for (unsigned i = 0; i < 3; i++)
            put_block(&text, TTM_DEBUG_DESTRUCTOR, "11:00:00", 0x1000 + 64 * i,
                      0x100 + 8 * session + i, 64, "");
    }
    take(ttm_text_string(&text));
    ttm_text_done(&text);
    assert_region(TTM_REGION_L1, 78, 60, 18, 18 * 64);
    assert_int_equal(verdict_of("load()")->class, TTM_CLASS_STEADY);
    assert_int_equal(ttm_report_leaked_bytes(&report), 0);
    ttm_report_done(&report);
}

/* ---- both ---- */

static void logs_are_recognised_by_what_is_in_them(void **state)
{
    static const char blocks[] = "\nrubbish\nBUFFER DEALLOCATED\n";
    static const char lines[] = "rubbish\n📊 Current Statistics:\n   PID 42 is dead, removing its "
                                "buffers...\n";
    (void)state;

    assert_int_equal(ttm_log_recognise(blocks, strlen(blocks)), TTM_LOG_FORMAT_DEBUG);
    assert_int_equal(ttm_log_recognise(lines, strlen(lines)), TTM_LOG_FORMAT_SERVER);
    assert_int_equal(ttm_log_recognise("hello\n", 6), TTM_LOG_FORMAT_NONE);
    assert_int_equal(ttm_log_recognise("", 0), TTM_LOG_FORMAT_NONE);
}

/* The end of a life that is recorded later than it happened. */
struct late_end {
    uint64_t serial;
    uint64_t time_ns;
};

/* A made-up program as the encoder would have told it, exported, and imported again. */
static void a_recording_survives_the_way_out_and_in(void **state)
{
    const struct ttm_frame_namer namer = {0};
    const struct ttm_recorded *record;
    struct ttm_recording *recording;
    struct ttm_report before;
    struct memory_file file;
    uint64_t seed = 0xabcdef;
    struct ttm_text text;
    int r;
    (void)state;

    memory_begin(&file, 0);
    struct story story = story_begin(file.encoder, 1, START_NS, 4242, "python3 decode.py");
    story_devices(&story, 2);
    const uint32_t origins[] = {story_line(&story, "/a/decode.py:28:kv|/a/decode.py:61:main", ""),
                                story_line(&story, "/a/decode.py:32:scratch", "")};
    uint64_t live[64] = {0};
    struct late_end late[3];
    size_t late_count = 0;
    for (unsigned i = 0; i < 5000; i++) {
        const unsigned place = random_below(&seed, 64);
        const uint64_t old = live[place];
        struct ttm_recorded_life life =
            story_life(&story, origins[i % 2], place % 3 ? TTM_REGION_L1 : TTM_REGION_DRAM,
                       1024 * (1 + i % 9));
        life.address = 0x100000 + 0x10000 * place; /* where the old one was */
        life.birth_ns += 10;
        life.flags = place == 7 ? TTM_SITE_ALIAS : 0;
        const bool is_born = random_below(&seed, 3) > 0;
        /* Rings are read one after the other: births may come before the ends that made room. */
        if (old && late_count < COUNT_OF(late))
            late[late_count++] = (struct late_end){old, story.now_ns};
        else if (old)
            story_must(ttm_encoder_end(file.encoder, story.now_ns, 1, old, TTM_ENDED_FREED), "end");
        if (is_born)
            story_must(ttm_encoder_birth(file.encoder, &life), "birth");
        while (i % 8 == 7 && late_count > 0) {
            const struct late_end *end = &late[--late_count];
            story_must(ttm_encoder_end(file.encoder, end->time_ns, 1, end->serial, TTM_ENDED_FREED),
                       "end");
        }
        live[place] = is_born ? life.serial : 0;
        story_wait(&story, STORY_MS * random_below(&seed, 25) + 20);
    }
    for (unsigned i = 0; i < 64; i += 2) {
        if (live[i])
            story_end(&story, live[i], TTM_ENDED_DEVICE_CLOSED);
    }
    struct bytes bytes = memory_end(&file, true);
    read_bytes(&bytes);
    before = report;

    assert_int_equal(ttm_recording_open_fd(memory_fd(bytes.data, bytes.length), &recording), 0);
    struct ttm_debug_log *log = ttm_debug_log_new(&namer, 3);
    assert_non_null(log);
    ttm_text_init(&text);
    while ((r = ttm_recording_next(recording, &record)) > 0)
        assert_int_equal(ttm_debug_log_take(log, record, 0, &text), 0);
    assert_int_equal(r, 0);
    ttm_debug_log_flush(log, &text);
    ttm_debug_log_free(log);
    ttm_recording_close(recording);
    bytes_done(&bytes);

    /* Whatever the windows, what comes out is the same. */
    bytes = import_text(ttm_text_string(&text), text.length, 0);
    const struct ttm_import_result at_once = result;
    struct bytes in_parts = import_text(ttm_text_string(&text), text.length, 5000);
    assert_memory_equal(&result, &at_once, sizeof(result));
    assert_bytes_equal(&bytes, in_parts.data, in_parts.length);
    bytes_done(&in_parts);
    read_bytes(&bytes);
    bytes_done(&bytes);
    ttm_text_done(&text);
    assert_int_equal(result.broken + result.unknown_frees + result.replaced, 0);
    for (unsigned device = 0; device < 2; device++) {
        for (unsigned region = 0; region < TTM_REGION_CB; region++) {
            const struct ttm_report_region *x = &before.processes[0].devices[device].region[region];
            const struct ttm_report_region *y = region_of(0, device, region);
            assert_int_equal(x->allocs, y->allocs);
            assert_int_equal(x->frees, y->frees);
            assert_int_equal(x->remaining.count, y->remaining.count);
            assert_int_equal(x->remaining.bytes, y->remaining.bytes);
            assert_true(y->peak_bytes <= x->peak_bytes); /* its events are in order */
        }
    }
    /* One life on two devices is two lives in a log. */
    for (uint32_t i = 0; i < before.processes[0].origin_count; i++) {
        const struct ttm_report_origin *x = &before.processes[0].origins[i];
        bool is_found = false;
        for (uint32_t k = 0; k < report.processes[0].origin_count; k++) {
            const struct ttm_report_origin *y = &report.processes[0].origins[k];
            is_found |= y->words.python[0].line == x->words.python[0].line &&
                        y->region == x->region && y->allocs == x->allocs && y->frees == x->frees &&
                        y->remaining.bytes == x->remaining.bytes;
        }
        assert_true(is_found);
    }
    ttm_report_done(&before);
    ttm_report_done(&report);
}

static void short_memory_is_an_error_and_leaks_nothing(void **state)
{
    static const char lines[] =
        "✓ [PID 42] Allocated 100 bytes of L1 on device 0 (buffer_id=1)\n"
        "✓ [PID 42] Allocated 100 bytes of L1 on device 0 (buffer_id=1, ref_count=2)\n";
    struct ttm_text blocks;
    (void)state;

    ttm_text_init(&blocks);
    put_block(&blocks, TTM_DEBUG_ALLOCATED, "11:00:00", 0x1000, 1, 10,
              "    a.so: f\n    b.py:1: g\n");
    put_block(&blocks, TTM_DEBUG_ALLOCATED, "11:00:00", 0x1000, 2, 10, "");
    for (unsigned kind = 0; kind < 2; kind++) {
        const char *text = kind ? lines : ttm_text_string(&blocks);
        bool is_done = false;
        for (int n = 0; !is_done && n < 200; n++) {
            struct memory_file file;
            memory_begin(&file, 0);
            const struct ttm_import_options options = {
                .format = ttm_log_recognise(text, strlen(text)),
                .name = "x",
                .written_wall_ns = NOON_NS,
                .encoder = file.encoder,
            };
            size_t taken;
            faults_begin((unsigned)n);
            struct ttm_import *import = ttm_import_new(&options);
            int r = import ? ttm_import_feed(import, text, strlen(text), true, &taken) : -ENOMEM;
            if (r == 0)
                r = ttm_import_finish(import, &result);
            (void)faults_end();
            ttm_import_free(import);
            is_done = r == 0;
            assert_true(r == 0 || r == -ENOMEM);
            struct bytes bytes = memory_end(&file, true);
            bytes_done(&bytes);
        }
        assert_true(is_done);
    }
    ttm_text_done(&blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_that_is_used_again_is_a_new_life),
        cmocka_unit_test(references_are_no_buffers),
        cmocka_unit_test(a_free_among_references_of_several_sizes_is_of_the_newest),
        cmocka_unit_test(dram_and_l1_share_numbers_and_are_told_apart),
        cmocka_unit_test(processes_are_apart_and_end_when_they_are_dead),
        cmocka_unit_test(circular_buffers_and_kernels_are_counted),
        cmocka_unit_test(the_headline_leak_is_an_artefact_of_the_log),
        cmocka_unit_test(a_leak_among_all_that_is_still_seen),
        cmocka_unit_test(broken_lines_are_counted_with_their_numbers),
        cmocka_unit_test(pointers_are_used_again_and_matched_in_order),
        cmocka_unit_test(a_destructor_is_an_end_only_with_its_free),
        cmocka_unit_test(two_cannot_own_one_address),
        cmocka_unit_test(views_and_hooked_buffers_add_nothing),
        cmocka_unit_test(midnight_is_passed),
        cmocka_unit_test(python_lines_of_our_own_logs_come_back),
        cmocka_unit_test(what_a_loop_of_a_log_kept_was_not_loaded),
        cmocka_unit_test(what_each_session_of_a_log_left_does_not_grow),
        cmocka_unit_test(logs_are_recognised_by_what_is_in_them),
        cmocka_unit_test(a_recording_survives_the_way_out_and_in),
        cmocka_unit_test(short_memory_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
