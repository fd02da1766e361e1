/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "logs/debug_block.h"
#include "wire/region.h"

#define RULE "═══════════════════════════════════════════════════════════\n"

/* As the document of the original shows it. */
static const char seed[] =
    RULE "BUFFER ALLOCATED\n"
         "Time: 14:32:15\n"
         "Device: 0\n"
         "Address: 0x18b20 (101152)\n"
         "Size: 32768 bytes (32 KB)\n"
         "Type: L1\n"
         "Buffer*: 0x7f8a4c001230\n"
         "Owns Data: yes\n"
         "Hooked: no\n"
         "Call Stack:\n"
         "    libtensorrent.so: tt::tt_metal::Buffer::allocate_impl()\n"
         "    libtensorrent.so: tt::tt_metal::Buffer::create(IDevice*, ...)\n"
         "    python3: PyEval_EvalFrameDefault\n"
         "\n";

static struct ttm_debug_block block;
static uint64_t line;

static int next(struct ttm_debug_reader *reader)
{
    return ttm_debug_block_next(reader, &block, &line);
}

static struct ttm_debug_reader reader_of(const char *text)
{
    return (struct ttm_debug_reader){.at = text, .end = text + strlen(text), .line = 1};
}

static void the_block_of_the_document_is_read_and_written_as_it_is(void **state)
{
    struct ttm_debug_reader reader = reader_of(seed);
    struct ttm_text out;
    (void)state;

    assert_int_equal(next(&reader), 1);
    assert_int_equal(block.title, TTM_DEBUG_ALLOCATED);
    assert_int_equal(block.second, 14 * 3600 + 32 * 60 + 15);
    assert_int_equal(block.address, 0x18b20);
    assert_int_equal(block.bytes, 32768);
    assert_int_equal(block.region, TTM_REGION_L1);
    assert_int_equal(block.pointer, 0x7f8a4c001230);
    assert_false(block.is_view || block.is_hooked || block.is_other);
    assert_int_equal(line, 2);
    ttm_text_init(&out);
    ttm_debug_block_append(&out, &block);
    assert_string_equal(ttm_text_string(&out), seed);
    ttm_text_done(&out);
    assert_int_equal(next(&reader), 0);
}

static void the_other_titles_have_no_owner_line(void **state)
{
    struct ttm_debug_block gone = {.title = TTM_DEBUG_DESTRUCTOR,
                                   .second = 59,
                                   .device = 3,
                                   .region = TTM_REGION_TRACE,
                                   .address = 16,
                                   .bytes = 1 << 30,
                                   .pointer = 1,
                                   .stack = {"", 0}};
    struct ttm_text out;
    (void)state;

    ttm_text_init(&out);
    ttm_debug_block_append(&out, &gone);
    assert_string_equal(ttm_text_string(&out),
                        RULE "BUFFER DESTRUCTOR (still ALLOCATED - will deallocate)\n"
                             "Time: 00:00:59\nDevice: 3\nAddress: 0x10 (16)\n"
                             "Size: 1073741824 bytes (1.04858e+06 KB)\nType: OTHER\n"
                             "Buffer*: 0x1\nCall Stack:\n\n");
    gone.title = TTM_DEBUG_DEALLOCATED;
    gone.bytes = 512;
    gone.region = TTM_REGION_L1_SMALL;
    ttm_debug_block_append(&out, &gone);
    assert_has(ttm_text_string(&out), "BUFFER DEALLOCATED\n");
    assert_has(ttm_text_string(&out), "Size: 512 bytes (0.5 KB)\nType: L1_SMALL\n");
    assert_lacks(ttm_text_string(&out), "Owns");
    struct ttm_debug_reader reader = reader_of(ttm_text_string(&out));
    assert_int_equal(next(&reader), 1);
    assert_int_equal(block.title, TTM_DEBUG_DESTRUCTOR);
    assert_true(block.is_other);
    assert_int_equal(next(&reader), 1);
    assert_int_equal(block.title, TTM_DEBUG_DEALLOCATED);
    assert_int_equal(next(&reader), 0);
    ttm_text_done(&out);
}

static void a_torn_block_takes_no_other_along(void **state)
{
    char text[4 * sizeof(seed)];
    struct ttm_debug_reader reader;
    (void)state;

    /* Cut anywhere, and the next one right behind it. */
    for (size_t cut = 0; cut + 1 < sizeof(seed); cut++) {
        (void)snprintf(text, sizeof(text), "%.*s\n%s", (int)cut, seed, seed);
        reader = reader_of(text);
        unsigned whole = 0;
        for (int r; (r = next(&reader)) != 0;)
            whole += r > 0 && block.address == 0x18b20 && block.bytes == 32768;
        assert_in_range(whole, 1, 2);
    }
}

