/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why this needs no GIL. A thread's frames are changed by that thread alone, when
 * it runs Python code; while it is in here, it does not. A frame keeps its code
 * object alive, and that its file name, name and line table, none of which ever
 * change. PyGILState_GetThisThreadState() reads a thread-local and no more.
 *
 * That the frames are where we look for them is proven first: python_runtime.c. That
 * they stay there while the interpreter shuts down in another thread: python_door.c.
 *
 * Code objects die, and their addresses are used again. What is known of a code
 * object is therefore kept under its address and a stamp: its version number, which
 * 3.12 and newer give to no two, else a mix of the addresses, lengths and ends of
 * its strings and tables. Another code object at the same address with the same
 * stamp has the same file, name and lines for every practical purpose.
 *
 * Recalling. A program that does the same thing again has the same frames: the same
 * code objects at the same instructions. So a stack is first told by its traces, the
 * words of each frame that say where it is, and nothing that they point to is looked
 * at. What was found for the same traces before holds for as long as none of those code
 * objects has died (python_deaths.c). Traces go into one number of 64 bits, as notes and
 * offsets do; the stack pointer too, since where a call of ttnn is, its callers left
 * the stack in one and the same state, and so the native stack can be found with it.
 * Only as many frames are traced as a walk has looked at before; a walk that looks
 * further is not recalled until the next one goes as far.
 *
 * Lines are looked up when a stack is new, not later: a table can be large, a line
 * is four bytes, and two instructions of one line are then the same stack.
 */
#include "stack/python.h"

#include <errno.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>

#include "base/hash.h"
#include "stack/hot.h"
#include "stack/probe.h"
#include "stack/python_deaths.h"
#include "stack/python_door.h"
#include "stack/python_frame.h"
#include "stack/python_layout.h"
#include "stack/python_lines.h"
#include "stack/python_object.h"
#include "stack/python_runtime.h"
#include "wire/origin.h"

#define CODES_BITS 9
#define STACKS_BITS 10
#define OPERATIONS_BITS 7
#define RECALLED_BITS 9
#define TRACED_MAX 32u          /* frames; a stack that takes more is walked each time */
#define FETCHED 8u              /* frames that are fetched before they are traced */
#define NO_FRAME 0xffu          /* TRACED_MAX is less */
#define WAYS 4u                 /* places for a code object or operation: see way_of() */
#define OPERATION_USES 1024u    /* until its name is read again */
#define RAW_FRAMES_MAX 256u     /* of all frames that are passed, ttnn's among them */
#define DEPTH_MAX 100000u       /* on the way to a thread's outermost frame */
#define LINES_BYTES_MAX 262144u /* a larger table is not read: the first line stands for all */

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
    uint32_t uses;
};

/* What the traces of a stack have led to. */
struct recalled {
    alignas(64) uint64_t key; /* 0: nothing */
    uint64_t deaths;
    uint64_t operation; /* the object */
    uint64_t operation_type;
    struct ttm_kept kept;
    uint16_t uses;
    uint8_t operation_at; /* which frame has it, NO_FRAME: none */
};

_Static_assert(sizeof(struct recalled) == 64, "one line of the cache");

struct ttm_python {
    unsigned frames;
    unsigned reach; /* frames that are traced */
    bool knows_package;
    uint32_t next_way;
    struct ttm_kept kept;         /* of a stack that is not recalled */
    uint64_t self;                /* pthread_self(), once there is a seat */
    struct ttm_python_seat *seat; /* NULL: none yet */
    uintptr_t last[FETCHED];      /* frames that were traced last; some of them, 0 or any address */
    struct recalled recalled[1u << RECALLED_BITS];
    struct code codes[1u << CODES_BITS];
    struct known_stack stacks[1u << STACKS_BITS];
    struct operation operations[1u << OPERATIONS_BITS];
};

