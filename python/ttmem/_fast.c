/* SPDX-License-Identifier: Apache-2.0 */
/*
 * _fast - libttmem's functions as Python's own: a tenth of what a call through ctypes
 * takes, and no ctypes to import. The package does without where it cannot be loaded.
 *
 * One library for all of Python 3.10 to 3.13: it uses the stable ABI alone. What it
 * needs of that is declared here, so that building takes no headers of Python's, which
 * few users of pip have.
 *
 * It also has the functions with which the search for holders goes through all objects.
 *
 * libttmem is not linked but found at run time, as a program that has nothing to do
 * with it must not get it. With the GIL, but where something may wait.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include <ttmem/ttmem.h>

#include "hook/python_heap.h"

#define ARGUMENTS_FAST 0x0080 /* METH_FASTCALL */
#define ABI_VERSION 3         /* PYTHON_ABI_VERSION */
#define DEVICES_MAX 1024

typedef struct object object;

struct method {
    const char *name;
    object *(*call)(object *self, object *const *args, ssize_t count);
    int flags;
    const char *doc;
};

/* PyModuleDef, the same in all versions that have a GIL. */
struct module {
    ssize_t references;
    void *type;
    void *init;
    ssize_t index;
    void *copy;
    const char *name;
    const char *doc;
    ssize_t size;
    struct method *methods;
    void *slots, *traverse, *clear, *free;
};

extern object *PyModule_Create2(struct module *module, int version);
extern int PyModule_AddFunctions(object *module, struct ttm_python_method *methods);
extern object *PyLong_FromLong(long value);
extern uint64_t PyLong_AsUnsignedLongLong(object *number);
extern object *PyBool_FromLong(long value);
extern char *PyBytes_AsString(object *bytes);
extern const char *PyUnicode_AsUTF8AndSize(object *text, ssize_t *length);
extern ssize_t PySequence_Size(object *sequence);
extern object *PySequence_GetItem(object *sequence, ssize_t index);
extern object *PyErr_Occurred(void);
extern void PyErr_SetString(object *kind, const char *text);
extern void *PyEval_SaveThread(void);
extern void PyEval_RestoreThread(void *state);
extern void Py_IncRef(object *thing);
extern void Py_DecRef(object *thing);
extern object *PyExc_TypeError, *PyExc_OSError;
extern object _Py_NoneStruct;

/* Of libttmem, all or none. */
static struct {
    int (*is_enabled)(void);
    int (*enable)(void);
    void (*disable)(void);
    void (*context_set)(const char *path);
    void (*mark)(const char *name);
    void (*reset_peaks)(void);
    void (*alloc)(const struct ttmem_allocation *allocation);
    void (*free)(uint16_t allocator, uint8_t region, uint64_t id);
    uint32_t (*devices)(const uint16_t *ids, uint32_t count);
    void (*name)(uint16_t allocator, uint8_t region, uint64_t id, const char *name,
                 const char *context);
    int (*name_at)(uint16_t device, uint8_t region, uint64_t address, uint64_t id, const char *name,
                   const char *context);
    int (*name_unique)(uint64_t id, uint64_t address, const char *name, const char *context);
} lib;

/* ---- arguments ---- */

static object *none(void)
{
    Py_IncRef(&_Py_NoneStruct);
    return &_Py_NoneStruct;
}

static bool has_arguments(ssize_t count, ssize_t wanted)
{
    if (count != wanted)
        PyErr_SetString(PyExc_TypeError, "another number of arguments is expected");
    return count == wanted;
}

/* Numbers; a wrong one sets an error, which is looked at once, after all of them. */
static void read_numbers(object *const *args, ssize_t count, uint64_t *ret)
{
    for (ssize_t i = 0; i < count; i++)
        ret[i] = PyLong_AsUnsignedLongLong(args[i]);
}

/* NULL for None and "", which leave things as they are; and after an error. */
static const char *read_text(object *text)
{
    ssize_t length = 0;
    const char *bytes = text != &_Py_NoneStruct ? PyUnicode_AsUTF8AndSize(text, &length) : NULL;

    return length > 0 ? bytes : NULL;
}

/* ---- functions ---- */

static object *is_enabled(object *self, object *const *args, ssize_t count)
{
    (void)self, (void)args, (void)count;
    return PyLong_FromLong(lib.is_enabled());
}

