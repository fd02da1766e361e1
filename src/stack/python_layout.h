/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_layout - where the fields lie that we read of an interpreter, by version.
 *
 * CPython 3.10 to 3.13 on x86-64. The fields of a thread, of its frames and of code
 * objects are no public interface, but they do not move within a minor version.
 * The numbers were read from each version's headers and are compared with real
 * interpreters by tests/integration/test_stack_python.py; python.c proves them in
 * the process before it relies on them.
 */
#ifndef TTM_STACK_PYTHON_LAYOUT_H
#define TTM_STACK_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

/* How an object's attributes are kept besides a plain dict. */
enum ttm_python_values {
    TTM_VALUES_NONE,   /* 3.10: always a dict, at tp_dictoffset */
    TTM_VALUES_BEFORE, /* 3.11: four words before the object a pointer to them */
    TTM_VALUES_TAGGED, /* 3.12: three words before it, with the lowest bit set */
    TTM_VALUES_INLINE, /* 3.13: behind the object */
};

struct ttm_python_layout {
    uint8_t minor;
    bool has_location_table; /* from 3.11 on; before, pairs of deltas */
    uint8_t values;          /* enum ttm_python_values */

    /* PyThreadState */
    uint16_t thread_frame;
    uint16_t thread_id;
    int16_t cframe_frame; /* in 3.11 and 3.12 'thread_frame' leads here first; -1: not so */

    /* PyFrameObject, from 3.11 on _PyInterpreterFrame */
    uint16_t frame_code;
    uint16_t frame_back;
    uint16_t frame_instruction; /* 3.10: f_lasti, a number; then a pointer into the code */
    uint16_t frame_owner;       /* 0: has none */
    uint16_t frame_locals;

    /* PyCodeObject */
    uint16_t code_file;
    uint16_t code_name; /* the qualified one where there is one */
    uint16_t code_first_line;
    uint16_t code_lines;
    uint16_t code_instructions; /* 3.10: pointer to a bytes object; then the place itself */
    uint16_t
        code_first_traceable; /* instructions before it run before the frame is whole; 0: none */
    uint16_t code_version;    /* a number that no other code object had; 0: has none */

    /* PyASCIIObject, PyCompactUnicodeObject: where the characters are */
    uint16_t ascii_characters;
    uint16_t compact_characters;

    /* PyHeapTypeObject, struct _dictvalues */
    uint16_t type_cached_keys;
    uint16_t values_first;
};

/* The same in all of them. */
enum {
    TTM_OBJECT_TYPE = 8,
    TTM_OBJECT_SIZE = 16,   /* PyVarObject.ob_size */
    TTM_STRING_LENGTH = 16, /* characters */
    TTM_STRING_HASH = 24,
    TTM_STRING_STATE = 32,
    TTM_BYTES_FIRST = 32,
    TTM_TYPE_BASIC_SIZE = 32,
    TTM_TYPE_FLAGS = 168,
    TTM_TYPE_DICT_OFFSET = 288,
    TTM_DICT_KEYS = 32,
    TTM_DICT_VALUES = 40,
};

enum { TTM_OWNED_BY_GENERATOR = 1, TTM_OWNED_BY_C_STACK = 3 };

/* Of "3.12.1 (main, …", as Py_GetVersion() gives it. NULL: not one that we know. */
const struct ttm_python_layout *ttm_python_layout_find(const char *version);

/*
 * From 3.13 on the interpreter publishes its offsets (_Py_DebugOffsets, at the
 * beginning of _PyRuntime). Does 'layout' say the same? True when it has none.
 */
bool ttm_python_layout_agrees(const struct ttm_python_layout *layout, const void *runtime);

#endif /* TTM_STACK_PYTHON_LAYOUT_H */
