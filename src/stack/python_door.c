/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why no read can fault. Python frees a thread's state in two places: at the end of
 * that thread, by the thread itself, which is then not in here; and in
 * Py_FinalizeEx(), by the thread that finalizes, with the GIL, for all other threads,
 * wherever they are. (Py_EndInterpreter() refuses while other threads have states.
 * os._exit() frees nothing.) The second is what the door is for. A thread may read
 *
 *   - when the door is open and the thread has said that it is inside. Whoever shuts it
 *     has every thread pass a barrier (base/membarrier.h) before it looks who is inside. So
 *     either the thread sees the door shut, or it is seen inside and waited for;
 *   - when it has the GIL: nobody else finalizes meanwhile;
 *   - when it is the main thread of the process: it would be the one that finalizes.
 *     Here we rely on the program: one that finalizes in another thread while its main
 *     thread is in a call, before Python was ever asked as below, is not covered.
 *
 * The door opens when a function of ours stands in the list of the atexit module, and
 * shuts when that function is called, or when it is dropped from the list without
 * having been called: it holds a capsule, whose destructor shuts the door. The list is
 * run and then emptied before Py_FinalizeEx() frees the first thread state, so the
 * door is shut by then even if we were added while the list was being run (what is
 * added then is dropped uncalled). The same destructor sees to atexit._clear(). Other
 * atexit functions that run after ours find the door shut; the main thread may go on.
 * A door that was shut opens again in the same way, in an interpreter that goes on
 * after atexit._run_exitfuncs(), or in the next one of a program that embeds it.
 *
 * To be added to the list takes the GIL and calls Python, so it cannot be done from an
 * event. There are three ways. Until one of them has led there, threads without the GIL
 * other than the main thread have no Python frames.
 *
 *   - A thread that has the GIL outside of any event, as ttnn has it while it opens a
 *     device, does it there and then. It may hold locks of the runtime that threads with
 *     the GIL wait for, so it must not let go of the GIL for a moment: no Python code is
 *     run (register() has to be Python's own), and the collector stays off.
 *   - Py_AddPendingCall() has it done by Python's main thread between two instructions.
 *     It takes a lock of Python's for the time of a few stores, once per interpreter,
 *     and that lock goes with the interpreter; hence who may ask.
 *   - The main thread of a server waits in a lock for its threads and comes to no
 *     instruction for hours; and TT-Metal opens a device with threads of its own, so that
 *     tracking begins in one that may not ask. Then a thread of ours, the opener, waits
 *     for the GIL, does it and ends. It holds nothing of ours meanwhile, and the program
 *     sees no more threads in threading and in sys._current_frames(); the collector
 *     stays off here too, or the program's destructors would run in a thread that it does
 *     not know. When the interpreter ends while the opener waits, Python does with it what
 *     it does with any daemon thread: pthread_exit(), or from 3.14 on a sleep until the
 *     process ends. Between the opener's look at Py_IsInitialized() and its wait for the
 *     GIL lie a few instructions; only an interpreter that goes from its first step of
 *     shutting down to its last within them would be harmed. Every thread of C that uses
 *     Python has that gap.
 *
 * Whoever shuts the door has the GIL and waits at most WAIT_MS. A thread that is still
 * inside then is stopped by a debugger, or starved. It goes on reading later, so
 * what it reads must stay: the 'free' of Python's allocators is replaced by one
 * that frees nothing, by the public API, for the rest of the process. The memory of
 * states, frames, code objects and strings is then neither unmapped nor used again,
 * and their deallocators leave the fields that we read alone. The process is about
 * to end, so nobody misses that memory. The other fields of the allocators are
 * stored as they were, so a thread that allocates at the same time sees no mixture.
 *
 * A forked child has its parent's seats. Those are known by the process id and
 * neither waited for nor kept from others.
 */
#include "stack/python_door.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/membarrier.h"
#include "base/quiet_thread.h"
#include "stack/python_deaths.h"
#include "stack/python_slot.h"

#define SEATS 1024u /* threads beyond that have no Python frames, unless they have the GIL */
#define WAIT_MS 50u
#define LOOK_EVERY_NS 50000L
#define ARGUMENTS_NONE 0x0004 /* METH_NOARGS */
#define DOMAINS 3             /* PYMEM_DOMAIN_RAW, _MEM, _OBJ */

/* PyMethodDef, PyMemAllocatorEx and PyObjectArenaAllocator, the same in all versions. */
struct method {
    const char *name;
    void *(*call)(void *self, void *arguments);
    int flags;
    const char *doc;
};

struct allocator {
    void *context;
    void *functions[3];
    void (*free)(void *context, void *block);
};

struct arenas {
    void *context;
    void *function;
    void (*free)(void *context, void *block, size_t size);
};

/* Of the interpreter. All or none: 'has_python' says so, written before any event. */
static struct {
    bool has_python;
    int (*is_initialized)(void);
    void *(*this_thread_state)(void);
    void *(*current_state)(void); /* of the thread that has the GIL, or ours if we have it */
    int (*add_pending_call)(int (*function)(void *), void *argument);
    void *(*interpreter)(void); /* of the thread that calls, which has the GIL */
    void *(*main_interpreter)(void);
    int (*take_gil)(void);
    void (*drop_gil)(int state);
    int (*disable_collector)(void);                 /* returns whether it was on, */
    int (*enable_collector)(void);                  /* as does this */
    void *(*get_modules)(void);                     /* sys.modules, borrowed */
    void *(*get_content)(void *module);             /* borrowed */
    void *(*dict_get)(void *dict, const char *key); /* borrowed */
    void *(*type_of)(void *object);
    void *(*call)(void *function, ...);
    void *module_type, *function_type;
    void *(*import)(const char *name);
    void *(*new_capsule)(void *pointer, const char *name, void (*destroy)(void *));
    void *(*new_function)(struct method *method, void *self, void *module);
    void *(*call_method)(void *object, const char *name, const char *format, ...);
    void *(*build_value)(const char *format, ...);
    void (*unref)(void *object);
    void (*clear_error)(void);
    void (*get_allocator)(int domain, struct allocator *ret);
    void (*set_allocator)(int domain, struct allocator *allocator);
    void (*get_arenas)(struct arenas *ret);
    void (*set_arenas)(struct arenas *arenas);
} py;

static void (*listener_to_end)(void);
static struct ttm_python_seat seats[SEATS];

void ttm_python_door_find(void *library)
{
    const struct {
        const char *name;
        void *function;
    } wanted[] = {
        {"Py_IsInitialized", &py.is_initialized},
        {"PyGILState_GetThisThreadState", &py.this_thread_state},
        {"Py_AddPendingCall", &py.add_pending_call},
        {"PyInterpreterState_Get", &py.interpreter},
        {"PyInterpreterState_Main", &py.main_interpreter},
        {"PyGILState_Ensure", &py.take_gil},
        {"PyGILState_Release", &py.drop_gil},
        {"PyGC_Disable", &py.disable_collector},
        {"PyGC_Enable", &py.enable_collector},
        {"PyImport_GetModuleDict", &py.get_modules},
        {"PyModule_GetDict", &py.get_content},
        {"PyDict_GetItemString", &py.dict_get},
        {"PyObject_Type", &py.type_of},
        {"PyObject_CallFunctionObjArgs", &py.call},
        {"PyModule_Type", &py.module_type},
        {"PyCFunction_Type", &py.function_type},
        {"PyImport_ImportModule", &py.import},
        {"PyCapsule_New", &py.new_capsule},
        {"PyCFunction_NewEx", &py.new_function},
        {"PyObject_CallMethod", &py.call_method},
        {"Py_BuildValue", &py.build_value},
        {"Py_DecRef", &py.unref},
        {"PyErr_Clear", &py.clear_error},
        {"PyMem_GetAllocator", &py.get_allocator},
        {"PyMem_SetAllocator", &py.set_allocator},
        {"PyObject_GetArenaAllocator", &py.get_arenas},
        {"PyObject_SetArenaAllocator", &py.set_arenas},
    };
    void *symbol = dlsym(library, "PyThreadState_GetUnchecked"); /* 3.13 */

    if (!symbol)
        symbol = dlsym(library, "_PyThreadState_UncheckedGet");
    bool has_all = symbol != NULL;
    /* ISO C has no cast between functions and objects. */
    memcpy(&py.current_state, &symbol, sizeof(symbol));
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        symbol = dlsym(library, wanted[i].name);
        memcpy(wanted[i].function, &symbol, sizeof(symbol));
        has_all = has_all && symbol;
    }
    py.has_python = has_all;
}

