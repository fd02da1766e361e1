/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "wire/origin.h"

static struct ttm_note_text text_of(const char *string)
{
    return (struct ttm_note_text){string, (uint16_t)strlen(string)};
}

static void assert_text(struct ttm_note_text text, const char *expected)
{
    assert_int_equal(text.length, strlen(expected));
    assert_memory_equal(text.bytes, expected, text.length);
}

static void assert_shorter_refused(const uint8_t *buf, size_t size, decode_fn decode)
{
    struct bytes whole = bytes_of(buf, size);

    assert_truncation_refused(&whole, decode);
    bytes_done(&whole);
}

static struct ttm_code_note code;
static struct ttm_python_stack_note python;
static struct ttm_module_note module;
static struct ttm_native_stack_note native;
static struct ttm_thread_note thread;
static struct ttm_named_stack_note named;
static struct ttm_log_note log_note;
static struct ttm_note_text operation;

static int decode_code(const uint8_t *buf, size_t len)
{
    return ttm_code_note_decode(buf, len, &code);
}

static int decode_python(const uint8_t *buf, size_t len)
{
    return ttm_python_stack_note_decode(buf, len, &python);
}

static int decode_module(const uint8_t *buf, size_t len)
{
    return ttm_module_note_decode(buf, len, &module);
}

static int decode_native(const uint8_t *buf, size_t len)
{
    return ttm_native_stack_note_decode(buf, len, &native);
}

static int decode_named(const uint8_t *buf, size_t len)
{
    return ttm_named_stack_note_decode(buf, len, &named);
}

static void assert_golden(const char *name, const uint8_t *buf, size_t size)
{
    struct bytes file = golden(name);

    assert_bytes_equal(&file, buf, size);
    bytes_done(&file);
}

static void the_golden_notes_are_what_we_write(void **state)
{
    static uint8_t buf[TTM_NAMED_STACK_NOTE_SIZE_MAX];
    uint8_t id[20];
    const uint64_t base = 0x0102030405060000ull;
    const struct ttm_code_note code_note = {.first_line = 42,
                                            .file = text_of("/data/u/mod\xc3\xa8le.py"),
                                            .name = text_of("Model.forward")};
    const struct ttm_python_stack_note python_note = {
        .count = 2, .is_cut = true, .frames = {{1030, 7}, {1044, 0x01020304}}};
    const struct ttm_module_note module_note = {
        .bias = base,
        .start = base,
        .end = base + 4096,
        .path = text_of("/lib/libtt_metal.so"),
        .build_id = id,
        .build_id_length = sizeof(id),
    };
    const struct ttm_native_stack_note native_note = {
        .count = 3,
        .frames = {{2000, false, 0x1234}, {3000, true, 0x55}, {0, false, 0x7fffdeadbeef}}};
    const struct ttm_thread_note thread_note = {.tid = 4242, .name = text_of("MainThread")};
    const struct ttm_named_stack_note named_note = {
        .count = 2,
        .is_cut = true,
        .frames = {{text_of("libtt.so"), text_of("tt::f()")}, {text_of(""), text_of("main")}}};
    const struct ttm_log_note logged = {.is_untimed = true, .name = text_of("debug.log")};
    (void)state;

    for (uint8_t i = 0; i < sizeof(id); i++)
        id[i] = i;
    assert_golden("note_code.v1.bin", buf, ttm_code_note_encode(&code_note, buf));
    assert_golden("note_python_stack.v1.bin", buf, ttm_python_stack_note_encode(&python_note, buf));
    assert_golden("note_module.v1.bin", buf, ttm_module_note_encode(&module_note, buf));
    assert_golden("note_native_stack.v1.bin", buf, ttm_native_stack_note_encode(&native_note, buf));
    assert_golden("note_thread.v1.bin", buf, ttm_thread_note_encode(&thread_note, buf));
    assert_golden("note_named_stack.v1.bin", buf, ttm_named_stack_note_encode(&named_note, buf));
    assert_golden("note_log.v1.bin", buf, ttm_log_note_encode(&logged, buf));
}

static void a_code_object_comes_back_as_it_was(void **state)
{
    const struct ttm_code_note note = {
        .first_line = 42, .file = text_of("/data/u/model.py"), .name = text_of("Model.forward")};
    uint8_t buf[TTM_CODE_NOTE_SIZE_MAX];
    (void)state;

    const size_t size = ttm_code_note_encode(&note, buf);
    assert_int_equal(size, 8 + 16 + 13);
    assert_int_equal(decode_code(buf, size), 0);
    assert_int_equal(code.first_line, 42);
    assert_text(code.file, "/data/u/model.py");
    assert_text(code.name, "Model.forward");
    assert_shorter_refused(buf, size, decode_code);
}

