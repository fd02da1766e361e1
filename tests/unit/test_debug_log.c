/* SPDX-License-Identifier: Apache-2.0 */
#include "recording_testing.h"

#include "analysis/debug_log.h"
#include "recording_story.h"

/* The log of a story, in UTC; the recording is read 'times' times, as files of a rotation. */
static void log_of(struct memory_file *file, unsigned times, struct ttm_text *out)
{
    const struct ttm_frame_namer namer = {0};
    struct bytes bytes = memory_end(file, true);
    struct ttm_debug_log *log = ttm_debug_log_new(&namer, 3);
    const struct ttm_recorded *record;
    struct ttm_recording *recording;

    assert_non_null(log);
    ttm_text_init(out);
    for (unsigned i = 0; i < times; i++) {
        assert_int_equal(ttm_recording_open_fd(memory_fd(bytes.data, bytes.length), &recording), 0);
        while (ttm_recording_next(recording, &record) > 0) {
            struct ttm_recorded copy = *record;
            struct ttm_recorded_life life;
            if (i > 0 && record->type == TTM_RECORDED_BIRTH) { /* told again */
                life = *record->life;
                life.is_told = true;
                copy.life = &life;
            }
            if (i == 0 || record->type != TTM_RECORDED_END)
                assert_int_equal(ttm_debug_log_take(log, &copy, 0, out), 0);
        }
        ttm_recording_close(recording);
    }
    ttm_debug_log_flush(log, out);
    ttm_debug_log_free(log);
    bytes_done(&bytes);
}

static unsigned count_of(const struct ttm_text *text, const char *piece)
{
    unsigned count = 0;

    for (const char *at = ttm_text_string(text); (at = strstr(at, piece)); at += strlen(piece))
        count++;
    return count;
}

static void a_life_is_told_as_the_original_told_it(void **state)
{
    struct memory_file file;
    struct ttm_text text;
    (void)state;

    memory_begin(&file, 0);
    struct story story = story_begin(file.encoder, 1, 45296000000000, 0x2a, "python3 decode.py");
    story_devices(&story, 1);
    const uint32_t origin = story_origin(
        &story, &(struct story_words){.python = "/a/decode.py:28:kv|/a/decode.py:61:main",
                                      .native_note = story_native(&story, 12, 0)});
    const uint64_t serial = story_birth(&story, origin, TTM_REGION_DRAM, 1536);
    story_wait(&story, 2000 * STORY_MS);
    story_free(&story, serial);
    log_of(&file, 1, &text);
    assert_string_equal(ttm_text_string(&text),
                        "═══════════════════════════════════════════════════════════\n"
                        "BUFFER ALLOCATED\n"
                        "Time: 12:34:56\n"
                        "Device: 0\n"
                        "Address: 0x10000 (65536)\n"
                        "Size: 1536 bytes (1.5 KB)\n"
                        "Type: DRAM\n"
                        "Buffer*: 0x2a00000001\n"
                        "Owns Data: yes\n"
                        "Hooked: no\n"
                        "Call Stack:\n"
                        "    libtt_metal.so: +0x1000\n"
                        "    libtt_metal.so: +0x1040\n"
                        "    libtt_metal.so: +0x1080\n"
                        "    libtt_metal.so: +0x10c0\n"
                        "    libtt_metal.so: +0x1100\n"
                        "    libtt_metal.so: +0x1140\n"
                        "    /a/decode.py:28: kv\n"
                        "    /a/decode.py:61: main\n"
                        "\n"
                        "═══════════════════════════════════════════════════════════\n"
                        "BUFFER DEALLOCATED\n"
                        "Time: 12:34:58\n"
                        "Device: 0\n"
                        "Address: 0x10000 (65536)\n"
                        "Size: 1536 bytes (1.5 KB)\n"
                        "Type: DRAM\n"
                        "Buffer*: 0x2a00000001\n"
                        "Call Stack:\n"
                        "\n");
    ttm_text_done(&text);
}

static void a_life_on_a_mesh_is_a_block_for_each_device(void **state)
{
    struct memory_file file;
    struct ttm_text text;
    (void)state;

    memory_begin(&file, 0);
    struct story story = story_begin(file.encoder, 1, START_NS, 42, "x");
    story_devices(&story, 8);
    story_birth(&story, 0, TTM_REGION_L1, 64);
    log_of(&file, 1, &text);
    assert_int_equal(count_of(&text, "BUFFER ALLOCATED\n"), 8);
    assert_has(ttm_text_string(&text), "Device: 0\n");
    assert_has(ttm_text_string(&text), "Device: 7\n");
    ttm_text_done(&text);
}