static void keep_block(void *context, void *block)
{
    (void)context;
    (void)block;
}

static void keep_arena(void *context, void *block, size_t size)
{
    (void)context;
    (void)block;
    (void)size;
}

/* From now on nothing that Python has freed goes away. */
static void keep_memory(void)
{
    struct arenas arenas;

    for (int domain = 0; domain < DOMAINS; domain++) {
        struct allocator allocator;

        py.get_allocator(domain, &allocator);
        allocator.free = keep_block;
        py.set_allocator(domain, &allocator);
    }
    py.get_arenas(&arenas);
    arenas.free = keep_arena;
    py.set_arenas(&arenas);
}

static bool is_occupied(struct ttm_python_seat *seat, pid_t process)
{
    /* acquire: pairs with the release in ttm_python_door_leave(). */
    return atomic_load_explicit(&seat->is_inside, memory_order_acquire) &&
           atomic_load_explicit(&seat->owner, memory_order_relaxed) == process;
}

/* With the GIL. */
static void shut_door(void)
{
    const pid_t process = getpid();
    const uint64_t deadline_ns = ttm_clock_monotonic_ns() + WAIT_MS * 1000000ull;

    ttm_python_deaths_presume(); /* whatever comes after it starts anew */
    /* relaxed: the barrier orders it against ttm_python_door_enter_open(). */
    atomic_store_explicit(&ttm_stack_hot.door, TTM_DOOR_SHUT, memory_order_relaxed);
    ttm_membarrier();
    for (unsigned i = 0; i < SEATS; i++) {
        while (is_occupied(&seats[i], process)) {
            if (ttm_clock_monotonic_ns() >= deadline_ns) {
                keep_memory();
                ttm_python_slot_forget();
                return;
            }
            (void)nanosleep(&(struct timespec){.tv_nsec = LOOK_EVERY_NS}, NULL);
        }
    }
    ttm_python_slot_forget(); /* who was inside may have learned it until then */
}