static void long_texts_are_cut_between_characters(void **state)
{
    static char file[2 * TTM_CODE_FILE_MAX], name[2 * TTM_CODE_NAME_MAX];
    uint8_t buf[TTM_CODE_NOTE_SIZE_MAX];
    (void)state;

    for (size_t i = 0; i + 1 < sizeof(file); i += 2)
        memcpy(file + i, "\xc3\xa9", 2);
    file[sizeof(file) - 1] = 'y'; /* so that the border falls inside a character */
    for (size_t i = 0; i + 1 < sizeof(name); i += 2)
        memcpy(name + i, "\xc3\xa9", 2);
    const struct ttm_code_note note = {.file = {file, sizeof(file)}, .name = {name, sizeof(name)}};
    const size_t size = ttm_code_note_encode(&note, buf);

    assert_int_equal(decode_code(buf, size), 0);
    assert_in_range(code.file.length, TTM_CODE_FILE_MAX - 1, TTM_CODE_FILE_MAX);
    assert_memory_equal(code.file.bytes, "\xc3\xa9", 2);
    assert_int_equal(code.file.bytes[code.file.length - 1], 'y');
    assert_int_equal(code.name.length, TTM_CODE_NAME_MAX - 1);
    assert_memory_equal(code.name.bytes + code.name.length - 2, "\xc3\xa9", 2);
}

static void a_python_stack_comes_back_as_it_was(void **state)
{
    struct ttm_python_stack_note note = {.count = 2, .is_cut = true};
    uint8_t buf[TTM_PYTHON_STACK_NOTE_SIZE_MAX];
    (void)state;

    note.frames[0] = (struct ttm_python_frame){.code = 1030, .line = 7};
    note.frames[1] = (struct ttm_python_frame){.code = 1044, .line = 0};
    const size_t size = ttm_python_stack_note_encode(&note, buf);
    assert_int_equal(size, 20);
    assert_int_equal(decode_python(buf, size), 0);
    assert_int_equal(python.count, 2);
    assert_true(python.is_cut);
    assert_memory_equal(python.frames, note.frames, 2 * sizeof(note.frames[0]));
    assert_shorter_refused(buf, size, decode_python);

    buf[0] = TTM_PYTHON_FRAMES_MAX + 1;
    assert_int_equal(decode_python(buf, sizeof(buf)), -EBADMSG);
}

static void a_module_comes_back_as_it_was(void **state)
{
    static const uint8_t id[] = {1, 2, 3, 4};
    const struct ttm_module_note note = {
        .bias = 0x7f0000000000,
        .start = 0x7f0000000000,
        .end = 0x7f0000100000,
        .path = text_of("/usr/lib/libc.so.6"),
        .build_id = id,
        .build_id_length = sizeof(id),
    };
    uint8_t buf[TTM_MODULE_NOTE_SIZE_MAX];
    (void)state;

    const size_t size = ttm_module_note_encode(&note, buf);
    assert_int_equal(decode_module(buf, size), 0);
    assert_true(module.bias == note.bias && module.start == note.start && module.end == note.end);
    assert_text(module.path, "/usr/lib/libc.so.6");
    assert_int_equal(module.build_id_length, sizeof(id));
    assert_memory_equal(module.build_id, id, sizeof(id));
    assert_shorter_refused(buf, size, decode_module);

    buf[23] = 0xff; /* one that starts behind its end */
    buf[15] = 0xff;
    buf[22] = 0;
    buf[14] = 1;
    assert_int_equal(decode_module(buf, size), -EBADMSG);
}

static void a_native_stack_comes_back_as_it_was(void **state)
{
    struct ttm_native_stack_note note = {.count = 5};
    uint8_t buf[TTM_NATIVE_STACK_NOTE_SIZE_MAX];
    (void)state;

    note.frames[0] = (struct ttm_native_frame){.module = 2000, .address = 0x1111};
    note.frames[1] = (struct ttm_native_frame){.module = 2000, .address = 0x2222};
    note.frames[2] = (struct ttm_native_frame){.module = 3000, .is_exact = true, .address = 0x33};
    note.frames[3] = (struct ttm_native_frame){.module = 0, .address = 0x7fffdeadbeef};
    note.frames[4] = (struct ttm_native_frame){.module = 2000, .address = 0x4444};
    const size_t size = ttm_native_stack_note_encode(&note, buf);
    assert_int_equal(size, 8 + 2 * 4 + 5 * 8);
    assert_int_equal(decode_native(buf, size), 0);
    assert_int_equal(native.count, 5);
    assert_false(native.is_cut);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(native.frames[i].module, note.frames[i].module);
        assert_int_equal(native.frames[i].is_exact, note.frames[i].is_exact);
        assert_true(native.frames[i].address == note.frames[i].address);
    }
    assert_shorter_refused(buf, size, decode_native);

    buf[size - 2] = 3; /* a third module of two */
    assert_int_equal(decode_native(buf, size), -EBADMSG);
}

