/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/origin_words.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "wire/note.h"

#define TTM_USERS_LINES_MAX 64u /* as many as a Python stack has */

static bool contains(const char *file, size_t length, const char *part)
{
    return memmem(file, length, part, strlen(part)) != NULL;
}

/* Whether any of the words occurs in it. */
static bool has_word(const char *text, size_t length, const char *const *words)
{
    for (; *words; words++) {
        if (contains(text, length, *words))
            return true;
    }
    return false;
}

static bool read_origin(const struct ttm_notebook *notes, uint32_t number,
                        struct ttm_origin_note *ret)
{
    const struct ttm_noted *note =
        number ? ttm_notebook_find(notes, number, TTM_NOTED_ORIGIN) : NULL;

    return note && ttm_origin_note_decode(note->bytes, note->length, ret) == 0;
}

static bool read_code(const struct ttm_notebook *notes, uint32_t number, struct ttm_code_note *ret)
{
    const struct ttm_noted *note = ttm_notebook_find(notes, number, TTM_NOTE_CODE);

    return note && ttm_code_note_decode(note->bytes, note->length, ret) == 0;
}

static bool read_python(const struct ttm_notebook *notes, uint32_t number,
                        struct ttm_python_stack_note *ret)
{
    const struct ttm_noted *note =
        number ? ttm_notebook_find(notes, number, TTM_NOTE_PYTHON_STACK) : NULL;

    return note && ttm_python_stack_note_decode(note->bytes, note->length, ret) == 0;
}

/* The innermost, or NULL. */
static const struct ttm_python_frame *users_frame(const struct ttm_notebook *notes,
                                                  const struct ttm_python_stack_note *stack)
{
    struct ttm_code_note code;

    for (uint16_t i = 0; i < stack->count; i++) {
        if (read_code(notes, stack->frames[i].code, &code) &&
            ttm_is_users_file(code.file.bytes, code.file.length))
            return &stack->frames[i];
    }
    return NULL;
}

/* The number of its code: of several that mean the same, the first. */
static uint32_t code_of(const struct ttm_notebook *notes, const struct ttm_python_frame *frame)
{
    const struct ttm_noted *note = ttm_notebook_find(notes, frame->code, TTM_NOTE_CODE);

    return note ? note->number : frame->code;
}

/* A stack however deep a recursion was: frames that follow their like are left out. */
static uint64_t hash_stack(const struct ttm_notebook *notes,
                           const struct ttm_python_stack_note *stack)
{
    uint64_t hash = 0;

    for (uint16_t i = 0; i < stack->count; i++) {
        const struct ttm_python_frame *frame = &stack->frames[i];
        if (i == 0 || frame->code != frame[-1].code || frame->line != frame[-1].line)
            hash = ttm_hash_u64(hash ^ ((uint64_t)code_of(notes, frame) << 32 | frame->line));
    }
    return hash;
}

static uint64_t hash_phase(const struct ttm_notebook *notes, uint32_t context)
{
    const struct ttm_noted *note = context ? ttm_notebook_get(notes, context) : NULL;
    uint64_t hash = 1;

    if (!note)
        return 0;
    for (size_t i = 0; i < note->length && note->bytes[i] != '/'; i++)
        hash = (hash ^ note->bytes[i]) * 0x100000001b3ull;
    return ttm_hash_u64(hash) | 1;
}

struct ttm_origin_line ttm_origin_line(const struct ttm_notebook *notes, uint32_t number)
{
    struct ttm_origin_line ret = {0};
    struct ttm_python_stack_note stack;
    struct ttm_origin_note origin;

    if (!read_origin(notes, number, &origin))
        return ret;
    ret.context = origin.context;
    ret.phase = hash_phase(notes, origin.context);
    ret.thread = origin.thread;
    const struct ttm_python_frame *frame =
        read_python(notes, origin.python, &stack) ? users_frame(notes, &stack) : NULL;
    const uint64_t frames = frame ? hash_stack(notes, &stack) : origin.native;
    if (frames || origin.operation)
        ret.code = ttm_hash_u64(frames ^ ttm_hash_u64(origin.operation)) | 1;
    ret.spot = ret.code;
    if (frame) {
        ret.function = code_of(notes, frame);
        ret.spot = ttm_hash_u64(((uint64_t)ret.function << 32 | frame->line) ^
                                ttm_hash_u64(origin.operation));
    }
    return ret;
}

