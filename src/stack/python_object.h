/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_object - strings and attributes of live Python objects, read without the GIL.
 *
 * For objects that a frame of this thread keeps alive, the first time they are
 * seen. Everything is asked of the kernel before it is read and compared with the
 * type that it should have, so an object that is not what it seems, or that
 * another thread is just changing, gives nothing or an old value and never a crash.
 */
#ifndef TTM_STACK_PYTHON_OBJECT_H
#define TTM_STACK_PYTHON_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stack/python_layout.h"

struct ttm_python_types {
    uintptr_t code;
    uintptr_t string;
    uintptr_t bytes;
    uintptr_t dict;
};

struct ttm_python_view {
    const struct ttm_python_layout *layout;
    struct ttm_python_types types;
    uintptr_t no; /* the object False, 0: not known */
};

/* Is it an object of exactly that type, with 'size' bytes that can be read? */
bool ttm_python_is(uintptr_t object, uintptr_t type, size_t size);

enum ttm_python_keep { TTM_KEEP_HEAD, TTM_KEEP_TAIL };

/*
 * A str as UTF-8. Of one that does not fit, the beginning or the end is kept, in
 * whole characters. Returns its bytes, or -EINVAL when it is no string we can read.
 */
int ttm_python_text(const struct ttm_python_view *view, uintptr_t object, enum ttm_python_keep keep,
                    char *buf, size_t size);

/* The value of an attribute in the object's own dict, 0 for none. Not of classes or slots. */
uintptr_t ttm_python_attribute(const struct ttm_python_view *view, uintptr_t object,
                               const char *name);

#endif /* TTM_STACK_PYTHON_OBJECT_H */
