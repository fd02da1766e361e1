/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An interpreter that is not one: this program has the symbols that a libpython has,
 * and objects laid out as its version has them, or wrongly. So the sanitizers see
 * what they cannot see in a real one (tests/integration/test_stack_python.py). What is
 * found out about an interpreter is found out once, so each test runs in a child.
 */
#include "testing.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stack/python_layout.h"
#include "stack/stack.h"
#include "wire/origin.h"

#define EXPORT __attribute__((visibility("default")))
#define FRAMES 3u

/* What is looked for by name. */
EXPORT _Alignas(16) uint8_t PyCode_Type[512], PyUnicode_Type[512], PyBytes_Type[512],
    PyDict_Type[512];
EXPORT uint8_t _PyRuntime[512];
EXPORT void *PyGILState_GetThisThreadState(void);
EXPORT int Py_IsInitialized(void);
EXPORT const char *Py_GetVersion(void);
EXPORT void *_PyThreadState_UncheckedGet(void);
EXPORT int Py_AddPendingCall(int (*function)(void *), void *argument);
EXPORT void *PyInterpreterState_Get(void);
EXPORT void *PyInterpreterState_Main(void);
EXPORT int PyGILState_Ensure(void);
EXPORT void PyGILState_Release(int state);
EXPORT int PyGC_Disable(void);
EXPORT int PyGC_Enable(void);
EXPORT void *PyImport_GetModuleDict(void);
EXPORT void *PyModule_GetDict(void *module);
EXPORT void *PyDict_GetItemString(void *dict, const char *key);
EXPORT void *PyObject_Type(void *object);
EXPORT void *PyObject_CallFunctionObjArgs(void *function, ...);
EXPORT char PyModule_Type, PyCFunction_Type;
EXPORT void *PyImport_ImportModule(const char *name);
EXPORT void *PyCapsule_New(void *pointer, const char *name, void (*destroy)(void *));
EXPORT void *PyCFunction_NewEx(void *method, void *self, void *module);
EXPORT void *PyObject_CallMethod(void *object, const char *name, const char *format, ...);
EXPORT void *Py_BuildValue(const char *format, ...);
EXPORT void Py_DecRef(void *object);
EXPORT void PyErr_Clear(void);
EXPORT void PyMem_GetAllocator(int domain, void **ret);
EXPORT void PyMem_SetAllocator(int domain, void **allocator);
EXPORT void PyObject_GetArenaAllocator(void **ret);
EXPORT void PyObject_SetArenaAllocator(void **allocator);

static const char *version = "3.12.1 (main)";
static void *thread_state;
static int is_initialized = 1;

/* A real one keeps the state of each thread under a key. */
static struct {
    bool is_used;
    pthread_key_t key;
    _Atomic unsigned asked;
} states;

void *PyGILState_GetThisThreadState(void)
{
    if (!states.is_used)
        return thread_state;
    atomic_fetch_add(&states.asked, 1);
    return pthread_getspecific(states.key);
}

int Py_IsInitialized(void)
{
    return is_initialized;
}

const char *Py_GetVersion(void)
{
    return version;
}

/* What the door asks of an interpreter. An object is its own address and lives for ever. */
static struct {
    int (*pending)(void *);
    void (*destroy)(void *);
    void *(*call)(void *, void *);
    bool is_registered;
    bool refuses;
    bool is_other_interpreter;
    bool is_ending;                     /* whoever wants the GIL ends */
    bool is_collecting, was_collecting; /* now, and in register() */
    unsigned errors_cleared;
    void *allocators[3][5], *arenas[3];
    char object, modules, atexit, content, own_register;
    bool is_imported;                    /* atexit is in sys.modules */
    bool is_changed;                     /* its register() is the program's */
    sem_t wants_gil, gil, gave_gil_back; /* of who asks for it */
} fake = {.is_collecting = true};
static void *state_with_gil;

void *_PyThreadState_UncheckedGet(void)
{
    return state_with_gil;
}

int Py_AddPendingCall(int (*function)(void *), void *argument)
{
    (void)argument;
    fake.pending = function;
    return 0;
}

void *PyInterpreterState_Get(void)
{
    return fake.is_other_interpreter ? &fake.object : &fake.modules;
}

void *PyInterpreterState_Main(void)
{
    return &fake.modules;
}

int PyGILState_Ensure(void)
{
    assert_int_equal(sem_post(&fake.wants_gil), 0);
    assert_int_equal(sem_wait(&fake.gil), 0);
    if (fake.is_ending)
        pthread_exit(NULL);
    return 7;
}

void PyGILState_Release(int state)
{
    assert_int_equal(state, 7);
    assert_int_equal(sem_post(&fake.gave_gil_back), 0);
}

