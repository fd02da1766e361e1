/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the layout is proven. The offsets (python_layout.c) are no promise of
 * Python's, so before the first frame is believed, everything is looked at with
 * the kernel asked first (probe.h): the thread state must name this very thread,
 * the frames must lead to objects whose type is PyCode_Type, those to strings and
 * bytes by their types, with an instruction within the code and lines within
 * reason. A table that is wrong does not pass by chance, since the types are 64-bit
 * addresses that the loader told us. 3.13 moreover publishes its offsets. A
 * comparison with the public API would need the GIL: the first event comes from a
 * thread that has just let go of it, Py_AddPendingCall() would run code of ours
 * inside the interpreter at some later time, and the allocations before that would
 * go without lines. Where the proof fails, there are no Python frames, and
 * ttm_python_runtime_trouble() says so.
 *
 * The end. Py_IsInitialized() becomes false before an interpreter takes its first
 * thread state down; from then on there are no frames. That it does not do so while
 * a thread is in the middle of a walk is seen to by python_door.c, which has the
 * argument why no read can fault.
 */
#include "stack/python_runtime.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "stack/probe.h"
#include "stack/python_deaths.h"
#include "stack/python_door.h"
#include "stack/python_frame.h"
#include "stack/python_layout.h"

#define PROVEN_FRAMES 4u
#define FIRST_LINE_MAX 100000000u
#define NOT_BEGUN (0u - 2u) /* an offset, one instruction before the first */

struct ttm_python_runtime ttm_python_runtime;

/* What is known besides. 'is_initialized' is written before the state says FOUND. */
static struct {
    _Atomic bool has_doubt; /* threads were met whose state does not name them, and no others yet */
    int (*is_initialized)(void);
    const char *_Atomic trouble; /* once the state says REFUSED */
    char unknown[96];            /* one that has the version in it */
} interpreter;

static void refuse(const char *trouble)
{
    /* relaxed: the store below publishes; several threads may find the same. */
    atomic_store_explicit(&interpreter.trouble, trouble, memory_order_relaxed);
    /* release: pairs with the acquire in ttm_python_runtime_trouble(). */
    atomic_store_explicit(&ttm_stack_hot.python_state, TTM_PYTHON_REFUSED, memory_order_release);
}

/* Outside of events: it formats. */
static void refuse_version(const char *why, const char *version)
{
    (void)snprintf(interpreter.unknown, sizeof(interpreter.unknown),
                   "no Python frames: %s (Python %.20s)", why, version);
    refuse(interpreter.unknown);
}