/* A walk, and what it has found. */
struct walk {
    struct ttm_python *python;
    ttm_stack_note_fn note;
    uint8_t *scratch;
    struct recalled *recalled; /* where it is kept */
    uint64_t key;
    uint64_t operation; /* the object, 0: none */
    unsigned operation_at;
    unsigned count;
    unsigned seen; /* of all frames, with the one after the last that is kept */
    bool is_cut;
    bool is_due;                               /* the operation is to be asked for its name again */
    bool is_whole;                             /* nothing was met that is not understood */
    uint64_t addresses[TTM_PYTHON_FRAMES_MAX]; /* of code objects */
    uint32_t notes[TTM_PYTHON_FRAMES_MAX];
    uint32_t offsets[TTM_PYTHON_FRAMES_MAX];
};

size_t ttm_python_size(void)
{
    return sizeof(struct ttm_python);
}

void ttm_python_init(struct ttm_python *python, unsigned frames)
{
    python->frames = frames < TTM_PYTHON_FRAMES_MAX ? frames : TTM_PYTHON_FRAMES_MAX;
    python->reach = python->frames + 1 < TRACED_MAX ? python->frames + 1 : TRACED_MAX;
}

static void forget_notes(struct ttm_python *python)
{
    memset(python->recalled, 0, sizeof(python->recalled));
    memset(python->codes, 0, sizeof(python->codes));
    memset(python->stacks, 0, sizeof(python->stacks));
    memset(python->operations, 0, sizeof(python->operations));
}

void ttm_python_forget(struct ttm_python *python)
{
    forget_notes(python);
    ttm_python_hand_over(python);
}

void ttm_python_hand_over(struct ttm_python *python)
{
    ttm_python_door_give_back(python->seat);
    python->seat = NULL;
    python->self = 0;
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

    /* Joined so that no two pairs give the same number: a difference must not be mixed away. */
    if (layout->code_version != 0) {
        const uint64_t version = ttm_load_u32(code + layout->code_version);
        if (version != 0)
            return version << 32 | (uint32_t)(file >> 4);
    }
    const uintptr_t name = ttm_load_u64(code + layout->code_name);
    const uintptr_t lines = ttm_load_u64(code + layout->code_lines);
    const uint64_t length = ttm_load_u64(file + TTM_STRING_LENGTH);
    const uint32_t state = ttm_load_u32(file + TTM_STRING_STATE);
    const uintptr_t characters =
        file + (state >> 6 & 1 ? layout->ascii_characters : layout->compact_characters);
    const uint64_t lines_size = ttm_load_u64(lines + TTM_OBJECT_SIZE);

    uint64_t stamp = mix(1, file);
    stamp = mix(stamp, length << 32 | ttm_load_u32(code + layout->code_first_line));
    stamp = mix(stamp, name);
    stamp = mix(stamp, ttm_load_u64(name + TTM_STRING_HASH));
    stamp = mix(stamp, lines);
    stamp = mix(stamp, lines_size);
    stamp = mix(stamp, last_bytes(characters, length * (state >> 2 & 7)));
    return mix(stamp, last_bytes(lines + TTM_BYTES_FIRST, lines_size));
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
    /* Threads that have learned stacks without knowing it have to look again. */
    ttm_python_deaths_presume();
}

