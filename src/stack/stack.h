/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack - where a thread of somebody else's program is right now: its Python
 * lines, its native frames, the operation of ttnn it is in, and its name.
 *
 * Everything is said in notes (wire/origin.h), each once, and comes back as their
 * numbers. Any thread may ask about itself at any moment: with the GIL or without
 * it, inside dlopen(), in a signal handler, while the interpreter shuts down. It
 * never waits, takes no lock, opens no file, calls nothing of the interpreter and
 * allocates only at a thread's first call (pages from the kernel). Where something
 * cannot be had it is left out: 0.
 *
 * What was seen once is remembered by the thread, so that a program which does the
 * same thing again pays for comparing and not for finding out.
 *
 * The library that this is part of must not be unloaded (-z nodelete): threads give
 * their memory back by a destructor of ours.
 */
#ifndef TTM_STACK_STACK_H
#define TTM_STACK_STACK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The number of a note of that kind and content, the same for the same content; 0
 * when there is no room. Called by any thread; it must not ask for stacks in turn.
 */
typedef uint32_t (*ttm_stack_note_fn)(uint32_t kind, const void *bytes, uint32_t length);

/* Those of the innermost frame of a stack: where it goes on, and with what. */
struct ttm_registers {
    uint64_t ip;
    uint64_t sp;
    uint64_t bp;
};

/* Numbers of notes, 0 for none. */
struct ttm_stack {
    uint32_t thread;
    uint32_t operation;
    uint32_t python;
    uint32_t native;
};

/*
 * The number of a note that says a stack and what the program says that it is about, 'context';
 * 0 when there is no room. Its answer is kept until ttm_stack_forget(). It must not ask for stacks
 * in turn.
 */
typedef uint32_t (*ttm_stack_origin_fn)(const struct ttm_stack *stack, uint32_t context);

#define TTM_STACK_OURS_MAX 4

struct ttm_stack_options {
    uint16_t python_frames; /* at most TTM_PYTHON_FRAMES_MAX; 0: none, and no operation */
    uint16_t native_frames; /* at most TTM_NATIVE_FRAMES_MAX; 0: none */
    /*
     * An address in each module of the tracker's own. Their frames at the inner
     * end are left out, so that a stack begins with the program's.
     */
    const void *ours[TTM_STACK_OURS_MAX];
    ttm_stack_origin_fn origin; /* for ttm_stack_origin() */
};

#define TTM_STACK_DEFAULT_OPTIONS                                                                  \
    {                                                                                              \
        .python_frames = 8, .native_frames = 48                                                    \
    }

/*
 * Once per process, before any ttm_stack_capture(), outside of any event: it asks
 * the loader. 'options' is copied.
 */
void ttm_stack_start(const struct ttm_stack_options *options, ttm_stack_note_fn note);

/*
 * Looks for an interpreter that was loaded after the start, in a program that is
 * not Python but embeds it. Outside of any event, from any one thread at a time.
 */
void ttm_stack_find_python(void);

/*
 * If this thread has Python's GIL, what takes the GIL to be set up is set up now, without
 * Python code being run. Without it threads have no Python lines until that is done in
 * another way, a few milliseconds later. Outside of any event, at any time.
 */
void ttm_stack_use_gil(void);

/*
 * Numbers of notes have lost their meaning: a new segment, or a forked child.
 * Each thread forgets before its next capture.
 */
void ttm_stack_forget(void);

/*
 * A module was unloaded: whoever sees dlclose() says so afterwards. Without it the
 * change is noticed later, by the check of each 256th use of a remembered stack.
 */
void ttm_stack_unloaded(void);

/* Never fails; leaves errno alone. */
void ttm_stack_capture(struct ttm_stack *ret);

/*
 * What options.origin has for a capture and 'context'; 0 where nothing can be captured. Leaves
 * errno alone.
 */
uint32_t ttm_stack_origin(uint32_t context);

/* While it is set, nothing is captured on this thread. */
void ttm_stack_set_silent(bool is_silent);

/*
 * The next ttm_stack_origin() on this thread begins with that frame and not with its caller's: for
 * who is called in the middle of something of which nothing is to be seen. It is one further out on
 * the same stack. Not copied; NULL afterwards, lest there was no next.
 */
void ttm_stack_set_frame(const struct ttm_registers *frame);

/*
 * Does Python wait for this thread before it ends, as far as can be seen: is it one of
 * threading's and no daemon? Leaves errno alone.
 */
bool ttm_stack_is_waited_for(void);

/* Why frames are missing in this process, one line, "" while nothing is wrong. Never freed. */
const char *ttm_stack_trouble(void);

/* Room to write a note in, for the files of this folder; each thread has one. */
#define TTM_STACK_SCRATCH_SIZE 8192

#endif /* TTM_STACK_STACK_H */
