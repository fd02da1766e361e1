/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why this needs no GIL. A thread's frames are changed by that thread alone, when
 * it runs Python code; while it is in here, it does not. A frame keeps its code
 * object alive, and that its file name, name and line table, none of which ever
 * change. PyGILState_GetThisThreadState() reads a thread-local and no more.
 *
 * How the layout is proven. The offsets (python_layout.c) are no promise of
 * Python's, so before the first frame is believed, everything is looked at with
 * the kernel asked first (probe.h): the thread state must name this very thread,
 * the frames must lead to objects whose type is PyCode_Type, those to strings and
 * bytes by their types, with an instruction within the code and lines within
 * reason. A table that is wrong in any place does not pass by chance, since each check
 * is on a 64-bit address that the loader told us. 3.13 moreover publishes its
 * offsets. A comparison with the public API would need the GIL: the first event
 * comes from a thread that has just let go of it, Py_AddPendingCall() would run
 * code of ours inside the interpreter at some later time, and the allocations
 * before that would go without lines. Where the proof fails, there are no Python frames, and ttm_python_trouble() says so.
 *
 * Code objects die, and their addresses are used again. What is known of a code
 * object is therefore kept under its address and a stamp: its version number, which
 * 3.12 and newer give to no two, else a mix of the addresses, lengths and ends of its strings and
 * tables. Another code object at the same address with the same stamp has the same
 * file, name and lines for every practical purpose.
 *
 * Lines are looked up when a stack is new, not later: a table can be large, a line
 * is four bytes, and two instructions of one line are then the same stack.
 *
 * The end. Py_IsInitialized() becomes false before an interpreter takes its first
 * thread state down; from then on there are no frames. A daemon thread that is
 * interrupted in the middle of a walk, for as long as it takes the main thread to
 * get from there to unmapping that thread's frames (3.11 and newer), would read
 * unmapped memory. Nothing short of a lock closes that window of some hundred
 * nanoseconds, at the end of the process, in threads that Python itself stops.
 */
#include "stack/python.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "stack/probe.h"
#include "stack/python_layout.h"
#include "stack/python_lines.h"
#include "stack/python_object.h"
#include "wire/origin.h"

#define CODES_BITS 9
#define STACKS_BITS 10
#define OPERATIONS_BITS 7
#define RAW_FRAMES_MAX 256u     /* of all frames that are passed, ttnn's among them */
#define DEPTH_MAX 100000u       /* on the way to a thread's outermost frame */
#define LINES_BYTES_MAX 262144u /* a larger table is not read: the first line stands for all */
#define PROVEN_FRAMES 4u
#define FIRST_LINE_MAX 100000000u
#define NOT_BEGUN (2 * UINT32_MAX) /* 3.10: f_lasti is -1 */

enum state { ABSENT, FOUND, PROVEN, REFUSED };

/* What is known of the interpreter. All but 'state' is written before it says FOUND. */
static struct {
    _Atomic int state;
    _Atomic bool has_doubt; /* threads were met whose state does not name them, and no others yet */
    struct ttm_python_view view;
    void *(*this_thread_state)(void);
    int (*is_initialized)(void);
    char trouble[160];
} interpreter;

/* The folder of the ttnn package, with a slash at its end, once it was seen. */
static struct {
    _Atomic int state; /* 0: not seen, 1: being written, 2: there */
    uint16_t length;
    char folder[TTM_CODE_FILE_MAX];
} package;

struct code {
    uint64_t address;
    uint64_t stamp;
    uint32_t note;
    bool is_ttnn;
    bool is_operation; /* __call__ of ttnn/decorators.py */
};

struct known_stack {
    uint64_t key;
    uint32_t note;
    uint32_t is_used;
};

struct operation {
    uint64_t object;
    uint64_t type;
    uint32_t note;
};

struct ttm_python {
    unsigned frames;
    bool knows_package;
    struct code codes[1u << CODES_BITS];
    struct known_stack stacks[1u << STACKS_BITS];
    struct operation operations[1u << OPERATIONS_BITS];
};

/* A walk, and what it has found. */
struct walk {
    struct ttm_python *python;
    ttm_stack_note_fn note;
    uint8_t *scratch;
    uint64_t key;
    uint64_t operation; /* the object, 0: none */
    unsigned count;
    bool is_cut;
    uint64_t addresses[TTM_PYTHON_FRAMES_MAX]; /* of code objects */
    uint32_t notes[TTM_PYTHON_FRAMES_MAX];
    uint32_t offsets[TTM_PYTHON_FRAMES_MAX];
};