static void a_stack_through_more_modules_than_fit_keeps_its_addresses(void **state)
{
    static struct ttm_native_stack_note note = {.count = TTM_NATIVE_FRAMES_MAX, .is_cut = true};
    uint8_t buf[TTM_NATIVE_STACK_NOTE_SIZE_MAX];
    (void)state;

    for (unsigned i = 0; i < TTM_NATIVE_FRAMES_MAX; i++)
        note.frames[i] = (struct ttm_native_frame){.module = 1024 + i, .address = i + 1};
    const size_t size = ttm_native_stack_note_encode(&note, buf);
    assert_int_equal(size, sizeof(buf));
    assert_int_equal(decode_native(buf, size), 0);
    assert_true(native.is_cut);
    assert_int_equal(native.frames[TTM_NATIVE_MODULES_MAX - 1].module,
                     1024 + TTM_NATIVE_MODULES_MAX - 1);
    assert_int_equal(native.frames[TTM_NATIVE_MODULES_MAX].module, 0);
    assert_true(native.frames[TTM_NATIVE_FRAMES_MAX - 1].address == TTM_NATIVE_FRAMES_MAX);
}

static void threads_and_operations_have_names_within_limits(void **state)
{
    const struct ttm_thread_note note = {.tid = 77, .name = text_of("MainThread")};
    uint8_t buf[TTM_THREAD_NOTE_SIZE_MAX + 200] = {0};
    (void)state;

    const size_t size = ttm_thread_note_encode(&note, buf);
    assert_int_equal(ttm_thread_note_decode(buf, size, &thread), 0);
    assert_int_equal(thread.tid, 77);
    assert_text(thread.name, "MainThread");
    assert_int_equal(ttm_thread_note_decode(buf, 3, &thread), -EBADMSG);
    assert_int_equal(ttm_thread_note_decode(buf, TTM_THREAD_NOTE_SIZE_MAX + 1, &thread), -EBADMSG);

    assert_int_equal(ttm_operation_note_decode((const uint8_t *)"ttnn.add", 8, &operation), 0);
    assert_text(operation, "ttnn.add");
    assert_int_equal(ttm_operation_note_decode(buf, 0, &operation), -EBADMSG);
    assert_int_equal(ttm_operation_note_decode(buf, TTM_OPERATION_NAME_MAX + 1, &operation),
                     -EBADMSG);
}

static void a_named_stack_comes_back_as_it_was(void **state)
{
    static char text[2 * TTM_FRAME_NAME_MAX];
    static uint8_t buf[TTM_NAMED_STACK_NOTE_SIZE_MAX];
    struct ttm_named_stack_note note = {.count = 2};
    (void)state;

    note.frames[0] = (struct ttm_named_frame){text_of("libtt.so"), text_of("tt::f()")};
    note.frames[1] = (struct ttm_named_frame){text_of(""), text_of("main")};
    const size_t size = ttm_named_stack_note_encode(&note, buf);
    assert_int_equal(decode_named(buf, size), 0);
    assert_int_equal(named.count, 2);
    assert_false(named.is_cut);
    assert_text(named.frames[0].module, "libtt.so");
    assert_text(named.frames[0].name, "tt::f()");
    assert_text(named.frames[1].name, "main");
    assert_shorter_refused(buf, size, decode_named);

    memset(text, 'x', sizeof(text));
    note.count = TTM_NATIVE_FRAMES_MAX;
    for (unsigned i = 0; i < TTM_NATIVE_FRAMES_MAX; i++)
        note.frames[i] = (struct ttm_named_frame){{text, sizeof(text)}, {text, sizeof(text)}};
    assert_int_equal(ttm_named_stack_note_encode(&note, buf), sizeof(buf));
    assert_int_equal(decode_named(buf, sizeof(buf)), 0);
    assert_int_equal(named.frames[127].name.length, TTM_FRAME_NAME_MAX);
    buf[0]++; /* one frame more than there may be */
    assert_int_equal(decode_named(buf, sizeof(buf)), -EBADMSG);
}

static void the_note_of_a_log_has_its_name(void **state)
{
    uint8_t buf[TTM_LOG_NOTE_SIZE_MAX + 1] = {0};
    const struct ttm_log_note note = {.name = text_of("debug.log")};
    (void)state;

    const size_t size = ttm_log_note_encode(&note, buf);
    assert_int_equal(ttm_log_note_decode(buf, size, &log_note), 0);
    assert_false(log_note.is_untimed);
    assert_text(log_note.name, "debug.log");
    assert_int_equal(ttm_log_note_decode(buf, 3, &log_note), -EBADMSG);
    assert_int_equal(ttm_log_note_decode(buf, sizeof(buf), &log_note), -EBADMSG);
}