void ttm_python_door_set_listener(void (*listener)(void))
{
    listener_to_end = listener;
}

static void *on_exit_call(void *self, void *arguments)
{
    (void)self;
    (void)arguments;

    if (listener_to_end)
        listener_to_end();
    shut_door();
    return py.build_value(""); /* None */
}

static void on_dropped(void *capsule)
{
    (void)capsule;

    shut_door();
}

static void unref(void *object)
{
    if (object)
        py.unref(object);
}

static bool is_of(void *object, const void *type)
{
    void *own = object ? py.type_of(object) : NULL;

    unref(own);
    return own && own == type;
}

/* register() of atexit, borrowed; NULL when it is not there, or not Python's own. */
static void *find_register(void)
{
    void *module = py.dict_get(py.get_modules(), "atexit");
    void *function =
        is_of(module, py.module_type) ? py.dict_get(py.get_content(module), "register") : NULL;

    return is_of(function, py.function_type) ? function : NULL;
}

/* Whatever the program has made of it. */
static void *import_and_register(void *function)
{
    void *module = py.import("atexit");
    void *result = module ? py.call_method(module, "register", "O", function) : NULL;

    unref(module);
    return result;
}

/* With the GIL. */
static void watch(bool may_run_python)
{
    static struct method method = {"ttmem_close", on_exit_call, ARGUMENTS_NONE, NULL};
    void *result = NULL;

    /* relaxed: only threads with the GIL open and shut it. */
    if (atomic_load_explicit(&ttm_stack_hot.door, memory_order_relaxed) == TTM_DOOR_OPEN ||
        !py.is_initialized())
        return;
    void *own = find_register();
    if (!own && !may_run_python)
        return;
    void *capsule = py.new_capsule(&ttm_stack_hot.door, NULL, on_dropped);
    void *function = capsule ? py.new_function(&method, capsule, NULL) : NULL;
    if (function)
        result = own ? py.call(own, function, NULL) : import_and_register(function);
    if (!result)
        py.clear_error();
    else
        /*
         * While we hold a reference: if it was dropped already, the last lines shut the door.
         * release: pairs with the acquire in ttm_python_door_enter_open().
         */
        atomic_store_explicit(&ttm_stack_hot.door, TTM_DOOR_OPEN, memory_order_release);
    unref(result);
    unref(function);
    unref(capsule);
}

/* The same in a thread whose business is another. */
static void watch_without_collecting(bool may_run_python)
{
    const bool was_collecting = py.disable_collector() != 0;

    watch(may_run_python);
    if (was_collecting)
        (void)py.enable_collector();
}