/* A code object that is new: asked about everything. */
static void learn_code(struct walk *walk, uintptr_t address, uint64_t stamp, struct code *ret)
{
    const struct ttm_python_view *view = &ttm_python_runtime.view;
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

/*
 * The first of the WAYS places for an address. With one place each, two operations of a loop that
 * fall on the same would have their names read again every time, which takes microseconds.
 */
static inline size_t way_of(uint64_t address, unsigned bits)
{
    return (size_t)(address * 0x9e3779b97f4a7c15ull >> (64 - bits)) / WAYS * WAYS;
}

static inline const struct code *find_code(struct walk *walk, uintptr_t address)
{
    struct code *codes = &walk->python->codes[way_of(address, CODES_BITS)];
    const uint64_t stamp = stamp_of(ttm_python_runtime.view.layout, address);
    unsigned way = 0;

    while (way < WAYS && codes[way].address != address)
        way++;
    if (__builtin_expect(way == WAYS, 0))
        way = walk->python->next_way++ % WAYS;
    if (__builtin_expect(codes[way].address != address || codes[way].stamp != stamp, 0))
        learn_code(walk, address, stamp, &codes[way]);
    return &codes[way];
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
    const struct ttm_python_layout *layout = ttm_python_runtime.view.layout;
    uintptr_t frame = ttm_python_first_frame(layout, thread), back;

    walk->key = 1;
    walk->count = 0;
    walk->operation = 0;
    walk->operation_at = NO_FRAME;
    walk->is_cut = false;
    walk->is_whole = true;
    for (walk->seen = 0; frame != 0 && walk->seen < RAW_FRAMES_MAX; frame = back) {
        const unsigned i = walk->seen++;
        back = ttm_load_u64(frame + layout->frame_back);
        if (ttm_python_is_of_c(layout, frame))
            continue;
        const uintptr_t address = ttm_load_u64(frame + layout->frame_code);
        if (ttm_load_u64(address + TTM_OBJECT_TYPE) != ttm_python_runtime.view.types.code) {
            walk->is_whole = false;
            return;
        }
        ttm_python_deaths_mark(address);
        if (!ttm_python_is_shown(layout, frame, address))
            continue;
        if (walk->count == walk->python->frames) {
            walk->is_cut = true;
            return;
        }
        const struct code *code = find_code(walk, address);
        /* Of nested operations the outer one is what the user's line has called. */
        if (code->is_operation && walk->count == 0) {
            walk->operation = ttm_load_u64(frame + layout->frame_locals);
            walk->operation_at = i;
        }
        if (!code->is_ttnn)
            add_frame(walk, address, code, ttm_python_offset(layout, frame, address));
    }
    walk->is_cut = frame != 0;
}

static uint32_t line_of(uintptr_t code, uint32_t offset)
{
    const struct ttm_python_layout *layout = ttm_python_runtime.view.layout;
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

/* Where the operation is, or has to go. */
static struct operation *find_operation(struct ttm_python *python, uint64_t object)
{
    struct operation *operations = &python->operations[way_of(object, OPERATIONS_BITS)];

    for (unsigned way = 0; way < WAYS; way++) {
        if (operations[way].object == object)
            return &operations[way];
    }
    return &operations[python->next_way++ % WAYS];
}

static const struct operation *learn_operation(const struct walk *walk)
{
    const struct ttm_python_view *view = &ttm_python_runtime.view;
    const uint64_t object = walk->operation;
    struct operation *operation = find_operation(walk->python, object);
    uint64_t type;

    /*
     * The frame keeps it alive, so its type can be read. ttnn's operations live as
     * long as ttnn; should one be made and die all the same, its successor at that
     * address is noticed in time.
     */
    if (!walk->is_due && operation->object == object &&
        operation->type == ttm_load_u64(object + TTM_OBJECT_TYPE) &&
        ++operation->uses % OPERATION_USES != 0)
        return operation;

    *operation = (struct operation){.object = object};
    if (!ttm_probe_u64(object + TTM_OBJECT_TYPE, &type))
        return operation;
    operation->type = type;
    const uintptr_t name = ttm_python_attribute(view, object, "python_fully_qualified_name");
    const int length =
        ttm_python_text(view, name, TTM_KEEP_HEAD, (char *)walk->scratch, TTM_OPERATION_NAME_MAX);
    if (length > 0)
        operation->note = walk->note(TTM_NOTE_OPERATION, walk->scratch, (uint32_t)length);
    return operation;
}

/* ttm_python_first_frame(), with what is at hand of the layout. */
static inline uintptr_t innermost_frame(uintptr_t thread)
{
    const uintptr_t first = ttm_load_u64(thread + ttm_stack_hot.trace.thread_frame);
    const int16_t offset = ttm_stack_hot.trace.cframe_frame;

    return offset < 0 || first == 0 ? first : ttm_load_u64(first + (uintptr_t)offset);
}

/*
 * Frames lead from one to the next, so each would have to wait for the one before to come into the
 * cache. Mostly they are where they were the last time: all are asked for at once. An address where
 * nothing is any more does no harm here.
 */
static inline void fetch_frames(const struct ttm_python *python)
{
    const uintptr_t back = ttm_stack_hot.trace.frame_back, rest = ttm_stack_hot.trace.frame_rest;

    for (unsigned i = 0; i < FETCHED; i++) {
        ttm_fetch(python->last[i] + back);
        ttm_fetch(python->last[i] + rest);
    }
}

/* The traces of the first 'reach' frames of a thread, in one number that is not 0. */
TTM_READS_FOREIGN static inline uint64_t trace(struct ttm_python *python, uintptr_t frame,
                                               uint64_t key, uint64_t *ret_whole)
{
    unsigned reach = python->reach, i = 0;
    const uintptr_t pointer = ttm_stack_hot.trace.frame_pointer,
                    rest = ttm_stack_hot.trace.frame_rest, back = ttm_stack_hot.trace.frame_back;
    const uint32_t mask = ttm_stack_hot.trace.rest_mask;

    for (; frame != 0 && reach > 0; reach--) {
        python->last[i++ % FETCHED] = frame;
        /* The upper bits of an address are 0, so what is rotated has room for the rest. */
        const uint64_t word = ttm_load_u64(frame + pointer);
        const uint64_t other = (word << 17 | word >> 47) ^ (ttm_load_u32(frame + rest) & mask);
        key = (key ^ other) * 0x9e3779b97f4a7c15ull;
        frame = ttm_load_u64(frame + back);
    }
    key = mix(key, frame == 0) | 1;
    *ret_whole = frame == 0 ? key : 0;
    return key;
}

static inline struct recalled *place_of(struct ttm_python *python, uint64_t key)
{
    struct recalled *two = &python->recalled[key >> (64 - RECALLED_BITS) & ~1ull];

    return __builtin_expect(two[0].key == key, 1) ? &two[0] : &two[1];
}

/* Is the operation that 'recalled' has in its frame the one that it had? */
TTM_READS_FOREIGN static inline bool has_same_operation(struct recalled *recalled, uintptr_t frame)
{
    unsigned i = recalled->operation_at;

    if (i == NO_FRAME)
        return true;
    for (; __builtin_expect(i > 0, 0); i--)
        frame = ttm_load_u64(frame + ttm_stack_hot.trace.frame_back);
    const uint64_t object = ttm_load_u64(frame + ttm_stack_hot.trace.frame_locals);
    /* Now and then it is asked for its name again, see learn_operation(). */
    return __builtin_expect(object == recalled->operation, 1) && __builtin_expect(object != 0, 1) &&
           __builtin_expect(ttm_load_u64(object + TTM_OBJECT_TYPE) == recalled->operation_type,
                            1) &&
           __builtin_expect(++recalled->uses < OPERATION_USES, 1);
}

static struct recalled *keep(struct walk *walk, uint64_t key, uint64_t deaths)
{
    struct recalled *two = &walk->python->recalled[key >> (64 - RECALLED_BITS) & ~1ull];
    struct recalled *recalled = place_of(walk->python, key);

    if (recalled->key != key) {
        two[1] = two[0];
        recalled = &two[0];
    } else {
        walk->is_due = recalled->uses >= OPERATION_USES;
    }
    *recalled = (struct recalled){
        .key = key,
        .deaths = deaths,
        .operation_at = (uint8_t)walk->operation_at,
    };
    return recalled;
}

static void walk_and_keep(struct ttm_python *python, uintptr_t thread, uint64_t key,
                          uint64_t deaths, struct walk *walk)
{
    walk_frames(walk, thread);
    /* relaxed: a look that comes too early is made up for by the next one. */
    if (!python->knows_package && atomic_load_explicit(&package.state, memory_order_relaxed) == 2) {
        /* Frames inside ttnn's decorator were passed before it was known where ttnn is. */
        python->knows_package = true;
        forget_notes(python);
        walk_frames(walk, thread);
    }
    if (walk->seen > python->reach && walk->seen <= TRACED_MAX)
        python->reach = walk->seen;
    else if (deaths != 0 && walk->is_whole && walk->seen <= python->reach)
        walk->recalled = keep(walk, key, deaths);
}

/* A stack that is new, or was learned from code objects of which some may be gone. */
__attribute__((noinline)) static struct ttm_kept *learn_stack(struct ttm_python *python,
                                                              uintptr_t thread, uint64_t key,
                                                              uint64_t deaths,
                                                              ttm_stack_note_fn note,
                                                              uint8_t *scratch)
{
    const int saved_errno = errno;
    struct recalled unkept = {0};
    struct walk walk;

    walk.python = python;
    walk.note = note;
    walk.scratch = scratch;
    walk.recalled = &unkept;
    walk.is_due = false;
    walk_and_keep(python, thread, key, deaths, &walk);
    if (walk.operation != 0) {
        const struct operation *operation = learn_operation(&walk);
        walk.recalled->operation = operation->object;
        walk.recalled->operation_type = operation->type;
        walk.recalled->kept.operation = operation->note;
    }
    walk.recalled->kept.python = stack_note(&walk);
    errno = saved_errno;
    if (walk.recalled != &unkept)
        return &walk.recalled->kept;
    unkept.kept.native_hint = python->kept.native_hint; /* the best there is */
    python->kept = unkept.kept;
    return &python->kept;
}

/* Inlined: a call of what the caches have forgotten costs more than what it does. */
static inline __attribute__((always_inline)) uintptr_t enter(struct ttm_python *python)
{
    if (__builtin_expect(!python->seat, 0)) /* nobody who has one has not been here before */
        python->self = (uint64_t)pthread_self();
    return ttm_python_runtime_enter(python->self, &python->seat);
}

__attribute__((hot)) TTM_READS_FOREIGN struct ttm_kept *ttm_python_stack(struct ttm_python *python,
                                                                         uint64_t sp,
                                                                         ttm_stack_note_fn note,
                                                                         uint8_t *scratch,
                                                                         uint64_t *ret_whole)
{
    const uintptr_t thread = enter(python);

    *ret_whole = 0;
    if (__builtin_expect(thread == 0, 0))
        return NULL;
    fetch_frames(python);
    const uint64_t deaths = ttm_python_deaths();
    const uintptr_t frame = innermost_frame(thread);
    const uint64_t key = trace(python, frame, sp, ret_whole);
    struct recalled *recalled = place_of(python, key);
    struct ttm_kept *kept = &recalled->kept;
    if (__builtin_expect(recalled->key != key || recalled->deaths != deaths ||
                             !has_same_operation(recalled, frame),
                         0))
        kept = learn_stack(python, thread, key, deaths, note, scratch);
    ttm_python_door_leave(python->seat);
    return kept;
}

/* Inside the door: the threading.Thread of a thread that began as one, 0 for none. */
static uintptr_t thread_object(uintptr_t thread)
{
    const struct ttm_python_view *view = &ttm_python_runtime.view;
    const struct ttm_python_layout *layout = view->layout;
    uintptr_t outermost = 0;

    uintptr_t frame = ttm_python_first_frame(layout, thread);
    for (unsigned i = 0; frame != 0 && i < DEPTH_MAX; i++) {
        if (!ttm_python_is_of_c(layout, frame))
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
    return ttm_load_u64(outermost + layout->frame_locals);
}

size_t ttm_python_thread_name(struct ttm_python *python, char *buf, size_t size)
{
    const uintptr_t thread = enter(python);

    if (thread == 0)
        return 0;
    const uintptr_t object = thread_object(thread);
    const struct ttm_python_view *view = &ttm_python_runtime.view;
    const int length = object == 0
                           ? 0
                           : ttm_python_text(view, ttm_python_attribute(view, object, "_name"),
                                             TTM_KEEP_HEAD, buf, size);
    ttm_python_door_leave(python->seat);
    return length > 0 ? (size_t)length : 0;
}

bool ttm_python_is_waited_for(struct ttm_python *python)
{
    const uintptr_t thread = enter(python);

    if (thread == 0)
        return false;
    const uintptr_t object = thread_object(thread);
    const struct ttm_python_view *view = &ttm_python_runtime.view;
    const bool is_waited_for =
        object != 0 && view->no != 0 && ttm_python_attribute(view, object, "_daemonic") == view->no;
    ttm_python_door_leave(python->seat);
    return is_waited_for;
}