const char *ttm_python_runtime_trouble(void)
{
    /* acquire: pairs with the release in refuse(). */
    const int state = atomic_load_explicit(&ttm_stack_hot.python_state, memory_order_acquire);

    if (state == TTM_PYTHON_REFUSED)
        return atomic_load_explicit(&interpreter.trouble, memory_order_relaxed);
    /* relaxed: a hint for people. */
    if (state == TTM_PYTHON_FOUND &&
        atomic_load_explicit(&interpreter.has_doubt, memory_order_relaxed))
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

/*
 * From 3.11 on a frame's instruction is a pointer into its code object, and so says which; before, it
 * takes both. Who owns it is one byte: it tells whether the frame is shown.
 */
static struct ttm_python_trace trace_of(const struct ttm_python_layout *layout)
{
    struct ttm_python_trace trace = {
        .thread_frame = layout->thread_frame,
        .thread_id = layout->thread_id,
        .cframe_frame = layout->cframe_frame,
        .frame_back = layout->frame_back,
        .frame_locals = layout->frame_locals,
        .frame_pointer = layout->frame_code,
        .frame_rest = layout->frame_instruction,
        .rest_mask = UINT32_MAX,
    };

    if (layout->minor > 10) {
        trace.frame_pointer = layout->frame_instruction;
        trace.frame_rest = layout->frame_owner & 0xfffcu;
        trace.rest_mask = 0xffu << layout->frame_owner % 4 * 8;
    }
    return trace;
}

void ttm_python_runtime_find(void)
{
    struct ttm_python_types *types = &ttm_python_runtime.view.types;
    const char *(*get_version)(void);
    void *library;

    /* relaxed: one caller at a time, and only it writes. */
    if (atomic_load_explicit(&ttm_stack_hot.python_state, memory_order_relaxed) !=
        TTM_PYTHON_ABSENT)
        return;
    if (!find_library(&library) ||
        !find_function(library, "PyGILState_GetThisThreadState",
                       &ttm_python_runtime.this_thread_state) ||
        !find_function(library, "Py_IsInitialized", &interpreter.is_initialized) ||
        !find_function(library, "Py_GetVersion", &get_version))
        return;

    const char *version = get_version();
    const struct ttm_python_layout *layout = ttm_python_layout_find(version);
    if (!layout) {
        refuse_version("this version is not known", version);
        return;
    }
    ttm_python_runtime.view.layout = layout;
    ttm_stack_hot.trace = trace_of(layout);
    if (!find_type(library, "PyCode_Type", &types->code) ||
        !find_type(library, "PyUnicode_Type", &types->string) ||
        !find_type(library, "PyBytes_Type", &types->bytes) ||
        !find_type(library, "PyDict_Type", &types->dict) ||
        !ttm_python_layout_agrees(layout, dlsym(library, "_PyRuntime"))) {
        refuse_version("this build of it has another layout", version);
        return;
    }
    ttm_python_runtime.view.no = (uintptr_t)dlsym(library, "_Py_FalseStruct");
    ttm_python_door_find(library);
    ttm_python_deaths_find(types->code);
    /* release: pairs with the acquire in ttm_python_runtime_enter(). */
    atomic_store_explicit(&ttm_stack_hot.python_state, TTM_PYTHON_FOUND, memory_order_release);
    /* Early, so that the door is open before the first event. */
    if (interpreter.is_initialized())
        ttm_python_door_begin();
}

/* Is it a code object in every field that we use? */
static bool prove_code(uintptr_t code)
{
    const struct ttm_python_view *view = &ttm_python_runtime.view;
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
    const struct ttm_python_layout *layout = ttm_python_runtime.view.layout;

    if (layout->minor == 10)
        return ttm_load_u64(ttm_load_u64(code + layout->code_instructions) + TTM_OBJECT_SIZE);
    return 2 * ttm_load_u64(code + TTM_OBJECT_SIZE);
}

/* A frame on the way to the proof; 'ret_back' is its caller. */
static bool prove_frame(uintptr_t frame, uint64_t *ret_back)
{
    const struct ttm_python_layout *layout = ttm_python_runtime.view.layout;

    if (frame % 8 != 0 || !ttm_probe(frame, (size_t)layout->frame_instruction + 16))
        return false;
    *ret_back = ttm_load_u64(frame + layout->frame_back);
    if (ttm_python_is_of_c(layout, frame))
        return true;
    const uintptr_t code = ttm_load_u64(frame + layout->frame_code);

    if (!prove_code(code))
        return false;
    const uint32_t offset = ttm_python_offset(layout, frame, code);
    return offset <= code_size(code) || offset == NOT_BEGUN;
}

/* Returns false for as long as there is nothing to prove it by. */
static bool prove(uint64_t self, uintptr_t thread)
{
    const struct ttm_python_layout *layout = ttm_python_runtime.view.layout;
    uint64_t id, frame;

    if (!ttm_probe_u64(thread + layout->thread_id, &id) || id != self ||
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
            refuse("no Python frames: they are not as expected");
            return false;
        }
    }
    ttm_python_deaths_watch();
    /* relaxed: it adds nothing that others read. */
    atomic_store_explicit(&ttm_stack_hot.python_state, TTM_PYTHON_PROVEN, memory_order_relaxed);
    return true;
}

/* Inside the door. */
static uintptr_t thread_state(uint64_t self, int state)
{
    const uintptr_t thread =
        interpreter.is_initialized() ? (uintptr_t)ttm_python_runtime.this_thread_state() : 0;

    if (thread == 0 || (state == TTM_PYTHON_FOUND && !prove(self, thread)))
        return 0;
    /* See ttm_python_runtime_enter(). */
    if (ttm_load_u64(thread + ttm_python_runtime.view.layout->thread_id) != self)
        return 0;
    return thread;
}

static uintptr_t enter(uint64_t self, struct ttm_python_seat **seat, int state)
{
    if (!interpreter.is_initialized()) {
        ttm_python_door_forget();
        return 0;
    }
    /* Threads that Python does not know take no seat. */
    if ((!*seat && !ttm_python_runtime.this_thread_state()) || !ttm_python_door_enter(seat))
        return 0;
    /* Only now: what was true before we were inside may be so no longer. */
    const uintptr_t thread = thread_state(self, state);
    if (thread == 0)
        ttm_python_door_leave(*seat);
    else if (ttm_python_door_is_inside(*seat)) /* then the slot is forgotten after this */
        ttm_python_slot_learn(self, ttm_python_runtime.this_thread_state, thread);
    return thread;
}

__attribute__((cold)) uintptr_t ttm_python_runtime_enter_first(uint64_t self,
                                                               struct ttm_python_seat **seat)
{
    /* acquire: pairs with the release in ttm_python_runtime_find(). */
    const int state = atomic_load_explicit(&ttm_stack_hot.python_state, memory_order_acquire);
    const int saved_errno = errno;
    uintptr_t thread = 0;

    if (state == TTM_PYTHON_FOUND || state == TTM_PYTHON_PROVEN)
        thread = enter(self, seat, state);
    errno = saved_errno;
    return thread;
}