bool ttm_origin_log(const struct ttm_notebook *notes, struct ttm_log_note *ret)
{
    const struct ttm_noted *note = ttm_notebook_find(notes, TTM_LOG_NOTE, TTM_NOTE_LOG);

    return note && ttm_log_note_decode(note->bytes, note->length, ret) == 0;
}

/* Plain text, or a note of a kind that is text from some offset on. */
static const char *text_of(const struct ttm_notebook *notes, uint32_t number,
                           struct ttm_arena *arena)
{
    const struct ttm_noted *note = number ? ttm_notebook_get(notes, number) : NULL;
    struct ttm_thread_note thread;
    struct ttm_note_text text;

    if (!note)
        return "";
    if (note->kind == TTM_NOTED_STRING)
        return ttm_arena_text(arena, (const char *)note->bytes,
                              strnlen((const char *)note->bytes, note->length));
    if (note->kind == TTM_NOTE_THREAD &&
        ttm_thread_note_decode(note->bytes, note->length, &thread) == 0)
        return ttm_arena_text(arena, thread.name.bytes, thread.name.length);
    if (note->kind == TTM_NOTE_OPERATION &&
        ttm_operation_note_decode(note->bytes, note->length, &text) == 0)
        return ttm_arena_text(arena, text.bytes, text.length);
    return "";
}

/* Puts the frames of one kind: the user's, or all. Returns how many there are. */
static uint32_t put_python(const struct ttm_notebook *notes,
                           const struct ttm_python_stack_note *stack, bool is_all,
                           struct ttm_arena *arena, struct ttm_frame_words *frames)
{
    uint32_t count = 0;

    for (uint16_t i = 0; i < stack->count; i++) {
        struct ttm_code_note code;
        if (!read_code(notes, stack->frames[i].code, &code) ||
            (!is_all && !ttm_is_users_file(code.file.bytes, code.file.length)))
            continue;
        frames[count++] = (struct ttm_frame_words){
            .file = ttm_arena_text(arena, code.file.bytes, code.file.length),
            .function = ttm_arena_text(arena, code.name.bytes, code.name.length),
            .line = stack->frames[i].line,
        };
    }
    return count;
}

static const char *module_name(const struct ttm_module_note *module, struct ttm_arena *arena)
{
    const char *path = module->path.bytes;
    const char *slash = memrchr(path, '/', module->path.length);
    const char *name = slash ? slash + 1 : path;

    return ttm_arena_text(arena, name, (size_t)(path + module->path.length - name));
}

/* One native frame. 'name' is room to write in. */
static void put_frame(const struct ttm_notebook *notes, const struct ttm_native_frame *frame,
                      const struct ttm_frame_namer *namer, struct ttm_arena *arena,
                      struct ttm_text *name, const char **ret, const char **ret_module)
{
    const struct ttm_noted *said = ttm_notebook_find(notes, frame->module, TTM_NOTE_MODULE);
    struct ttm_module_note module;
    const bool has_module = said && ttm_module_note_decode(said->bytes, said->length, &module) == 0;

    ttm_text_clear(name);
    *ret_module = has_module ? module_name(&module, arena) : "";
    if (!has_module || !namer || !namer->name ||
        !namer->name(namer->arg, &module, frame->address, frame->is_exact, name))
        ttm_text_format(name, "%s%s0x%llx", *ret_module, has_module ? "+" : "",
                        (unsigned long long)frame->address);
    *ret = ttm_arena_text(arena, ttm_text_string(name), name->length);
}

/*
 * Whether the user wrote the function: not the start of a C program, nor what headers of the
 * system or of TT-Metal bring into the user's modules.
 */
