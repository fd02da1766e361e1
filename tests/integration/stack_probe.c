/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack_probe - src/stack inside a real interpreter. A small library that
 * test_stack_python.py loads with ctypes, whose calls let go of the GIL as ttnn's
 * do (CDLL) or keep it (PyDLL). It keeps the notes itself and gives them back as text.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stack/python_lines.h"
#include "stack/stack.h"
#include "wire/origin.h"

#define EXPORT __attribute__((visibility("default")))
#define NOTES_MAX 65536u
#define STACKS_MAX 65536u

EXPORT void probe_start(unsigned python_frames, unsigned native_frames);
EXPORT int probe_capture(char *buf, size_t size);
EXPORT uint32_t probe_numbers(void);
EXPORT void probe_spin(void);
EXPORT uint32_t probe_note_count(void);
EXPORT void probe_allow(uint32_t count);
EXPORT void probe_forget(void);
EXPORT void probe_use_gil(void);
EXPORT bool probe_is_waited_for(void);
EXPORT const char *probe_trouble(void);
EXPORT uint32_t probe_line(int has_location_table, const uint8_t *table, uint32_t length,
                           uint32_t first_line, uint32_t offset);

struct kept {
    uint32_t kind;
    uint32_t length;
    uint8_t *bytes;
};

static struct kept notes[NOTES_MAX];
static uint32_t note_count = 1;
static uint32_t notes_allowed = NOTES_MAX;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the three above */

static uint32_t keep_note(uint32_t kind, const void *bytes, uint32_t length)
{
    uint32_t i;

    pthread_mutex_lock(&lock);
    for (i = 1; i < note_count; i++)
        if (notes[i].kind == kind && notes[i].length == length &&
            memcmp(notes[i].bytes, bytes, length) == 0)
            break;
    if (i == note_count) {
        uint8_t *copy = note_count < notes_allowed ? malloc(length ? length : 1) : NULL;
        if (copy) {
            memcpy(copy, bytes, length);
            notes[note_count++] = (struct kept){kind, length, copy};
        } else {
            i = 0;
        }
    }
    pthread_mutex_unlock(&lock);
    return i;
}

static struct kept find_note(uint32_t number, uint32_t kind)
{
    struct kept note = {0};

    pthread_mutex_lock(&lock);
    if (number > 0 && number < note_count && notes[number].kind == kind)
        note = notes[number];
    pthread_mutex_unlock(&lock);
    return note;
}

struct text {
    char *at;
    size_t room;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    const int n = vsnprintf(text->at, text->room, format, arguments);
    va_end(arguments);
    if (n > 0 && (size_t)n < text->room) {
        text->at += n;
        text->room -= (size_t)n;
    }
}

static void add_python(struct text *text, uint32_t number)
{
    struct ttm_python_stack_note stack;
    struct kept note = find_note(number, TTM_NOTE_PYTHON_STACK);

    if (!note.bytes || ttm_python_stack_note_decode(note.bytes, note.length, &stack) < 0)
        return;
    for (unsigned i = 0; i < stack.count; i++) {
        struct ttm_code_note code;
        note = find_note(stack.frames[i].code, TTM_NOTE_CODE);
        if (note.bytes && ttm_code_note_decode(note.bytes, note.length, &code) == 0)
            add(text, "python\t%.*s\t%u\t%.*s\t%u\n", (int)code.file.length, code.file.bytes,
                stack.frames[i].line, (int)code.name.length, code.name.bytes, code.first_line);
    }
    if (stack.is_cut)
        add(text, "python-cut\n");
}

static void add_native(struct text *text, uint32_t number)
{
    struct ttm_native_stack_note stack;
    struct kept note = find_note(number, TTM_NOTE_NATIVE_STACK);

    if (!note.bytes || ttm_native_stack_note_decode(note.bytes, note.length, &stack) < 0)
        return;
    for (unsigned i = 0; i < stack.count; i++) {
        struct ttm_module_note module = {0};
        note = find_note(stack.frames[i].module, TTM_NOTE_MODULE);
        if (note.bytes)
            (void)ttm_module_note_decode(note.bytes, note.length, &module);
        add(text, "native\t%.*s\t%llx\t%llx\t%u\n", (int)module.path.length, module.path.bytes,
            (unsigned long long)stack.frames[i].address,
            (unsigned long long)(stack.frames[i].address + module.bias), module.build_id_length);
    }
    if (stack.is_cut)
        add(text, "native-cut\n");
}

static void add_text(struct text *text, const char *what, const char *bytes, uint32_t length)
{
    add(text, "%s\t%.*s\n", what, (int)length, bytes);
}

static struct ttm_stack stacks[STACKS_MAX];
static _Atomic uint32_t stack_count;

static uint32_t keep_stack(const struct ttm_stack *stack, uint32_t context)
{
    const uint32_t number = atomic_fetch_add(&stack_count, 1);

    (void)context;
    if (number >= STACKS_MAX)
        return 0;
    stacks[number] = *stack;
    return number + 1;
}

void probe_start(unsigned python_frames, unsigned native_frames)
{
    const struct ttm_stack_options options = {
        .python_frames = (uint16_t)python_frames,
        .native_frames = (uint16_t)native_frames,
        .ours = {&note_count},
        .origin = keep_stack,
    };

    ttm_stack_start(&options, keep_note);
}

/* Where this thread is, as lines of words separated by tabs; as the hook asks for it. */
int probe_capture(char *buf, size_t size)
{
    struct text text = {buf, size};
    const uint32_t number = ttm_stack_origin(0);
    const struct ttm_stack stack = number != 0 ? stacks[number - 1] : (struct ttm_stack){0};
    struct kept note;

    buf[0] = '\0';
    note = find_note(stack.thread, TTM_NOTE_THREAD);
    if (note.bytes && note.length >= 4)
        add_text(&text, "thread", (const char *)note.bytes + 4, note.length - 4);
    note = find_note(stack.operation, TTM_NOTE_OPERATION);
    if (note.bytes)
        add_text(&text, "operation", (const char *)note.bytes, note.length);
    add_python(&text, stack.python);
    add_native(&text, stack.native);
    return (int)(text.at - buf);
}

/* Captures and throws away, for as long as the calling thread lives. */
uint32_t probe_numbers(void)
{
    struct ttm_stack stack;

    ttm_stack_capture(&stack);
    return stack.python;
}

/* Captures until the process ends, as a thread does that is in a long call of ttnn's. */
void probe_spin(void)
{
    struct ttm_stack stack;

    for (;;)
        ttm_stack_capture(&stack);
}

uint32_t probe_note_count(void)
{
    return note_count;
}

/* From now on there is room for so many. */
void probe_allow(uint32_t count)
{
    notes_allowed = count < NOTES_MAX ? count : NOTES_MAX;
}

void probe_forget(void)
{
    ttm_stack_forget();
}

void probe_use_gil(void)
{
    ttm_stack_use_gil();
}

bool probe_is_waited_for(void)
{
    return ttm_stack_is_waited_for();
}

const char *probe_trouble(void)
{
    return ttm_stack_trouble();
}

uint32_t probe_line(int has_location_table, const uint8_t *table, uint32_t length,
                    uint32_t first_line, uint32_t offset)
{
    return has_location_table ? ttm_python_line_3_11(table, length, first_line, offset)
                              : ttm_python_line_3_10(table, length, first_line, offset);
}