static void each_end_has_its_title_or_none(void **state)
{
    static const struct {
        enum ttm_recorded_how how;
        const char *title;
    } cases[] = {
        {TTM_ENDED_FREED, "BUFFER DEALLOCATED\n"},
        {TTM_ENDED_UNHEARD, "BUFFER DEALLOCATED\n"},
        {TTM_ENDED_DEVICE_CLOSED, "BUFFER DESTRUCTOR (still ALLOCATED - will deallocate)\n"},
        {TTM_ENDED_ALLOCATOR_CLOSED, "BUFFER DESTRUCTOR (still ALLOCATED - will deallocate)\n"},
        {TTM_ENDED_REPLACED, NULL},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct memory_file file;
        struct ttm_text text;
        memory_begin(&file, 0);
        struct story story = story_begin(file.encoder, 1, START_NS, 42, "x");
        story_devices(&story, 1);
        story_end(&story, story_birth(&story, 0, TTM_REGION_L1, 64), cases[i].how);
        story_birth(&story, 0, TTM_REGION_L1, 64);
        story_exit(&story, 0); /* which says nothing */
        log_of(&file, 1, &text);
        assert_int_equal(count_of(&text, "═\n"), cases[i].title ? 3 : 2);
        if (cases[i].title)
            assert_has(ttm_text_string(&text), cases[i].title);
        ttm_text_done(&text);
    }
}

static void circular_buffers_and_kernels_are_no_buffers(void **state)
{
    struct memory_file file;
    struct ttm_text text;
    (void)state;

    memory_begin(&file, 0);
    struct story story = story_begin(file.encoder, 1, START_NS, 42, "x");
    story_devices(&story, 1);
    story_flash(&story, 0, TTM_REGION_CB, 64);
    story_flash(&story, 0, TTM_REGION_KERNEL, 64);
    story_birth(&story, 0, TTM_REGION_TRACE, 64);
    log_of(&file, 1, &text);
    assert_int_equal(count_of(&text, "═\n"), 1);
    assert_has(ttm_text_string(&text), "Type: OTHER\n");
    ttm_text_done(&text);
}

static void what_another_file_tells_again_is_not_told_twice(void **state)
{
    struct memory_file file;
    struct ttm_text text;
    (void)state;

    memory_begin(&file, 0);
    struct story story = story_begin(file.encoder, 1, START_NS, 42, "x");
    story_devices(&story, 1);
    story_birth(&story, 0, TTM_REGION_L1, 64);
    story_birth(&story, 0, TTM_REGION_L1, 64);
    log_of(&file, 3, &text);
    assert_int_equal(count_of(&text, "BUFFER ALLOCATED\n"), 2);
    ttm_text_done(&text);
}

static void an_end_is_never_before_its_birth(void **state)
{
    struct memory_file file;
    struct ttm_text text;
    (void)state;

    memory_begin(&file, 0);
    struct story story = story_begin(file.encoder, 1, START_NS, 42, "x");
    story_devices(&story, 1);
    const uint64_t serial = story_birth(&story, 0, TTM_REGION_L1, 64);
    story.now_ns -= 5 * STORY_MS; /* a clock that is behind */
    story_free(&story, serial);
    log_of(&file, 1, &text);
    assert_true(strstr(ttm_text_string(&text), "BUFFER ALLOCATED") <
                strstr(ttm_text_string(&text), "BUFFER DEALLOCATED"));
    ttm_text_done(&text);
}

static void short_memory_is_an_error_and_leaks_nothing(void **state)
{
    const struct ttm_frame_namer namer = {0};
    struct memory_file file;
    bool is_done = false;
    (void)state;

    memory_begin(&file, 0);
    struct story story = story_begin(file.encoder, 1, START_NS, 42, "x");
    story_devices(&story, 2);
    const uint32_t origin = story_line(&story, "a.py:1:f", "");
    for (unsigned i = 0; i < 300; i++)
        story_birth(&story, origin, TTM_REGION_L1, 64);
    struct bytes bytes = memory_end(&file, true);
    for (unsigned n = 0; !is_done && n < 200; n++) {
        const struct ttm_recorded *record;
        struct ttm_recording *recording;
        struct ttm_text text;
        int r = 0;
        assert_int_equal(ttm_recording_open_fd(memory_fd(bytes.data, bytes.length), &recording), 0);
        ttm_text_init(&text);
        assert_int_equal(ttm_recording_next(recording, &record), 1);
        faults_begin(n);
        struct ttm_debug_log *log = ttm_debug_log_new(&namer, 3);
        r = log ? 0 : -ENOMEM;
        while (r == 0) {
            r = ttm_debug_log_take(log, record, 0, &text);
            if (r == 0 && ttm_recording_next(recording, &record) <= 0)
                break;
        }
        if (log)
            ttm_debug_log_flush(log, &text);
        is_done = !faults_end();
        assert_true(r == 0 || r == -ENOMEM);
        ttm_debug_log_free(log);
        ttm_text_done(&text);
        ttm_recording_close(recording);
    }
    assert_true(is_done);
    bytes_done(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_life_is_told_as_the_original_told_it),
        cmocka_unit_test(a_life_on_a_mesh_is_a_block_for_each_device),
        cmocka_unit_test(each_end_has_its_title_or_none),
        cmocka_unit_test(circular_buffers_and_kernels_are_no_buffers),
        cmocka_unit_test(what_another_file_tells_again_is_not_told_twice),
        cmocka_unit_test(an_end_is_never_before_its_birth),
        cmocka_unit_test(short_memory_is_an_error_and_leaks_nothing),
    };

    (void)setenv("TZ", "UTC", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
