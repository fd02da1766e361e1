/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python - the Python frames of this thread, read without the GIL.
 *
 * One struct per thread, used by that thread alone. python.c has the argument why
 * reading is safe, python_runtime.c when it is given up.
 */
#ifndef TTM_STACK_PYTHON_H
#define TTM_STACK_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stack/stack.h"

struct ttm_python;

/* What is known of a stack: its notes of Python, and what stack.c has found besides, 0 at first. */
struct ttm_kept {
    uint32_t python;
    uint32_t operation;
    uint32_t native_hint; /* for ttm_native_stack() */
    uint32_t origin;      /* of the two above and these: */
    uint32_t native;
    uint32_t thread;
    uint32_t context;
};

/* Bytes that a thread needs. */
size_t ttm_python_size(void);

/* In zeroed memory of that size, aligned to 64 bytes, for stacks of at most 'frames'. */
void ttm_python_init(struct ttm_python *python, unsigned frames);

/* Numbers of notes have changed, perhaps because this is a forked child. */
void ttm_python_forget(struct ttm_python *python);

/* The thread ends; another one may go on with what it knows. */
void ttm_python_hand_over(struct ttm_python *python);

/*
 * Where this thread is, with its stack pointer somewhere in the caller: the notes of the user's
 * frames and of ttnn's operation, with what is kept for them at this stack pointer. Valid until
 * the next call; NULL when the thread has no Python state at all. '*ret_whole' is a number of all
 * frames, each at its instruction, and of the stack pointer; 0 where there are more than
 * are looked at. Leaves errno alone.
 */
struct ttm_kept *ttm_python_stack(struct ttm_python *python, uint64_t sp, ttm_stack_note_fn note,
                                  uint8_t *scratch, uint64_t *ret_whole);

/*
 * The name that threading.Thread has for this thread, as UTF-8. Returns its bytes,
 * 0 when the thread is not one of threading's. After ttm_python_stack() has found something.
 */
size_t ttm_python_thread_name(struct ttm_python *python, char *buf, size_t size);

/* Is it one of threading's that is no daemon? */
bool ttm_python_is_waited_for(struct ttm_python *python);

#endif /* TTM_STACK_PYTHON_H */