static object *enable(object *self, object *const *args, ssize_t count)
{
    (void)self, (void)args, (void)count;
    void *state = PyEval_SaveThread(); /* it waits for threads that are inside TT-Metal */
    const int r = lib.enable();
    PyEval_RestoreThread(state);
    return PyLong_FromLong(r);
}

static object *disable(object *self, object *const *args, ssize_t count)
{
    (void)self, (void)args, (void)count;
    void *state = PyEval_SaveThread();
    lib.disable();
    PyEval_RestoreThread(state);
    return none();
}

/* Bytes, as the path is kept so. */
static object *context_set(object *self, object *const *args, ssize_t count)
{
    (void)self;
    const char *path = has_arguments(count, 1) ? PyBytes_AsString(args[0]) : NULL;
    if (!path)
        return NULL;
    lib.context_set(path);
    return none();
}

static object *mark(object *self, object *const *args, ssize_t count)
{
    (void)self;
    const char *name = has_arguments(count, 1) ? PyBytes_AsString(args[0]) : NULL;
    if (!name)
        return NULL;
    lib.mark(name);
    return none();
}

static object *reset_peaks(object *self, object *const *args, ssize_t count)
{
    (void)self, (void)args, (void)count;
    lib.reset_peaks();
    return none();
}

/* id, address, name, context */
static object *name_unique(object *self, object *const *args, ssize_t count)
{
    uint64_t n[2];
    (void)self;

    if (!has_arguments(count, 4))
        return NULL;
    read_numbers(args, 2, n);
    const char *name = read_text(args[2]);
    const char *context = read_text(args[3]);
    if (PyErr_Occurred())
        return NULL;
    return PyBool_FromLong(lib.name_unique(n[0], n[1], name, context));
}

/* device, region, address, id, name, context */
static object *name_at(object *self, object *const *args, ssize_t count)
{
    uint64_t n[4];
    (void)self;

    if (!has_arguments(count, 6))
        return NULL;
    read_numbers(args, 4, n);
    const char *name = read_text(args[4]);
    const char *context = read_text(args[5]);
    if (PyErr_Occurred())
        return NULL;
    return PyBool_FromLong(lib.name_at((uint16_t)n[0], (uint8_t)n[1], n[2], n[3], name, context));
}

/* allocator, region, id, name, context */
static object *name(object *self, object *const *args, ssize_t count)
{
    uint64_t n[3];
    (void)self;

    if (!has_arguments(count, 5))
        return NULL;
    read_numbers(args, 3, n);
    const char *text = read_text(args[3]);
    const char *context = read_text(args[4]);
    if (PyErr_Occurred())
        return NULL;
    lib.name((uint16_t)n[0], (uint8_t)n[1], n[2], text, context);
    return none();
}

/* id, address, bytes, footprint, devices, allocator, region */
static object *alloc(object *self, object *const *args, ssize_t count)
{
    uint64_t n[7];
    (void)self;

    if (!has_arguments(count, 7))
        return NULL;
    read_numbers(args, 7, n);
    if (PyErr_Occurred())
        return NULL;
    lib.alloc(&(struct ttmem_allocation){
        .id = n[0],
        .address = n[1],
        .bytes = n[2],
        .footprint_bytes = n[3],
        .devices = (uint32_t)n[4],
        .allocator = (uint16_t)n[5],
        .region = (uint8_t)n[6],
    });
    return none();
}

/* allocator, region, id */
static object *free_(object *self, object *const *args, ssize_t count)
{
    uint64_t n[3];
    (void)self;

    if (!has_arguments(count, 3))
        return NULL;
    read_numbers(args, 3, n);
    if (PyErr_Occurred())
        return NULL;
    lib.free((uint16_t)n[0], (uint8_t)n[1], n[2]);
    return none();
}

static object *devices(object *self, object *const *args, ssize_t count)
{
    uint16_t ids[DEVICES_MAX];
    (void)self;

    const ssize_t length = has_arguments(count, 1) ? PySequence_Size(args[0]) : -1;
    if (length < 0)
        return NULL;
    for (ssize_t i = 0; i < length && i < DEVICES_MAX; i++) {
        object *item = PySequence_GetItem(args[0], i);
        const uint64_t id = item ? PyLong_AsUnsignedLongLong(item) : 0;
        if (item)
            Py_DecRef(item);
        if (PyErr_Occurred())
            return NULL;
        ids[i] = id < UINT16_MAX ? (uint16_t)id : UINT16_MAX;
    }
    return PyLong_FromLong((long)lib.devices(ids, (uint32_t)length));
}