static bool is_users_function(const struct ttm_frame_words *frame)
{
    static const char *const folders[] = {"/usr/include/", "/usr/lib/gcc/", "/tt-metalium/",
                                          "/tt_stl/", NULL};

    return strcmp(frame->function, "_start") != 0 &&
           strncmp(frame->function, "std::", strlen("std::")) != 0 &&
           !has_word(frame->file, strlen(frame->file), folders);
}

/* Appends the functions of one native frame of the user's. Returns how many there are then. */
static uint32_t add_lines(const struct ttm_notebook *notes, const struct ttm_native_frame *frame,
                          const char *name, const struct ttm_frame_namer *namer,
                          struct ttm_arena *arena, struct ttm_frame_words *lines, uint32_t count)
{
    const struct ttm_noted *said = ttm_notebook_find(notes, frame->module, TTM_NOTE_MODULE);
    struct ttm_frame_words found[TTM_USERS_LINES_MAX];
    struct ttm_module_note module;

    if (!said || ttm_module_note_decode(said->bytes, said->length, &module) < 0 ||
        !ttm_is_users_module(module.path.bytes, module.path.length))
        return count;
    const uint32_t n = namer->list(namer->arg, &module, frame->address, frame->is_exact, found,
                                   TTM_USERS_LINES_MAX - count);
    if (n == 0 && count < TTM_USERS_LINES_MAX) /* "program+0x1234" tells callers apart as well */
        lines[count++] = (struct ttm_frame_words){.file = "", .function = name};
    for (uint32_t i = 0; i < n; i++) {
        if (!is_users_function(&found[i]))
            continue;
        lines[count++] = (struct ttm_frame_words){
            .file = ttm_arena_text(arena, found[i].file, strlen(found[i].file)),
            .function = ttm_arena_text(arena, found[i].function, strlen(found[i].function)),
            .line = found[i].line,
        };
    }
    return count;
}

/* The functions that the user wrote, of a native stack. */
static void put_lines(const struct ttm_notebook *notes, const struct ttm_native_stack_note *stack,
                      const char *const *names, const struct ttm_frame_namer *namer,
                      struct ttm_arena *arena, struct ttm_origin_words *ret)
{
    struct ttm_frame_words lines[TTM_USERS_LINES_MAX];
    uint32_t count = 0;

    for (uint16_t i = 0; i < stack->count; i++)
        count = add_lines(notes, &stack->frames[i], names[i], namer, arena, lines, count);
    struct ttm_frame_words *kept = count > 0 ? ttm_arena_take(arena, count, sizeof(kept[0])) : NULL;
    if (!kept)
        return;
    memcpy(kept, lines, count * sizeof(kept[0]));
    ret->native_lines = (struct ttm_stack_words){kept, count};
}

/* Room for so many frames in 'ret'; returns whether there is. */
static bool make_native(struct ttm_arena *arena, uint16_t count, const char ***ret_names,
                        const char ***ret_modules, struct ttm_origin_words *ret)
{
    *ret_names = ttm_arena_take(arena, count, sizeof(**ret_names));
    *ret_modules = ttm_arena_take(arena, count, sizeof(**ret_modules));
    if (!*ret_names || !*ret_modules)
        return false;
    ret->native = *ret_names;
    ret->native_modules = *ret_modules;
    ret->native_count = count;
    return true;
}

/* Frames that were named by whoever wrote the log. */
static void put_named(const struct ttm_noted *note, struct ttm_arena *arena,
                      struct ttm_origin_words *ret)
{
    struct ttm_named_stack_note stack;
    const char **names, **modules;

    if (ttm_named_stack_note_decode(note->bytes, note->length, &stack) < 0 ||
        !make_native(arena, stack.count, &names, &modules, ret))
        return;
    for (uint16_t i = 0; i < stack.count; i++) {
        const struct ttm_named_frame *frame = &stack.frames[i];
        modules[i] = ttm_arena_text(arena, frame->module.bytes, frame->module.length);
        names[i] = frame->name.length > 0
                       ? ttm_arena_text(arena, frame->name.bytes, frame->name.length)
                       : modules[i];
    }
}

