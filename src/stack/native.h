/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native - the return addresses on this thread's own stack, and their note.
 *
 * One per thread, used by that thread alone. No lock, no allocation, no file, no
 * signal; it reads the stack, within bounds that the kernel has confirmed, and the
 * unwind tables of the modules on it. So it cannot fault, whatever a table says.
 */
#ifndef TTM_STACK_NATIVE_H
#define TTM_STACK_NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stack/stack.h"

struct ttm_native;

/* Bytes that a thread needs, for stacks of at most 'frames' besides our own. */
size_t ttm_native_size(unsigned frames);

/* In zeroed memory of that size. 'stack_end' is above every frame of the thread, 0: not known. */
void ttm_native_init(struct ttm_native *native, unsigned frames, uintptr_t stack_end);

/* Another thread takes it over, with all that was learned. 'stack_end' is that thread's. */
void ttm_native_hand_over(struct ttm_native *native, uintptr_t stack_end);

/* Nothing is remembered any more: numbers of notes or modules have changed. */
void ttm_native_forget(struct ttm_native *native);

/*
 * The number of a note of the stack that 'registers' are the innermost frame of, 0 for
 * none. 'hint' is 0 at first and then what an earlier call has left there, best one in the
 * same place of the program: it is where to look first. 'python' is
 * a number of all Python frames with their instructions and of the stack pointer, 0 where there are
 * none or not all are known. Leaves errno alone.
 */
uint32_t ttm_native_stack(struct ttm_native *native, const struct ttm_registers *registers,
                          uint64_t python, ttm_stack_note_fn note, uint8_t *scratch,
                          uint32_t *hint);

/* For the benchmark: stacks are forgotten, or only where they lay; how to walk them is not. */
void ttm_native_forget_stacks(struct ttm_native *native);
void ttm_native_forget_places(struct ttm_native *native);

/* For tests and the benchmark. */
struct ttm_native_counts {
    uint64_t remembered; /* stacks that were not walked */
    uint64_t walked;
    uint64_t surprises; /* walked to be sure, and it was another one */
};

const struct ttm_native_counts *ttm_native_counts(const struct ttm_native *native);

/*
 * Walks for real. Returns the number of addresses, our own frames among them; and in
 * 'ret_is_cut' whether there was no room for more.
 */
unsigned ttm_native_walk(struct ttm_native *native, const struct ttm_registers *registers,
                         const uint64_t **ret_addresses, bool *ret_is_cut);

#endif /* TTM_STACK_NATIVE_H */