static void a_torn_number_is_not_believed(void **state)
{
    static const char *const lines[][2] = {
        {"Address: 0x18b20 (101152)", "Address: 0x18b2 (101152)"},
        {"Address: 0x18b20 (101152)", "Address: 0x18b20 (10115"},
        {"Size: 32768 bytes (32 KB)", "Size: 3276"},
        {"Size: 32768 bytes (32 KB)", "Size: 0 bytes (0 KB)"},
        {"Device: 0", "Device: 1024"},
        {"Type: L1", "Type: L1_SMALLER"},
        {"Type: L1", "Type:"},
        {"Time: 14:32:15", "Time: 25:32:15"},
        {"Buffer*: 0x7f8a4c001230", "Buffer*: nil"},
        {"Hooked: no", "Hooked: perhaps"},
        {"Device: 0\n", ""},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        char text[sizeof(seed) + 64];
        const char *at = strstr(seed, lines[i][0]);
        assert_non_null(at);
        (void)snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - seed), seed, lines[i][1],
                       at + strlen(lines[i][0]));
        struct ttm_debug_reader reader = reader_of(text);
        assert_int_equal(next(&reader), -EBADMSG);
        assert_int_equal(line, 2);
        if (i != 10) /* its other lines follow it */
            assert_int_equal(next(&reader), 0);
    }
}

static void a_number_at_the_very_end_may_be_torn(void **state)
{
    const size_t stack = (size_t)(strstr(seed, "Call Stack") - seed);
    (void)state;

    for (size_t cut = sizeof(RULE); cut < stack; cut++) {
        struct ttm_debug_reader reader = {.at = seed, .end = seed + cut, .line = 1};
        /* Whole is what ends with the line before the stack, or with the last that must be there. */
        const bool is_whole = seed[cut - 1] == '\n' && memmem(seed, cut, "Buffer*", 7);
        assert_int_equal(next(&reader), is_whole ? 1 : -EBADMSG);
    }
}

static void what_stands_between_blocks_is_broken_and_numbered(void **state)
{
    char text[3 * sizeof(seed)];
    (void)state;

    (void)snprintf(text, sizeof(text), "%srubbish\n%s", seed, seed);
    struct ttm_debug_reader reader = reader_of(text);
    assert_int_equal(next(&reader), 1);
    assert_int_equal(next(&reader), -EBADMSG);
    assert_int_equal(line, 16);
    assert_int_equal(next(&reader), 1);
    assert_int_equal(line, 18);
}

static void line_ends_of_windows_are_fine(void **state)
{
    char text[2 * sizeof(seed)];
    size_t n = 0;
    (void)state;

    for (const char *c = seed; *c; c++) {
        if (*c == '\n')
            text[n++] = '\r';
        text[n++] = *c;
    }
    text[n] = '\0';
    struct ttm_debug_reader reader = reader_of(text);
    assert_int_equal(next(&reader), 1);
    struct ttm_debug_frame frame;
    assert_true(ttm_debug_frame_next(&block.stack, &frame));
    assert_int_equal(frame.name.bytes[frame.name.length - 1], ')');
}

static void assert_frame(const char *text, const char *module, uint32_t number, const char *name)
{
    struct ttm_note_text stack = {text, (uint16_t)strlen(text)};
    struct ttm_debug_frame frame;

    assert_true(ttm_debug_frame_next(&stack, &frame));
    assert_int_equal(frame.module.length, strlen(module));
    assert_memory_equal(frame.module.bytes, module, frame.module.length);
    assert_int_equal(frame.line, number);
    assert_int_equal(frame.name.length, strlen(name));
    assert_memory_equal(frame.name.bytes, name, frame.name.length);
    assert_false(ttm_debug_frame_next(&stack, &frame));
}

static void frames_are_native_or_of_python(void **state)
{
    (void)state;

    assert_frame("    libtt.so: tt::Buffer::create(A: int)\n", "libtt.so", 0,
                 "tt::Buffer::create(A: int)");
    assert_frame("    /project/decode.py:28: cache_kv\n", "/project/decode.py", 28, "cache_kv");
    assert_frame("    <string>:3: <module>\n", "<string>", 3, "<module>");
    assert_frame("    lib.so:3: f\n", "lib.so:3", 0, "f");
    assert_frame("    x.py:0: f\n", "x.py:0", 0, "f");
    assert_frame("    Buffer::allocate_impl()", "", 0, "Buffer::allocate_impl()");
    assert_frame("    ...\n", "", 0, "...");
    assert_frame("    lib.so: +0x12\n", "lib.so", 0, "+0x12");
}

static void frames_are_written_as_they_are_read(void **state)
{
    struct ttm_text out;
    (void)state;

    ttm_text_init(&out);
    ttm_debug_frame_append(&out, "libtt.so", 0, "tt::f");
    ttm_debug_frame_append(&out, "a.py", 12, "ma\nin");
    assert_string_equal(ttm_text_string(&out), "    libtt.so: tt::f\n    a.py:12: ma\\x0ain\n");
    ttm_text_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_block_of_the_document_is_read_and_written_as_it_is),
        cmocka_unit_test(the_other_titles_have_no_owner_line),
        cmocka_unit_test(a_torn_block_takes_no_other_along),
        cmocka_unit_test(a_torn_number_is_not_believed),
        cmocka_unit_test(a_number_at_the_very_end_may_be_torn),
        cmocka_unit_test(what_stands_between_blocks_is_broken_and_numbered),
        cmocka_unit_test(line_ends_of_windows_are_fine),
        cmocka_unit_test(frames_are_native_or_of_python),
        cmocka_unit_test(frames_are_written_as_they_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