static void put_native(const struct ttm_notebook *notes, uint32_t number,
                       const struct ttm_frame_namer *namer, struct ttm_arena *arena,
                       struct ttm_origin_words *ret)
{
    const struct ttm_noted *note = number ? ttm_notebook_get(notes, number) : NULL;
    struct ttm_native_stack_note stack;
    const char **names, **modules;
    struct ttm_text name;
    bool has_place = false;

    if (note && note->kind == TTM_NOTE_NAMED_STACK)
        put_named(note, arena, ret);
    if (!note || note->kind != TTM_NOTE_NATIVE_STACK ||
        ttm_native_stack_note_decode(note->bytes, note->length, &stack) < 0 ||
        !make_native(arena, stack.count, &names, &modules, ret))
        return;
    ttm_text_init(&name);
    for (uint16_t i = 0; i < stack.count; i++) {
        put_frame(notes, &stack.frames[i], namer, arena, &name, &names[i], &modules[i]);
        if (!has_place && ttm_is_users_module(modules[i], strlen(modules[i]))) {
            ret->native_place = i;
            has_place = true;
        }
    }
    arena->failed |= ttm_text_failed(&name);
    ttm_text_done(&name);
    if (ret->python_count == 0 && namer && namer->list)
        put_lines(notes, &stack, names, namer, arena, ret);
}

/* What ttnn was doing: its own frames and TT-Metal's say it, which people are not shown. */
static void note_occasion(const struct ttm_notebook *notes,
                          const struct ttm_python_stack_note *stack, struct ttm_origin_words *ret)
{
    static const char *const opening[] = {"open_device", "open_mesh_device", "CreateDevice", NULL};
    static const char *const native_opening[] = {"init_command_queue",
                                                 "DevicePool::",
                                                 "DeviceManager::",
                                                 "MeshDevice::create",
                                                 "MeshDeviceImpl::create",
                                                 "::configure_fabric",
                                                 NULL};
    static const char *const ttnns[] = {"ttnn::", NULL};
    static const char *const upload[] = {"::to_device", "enqueue_write_tensor", "::from_torch",
                                         NULL};
    static const char *const program[] = {"kernel_bin_buf", "load_binaries", "upload_program_binar",
                                          NULL};
    struct ttm_code_note code;

    ret->is_device_open = has_word(ret->operation, strlen(ret->operation), opening);
    for (uint16_t i = 0; i < stack->count; i++) {
        if (read_code(notes, stack->frames[i].code, &code) &&
            !ttm_is_users_file(code.file.bytes, code.file.length) &&
            has_word(code.name.bytes, code.name.length, opening))
            ret->is_device_open = true;
    }
    for (uint32_t i = 0; i < ret->native_count; i++) {
        const size_t length = strlen(ret->native[i]);
        ret->is_device_open |= has_word(ret->native[i], length, native_opening);
        ret->is_ttnns |= has_word(ret->native[i], length, ttnns);
        ret->is_upload |= has_word(ret->native[i], length, upload);
        ret->is_program |= has_word(ret->native[i], length, program);
    }
}

void ttm_origin_words_read(const struct ttm_notebook *notes, uint32_t number,
                           const struct ttm_frame_namer *namer, struct ttm_arena *arena,
                           struct ttm_origin_words *ret)
{
    struct ttm_python_stack_note stack = {0};
    struct ttm_origin_note origin;

    *ret = (struct ttm_origin_words){.operation = "", .name = "", .context = "", .thread = ""};
    if (!read_origin(notes, number, &origin))
        return;
    ret->operation = text_of(notes, origin.operation, arena);
    ret->name = text_of(notes, origin.name, arena);
    ret->context = text_of(notes, origin.context, arena);
    ret->thread = text_of(notes, origin.thread, arena);
    if (read_python(notes, origin.python, &stack)) {
        struct ttm_frame_words *frames = ttm_arena_take(arena, stack.count, sizeof(frames[0]));
        if (!frames)
            return;
        ret->python = frames;
        ret->python_count = put_python(notes, &stack, false, arena, frames);
        /* Better the insides of ttnn than nothing. */
        if (ret->python_count == 0)
            ret->python_count = put_python(notes, &stack, true, arena, frames);
    }
    put_native(notes, origin.native, namer, arena, ret);
    note_occasion(notes, &stack, ret);
}