int PyGC_Disable(void)
{
    const int was_collecting = fake.is_collecting;

    fake.is_collecting = false;
    return was_collecting;
}

int PyGC_Enable(void)
{
    fake.is_collecting = true;
    return 0;
}

char PyModule_Type, PyCFunction_Type;

void *PyImport_GetModuleDict(void)
{
    return &fake.modules;
}

void *PyModule_GetDict(void *module)
{
    assert_ptr_equal(module, &fake.atexit);
    return &fake.content;
}

void *PyDict_GetItemString(void *dict, const char *key)
{
    if (dict == &fake.content) {
        assert_string_equal(key, "register");
        return fake.is_changed ? &fake.object : &fake.own_register;
    }
    assert_ptr_equal(dict, &fake.modules);
    assert_string_equal(key, "atexit");
    return fake.is_imported ? &fake.atexit : NULL;
}

void *PyObject_Type(void *object)
{
    if (object == &fake.atexit)
        return &PyModule_Type;
    return object == &fake.own_register ? &PyCFunction_Type : &fake.object;
}

static void *add_to_list(void)
{
    fake.was_collecting = fake.is_collecting;
    fake.is_registered = !fake.refuses;
    return fake.refuses ? NULL : &fake.object;
}

void *PyObject_CallFunctionObjArgs(void *function, ...)
{
    assert_ptr_equal(function, &fake.own_register);
    return add_to_list();
}

void *PyImport_ImportModule(const char *name)
{
    assert_string_equal(name, "atexit");
    return &fake.object;
}

void *PyCapsule_New(void *pointer, const char *name, void (*destroy)(void *))
{
    assert_non_null(pointer);
    assert_null(name);
    fake.destroy = destroy;
    return &fake.object;
}

void *PyCFunction_NewEx(void *method, void *self, void *module)
{
    assert_non_null(self);
    assert_null(module);
    memcpy(&fake.call, (char *)method + sizeof(char *), sizeof(fake.call));
    return &fake.object;
}

void *PyObject_CallMethod(void *object, const char *name, const char *format, ...)
{
    assert_non_null(object);
    assert_string_equal(name, "register");
    assert_string_equal(format, "O");
    return add_to_list();
}

void *Py_BuildValue(const char *format, ...)
{
    assert_string_equal(format, "");
    return &fake.object;
}

void Py_DecRef(void *object)
{
    assert_true(object == &fake.object || object == &PyModule_Type || object == &PyCFunction_Type);
}

void PyErr_Clear(void)
{
    fake.errors_cleared++;
}

void PyMem_GetAllocator(int domain, void **ret)
{
    memcpy(ret, fake.allocators[domain], sizeof(fake.allocators[domain]));
}

void PyMem_SetAllocator(int domain, void **allocator)
{
    memcpy(fake.allocators[domain], allocator, sizeof(fake.allocators[domain]));
}

void PyObject_GetArenaAllocator(void **ret)
{
    memcpy(ret, fake.arenas, sizeof(fake.arenas));
}

void PyObject_SetArenaAllocator(void **allocator)
{
    memcpy(fake.arenas, allocator, sizeof(fake.arenas));
}

static const struct ttm_python_layout *layout;
static _Alignas(16) uint8_t thread[256], cframe[64], frames[FRAMES][512], codes[FRAMES][256];
static _Alignas(16) uint8_t files[FRAMES][256], names[FRAMES][256], lines[64], instructions[64];

static void put_u64(uint8_t *object, size_t offset, uint64_t value)
{
    memcpy(object + offset, &value, sizeof(value));
}

static void put_u32(uint8_t *object, size_t offset, uint32_t value)
{
    memcpy(object + offset, &value, sizeof(value));
}

static void put_pointer(uint8_t *object, size_t offset, const void *pointer)
{
    put_u64(object, offset, (uintptr_t)pointer);
}

static void make_string(uint8_t *object, const char *text)
{
    put_pointer(object, TTM_OBJECT_TYPE, PyUnicode_Type);
    put_u64(object, TTM_STRING_LENGTH, strlen(text));
    put_u32(object, TTM_STRING_STATE, 1 << 2 | 1 << 5 | 1 << 6); /* one byte each, compact, ASCII */
    memcpy(object + layout->ascii_characters, text, strlen(text));
}

static void make_bytes(uint8_t *object, const void *bytes, size_t size)
{
    put_pointer(object, TTM_OBJECT_TYPE, PyBytes_Type);
    put_u64(object, TTM_OBJECT_SIZE, size);
    memcpy(object + TTM_BYTES_FIRST, bytes, size);
}

