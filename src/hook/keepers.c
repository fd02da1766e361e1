/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search itself is Python (python/ttmem/_holders.py, whose text is in this
 * library) and needs the GIL. A thread of the program takes it only where nobody can be
 * waiting for that thread: before a mesh is closed, from atexit, and in a pending
 * call. From inside an event it is never taken, as a thread that has it may be
 * waiting for a lock of the runtime.
 *
 * A thread that waits for the GIL while the interpreter ends is ended by Python there
 * and then, in the middle of the runtime. That cannot happen to the main thread, and to
 * one that has it. Of the others, those that Python waits for before it ends send a
 * deputy, a thread of ours, and wait for its answer: for a moment, as who has the GIL may
 * be waiting for us. Daemon threads do not: they have no time to lose if it is the end.
 *
 * The module is run in a dictionary of its own and never enters sys.modules, so the
 * program finds nothing that it did not import. What goes in and comes out is text:
 *
 *   in     "ORIGIN REGION ADDRESS ID\n" for each allocation that is asked about
 *   out    "ORIGIN CAUSE SEARCH" and for each holder 0x1f, "ROOT ", its text; then "\n"
 *
 * SEARCH is enum ttm_holder_search. ROOT is the number of the object that the text is about,
 * the same number for the same object in all lines of one answer.
 */
#include "hook/keepers.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "client/guest.h"
#include "hook/ending.h"
#include "hook/keepers_source.h"
#include "hook/python_heap.h"
#include "stack/python_door.h"
#include "stack/stack.h"

#define ORIGINS_MAX 256u /* the largest ones */
#define LIVES_MAX (1u << 20)
#define SAMPLES 3u /* of each origin: the oldest, the middle, the newest */
/* What closing meshes again and again may cost: a tenth of the run, or that much of a short one. */
#define SHARE 10u
#define SHARE_MIN_NS 1000000000u
#define FILE_INPUT 257     /* Py_file_input */
#define KEEPER_MARK "\x1f" /* before each text */
#define DEPUTY_GIL_MS 500u /* until it has the GIL */
#define DEPUTY_MS 20000u   /* until it has its answer */
#define DEPUTY_LOOK_NS 100000L

/* Of the interpreter; all or none. */
static struct {
    int (*is_initialized)(void);
    int (*has_gil)(void);
    int (*take_gil)(void);
    void (*drop_gil)(int state);
    int (*add_pending_call)(int (*function)(void *), void *argument);
    void *(*compile)(const char *text, const char *file, int start);
    void *(*eval)(void *code, void *globals, void *locals);
    void *(*new_dict)(void);
    int (*dict_set)(void *dict, const char *key, void *value);
    void *(*dict_get)(void *dict, const char *key); /* borrowed */
    void *(*new_text)(const char *text);
    void *(*new_bytes)(const char *bytes, ssize_t length);
    void *(*new_function)(struct ttm_python_method *method, void *self, void *module);
    int (*bytes_of)(void *object, char **ret, ssize_t *ret_length);
    void *(*call)(void *function, ...);
    void (*unref)(void *object);
    void (*fetch_error)(void **kind, void **value, void **trace);
    void (*restore_error)(void *kind, void *value, void *trace);
    int (*is_error)(void *kind);
    void (*clear_error)(void);
    void (*interrupt)(void);
    int (*disable_collector)(void); /* returns whether it was on, */
    int (*enable_collector)(void);  /* as does this */
    void **keyboard_interrupt;
} py;

static bool is_wanted; /* written before any event */
static bool is_asking; /* all below: with the GIL */
static void *finder;   /* the function of the module */
static uint64_t begun_ns;
static uint64_t closing_ns; /* what was spent before meshes were closed, so far */
static uint16_t round_number;
static _Atomic bool was_failure_asked; /* without the GIL */

/* Sent by who closes a mesh, which takes it back to NONE; LEFT: it came too late, and does so itself. */
enum deputy { DEPUTY_NONE, DEPUTY_SENT, DEPUTY_ASKING, DEPUTY_DONE, DEPUTY_LEFT };
static _Atomic int deputy;

/* ---- what is asked about ---- */

struct lives {
    struct ttmem_guest_live *list;
    size_t count;
    size_t room;
};