static void random_bytes_are_decoded_within_bounds_or_refused(void **state)
{
    uint64_t seed = 0xfeedface;
    (void)state;

    for (unsigned i = 0; i < 50000; i++) {
        uint8_t bytes[96];
        const uint32_t length = random_below(&seed, sizeof(bytes) + 1);

        for (uint32_t k = 0; k < sizeof(bytes); k++)
            bytes[k] = random_below(&seed, 3) ? (uint8_t)random_below(&seed, 6)
                                              : (uint8_t)next_random(&seed);
        struct bytes copy = bytes_of(bytes, length);

        if (decode_code(copy.data, length) == 0)
            assert_true(8u + code.file.length + code.name.length <= length);
        if (decode_python(copy.data, length) == 0)
            assert_true(4u + 8u * python.count <= length);
        if (decode_module(copy.data, length) == 0)
            assert_true(28u + module.path.length + module.build_id_length <= length);
        if (decode_native(copy.data, length) == 0)
            assert_true(8u + 8u * native.count <= length);
        if (decode_named(copy.data, length) == 0)
            assert_true(4u + 4u * named.count <= length);
        bytes_done(&copy);
    }
}

static void files_of_ttnn_and_ours_are_not_the_users(void **state)
{
    static const struct {
        const char *file;
        bool is_users;
    } cases[] = {
        {"/project/decode.py", true},
        {"decode.py", true},
        {"<string>", true},
        {"/project/ttnn/model.py", true},
        {"/project/my-ttnn/ttnn_model.py", true},
        {"/v/lib/python3.10/site-packages/torch/nn.py", true},
        {"/v/lib/python3.10/site-packages/ttnn/decorators.py", false},
        {"/usr/lib/python3/dist-packages/ttnn/device.py", false},
        {"/src/tt-metal/ttnn/ttnn/operations/core.py", false},
        {"/v/lib/python3.10/site-packages/ttmem/__init__.py", false},
        {"<frozen importlib._bootstrap>", false},
        {"", false},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (ttm_is_users_file(cases[i].file, strlen(cases[i].file)) != cases[i].is_users)
            fail_msg("%s", cases[i].file);
    }
}

static void modules_of_the_runtime_python_and_c_are_not_the_users(void **state)
{
    static const char *const others[] = {
        "/x/ttnn/build/lib/libtt_metal.so",
        "_ttnncpp.so",
        "/x/_ttnn.cpython-310-x86_64-linux-gnu.so",
        "/usr/lib/libpython3.12.so.1.0",
        "libc.so.6",
        "/lib/libstdc++.so.6",
        "/usr/bin/python3.11",
        "",
        "/x/",
    };
    static const char *const users[] = {"/x/model", "libmodel.so", "/x/libtt_model.so"};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(others); i++)
        assert_false(ttm_is_users_module(others[i], strlen(others[i])));
    for (size_t i = 0; i < COUNT_OF(users); i++)
        assert_true(ttm_is_users_module(users[i], strlen(users[i])));
}

static void of_native_lines_the_users_is_found(void **state)
{
    (void)state;

    assert_string_equal(
        ttm_users_native_line("/l/libtt_metal.so+0x1\n/l/model+0x2\n/l/model+0x3\n"),
        "/l/model+0x2\n/l/model+0x3\n");
    assert_string_equal(ttm_users_native_line("/l/libtt_metal.so+0x1\n/l/libc.so.6+0x2\n"),
                        "/l/libtt_metal.so+0x1\n/l/libc.so.6+0x2\n");
    assert_string_equal(ttm_users_native_line(""), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_golden_notes_are_what_we_write),
        cmocka_unit_test(a_code_object_comes_back_as_it_was),
        cmocka_unit_test(long_texts_are_cut_between_characters),
        cmocka_unit_test(a_python_stack_comes_back_as_it_was),
        cmocka_unit_test(a_module_comes_back_as_it_was),
        cmocka_unit_test(a_native_stack_comes_back_as_it_was),
        cmocka_unit_test(a_stack_through_more_modules_than_fit_keeps_its_addresses),
        cmocka_unit_test(threads_and_operations_have_names_within_limits),
        cmocka_unit_test(a_named_stack_comes_back_as_it_was),
        cmocka_unit_test(the_note_of_a_log_has_its_name),
        cmocka_unit_test(random_bytes_are_decoded_within_bounds_or_refused),
        cmocka_unit_test(files_of_ttnn_and_ours_are_not_the_users),
        cmocka_unit_test(modules_of_the_runtime_python_and_c_are_not_the_users),
        cmocka_unit_test(of_native_lines_the_users_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