/* A pending call: Python's main thread. Never fails, as Python would raise it. */
static int watch_between(void *nothing)
{
    (void)nothing;
    watch(true);
    return 0;
}

static bool is_main_thread(void)
{
    return (pid_t)syscall(SYS_gettid) == getpid();
}

static bool has_gil(void)
{
    void *state = py.has_python ? py.this_thread_state() : NULL;

    return state && state == py.current_state();
}

/* It cannot be overtaken by the end of the interpreter. */
static bool is_safe_thread(void)
{
    return is_main_thread() || has_gil();
}

void ttm_python_door_ask(void)
{
    int expected = TTM_DOOR_SHUT;

    /* relaxed: whoever changes it asks. */
    if (py.has_python &&
        atomic_load_explicit(&ttm_stack_hot.door, memory_order_relaxed) == TTM_DOOR_SHUT &&
        is_safe_thread() &&
        atomic_compare_exchange_strong_explicit(&ttm_stack_hot.door, &expected, TTM_DOOR_ASKED,
                                                memory_order_relaxed, memory_order_relaxed) &&
        py.add_pending_call(watch_between, NULL) != 0)
        ttm_python_door_forget(); /* there are too many of them; the next one tries again */
}

/* A thread of ours. 'task' is one, which ISO C does not want to be a pointer to anything. */
static void *run_with_gil(void *task)
{
    void (*function)(void);

    memcpy(&function, &task, sizeof(task));
    (void)pthread_setname_np(pthread_self(), "tt-mem");
    if (!py.is_initialized())
        return NULL;
    const int state = py.take_gil(); /* may be the end of this thread */
    function();
    py.drop_gil(state);
    return NULL;
}

bool ttm_python_door_send(void (*task)(void))
{
    pthread_t thread;
    void *argument;

    if (!py.has_python)
        return false;
    memcpy(&argument, &task, sizeof(task));
    const bool is_sent = ttm_quiet_thread_start(&thread, NULL, run_with_gil, argument) == 0;
    if (is_sent)
        (void)pthread_detach(thread);
    return is_sent;
}

/* The opener. */
static void open_as_another(void)
{
    watch_without_collecting(true);
}

void ttm_python_door_begin(void)
{
    /* The main thread comes back to its instructions when it is done here. */
    if (is_main_thread() || !ttm_python_door_send(open_as_another))
        ttm_python_door_ask();
}

void ttm_python_door_open_here(void)
{
    /* relaxed: looked at again with the GIL. Other interpreters have lists of their own. */
    if (atomic_load_explicit(&ttm_stack_hot.door, memory_order_relaxed) != TTM_DOOR_OPEN &&
        has_gil() && py.interpreter() == py.main_interpreter())
        watch_without_collecting(false);
}

void ttm_python_door_forget(void)
{
    int expected = TTM_DOOR_ASKED;

    /* relaxed: nothing is read on the strength of either. */
    (void)atomic_compare_exchange_strong_explicit(&ttm_stack_hot.door, &expected, TTM_DOOR_SHUT,
                                                  memory_order_relaxed, memory_order_relaxed);
}

static struct ttm_python_seat *take_seat(void)
{
    const pid_t process = getpid();

    for (unsigned i = 0; i < SEATS; i++) {
        /* relaxed: what is in a seat is of no use to the next one. */
        pid_t owner = atomic_load_explicit(&seats[i].owner, memory_order_relaxed);
        if (owner != process &&
            atomic_compare_exchange_strong_explicit(&seats[i].owner, &owner, process,
                                                    memory_order_relaxed, memory_order_relaxed))
            return &seats[i];
    }
    return NULL;
}

bool ttm_python_door_enter(struct ttm_python_seat **seat)
{
    /* relaxed: only worth a seat if it was open at some time; looked at again below. */
    if (!*seat && atomic_load_explicit(&ttm_stack_hot.door, memory_order_relaxed) == TTM_DOOR_OPEN)
        *seat = take_seat();
    if (ttm_python_door_enter_open(*seat))
        return true;
    if (!is_safe_thread())
        return false;
    ttm_python_door_ask();
    return true;
}

void ttm_python_door_give_back(struct ttm_python_seat *seat)
{
    if (!seat)
        return;
    ttm_python_door_leave(seat);
    /* release: the line above comes first; the seat may be another's right after. */
    atomic_store_explicit(&seat->owner, 0, memory_order_release);
}