/* Lives of one origin, beside each other. */
struct group {
    size_t first;
    size_t count;
    uint64_t footprint_bytes;
};

static bool make_room(struct lives *lives)
{
    if (lives->count < lives->room)
        return true;
    const size_t room = lives->room ? lives->room * 2 : 256;
    void *grown = room <= LIVES_MAX ? realloc(lives->list, room * sizeof(lives->list[0])) : NULL;
    if (!grown)
        return false;
    lives->list = grown;
    lives->room = room;
    return true;
}

static int by_origin_and_age(const void *a, const void *b)
{
    const struct ttmem_guest_live *x = a, *y = b;

    if (x->origin != y->origin)
        return x->origin < y->origin ? -1 : 1;
    return x->birth_ns < y->birth_ns ? -1 : x->birth_ns > y->birth_ns;
}

static int by_footprint(const void *a, const void *b)
{
    const struct group *x = a, *y = b;

    return x->footprint_bytes > y->footprint_bytes ? -1 : x->footprint_bytes < y->footprint_bytes;
}

static void collect(struct lives *ret)
{
    struct ttm_live_walk walk = {0};
    struct ttmem_guest_live live;

    while (ttmem_guest_next_live(&walk, &live) && make_room(ret))
        ret->list[ret->count++] = live;
    if (ret->count > 0)
        qsort(ret->list, ret->count, sizeof(ret->list[0]), by_origin_and_age);
}

/* Largest first. Returns how many; 'ret' has room for one for each life. */
static size_t group(const struct lives *lives, struct group *ret)
{
    size_t count = 0;

    for (size_t i = 0; i < lives->count; i++) {
        if (i == 0 || lives->list[i].origin != lives->list[i - 1].origin)
            ret[count++] = (struct group){.first = i};
        ret[count - 1].count++;
        ret[count - 1].footprint_bytes += lives->list[i].footprint_bytes;
    }
    qsort(ret, count, sizeof(ret[0]), by_footprint);
    return count < ORIGINS_MAX ? count : ORIGINS_MAX;
}

static void ask_about(const struct lives *lives, const struct group *group, struct ttm_text *out)
{
    const size_t places[SAMPLES] = {0, group->count / 2, group->count - 1};

    for (size_t i = 0; i < SAMPLES; i++) {
        if (i > 0 && places[i] == places[i - 1])
            continue;
        const struct ttmem_guest_live *live = &lives->list[group->first + places[i]];
        ttm_text_format(out, "%u %u %llu %llu\n", live->origin, live->region,
                        (unsigned long long)live->address, (unsigned long long)live->id);
    }
}

static void write_question(struct ttm_text *out)
{
    struct lives lives = {0};

    collect(&lives);
    struct group *groups = lives.count > 0 ? malloc(lives.count * sizeof(groups[0])) : NULL;
    const size_t count = groups ? group(&lives, groups) : 0;
    for (size_t i = 0; i < count; i++)
        ask_about(&lives, &groups[i], out);
    free(groups);
    free(lives.list);
}

/* ---- the answer ---- */

static void tell_line(char *line)
{
    struct ttmem_guest_keepers keepers = {.round = round_number};
    char *rest = NULL, *next;

    keepers.origin = (uint32_t)strtoul(line, &next, 10);
    keepers.cause = (uint8_t)strtoul(next, &next, 10);
    keepers.search = (uint8_t)strtoul(next, &next, 10);
    for (char *text = strtok_r(next, KEEPER_MARK, &rest);
         text && keepers.count < TTMEM_GUEST_KEEPERS_MAX;
         text = strtok_r(NULL, KEEPER_MARK, &rest)) {
        keepers.roots[keepers.count] = (uint32_t)strtoul(text, &text, 10);
        keepers.texts[keepers.count++] = text + (*text == ' ');
    }
    ttmem_guest_kept(&keepers);
}

static void tell_answer(void *answer)
{
    char *text, *rest = NULL;
    ssize_t length;

    if (py.bytes_of(answer, &text, &length) < 0)
        return;
    round_number++;
    char *copy = strndup(text, (size_t)length);
    for (char *line = copy ? strtok_r(copy, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest))
        tell_line(line);
    free(copy);
}