static void refuse(const char *why, const char *version)
{
    (void)snprintf(interpreter.trouble, sizeof(interpreter.trouble), "no Python frames: %s (%.20s)",
                   why, version);
    /* release: pairs with the acquire in ttm_python_trouble(). */
    atomic_store_explicit(&interpreter.state, REFUSED, memory_order_release);
}

const char *ttm_python_trouble(void)
{
    /* acquire: pairs with the release in refuse(). */
    const int state = atomic_load_explicit(&interpreter.state, memory_order_acquire);

    if (state == REFUSED)
        return interpreter.trouble;
    /* relaxed: a hint for people. */
    if (state == FOUND && atomic_load_explicit(&interpreter.has_doubt, memory_order_relaxed))
        return "no Python frames: its thread states are not as expected";
    return "";
}

/* For a libpython that was loaded privately; the symbols of others are found by default. */
static int name_libpython(struct dl_phdr_info *info, size_t size, void *ret)
{
    const char *name = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    (void)size;

    if (!name || strncmp(name, "/libpython3.", 12) != 0)
        return 0;
    *(const char **)ret = info->dlpi_name;
    return 1;
}

static bool find_library(void **ret)
{
    const char *name = NULL;

    *ret = RTLD_DEFAULT;
    if (dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState"))
        return true;
    if (dl_iterate_phdr(name_libpython, &name) == 0)
        return false;
    *ret = dlopen(name, RTLD_LAZY | RTLD_NOLOAD); /* never closed: we keep its functions */
    return *ret != NULL;
}

/* ISO C has no cast between functions and objects. */
static bool find_function(void *library, const char *name, void *ret)
{
    void *symbol = dlsym(library, name);

    memcpy(ret, &symbol, sizeof(symbol));
    return symbol != NULL;
}

static bool find_type(void *library, const char *name, uintptr_t *ret)
{
    *ret = (uintptr_t)dlsym(library, name);
    return *ret != 0;
}

void ttm_python_find(void)
{
    struct ttm_python_types *types = &interpreter.view.types;
    const char *(*get_version)(void);
    void *library;

    /* relaxed: one caller at a time, and only it writes. */
    if (atomic_load_explicit(&interpreter.state, memory_order_relaxed) != ABSENT)
        return;
    if (!find_library(&library) ||
        !find_function(library, "PyGILState_GetThisThreadState", &interpreter.this_thread_state) ||
        !find_function(library, "Py_IsInitialized", &interpreter.is_initialized) ||
        !find_function(library, "Py_GetVersion", &get_version))
        return;

    const char *version = get_version();
    interpreter.view.layout = ttm_python_layout_find(version);
    if (!interpreter.view.layout) {
        refuse("this version is not known", version);
        return;
    }
    if (!find_type(library, "PyCode_Type", &types->code) ||
        !find_type(library, "PyUnicode_Type", &types->string) ||
        !find_type(library, "PyBytes_Type", &types->bytes) ||
        !find_type(library, "PyDict_Type", &types->dict) ||
        !ttm_python_layout_agrees(interpreter.view.layout, dlsym(library, "_PyRuntime"))) {
        refuse("this build of it has another layout", version);
        return;
    }
    /* release: pairs with the acquire in thread_state(). */
    atomic_store_explicit(&interpreter.state, FOUND, memory_order_release);
}

size_t ttm_python_size(void)
{
    return sizeof(struct ttm_python);
}

void ttm_python_init(struct ttm_python *python, unsigned frames)
{
    python->frames = frames < TTM_PYTHON_FRAMES_MAX ? frames : TTM_PYTHON_FRAMES_MAX;
}

void ttm_python_forget(struct ttm_python *python)
{
    memset(python->codes, 0, sizeof(python->codes));
    memset(python->stacks, 0, sizeof(python->stacks));
    memset(python->operations, 0, sizeof(python->operations));
}

/* The innermost frame of a thread state, 0 for none. */
static inline uintptr_t first_frame(const struct ttm_python_layout *layout, uintptr_t thread)
{
    const uintptr_t first = ttm_load_u64(thread + layout->thread_frame);

    if (layout->cframe_frame < 0 || first == 0)
        return first;
    return ttm_load_u64(first + (uintptr_t)layout->cframe_frame);
}

/* How many bytes into its code a frame is. */
static inline uint32_t instruction_offset(const struct ttm_python_layout *layout, uintptr_t frame,
                                          uintptr_t code)
{
    if (layout->minor == 10)
        return 2 * ttm_load_u32(frame + layout->frame_instruction);
    return (uint32_t)(ttm_load_u64(frame + layout->frame_instruction) - code -
                      layout->code_instructions);
}

/* Frames of C, and frames whose function has not quite begun: Python does not show them either. */
static inline bool is_shown(const struct ttm_python_layout *layout, uintptr_t frame, uintptr_t code)
{
    if (layout->frame_owner == 0)
        return true;
    const uint8_t owner = ttm_load_u8(frame + layout->frame_owner);
    const uintptr_t first = code + layout->code_instructions +
                            2 * (uintptr_t)ttm_load_u32(code + layout->code_first_traceable);

    return owner == TTM_OWNED_BY_GENERATOR ||
           ttm_load_u64(frame + layout->frame_instruction) >= first;
}

static inline bool is_of_c(const struct ttm_python_layout *layout, uintptr_t frame)
{
    return layout->minor >= 12 && ttm_load_u8(frame + layout->frame_owner) == TTM_OWNED_BY_C_STACK;
}

/* Is it a code object in every field that we use? */
static bool prove_code(uintptr_t code)
{
    const struct ttm_python_view *view = &interpreter.view;
    const struct ttm_python_layout *layout = view->layout;

    return ttm_python_is(code, view->types.code, (size_t)layout->code_instructions + 8) &&
           ttm_python_is(ttm_load_u64(code + layout->code_file), view->types.string, 48) &&
           ttm_python_is(ttm_load_u64(code + layout->code_name), view->types.string, 48) &&
           ttm_python_is(ttm_load_u64(code + layout->code_lines), view->types.bytes, 40) &&
           ttm_load_u32(code + layout->code_first_line) < FIRST_LINE_MAX &&
           (layout->minor > 10 ||
            ttm_python_is(ttm_load_u64(code + layout->code_instructions), view->types.bytes, 40));
}

/* Bytes of instructions that a proven code object has. */
static uint64_t code_size(uintptr_t code)
{
    const struct ttm_python_layout *layout = interpreter.view.layout;

    if (layout->minor == 10)
        return ttm_load_u64(ttm_load_u64(code + layout->code_instructions) + TTM_OBJECT_SIZE);
    return 2 * ttm_load_u64(code + TTM_OBJECT_SIZE);
}

/* A frame on the way to the proof; 'ret_back' is its caller. */
static bool prove_frame(uintptr_t frame, uint64_t *ret_back)
{
    const struct ttm_python_layout *layout = interpreter.view.layout;

    if (frame % 8 != 0 || !ttm_probe(frame, (size_t)layout->frame_instruction + 16))
        return false;
    *ret_back = ttm_load_u64(frame + layout->frame_back);
    if (is_of_c(layout, frame))
        return true;
    const uintptr_t code = ttm_load_u64(frame + layout->frame_code);

    if (!prove_code(code))
        return false;
    const uint32_t offset = instruction_offset(layout, frame, code);
    return offset <= code_size(code) || (layout->minor == 10 && offset == NOT_BEGUN);
}

/* Returns false for as long as there is nothing to prove it by. */
static bool prove(uintptr_t thread)
{
    const struct ttm_python_layout *layout = interpreter.view.layout;
    uint64_t id, frame;

    if (!ttm_probe_u64(thread + layout->thread_id, &id) || id != (uint64_t)pthread_self() ||
        !ttm_probe_u64(thread + layout->thread_frame, &frame) ||
        (frame != 0 && layout->cframe_frame >= 0 &&
         !ttm_probe_u64(frame + (uintptr_t)layout->cframe_frame, &frame))) {
        /* It may be this thread alone: a state that one thread has made and another uses. */
        atomic_store_explicit(&interpreter.has_doubt, true, memory_order_relaxed);
        return false;
    }
    if (frame == 0)
        return false;
    for (unsigned i = 0; i < PROVEN_FRAMES && frame != 0; i++) {
        if (!prove_frame(frame, &frame)) {
            refuse("its frames are not as expected", "");
            return false;
        }
    }
    /* relaxed: it adds nothing that others read. */
    atomic_store_explicit(&interpreter.state, PROVEN, memory_order_relaxed);
    return true;
}

/* This thread's state in an interpreter that can be read, 0 for none. */
static uintptr_t thread_state(void)
{
    /* acquire: pairs with the release in ttm_python_find(). */
    const int state = atomic_load_explicit(&interpreter.state, memory_order_acquire);

    if ((state != FOUND && state != PROVEN) || !interpreter.is_initialized())
        return 0;
    const uintptr_t thread = (uintptr_t)interpreter.this_thread_state();
    if (thread == 0 || (state == FOUND && !prove(thread)))
        return 0;
    /* A state that was left behind by a thread that had our number must not be followed. */
    if (ttm_load_u64(thread + interpreter.view.layout->thread_id) != (uint64_t)pthread_self())
        return 0;
    return thread;
}

static inline uint64_t mix(uint64_t a, uint64_t b)
{
    a = (a ^ b) * 0x9e3779b97f4a7c15ull;
    return a ^ a >> 32;
}

/* The last eight bytes of 'size', fewer as they are. */
TTM_READS_FOREIGN static inline uint64_t last_bytes(uintptr_t first, uint64_t size)
{
    uint64_t value = 0;

    if (size >= 8)
        return *(const uint64_t *)(first + size - 8);
    for (uint64_t i = 0; i < size; i++)
        value = value << 8 | ttm_load_u8(first + i);
    return value;
}

/* Tells code objects apart that had the same address, one after the other. */
TTM_READS_FOREIGN static inline uint64_t stamp_of(const struct ttm_python_layout *layout,
                                                  uintptr_t code)
{
    const uintptr_t file = ttm_load_u64(code + layout->code_file);

    if (layout->code_version != 0) {
        const uint64_t version = ttm_load_u32(code + layout->code_version);
        if (version != 0)
            return mix(version, file);
    }
    const uintptr_t name = ttm_load_u64(code + layout->code_name);
    const uintptr_t lines = ttm_load_u64(code + layout->code_lines);
    const uint64_t length = ttm_load_u64(file + TTM_STRING_LENGTH);
    const uint32_t state = ttm_load_u32(file + TTM_STRING_STATE);
    const uintptr_t characters =
        file + (state >> 6 & 1 ? layout->ascii_characters : layout->compact_characters);
    const uint64_t lines_size = ttm_load_u64(lines + TTM_OBJECT_SIZE);

    uint64_t stamp = mix(file, ttm_load_u32(code + layout->code_first_line));
    stamp = mix(stamp, name ^ length << 48);
    stamp = mix(stamp, ttm_load_u64(name + TTM_STRING_HASH) ^ lines);
    stamp = mix(stamp, last_bytes(characters, length * (state >> 2 & 7)));
    return mix(stamp, last_bytes(lines + TTM_BYTES_FIRST, lines_size) ^ lines_size << 32);
}

static bool ends_with(struct ttm_note_text text, const char *end)
{
    const size_t length = strlen(end);

    return text.length >= length && memcmp(text.bytes + text.length - length, end, length) == 0;
}

static bool begins_with_package(struct ttm_note_text file)
{
    /* acquire: pairs with the release in learn_package(). */
    return atomic_load_explicit(&package.state, memory_order_acquire) == 2 &&
           file.length > package.length && memcmp(file.bytes, package.folder, package.length) == 0;
}

/* ".../ttnn/decorators.py" tells where the package is. */
static void learn_package(struct ttm_note_text file)
{
    int expected = 0;

    /* relaxed: whoever changes it writes; the store below publishes. */
    if (!atomic_compare_exchange_strong_explicit(&package.state, &expected, 1, memory_order_relaxed,
                                                 memory_order_relaxed))
        return;
    package.length = (uint16_t)(file.length - strlen("decorators.py"));
    memcpy(package.folder, file.bytes, package.length);
    /* release: pairs with the acquire in begins_with_package(). */
    atomic_store_explicit(&package.state, 2, memory_order_release);
}

/* A code object that is new: asked about everything. */
static void learn_code(struct walk *walk, uintptr_t address, uint64_t stamp, struct code *ret)
{
    const struct ttm_python_view *view = &interpreter.view;
    char *file = (char *)walk->scratch, *name = file + TTM_CODE_FILE_MAX;
    uint8_t *bytes = walk->scratch + TTM_CODE_FILE_MAX + TTM_CODE_NAME_MAX;

    *ret = (struct code){.address = address, .stamp = stamp};
    const int file_length = ttm_python_text(view, ttm_load_u64(address + view->layout->code_file),
                                            TTM_KEEP_TAIL, file, TTM_CODE_FILE_MAX);
    const int name_length = ttm_python_text(view, ttm_load_u64(address + view->layout->code_name),
                                            TTM_KEEP_HEAD, name, TTM_CODE_NAME_MAX);
    if (file_length < 0 || name_length < 0)
        return;

    const struct ttm_code_note content = {
        .first_line = ttm_load_u32(address + view->layout->code_first_line),
        .file = {file, (uint16_t)file_length},
        .name = {name, (uint16_t)name_length},
    };
    const bool is_decorator =
        ends_with(content.file, "/ttnn/decorators.py") && ends_with(content.name, "__call__");
    if (is_decorator)
        learn_package(content.file);
    ret->is_ttnn = begins_with_package(content.file);
    ret->is_operation = is_decorator && ret->is_ttnn;
    if (!ret->is_ttnn) {
        const size_t size = ttm_code_note_encode(&content, bytes);
        ret->note = walk->note(TTM_NOTE_CODE, bytes, (uint32_t)size);
    }
}

static inline const struct code *find_code(struct walk *walk, uintptr_t address)
{
    struct code *code = &walk->python->codes[address * 0x9e3779b97f4a7c15ull >> (64 - CODES_BITS)];
    const uint64_t stamp = stamp_of(interpreter.view.layout, address);

    if (__builtin_expect(code->address != address || code->stamp != stamp, 0))
        learn_code(walk, address, stamp, code);
    return code;
}

static inline void add_frame(struct walk *walk, uintptr_t address, const struct code *code,
                             uint32_t offset)
{
    walk->addresses[walk->count] = address;
    walk->notes[walk->count] = code->note;
    walk->offsets[walk->count] = offset;
    walk->count++;
    walk->key = mix(walk->key, (uint64_t)code->note << 32 | offset);
}

/* The frames of a thread, innermost first, until there are enough of the user's. */
TTM_READS_FOREIGN static void walk_frames(struct walk *walk, uintptr_t thread)
{
    const struct ttm_python_layout *layout = interpreter.view.layout;
    uintptr_t frame = first_frame(layout, thread), back;

    walk->key = 1;
    walk->count = 0;
    walk->operation = 0;
    walk->is_cut = false;
    for (unsigned i = 0; frame != 0 && i < RAW_FRAMES_MAX; frame = back, i++) {
        back = ttm_load_u64(frame + layout->frame_back);
        if (is_of_c(layout, frame))
            continue;
        const uintptr_t address = ttm_load_u64(frame + layout->frame_code);
        if (ttm_load_u64(address + TTM_OBJECT_TYPE) != interpreter.view.types.code)
            return;
        if (!is_shown(layout, frame, address))
            continue;
        if (walk->count == walk->python->frames) {
            walk->is_cut = true;
            return;
        }
        const struct code *code = find_code(walk, address);
        /* Of nested operations the outer one is what the user's line has called. */
        if (code->is_operation && walk->count == 0)
            walk->operation = ttm_load_u64(frame + layout->frame_locals);
        if (!code->is_ttnn)
            add_frame(walk, address, code, instruction_offset(layout, frame, address));
    }
    walk->is_cut = frame != 0;
}

static uint32_t line_of(uintptr_t code, uint32_t offset)
{
    const struct ttm_python_layout *layout = interpreter.view.layout;
    const uintptr_t lines = ttm_load_u64(code + layout->code_lines);
    const uint64_t size = ttm_load_u64(lines + TTM_OBJECT_SIZE);
    const uint32_t first = ttm_load_u32(code + layout->code_first_line);
    const uint8_t *table = (const uint8_t *)lines + TTM_BYTES_FIRST;

    if (size > LINES_BYTES_MAX)
        return first;
    return layout->has_location_table ? ttm_python_line_3_11(table, (uint32_t)size, first, offset)
                                      : ttm_python_line_3_10(table, (uint32_t)size, first, offset);
}

static uint32_t make_stack_note(const struct walk *walk)
{
    struct ttm_python_stack_note *content = (struct ttm_python_stack_note *)walk->scratch;
    uint8_t *bytes = walk->scratch + sizeof(*content);

    content->count = (uint16_t)walk->count;
    content->is_cut = walk->is_cut;
    for (unsigned i = 0; i < walk->count; i++)
        content->frames[i] = (struct ttm_python_frame){
            .code = walk->notes[i],
            .line = line_of(walk->addresses[i], walk->offsets[i]),
        };
    const size_t size = ttm_python_stack_note_encode(content, bytes);
    return walk->note(TTM_NOTE_PYTHON_STACK, bytes, (uint32_t)size);
}

static uint32_t stack_note(const struct walk *walk)
{
    if (walk->count == 0)
        return 0;
    const uint64_t key = ttm_hash_u64(walk->key + walk->is_cut);
    struct known_stack *known = &walk->python->stacks[key >> (64 - STACKS_BITS)];

    if (!known->is_used || known->key != key)
        *known = (struct known_stack){.key = key, .note = make_stack_note(walk), .is_used = 1};
    return known->note;
}

static uint32_t operation_note(const struct walk *walk)
{
    const struct ttm_python_view *view = &interpreter.view;
    const uint64_t object = walk->operation;
    uint64_t type;

    if (object == 0)
        return 0;
    struct operation *operation =
        &walk->python->operations[object * 0x9e3779b97f4a7c15ull >> (64 - OPERATIONS_BITS)];
    /* The frame keeps it alive, so its type can be read. */
    if (operation->object == object && operation->type == ttm_load_u64(object + TTM_OBJECT_TYPE))
        return operation->note;

    *operation = (struct operation){.object = object};
    if (!ttm_probe_u64(object + TTM_OBJECT_TYPE, &type))
        return 0;
    operation->type = type;
    const uintptr_t name = ttm_python_attribute(view, object, "python_fully_qualified_name");
    const int length =
        ttm_python_text(view, name, TTM_KEEP_HEAD, (char *)walk->scratch, TTM_OPERATION_NAME_MAX);
    if (length > 0)
        operation->note = walk->note(TTM_NOTE_OPERATION, walk->scratch, (uint32_t)length);
    return operation->note;
}

bool ttm_python_stack(struct ttm_python *python, ttm_stack_note_fn note, uint8_t *scratch,
                      uint32_t *ret_stack, uint32_t *ret_operation)
{
    const uintptr_t thread = thread_state();
    struct walk walk;

    *ret_stack = *ret_operation = 0;
    if (thread == 0)
        return false;
    walk.python = python;
    walk.note = note;
    walk.scratch = scratch;
    walk_frames(&walk, thread);
    /* relaxed: a look that comes too early is made up for by the next one. */
    if (!python->knows_package && atomic_load_explicit(&package.state, memory_order_relaxed) == 2) {
        /* Frames inside ttnn's decorator were passed before it was known where ttnn is. */
        python->knows_package = true;
        ttm_python_forget(python);
        walk_frames(&walk, thread);
    }
    *ret_operation = operation_note(&walk);
    *ret_stack = stack_note(&walk);
    return true;
}

size_t ttm_python_thread_name(char *buf, size_t size)
{
    const struct ttm_python_view *view = &interpreter.view;
    const struct ttm_python_layout *layout = view->layout;
    const uintptr_t thread = thread_state();
    uintptr_t outermost = 0;

    if (thread == 0)
        return 0;
    uintptr_t frame = first_frame(layout, thread);
    for (unsigned i = 0; frame != 0 && i < DEPTH_MAX; i++) {
        if (!is_of_c(layout, frame))
            outermost = frame;
        frame = ttm_load_u64(frame + layout->frame_back);
    }
    if (outermost == 0 || frame != 0)
        return 0;

    /* A thread of threading begins in its method Thread._bootstrap(self). */
    char text[128];
    const uintptr_t code = ttm_load_u64(outermost + layout->frame_code);
    int length = ttm_python_text(view, ttm_load_u64(code + layout->code_name), TTM_KEEP_TAIL, text,
                                 sizeof(text));
    if (length < 0 || !ends_with((struct ttm_note_text){text, (uint16_t)length}, "_bootstrap"))
        return 0;
    length = ttm_python_text(view, ttm_load_u64(code + layout->code_file), TTM_KEEP_TAIL, text,
                             sizeof(text));
    if (length < 0 || !ends_with((struct ttm_note_text){text, (uint16_t)length}, "threading.py"))
        return 0;
    const uintptr_t self = ttm_load_u64(outermost + layout->frame_locals);
    length =
        ttm_python_text(view, ttm_python_attribute(view, self, "_name"), TTM_KEEP_HEAD, buf, size);
    return length > 0 ? (size_t)length : 0;
}
