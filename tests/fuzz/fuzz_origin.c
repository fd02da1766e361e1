/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes of origin as a lying process may write them. The first byte is the kind;
 * what is decoded is encoded again, and must then mean the same.
 */
#include "fuzzing.h"

#include "wire/keepers.h"
#include "wire/origin.h"

static void try_code(const uint8_t *buf, size_t len)
{
    struct ttm_code_note note, again;
    uint8_t once[TTM_CODE_NOTE_SIZE_MAX];

    if (ttm_code_note_decode(buf, len, &note) < 0)
        return;
    MUST(note.file.bytes >= (const char *)buf &&
         note.name.bytes + note.name.length <= (const char *)buf + len);
    const size_t size = ttm_code_note_encode(&note, once);
    MUST(size <= sizeof(once) && ttm_code_note_decode(once, size, &again) == 0);
    MUST(again.file.length == note.file.length && again.name.length == note.name.length);
    MUST(memcmp(once, buf, size) == 0);
}

static void try_python(const uint8_t *buf, size_t len)
{
    struct ttm_python_stack_note note, again;
    uint8_t once[TTM_PYTHON_STACK_NOTE_SIZE_MAX];

    if (ttm_python_stack_note_decode(buf, len, &note) < 0)
        return;
    const size_t size = ttm_python_stack_note_encode(&note, once);
    MUST(size <= sizeof(once) && ttm_python_stack_note_decode(once, size, &again) == 0);
    MUST(again.count == note.count && again.is_cut == note.is_cut);
    MUST(memcmp(again.frames, note.frames, note.count * sizeof(note.frames[0])) == 0);
}

static void try_module(const uint8_t *buf, size_t len)
{
    struct ttm_module_note note, again;
    uint8_t once[TTM_MODULE_NOTE_SIZE_MAX];

    if (ttm_module_note_decode(buf, len, &note) < 0)
        return;
    MUST(note.start <= note.end && note.build_id + note.build_id_length <= buf + len);
    const size_t size = ttm_module_note_encode(&note, once);
    MUST(size <= sizeof(once) && ttm_module_note_decode(once, size, &again) == 0);
    MUST(again.path.length == note.path.length && again.bias == note.bias);
}

static void try_native(const uint8_t *buf, size_t len)
{
    struct ttm_native_stack_note note, again;
    uint8_t once[TTM_NATIVE_STACK_NOTE_SIZE_MAX];

    if (ttm_native_stack_note_decode(buf, len, &note) < 0)
        return;
    const size_t size = ttm_native_stack_note_encode(&note, once);
    MUST(size <= sizeof(once) && ttm_native_stack_note_decode(once, size, &again) == 0);
    MUST(again.count == note.count && again.is_cut == note.is_cut);
    for (unsigned i = 0; i < note.count; i++) {
        MUST(again.frames[i].module == note.frames[i].module);
        MUST(again.frames[i].address == note.frames[i].address);
        MUST(again.frames[i].is_exact == note.frames[i].is_exact);
    }
}

static void try_thread(const uint8_t *buf, size_t len)
{
    struct ttm_thread_note note;
    struct ttm_note_text text;

    if (ttm_thread_note_decode(buf, len, &note) == 0)
        MUST(note.name.bytes + note.name.length == (const char *)buf + len);
    if (ttm_operation_note_decode(buf, len, &text) == 0)
        MUST(text.length == len);
}

static void try_named(const uint8_t *buf, size_t len)
{
    static uint8_t once[TTM_NAMED_STACK_NOTE_SIZE_MAX];
    struct ttm_named_stack_note note, again;

    if (ttm_named_stack_note_decode(buf, len, &note) < 0)
        return;
    const size_t size = ttm_named_stack_note_encode(&note, once);
    MUST(size <= len && ttm_named_stack_note_decode(once, size, &again) == 0);
    MUST(again.count == note.count && again.is_cut == note.is_cut);
    for (unsigned i = 0; i < note.count; i++) {
        MUST(note.frames[i].name.bytes + note.frames[i].name.length <= (const char *)buf + len);
        MUST(again.frames[i].module.length == note.frames[i].module.length);
        MUST(again.frames[i].name.length == note.frames[i].name.length);
    }
}

static void try_log(const uint8_t *buf, size_t len)
{
    struct ttm_log_note note;

    if (ttm_log_note_decode(buf, len, &note) == 0)
        MUST(note.name.bytes + note.name.length == (const char *)buf + len);
}

static void try_keepers(const uint8_t *buf, size_t len)
{
    struct ttm_keepers_note note, again;
    uint8_t once[TTM_KEEPERS_NOTE_SIZE_MAX];

    if (ttm_keepers_note_decode(buf, len, &note) < 0)
        return;
    const size_t size = ttm_keepers_note_encode(&note, once);
    MUST(size <= sizeof(once) && ttm_keepers_note_decode(once, size, &again) == 0);
    MUST(again.origin == note.origin && again.cause == note.cause && again.count == note.count);
    for (unsigned i = 0; i < note.count; i++) {
        MUST(note.keepers[i].bytes + note.keepers[i].length <= (const char *)buf + len);
        MUST(again.keepers[i].length == note.keepers[i].length);
    }
    MUST(note.cause == 0 || ttm_cause_name(note.cause));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const tries[])(const uint8_t *, size_t) = {
        try_code, try_python, try_module, try_native, try_thread, try_named, try_log, try_keepers};

    if (size == 0)
        return 0;
    uint8_t *note = exact_copy(data + 1, size - 1);
    tries[data[0] % (sizeof(tries) / sizeof(tries[0]))](note, size - 1);
    free(note);
    return 0;
}