/* Of all that was asked about: neither that something holds it nor that nothing does. */
static void note_unfinished(const struct ttm_text *question)
{
    const char *line = ttm_text_string(question);
    struct ttmem_guest_keepers keepers = {.search = TTMEM_GUEST_SEARCH_UNFINISHED};

    keepers.round = ++round_number;
    while (line && *line != '\0') {
        const uint32_t origin = (uint32_t)strtoul(line, NULL, 10);
        if (origin != keepers.origin) { /* samples of one stand beside each other */
            keepers.origin = origin;
            ttmem_guest_kept(&keepers);
        }
        line = strchr(line, '\n');
        line += line != NULL;
    }
}

/* ---- Python ---- */

static void unref(void *object)
{
    if (object)
        py.unref(object);
}

/* The functions of python_heap.h, by their names. NULL when memory is short. */
static void *native_functions(void)
{
    void *functions = py.new_dict();

    for (struct ttm_python_method *m = ttm_python_heap_methods; functions && m->name; m++) {
        void *function = py.new_function(m, NULL, NULL);
        if (!function || py.dict_set(functions, m->name, function) < 0) {
            unref(functions);
            functions = NULL;
        }
        unref(function);
    }
    return functions;
}

static void *load_finder(void)
{
    void *functions = native_functions();
    void *code = py.compile(keepers_source, "<ttmem holders>", FILE_INPUT);
    void *globals = py.new_dict();
    void *name = py.new_text("ttmem._holders");
    void *result = NULL;

    if (code && globals && name && functions && py.dict_set(globals, "__name__", name) == 0 &&
        py.dict_set(globals, "NATIVE", functions) == 0)
        result = py.eval(code, globals, globals);
    /* Borrowed from 'globals', which the function itself keeps. */
    void *function = result ? py.dict_get(globals, "find") : NULL;
    unref(result);
    unref(functions);
    unref(name);
    unref(code);
    if (!function)
        unref(globals); /* else one reference is kept, for the rest of the process */
    return function;
}

static void call_finder(const struct ttm_text *question)
{
    if (!finder)
        finder = load_finder();
    void *bytes =
        finder ? py.new_bytes(ttm_text_string(question), (ssize_t)question->length) : NULL;
    void *answer = bytes ? py.call(finder, bytes, NULL) : NULL;

    if (answer)
        tell_answer(answer);
    else
        note_unfinished(question);
    unref(answer);
    unref(bytes);
}

/* With the GIL. Whatever the program was about to raise, it will; and nothing of ours. */
static void ask(void)
{
    void *kind = NULL, *value = NULL, *trace = NULL;
    struct ttm_text question;

    if (is_asking)
        return;
    is_asking = true;
    const int saved_errno = errno;
    ttm_text_init(&question);
    write_question(&question);
    if (question.length > 0 && !ttm_text_failed(&question)) {
        py.fetch_error(&kind, &value, &trace);
        /* What we make would set it going, and it would free what it has not come to yet. */
        const bool was_collecting = py.disable_collector() != 0;
        call_finder(&question);
        if (was_collecting)
            (void)py.enable_collector();
        if (py.is_error(*py.keyboard_interrupt)) /* it was meant for the program */
            py.interrupt();
        py.clear_error();
        py.restore_error(kind, value, trace);
    }
    ttm_text_done(&question);
    errno = saved_errno;
    is_asking = false;
}

/* Its state cannot go while we look. */
static bool is_safe_thread(void)
{
    return py.has_gil() || (pid_t)syscall(SYS_gettid) == getpid();
}

static bool is_there(void)
{
    return is_wanted && py.is_initialized() && !ttm_ending_has_begun();
}

static bool can_ask(void)
{
    return is_there() && is_safe_thread();
}

/* With the GIL. */
static void ask_for_close(void)
{
    const uint64_t start_ns = ttm_clock_monotonic_ns();

    if (closing_ns < SHARE_MIN_NS || closing_ns < (start_ns - begun_ns) / SHARE) {
        ask();
        closing_ns += ttm_clock_monotonic_ns() - start_ns;
    }
}

/* relaxed, here and below: it is the GIL that orders what is asked. */
static bool move_deputy(int from, int to)
{
    return atomic_compare_exchange_strong_explicit(&deputy, &from, to, memory_order_relaxed,
                                                   memory_order_relaxed);
}