/* Ten instructions in line 7 + i. */
static void make_code(unsigned i)
{
    uint8_t *code = codes[i];
    char text[32];

    (void)snprintf(text, sizeof(text), "/data/u/file%u.py", i);
    make_string(files[i], text);
    (void)snprintf(text, sizeof(text), "function%u", i);
    make_string(names[i], text);
    put_pointer(code, TTM_OBJECT_TYPE, PyCode_Type);
    put_pointer(code, layout->code_file, files[i]);
    put_pointer(code, layout->code_name, names[i]);
    put_pointer(code, layout->code_lines, lines);
    put_u32(code, layout->code_first_line, 7 + i);
    if (layout->minor == 10)
        put_pointer(code, layout->code_instructions, instructions);
    else
        put_u64(code, TTM_OBJECT_SIZE, 10);
}

/* Innermost first; at its third instruction each. */
static void make_frame(unsigned i)
{
    put_pointer(frames[i], layout->frame_code, codes[i]);
    put_pointer(frames[i], layout->frame_back, i + 1 < FRAMES ? frames[i + 1] : NULL);
    if (layout->minor == 10)
        put_u32(frames[i], layout->frame_instruction, 2);
    else
        put_pointer(frames[i], layout->frame_instruction, codes[i] + layout->code_instructions + 4);
}

static void make_interpreter(const char *of_version)
{
    static const uint8_t pairs[] = {20, 0}, locations[] = {0x80 | 13 << 3 | 7, 0, 0x80 | 3 << 3, 0};

    version = of_version;
    layout = ttm_python_layout_find(version);
    assert_non_null(layout);
    if (layout->has_location_table)
        make_bytes(lines, locations, sizeof(locations));
    else
        make_bytes(lines, pairs, sizeof(pairs));
    make_bytes(instructions, "12345678901234567890", 20);
    for (unsigned i = 0; i < FRAMES; i++) {
        make_code(i);
        make_frame(i);
    }
    put_u64(thread, layout->thread_id, (uint64_t)pthread_self());
    put_pointer(thread, layout->thread_frame, layout->cframe_frame < 0 ? frames[0] : cframe);
    if (layout->cframe_frame >= 0)
        put_pointer(cframe, (size_t)layout->cframe_frame, frames[0]);
    thread_state = thread;
}

/* _Py_DebugOffsets of 3.13, as python_layout.c reads it. */
static void publish_offsets(void)
{
    memcpy(_PyRuntime, "xdebugpy", 8);
    put_u64(_PyRuntime, 184, layout->thread_frame);
    put_u64(_PyRuntime, 192, layout->thread_id);
    put_u64(_PyRuntime, 232, layout->frame_back);
    put_u64(_PyRuntime, 240, layout->frame_code);
    put_u64(_PyRuntime, 248, layout->frame_instruction);
    put_u64(_PyRuntime, 256, layout->frame_locals);
    put_u64(_PyRuntime, 264, layout->frame_owner);
    put_u64(_PyRuntime, 280, layout->code_file);
    put_u64(_PyRuntime, 296, layout->code_name);
    put_u64(_PyRuntime, 304, layout->code_lines);
    put_u64(_PyRuntime, 312, layout->code_first_line);
    put_u64(_PyRuntime, 344, layout->code_instructions);
}

static struct {
    uint32_t kind;
    uint32_t length;
    uint8_t bytes[TTM_NATIVE_STACK_NOTE_SIZE_MAX];
} notes[64];
static uint32_t note_count;

static uint32_t keep(uint32_t kind, const void *bytes, uint32_t length)
{
    if (note_count == COUNT_OF(notes) || length > sizeof(notes[0].bytes))
        return 0;
    notes[note_count].kind = kind;
    notes[note_count].length = length;
    memcpy(notes[note_count].bytes, bytes, length);
    return ++note_count;
}

static uint32_t capture(void)
{
    struct ttm_stack stack;

    ttm_stack_capture(&stack);
    return stack.python;
}

static void start(void)
{
    const struct ttm_stack_options options = {.python_frames = 2};

    ttm_stack_start(&options, keep);
}

/* The two innermost frames, with their lines and files. */
static void assert_captured(void)
{
    struct ttm_python_stack_note stack;
    struct ttm_code_note code;
    const uint32_t number = capture();

    assert_in_range(number, 1, note_count);
    assert_int_equal(notes[number - 1].kind, TTM_NOTE_PYTHON_STACK);
    assert_int_equal(
        ttm_python_stack_note_decode(notes[number - 1].bytes, notes[number - 1].length, &stack), 0);
    assert_int_equal(stack.count, 2);
    assert_true(stack.is_cut);
    for (unsigned i = 0; i < 2; i++) {
        const uint32_t of_code = stack.frames[i].code;
        assert_int_equal(stack.frames[i].line, 7 + i);
        assert_in_range(of_code, 1, note_count);
        assert_int_equal(
            ttm_code_note_decode(notes[of_code - 1].bytes, notes[of_code - 1].length, &code), 0);
        assert_int_equal(code.first_line, 7 + i);
        assert_memory_equal(code.file.bytes, files[i] + layout->ascii_characters, code.file.length);
        assert_memory_equal(code.name.bytes, names[i] + layout->ascii_characters, code.name.length);
    }
    const uint32_t count = note_count;
    assert_int_equal(capture(), number); /* known now */
    assert_int_equal(note_count, count);
}

