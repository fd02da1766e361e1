/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin_words - the notes of an origin, in words that people read.
 *
 * One thread, no I/O. Native frames are named by a callback, as symbols are looked
 * up elsewhere; without one they are "module+0xoffset".
 */
#ifndef TTM_ANALYSIS_ORIGIN_WORDS_H
#define TTM_ANALYSIS_ORIGIN_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/arena.h"
#include "analysis/notebook.h"
#include "base/text.h"
#include "wire/origin.h"

struct ttm_frame_words {
    const char *file; /* with its folders; "": not known, and 'line' is 0 */
    const char *function;
    uint32_t line;
};

/* A call stack, innermost first. */
struct ttm_stack_words {
    const struct ttm_frame_words *frames;
    uint32_t count;
};

/* Nothing is NULL; what is not known is "". */
struct ttm_origin_words {
    const struct ttm_frame_words *python; /* innermost first, user code only */
    uint32_t python_count;
    const char *const *native; /* innermost first */
    uint32_t native_count;
    const char *operation;
    const char *name;
    const char *context;
    const char *thread;
    bool is_device_open;               /* it happened while a device was opened */
    bool is_ttnns;                     /* by a native function of ttnn's, not by TT-Metal alone */
    bool is_upload;                    /* by native functions that bring data to a device */
    bool is_program;                   /* it is a part of a program that is kept to be used again */
    const char *const *native_modules; /* of each native frame: the file, without its folders */
    uint32_t native_place;             /* the native frame that says where: the user's, else 0 */
    struct ttm_stack_words native_lines; /* functions of the user's modules, inlined ones too */
};

/* The user's code, whichever language it is in: Python lines, else those of native functions. */
static inline struct ttm_stack_words ttm_origin_users_stack(const struct ttm_origin_words *words)
{
    return words->python_count > 0 ? (struct ttm_stack_words){words->python, words->python_count}
                                   : words->native_lines;
}

/* Appends the name of what lies at 'address' of the module; returns whether it knows. */
typedef bool (*ttm_name_frame_fn)(void *arg, const struct ttm_module_note *module, uint64_t address,
                                  bool is_exact, struct ttm_text *name);

/*
 * The functions at 'address', an inlined one before the one that it was inlined into. Returns how
 * many, at most 'max'; 0 when none is known. Texts are borrowed until the next call.
 */
typedef uint32_t (*ttm_list_frames_fn)(void *arg, const struct ttm_module_note *module,
                                       uint64_t address, bool is_exact, struct ttm_frame_words *ret,
                                       uint32_t max);

struct ttm_frame_namer {
    ttm_name_frame_fn name;  /* may be NULL */
    ttm_list_frames_fn list; /* may be NULL */
    void *arg;
};

/* Number 0, or one that was never said, has no words at all. */
void ttm_origin_words_read(const struct ttm_notebook *notes, uint32_t number,
                           const struct ttm_frame_namer *namer, struct ttm_arena *arena,
                           struct ttm_origin_words *ret);

/* Numbers that tell apart what allocates. */
struct ttm_origin_line {
    uint64_t code;     /* the Python stack, else the native one, and the operation; 0: not known */
    uint64_t spot;     /* the innermost line of the user's and the operation, whoever called it */
    uint32_t function; /* of that line; number of a note, 0: not known */
    uint64_t phase;    /* the outermost context: "load" of "load/layer 3"; 0: none */
    uint32_t context;  /* numbers of notes, 0: none */
    uint32_t thread;
};

struct ttm_origin_line ttm_origin_line(const struct ttm_notebook *notes, uint32_t number);

/* Whether the process was imported from a text log, and what of which. */
bool ttm_origin_log(const struct ttm_notebook *notes, struct ttm_log_note *ret);

#endif /* TTM_ANALYSIS_ORIGIN_WORDS_H */