/* ---- finding libttmem ---- */

static bool resolve(void *library)
{
    const struct {
        const char *name;
        void *function;
    } wanted[] = {
        {"ttmem_is_enabled", &lib.is_enabled},
        {"ttmem_enable", &lib.enable},
        {"ttmem_disable", &lib.disable},
        {"ttmem_context_set", &lib.context_set},
        {"ttmem_mark", &lib.mark},
        {"ttmem_reset_peaks", &lib.reset_peaks},
        {"ttmem_alloc", &lib.alloc},
        {"ttmem_free", &lib.free},
        {"ttmem_devices", &lib.devices},
        {"ttmem_name", &lib.name},
        {"ttmem_name_at", &lib.name_at},
        {"ttmem_name_unique", &lib.name_unique},
    };

    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *symbol = dlsym(library, wanted[i].name);
        if (!symbol)
            return false;
        memcpy(wanted[i].function, &symbol, sizeof(symbol)); /* ISO C has no such cast */
    }
    return true;
}

/*
 * The library at that path, loaded; or the one of that name that the process has. Returns whether
 * it is there with all functions. Nothing else may be called before that was true.
 */
static object *attach(object *self, object *const *args, ssize_t count)
{
    uint64_t is_loading;
    (void)self;

    if (!has_arguments(count, 2))
        return NULL;
    const char *path = read_text(args[0]);
    read_numbers(args + 1, 1, &is_loading);
    if (PyErr_Occurred())
        return NULL;
    void *library = path ? dlopen(path, is_loading ? RTLD_LAZY : RTLD_LAZY | RTLD_NOLOAD) : NULL;
    return PyBool_FromLong(library && resolve(library));
}

/* Loads the hook in front of whatever is loaded from now on, and has it installed. */
static object *install_hook(object *self, object *const *args, ssize_t count)
{
    int (*install)(void);
    (void)self;

    if (!has_arguments(count, 1))
        return NULL;
    const char *path = read_text(args[0]);
    if (PyErr_Occurred())
        return NULL;
    void *hook = path ? dlopen(path, RTLD_LAZY | RTLD_GLOBAL) : NULL;
    void *symbol = hook ? dlsym(hook, "ttmem_hook_install") : NULL;
    if (!symbol) {
        PyErr_SetString(PyExc_OSError, path ? dlerror() : "no path");
        return NULL;
    }
    memcpy(&install, &symbol, sizeof(symbol));
    void *state = PyEval_SaveThread();
    const int r = install();
    PyEval_RestoreThread(state);
    return PyLong_FromLong(r);
}

/* ---- the module ---- */

static struct method methods[] = {
    {"attach", attach, ARGUMENTS_FAST, NULL},
    {"install_hook", install_hook, ARGUMENTS_FAST, NULL},
    {"is_enabled", is_enabled, ARGUMENTS_FAST, NULL},
    {"enable", enable, ARGUMENTS_FAST, NULL},
    {"disable", disable, ARGUMENTS_FAST, NULL},
    {"context_set", context_set, ARGUMENTS_FAST, NULL},
    {"mark", mark, ARGUMENTS_FAST, NULL},
    {"reset_peaks", reset_peaks, ARGUMENTS_FAST, NULL},
    {"name_unique", name_unique, ARGUMENTS_FAST, NULL},
    {"name_at", name_at, ARGUMENTS_FAST, NULL},
    {"name", name, ARGUMENTS_FAST, NULL},
    {"alloc", alloc, ARGUMENTS_FAST, NULL},
    {"free", free_, ARGUMENTS_FAST, NULL},
    {"devices", devices, ARGUMENTS_FAST, NULL},
    {0},
};

static struct module definition = {
    .references = 1, .name = "_fast", .size = -1, .methods = methods};

__attribute__((visibility("default"))) object *PyInit__fast(void);
__attribute__((visibility("default"))) object *PyInit__fast(void)
{
    object *module = PyModule_Create2(&definition, ABI_VERSION);

    if (module && PyModule_AddFunctions(module, ttm_python_heap_methods) < 0) {
        Py_DecRef(module);
        return NULL;
    }
    return module;
}