/* Runs 'body' in a child; a failed assertion or a crash there is one here. */
static void in_child(void (*body)(void))
{
    int status = 1;

    const pid_t child = fork();
    if (child == 0) {
        body();
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void *unmapped(void)
{
    void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(page, MAP_FAILED);
    return page;
}

static void capture_3_10(void)
{
    make_interpreter("3.10.13 (main)");
    start();
    assert_captured();
}

static void capture_3_11(void)
{
    make_interpreter("3.11.7 (main)");
    start();
    assert_captured();
}

static void capture_3_12(void)
{
    make_interpreter("3.12.1 (main)");
    start();
    assert_captured();
    is_initialized = 0; /* it shuts down */
    assert_int_equal(capture(), 0);
    is_initialized = 1;
    thread_state = NULL; /* a thread that Python does not know */
    assert_int_equal(capture(), 0);
    thread_state = thread;
    put_u64(thread, layout->thread_id, 1); /* the state of another */
    assert_int_equal(capture(), 0);
}

static void capture_3_13(void)
{
    make_interpreter("3.13.0 (main)");
    publish_offsets();
    start();
    assert_captured();
}

static void each_version_is_read_by_its_layout(void **state)
{
    (void)state;

    in_child(capture_3_10);
    in_child(capture_3_11);
    in_child(capture_3_12);
    in_child(capture_3_13);
}

static void change_the_file(void)
{
    make_interpreter("3.10.13 (main)");
    start();
    assert_captured();
    make_string(files[0], "/data/u/other.py"); /* another object, in the same places */
    assert_captured();
}

/* The version and the file's address change together, in the same bits. */
static void change_version_and_file(void)
{
    static _Alignas(16) uint8_t other_file[256];
    const uint64_t difference = (uintptr_t)files[0] ^ (uintptr_t)other_file;

    make_interpreter("3.12.1 (main)");
    put_u32(codes[0], layout->code_version, 0x40000000);
    start();
    assert_captured();
    make_string(other_file, "/data/u/other.py");
    put_pointer(codes[0], layout->code_file, other_file);
    put_u32(codes[0], layout->code_version, 0x40000000 ^ (uint32_t)difference);
    memcpy(files[0], other_file, sizeof(other_file)); /* what assert_captured() expects */
    assert_captured();
}

static void another_code_object_at_the_same_address_is_another(void **state)
{
    (void)state;

    in_child(change_the_file);
    in_child(change_version_and_file);
}

/* PyTypeObject.tp_dealloc, of code objects. */
#define TYPE_DEALLOC 48

static unsigned deallocated;

static void dealloc_code(void *code)
{
    (void)code;
    deallocated++;
}

static void make_mortal_interpreter(const char *of_version)
{
    void (*dealloc)(void *) = dealloc_code;

    memcpy(PyCode_Type + TYPE_DEALLOC, &dealloc, sizeof(dealloc));
    make_interpreter(of_version);
    put_u32(codes[0], layout->code_version, 0); /* where there is none, this is nothing we read */
    start();
    (void)capture(); /* from the next one on, deaths are noticed */
}

static void die(void *code)
{
    void (*dealloc)(void *);
    const unsigned before = deallocated;

    memcpy(&dealloc, PyCode_Type + TYPE_DEALLOC, sizeof(dealloc));
    dealloc(code);
    assert_int_equal(deallocated, before + 1);
}

/* The second time, whatever lies there now, it is not looked at. From one stack pointer. */
static void assert_recalled_after(void *dead)
{
    uint8_t kept[sizeof(codes)];
    const uint32_t expected = capture();

    if (dead)
        die(dead);
    memcpy(kept, codes, sizeof(codes));
    for (unsigned i = 0; i < FRAMES; i++) {
        put_pointer(codes[i], layout->code_file, files[(i + 1) % FRAMES]);
        put_u32(codes[i], layout->code_first_line, 1000);
    }
    assert_int_equal(capture(), expected);
    memcpy(codes, kept, sizeof(codes));
}

static void die_and_come_back(const char *of_version)
{
    static _Alignas(16) uint8_t stranger[256];

    make_mortal_interpreter(of_version);
    assert_captured();
    assert_recalled_after(NULL);
    assert_recalled_after(stranger); /* which nobody has seen in a frame */
    for (unsigned i = 0; i < FRAMES; i++) {
        die(codes[i]);
        if (i < 2)
            make_string(files[i], i == 0 ? "/data/u/other.py" : "/data/u/third.py");
        assert_captured();
    }
    assert_recalled_after(NULL);
}

static void die_in_3_10(void)
{
    die_and_come_back("3.10.13 (main)");
}

static void die_in_3_11(void)
{
    die_and_come_back("3.11.7 (main)");
}

static void die_in_3_12(void)
{
    die_and_come_back("3.12.1 (main)");
}

static void a_stack_is_recalled_until_a_code_object_of_it_dies(void **state)
{
    (void)state;

    in_child(die_in_3_10);
    in_child(die_in_3_11);
    in_child(die_in_3_12);
}

/* With 'change' made and taken back again, by 'offset' of a frame. */
static void assert_other_with(unsigned frame, size_t offset, uint64_t change)
{
    const uint32_t number = capture();
    uint64_t was;

    memcpy(&was, frames[frame] + offset, sizeof(was));
    for (unsigned i = 0; i < 3; i++) {
        put_u64(frames[frame], offset, change);
        assert_int_not_equal(capture(), number);
        put_u64(frames[frame], offset, was);
        assert_int_equal(capture(), number);
    }
    assert_recalled_after(NULL);
}

static void move_on(const char *of_version)
{
    make_mortal_interpreter(of_version);
    for (unsigned i = 0; i < 2; i++) {
        assert_other_with(
            i, layout->frame_instruction,
            layout->minor == 10 ? 3 : (uintptr_t)codes[i] + layout->code_instructions + 6);
        if (layout->minor == 10) /* later on, an instruction says which code it is of */
            assert_other_with(i, layout->frame_code, (uintptr_t)codes[2]);
        assert_other_with(i, layout->frame_back, i == 0 ? (uintptr_t)frames[2] : 0);
    }
    if (layout->frame_owner != 0) { /* before its first instruction, unless it is a generator's */
        uint64_t owner;

        put_u32(codes[0], layout->code_first_traceable, 9);
        die(codes[0]);
        memcpy(&owner, frames[0] + layout->frame_owner, sizeof(owner));
        assert_other_with(0, layout->frame_owner, owner | TTM_OWNED_BY_GENERATOR);
    }
}

static void move_on_in_3_10(void)
{
    move_on("3.10.13 (main)");
}

static void move_on_in_3_12(void)
{
    move_on("3.12.1 (main)");
}

static void a_stack_whose_frames_are_elsewhere_is_another(void **state)
{
    (void)state;

    in_child(move_on_in_3_10);
    in_child(move_on_in_3_12);
}

static void refuse_version(void)
{
    static const char *const versions[] = {"3.9.1",  "3.14.0", "3.13.0 experimental free-threading",
                                           "2.7.18", "",       "3.x"};

    for (unsigned i = 0; i < COUNT_OF(versions); i++)
        assert_null(ttm_python_layout_find(versions[i]));
    version = "3.14.0 (main)";
    thread_state = unmapped();
    start();
    assert_int_equal(capture(), 0);
    assert_non_null(strstr(ttm_stack_trouble(), "3.14.0"));
}

static void refuse_offsets(void)
{
    make_interpreter("3.13.9 (main)");
    publish_offsets();
    put_u64(_PyRuntime, 344, layout->code_instructions + 8u);
    start();
    assert_int_equal(capture(), 0);
    assert_non_null(strstr(ttm_stack_trouble(), "layout"));
}

static void doubt_thread(void)
{
    make_interpreter("3.12.1 (main)");
    thread_state = unmapped();
    start();
    assert_int_equal(capture(), 0);
    assert_non_null(strstr(ttm_stack_trouble(), "thread states"));
    thread_state = thread; /* another thread, whose state is as it should be */
    assert_captured();
    assert_string_equal(ttm_stack_trouble(), "");
}

static void refuse_frame(void)
{
    make_interpreter("3.12.1 (main)");
    put_pointer(cframe, 0, unmapped());
    start();
    assert_int_equal(capture(), 0);
    assert_non_null(strstr(ttm_stack_trouble(), "not as expected"));
}

static void refuse_code(void)
{
    make_interpreter("3.11.7 (main)");
    put_pointer(codes[1], TTM_OBJECT_TYPE, PyDict_Type); /* the second frame's */
    start();
    assert_int_equal(capture(), 0);
    assert_non_null(strstr(ttm_stack_trouble(), "not as expected"));
}

static void refuse_string(void)
{
    make_interpreter("3.10.13 (main)");
    put_pointer(codes[0], layout->code_file, unmapped());
    start();
    assert_int_equal(capture(), 0);
    assert_non_null(strstr(ttm_stack_trouble(), "not as expected"));
}

static void refuse_instruction(void)
{
    make_interpreter("3.12.1 (main)");
    put_u64(frames[0], layout->frame_instruction, (uintptr_t)codes[0] + 4096);
    start();
    assert_int_equal(capture(), 0);
    assert_non_null(strstr(ttm_stack_trouble(), "not as expected"));
}

static void a_layout_that_does_not_hold_gives_no_frames_and_says_so(void **state)
{
    (void)state;

    in_child(refuse_version);
    in_child(refuse_offsets);
    in_child(doubt_thread);
    in_child(refuse_frame);
    in_child(refuse_code);
    in_child(refuse_string);
    in_child(refuse_instruction);
}

/* A second thread, whose state the stand-in gives to all; it captures when it is told to. */
static struct {
    pthread_t thread;
    pthread_barrier_t turn;
    uint32_t python;
    _Atomic bool is_in_note;
    _Atomic bool is_held;
} other;

static uint32_t keep_and_hold(uint32_t kind, const void *bytes, uint32_t length)
{
    if (pthread_equal(pthread_self(), other.thread) && kind == TTM_NOTE_CODE) {
        atomic_store(&other.is_in_note, true);
        while (atomic_load(&other.is_held))
            usleep(100);
    }
    return keep(kind, bytes, length);
}

static void *capture_in_turns(void *turns)
{
    put_u64(thread, layout->thread_id, (uint64_t)pthread_self());
    for (unsigned i = 0; i < *(const unsigned *)turns; i++) {
        pthread_barrier_wait(&other.turn);
        other.python = capture();
        pthread_barrier_wait(&other.turn);
    }
    return NULL;
}

static void start_other(const unsigned *turns)
{
    const struct ttm_stack_options options = {.python_frames = 2};

    make_interpreter("3.12.1 (main)");
    ttm_stack_start(&options, keep_and_hold);
    assert_int_equal(pthread_barrier_init(&other.turn, NULL, 2), 0);
    assert_int_equal(pthread_create(&other.thread, NULL, capture_in_turns, (void *)turns), 0);
}

static uint32_t others_turn(void)
{
    pthread_barrier_wait(&other.turn);
    pthread_barrier_wait(&other.turn);
    return other.python;
}

static void open_and_shut(void)
{
    static const unsigned turns = 6;

    start_other(&turns);
    assert_non_null(fake.pending); /* asked at the start */
    assert_int_equal(others_turn(), 0);
    state_with_gil = thread;
    assert_int_not_equal(others_turn(), 0); /* it has the GIL */
    state_with_gil = NULL;
    assert_int_equal(fake.pending(NULL), 0);
    assert_true(fake.is_registered);
    assert_int_not_equal(others_turn(), 0);
    assert_non_null(fake.call(NULL, NULL)); /* atexit */
    assert_int_equal(others_turn(), 0);

    fake.pending = NULL; /* it goes on all the same: the main thread asks again */
    (void)capture();
    assert_non_null(fake.pending);
    assert_int_equal(fake.pending(NULL), 0);
    assert_int_not_equal(others_turn(), 0);
    fake.destroy(NULL); /* dropped from the list */
    assert_int_equal(others_turn(), 0);
    assert_int_equal(pthread_join(other.thread, NULL), 0);
    assert_null(fake.allocators[0][4]); /* nobody was inside */
}

static void *start_elsewhere(void *turns)
{
    start_other(turns);
    return NULL;
}

/* As a server is: it opens the device in a thread, and the main thread comes to no instruction. */
static void start_while_main_waits(const unsigned *turns)
{
    pthread_t starter;

    assert_int_equal(sem_init(&fake.wants_gil, 0, 0), 0);
    assert_int_equal(sem_init(&fake.gil, 0, 0), 0);
    assert_int_equal(sem_init(&fake.gave_gil_back, 0, 0), 0);
    assert_int_equal(pthread_create(&starter, NULL, start_elsewhere, (void *)turns), 0);
    assert_int_equal(pthread_join(starter, NULL), 0); /* it has not waited for the GIL */
    assert_null(fake.pending);
    assert_int_equal(sem_wait(&fake.wants_gil), 0);
    assert_int_equal(others_turn(), 0);
    assert_int_equal(sem_post(&fake.gil), 0);
}

static void open_while_main_waits(void)
{
    static const unsigned turns = 3;

    start_while_main_waits(&turns);
    assert_int_equal(sem_wait(&fake.gave_gil_back), 0);
    assert_true(fake.is_registered && !fake.was_collecting && fake.is_collecting);
    assert_int_not_equal(others_turn(), 0);
    assert_non_null(fake.call(NULL, NULL)); /* atexit */
    assert_int_equal(others_turn(), 0);
    assert_int_equal(pthread_join(other.thread, NULL), 0);
}

/* As ttnn has the GIL while it opens a device. */
static void open_with_gil(void)
{
    static const unsigned turns = 2;

    start_other(&turns);
    fake.is_imported = true;
    ttm_stack_use_gil();
    assert_false(fake.is_registered); /* another has it */
    state_with_gil = thread;
    fake.is_other_interpreter = true;
    ttm_stack_use_gil();
    assert_false(fake.is_registered); /* that one may end before the first one does */
    fake.is_other_interpreter = false;
    fake.is_changed = true;
    ttm_stack_use_gil();
    assert_false(fake.is_registered); /* it would take Python code */
    fake.is_imported = fake.is_changed = false;
    ttm_stack_use_gil();
    assert_false(fake.is_registered);
    fake.is_imported = true;
    ttm_stack_use_gil();
    assert_true(fake.is_registered && !fake.was_collecting && fake.is_collecting);
    state_with_gil = NULL;
    assert_int_not_equal(others_turn(), 0);
    fake.destroy(NULL); /* dropped from the list */
    assert_int_equal(others_turn(), 0);
    assert_int_equal(pthread_join(other.thread, NULL), 0);
}

static void end_while_main_waits(void)
{
    static const unsigned turns = 2;

    fake.is_ending = true;
    start_while_main_waits(&turns);
    assert_int_equal(others_turn(), 0);
    assert_int_equal(pthread_join(other.thread, NULL), 0);
    assert_false(fake.is_registered);
}

static void wait_for_one_inside(bool is_stuck)
{
    static const unsigned turns = 1;

    other.is_held = true;
    start_other(&turns);
    assert_int_equal(fake.pending(NULL), 0);
    pthread_barrier_wait(&other.turn);
    while (!atomic_load(&other.is_in_note))
        usleep(100);
    if (!is_stuck)
        atomic_store(&other.is_held, false);
    assert_non_null(fake.call(NULL, NULL));
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(fake.allocators[i][4] != NULL, is_stuck);
        assert_null(fake.allocators[i][3]); /* as it was */
    }
    assert_int_equal(fake.arenas[2] != NULL, is_stuck);
    atomic_store(&other.is_held, false);
    pthread_barrier_wait(&other.turn);
    assert_int_equal(pthread_join(other.thread, NULL), 0);
}

static void wait_for_one_that_leaves(void)
{
    wait_for_one_inside(false);
}

static void wait_for_one_that_stays(void)
{
    wait_for_one_inside(true);
}

static void refuse_to_register(void)
{
    static const unsigned turns = 1;

    fake.refuses = true;
    start_other(&turns);
    assert_int_equal(fake.pending(NULL), 0);
    assert_int_equal(fake.errors_cleared, 1);
    assert_int_equal(others_turn(), 0);
    assert_int_equal(pthread_join(other.thread, NULL), 0);
}

static unsigned frames_of(uint32_t number)
{
    struct ttm_python_stack_note stack;

    assert_in_range(number, 1, note_count);
    assert_int_equal(
        ttm_python_stack_note_decode(notes[number - 1].bytes, notes[number - 1].length, &stack), 0);
    return stack.count;
}

/* The innermost frame is ttnn's, as the outermost tells, but only the other thread looks there. */
static void learn_package_elsewhere(void)
{
    static const unsigned turns = 2, expected[] = {2, 2, 1};
    void (*dealloc)(void *) = dealloc_code;

    memcpy(PyCode_Type + TYPE_DEALLOC, &dealloc, sizeof(dealloc));
    start_other(&turns);
    make_string(files[0], "/data/u/ttnn/inner.py");
    make_string(files[2], "/data/u/ttnn/decorators.py");
    make_string(names[2], "__call__");
    state_with_gil = thread;
    assert_int_equal(frames_of(others_turn()), 2);
    for (unsigned i = 0; i < COUNT_OF(expected); i++) {
        if (i == 2) {
            put_pointer(cframe, (size_t)layout->cframe_frame, frames[2]);
            put_u64(thread, layout->thread_id, (uint64_t)other.thread);
            (void)others_turn();
            put_pointer(cframe, (size_t)layout->cframe_frame, frames[0]);
        }
        put_u64(thread, layout->thread_id, (uint64_t)pthread_self());
        assert_int_equal(frames_of(capture()), expected[i]);
    }
    assert_int_equal(pthread_join(other.thread, NULL), 0);
}

/* In pages of its own, as it may go. */
static void *make_state(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(page, MAP_FAILED);
    memcpy(page, thread, sizeof(thread));
    return page;
}

/* Under a key of Python's, and one of another library that was there before. */
static void keep_state(void *own_state)
{
    pthread_key_t others;

    states.is_used = true;
    assert_int_equal(pthread_key_create(&others, NULL), 0);
    assert_int_equal(pthread_setspecific(others, own_state), 0);
    assert_int_equal(pthread_key_create(&states.key, NULL), 0);
    assert_int_equal(pthread_setspecific(states.key, own_state), 0);
}

static void assert_captured_without_asking(void)
{
    assert_captured(); /* the door may just have been opened */
    const unsigned before = states.asked;
    assert_captured();
    assert_int_equal(states.asked, before);
}

static void *capture_with_own_state(void *own_state)
{
    assert_int_equal(capture(), 0); /* has none yet */
    put_u64(own_state, layout->thread_id, (uint64_t)pthread_self());
    assert_int_equal(pthread_setspecific(states.key, own_state), 0);
    assert_captured_without_asking();
    assert_int_equal(pthread_setspecific(states.key, NULL), 0);
    assert_int_equal(capture(), 0);
    return NULL;
}

static void read_states_without_asking(void)
{
    pthread_t second;

    make_interpreter("3.12.1 (main)");
    keep_state(thread);
    start();
    assert_int_equal(fake.pending(NULL), 0);
    assert_captured_without_asking();
    assert_int_equal(pthread_setspecific(states.key, NULL), 0); /* the other key still has it */
    assert_int_equal(capture(), 0);
    assert_int_equal(pthread_setspecific(states.key, thread), 0);
    assert_captured_without_asking();
    assert_int_equal(pthread_create(&second, NULL, capture_with_own_state, make_state()), 0);
    assert_int_equal(pthread_join(second, NULL), 0);
    ttm_stack_forget();
    assert_captured_without_asking();
}

/* The next interpreter has another key, and the word of the last one still leads to what is gone. */
static void read_states_of_the_next_interpreter(void)
{
    pthread_key_t in_its_place;

    make_interpreter("3.12.1 (main)");
    void *first = make_state(), *second = make_state();
    keep_state(first);
    start();
    assert_int_equal(fake.pending(NULL), 0);
    assert_captured_without_asking();
    fake.pending = NULL;
    assert_non_null(fake.call(NULL, NULL)); /* atexit */
    assert_int_equal(pthread_key_delete(states.key), 0);
    assert_int_equal(munmap(first, 4096), 0);
    assert_int_equal(pthread_key_create(&in_its_place, NULL), 0);
    keep_state(second);
    assert_captured();
    assert_int_equal(fake.pending(NULL), 0);
    assert_captured_without_asking();
}

static void the_state_of_a_thread_is_read_where_python_keeps_it(void **state)
{
    (void)state;

    in_child(read_states_without_asking);
    in_child(read_states_of_the_next_interpreter);
}

static void a_thread_hears_where_ttnn_is_from_another(void **state)
{
    (void)state;

    in_child(learn_package_elsewhere);
}

static void threads_read_only_while_the_end_would_wait_for_them(void **state)
{
    (void)state;

    in_child(open_and_shut);
    in_child(refuse_to_register);
}

static void threads_have_frames_while_the_main_thread_waits_for_them(void **state)
{
    (void)state;

    in_child(open_while_main_waits);
    in_child(open_with_gil);
    in_child(end_while_main_waits);
}

static void the_end_waits_for_who_is_inside_or_keeps_the_memory(void **state)
{
    (void)state;

    in_child(wait_for_one_that_leaves);
    in_child(wait_for_one_that_stays);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_version_is_read_by_its_layout),
        cmocka_unit_test(another_code_object_at_the_same_address_is_another),
        cmocka_unit_test(a_stack_is_recalled_until_a_code_object_of_it_dies),
        cmocka_unit_test(a_stack_whose_frames_are_elsewhere_is_another),
        cmocka_unit_test(a_layout_that_does_not_hold_gives_no_frames_and_says_so),
        cmocka_unit_test(the_state_of_a_thread_is_read_where_python_keeps_it),
        cmocka_unit_test(a_thread_hears_where_ttnn_is_from_another),
        cmocka_unit_test(threads_read_only_while_the_end_would_wait_for_them),
        cmocka_unit_test(threads_have_frames_while_the_main_thread_waits_for_them),
        cmocka_unit_test(the_end_waits_for_who_is_inside_or_keeps_the_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