static void ask_as_deputy(void)
{
    if (!move_deputy(DEPUTY_SENT, DEPUTY_ASKING)) {
        (void)move_deputy(DEPUTY_LEFT, DEPUTY_NONE);
        return;
    }
    ask_for_close();
    (void)move_deputy(DEPUTY_ASKING, DEPUTY_DONE);
}

static void wait_for_deputy(void)
{
    const uint64_t start_ns = ttm_clock_monotonic_ns();

    while (!move_deputy(DEPUTY_DONE, DEPUTY_NONE)) {
        const uint64_t waited_ns = ttm_clock_monotonic_ns() - start_ns;
        const bool is_ending = ttm_ending_has_begun();

        if ((is_ending || waited_ns > DEPUTY_GIL_MS * 1000000ull) &&
            move_deputy(DEPUTY_SENT, DEPUTY_LEFT))
            return;
        if (is_ending || waited_ns > DEPUTY_MS * 1000000ull)
            return; /* there will be no other */
        (void)nanosleep(&(struct timespec){.tv_nsec = DEPUTY_LOOK_NS}, NULL);
    }
}

void ttm_keepers_before_close(void)
{
    if (!is_there())
        return;
    if (is_safe_thread()) {
        const int state = py.take_gil();
        ask_for_close();
        py.drop_gil(state);
    } else if (ttm_stack_is_waited_for() && move_deputy(DEPUTY_NONE, DEPUTY_SENT)) {
        const int saved_errno = errno;
        if (ttm_python_door_send(ask_as_deputy))
            wait_for_deputy();
        else
            (void)move_deputy(DEPUTY_SENT, DEPUTY_NONE);
        errno = saved_errno;
    }
}

static int ask_once(void *unused)
{
    (void)unused;
    ask();
    return 0;
}

void ttm_keepers_after_failure(void)
{
    /* Some programs find their largest size by failing; the first tells enough. */
    if (!can_ask() || atomic_exchange_explicit(&was_failure_asked, true, memory_order_relaxed))
        return; /* relaxed: nothing goes with it */
    (void)py.add_pending_call(ask_once, NULL);
}

/* ---- the beginning ---- */

static bool find_python(void)
{
    const struct {
        const char *name;
        void *function;
    } wanted[] = {
        {"Py_IsInitialized", &py.is_initialized},
        {"PyGILState_Check", &py.has_gil},
        {"PyGILState_Ensure", &py.take_gil},
        {"PyGILState_Release", &py.drop_gil},
        {"Py_AddPendingCall", &py.add_pending_call},
        {"Py_CompileString", &py.compile},
        {"PyEval_EvalCode", &py.eval},
        {"PyDict_New", &py.new_dict},
        {"PyDict_SetItemString", &py.dict_set},
        {"PyDict_GetItemString", &py.dict_get},
        {"PyUnicode_FromString", &py.new_text},
        {"PyBytes_FromStringAndSize", &py.new_bytes},
        {"PyBytes_AsStringAndSize", &py.bytes_of},
        {"PyCFunction_NewEx", &py.new_function},
        {"PyObject_CallFunctionObjArgs", &py.call},
        {"Py_DecRef", &py.unref},
        {"PyErr_Fetch", &py.fetch_error},
        {"PyErr_Restore", &py.restore_error},
        {"PyErr_ExceptionMatches", &py.is_error},
        {"PyErr_Clear", &py.clear_error},
        {"PyErr_SetInterrupt", &py.interrupt},
        {"PyGC_Disable", &py.disable_collector},
        {"PyGC_Enable", &py.enable_collector},
        {"PyExc_KeyboardInterrupt", &py.keyboard_interrupt},
    };

    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *symbol = dlsym(RTLD_DEFAULT, wanted[i].name);
        if (!symbol)
            return false;
        memcpy(wanted[i].function, &symbol, sizeof(symbol)); /* ISO C has no such cast */
    }
    return true;
}

void ttm_keepers_begin(void)
{
    const char *wanted = getenv("TTMEM_HOLDERS");

    is_wanted = wanted && strcmp(wanted, "1") == 0 && find_python();
    if (!is_wanted)
        return;
    if (begun_ns == 0)
        begun_ns = ttm_clock_monotonic_ns();
    ttm_python_door_set_listener(ask);
}
