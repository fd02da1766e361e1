/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin - where an allocation came from: the notes that src/stack writes in the
 * tracked program, and their reading in the server.
 *
 * A note is said once and referred to by its number. All numbers are
 * little-endian; text is UTF-8 without a NUL, and may be cut to its limit. A
 * number of a note that is 0 means "none". The bytes come from a process that may
 * lie: a decoder takes a length, checks every count against it, and gives
 * -EBADMSG for nonsense. What a note refers to may be missing or of another kind.
 *
 *   CODE           0 u32 first line | 4 u16 file bytes | 6 u16 name bytes | file | name
 *   PYTHON_STACK   0 u16 frames | 2 u16 flags | frames, innermost first:
 *                  u32 note of CODE | u32 line, 0: not known
 *   MODULE         0 u64 bias | 8 u64 start | 16 u64 end | 24 u16 path bytes
 *                  | 26 u8 build-id bytes | 27 u8 0 | path | build-id
 *   NATIVE_STACK   0 u16 frames | 2 u16 flags | 4 u16 modules | 6 u16 0
 *                  | modules: u32 note of MODULE | frames, innermost first: u64
 *   THREAD         0 u32 thread id | name, the rest
 *   OPERATION      name, the rest
 *   NAMED_STACK    0 u16 frames | 2 u16 flags | frames, innermost first:
 *                  u16 module bytes | u16 name bytes | module | name
 *   LOG            0 u16 flags | 2 u16 0 | name of the file, the rest
 *
 * A tracked program sends neither of the last two: they are in recordings that were made
 * from text. A named stack stands where a native one does, for frames that somebody has
 * named already. The note of the log is the process's number TTM_LOG_NOTE.
 *
 * A native frame is a place in a module, or an address where the module is not
 * known: bits 48 to 62 are the place of the module in the note's list, counted
 * from 1; bits 0 to 47 the address less the module's bias, which is the address
 * that the file's own symbols and lines speak of. With 0 for the module they are
 * the address itself. It is a return address, the instruction after the call, so
 * whoever wants the call looks one byte before it; unless bit 63 is set: then a
 * signal interrupted the program at that very instruction.
 */
#ifndef TTM_WIRE_ORIGIN_H
#define TTM_WIRE_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kinds of notes; smaller ones are in ring/segment.h, the next one in wire/keepers.h. */
enum ttm_origin_kind {
    TTM_NOTE_CODE = 16,
    TTM_NOTE_PYTHON_STACK = 17,
    TTM_NOTE_MODULE = 18,
    TTM_NOTE_NATIVE_STACK = 19,
    TTM_NOTE_THREAD = 20,
    TTM_NOTE_OPERATION = 21,
    TTM_NOTE_NAMED_STACK = 22,
    TTM_NOTE_LOG = 23,
};

/* The number of the note that says that a process was imported from a log. */
#define TTM_LOG_NOTE 1u

#define TTM_CODE_FILE_MAX 1024   /* of longer ones the end is kept: it tells more */
#define TTM_CODE_NAME_MAX 255    /* of longer ones the beginning */
#define TTM_MODULE_PATH_MAX 1024 /* the end */
#define TTM_BUILD_ID_MAX 32
#define TTM_THREAD_NAME_MAX 64
#define TTM_OPERATION_NAME_MAX 128
#define TTM_FRAME_MODULE_MAX 255 /* the beginning, as of the name */
#define TTM_FRAME_NAME_MAX 1024
#define TTM_LOG_NAME_MAX 255 /* the end */
#define TTM_PYTHON_FRAMES_MAX 64
#define TTM_NATIVE_FRAMES_MAX 128
#define TTM_NATIVE_MODULES_MAX 64

/* There were more frames than were asked for. */
#define TTM_STACK_IS_CUT 1u

/* The log has no times: those of the recording tell the order alone. */
#define TTM_LOG_IS_UNTIMED 1u

/* Text in a note: borrowed, not terminated. */
struct ttm_note_text {
    const char *bytes;
    uint16_t length;
};

/* The first bytes of a text, at most 'max', up to the border of a character. */
struct ttm_note_text ttm_note_text_cut(struct ttm_note_text text, uint16_t max);

struct ttm_code_note {
    uint32_t first_line;
    struct ttm_note_text file;
    struct ttm_note_text name; /* "Model.forward" from Python 3.11 on, "forward" before */
};

struct ttm_python_frame {
    uint32_t code;
    uint32_t line;
};

struct ttm_python_stack_note {
    uint16_t count;
    bool is_cut;
    struct ttm_python_frame frames[TTM_PYTHON_FRAMES_MAX];
};

struct ttm_module_note {
    uint64_t bias; /* what the loader added to the addresses in the file */
    uint64_t start;
    uint64_t end;
    struct ttm_note_text path;
    const uint8_t *build_id; /* borrowed */
    uint8_t build_id_length; /* 0: has none */
};

struct ttm_native_frame {
    uint32_t module; /* number of a note, 0: 'address' is absolute */
    bool is_exact;   /* interrupted at this very instruction, not called from before it */
    uint64_t address;
};

struct ttm_native_stack_note {
    uint16_t count;
    bool is_cut;
    struct ttm_native_frame frames[TTM_NATIVE_FRAMES_MAX];
};

struct ttm_thread_note {
    uint32_t tid;
    struct ttm_note_text name;
};

struct ttm_named_frame {
    struct ttm_note_text module; /* may be empty */
    struct ttm_note_text name;
};

struct ttm_named_stack_note {
    uint16_t count;
    bool is_cut;
    struct ttm_named_frame frames[TTM_NATIVE_FRAMES_MAX];
};

struct ttm_log_note {
    bool is_untimed;
    struct ttm_note_text name;
};

#define TTM_CODE_NOTE_SIZE_MAX (8 + TTM_CODE_FILE_MAX + TTM_CODE_NAME_MAX)
#define TTM_PYTHON_STACK_NOTE_SIZE_MAX (4 + 8 * TTM_PYTHON_FRAMES_MAX)
#define TTM_MODULE_NOTE_SIZE_MAX (28 + TTM_MODULE_PATH_MAX + TTM_BUILD_ID_MAX)
#define TTM_NATIVE_STACK_NOTE_SIZE_MAX (8 + 4 * TTM_NATIVE_MODULES_MAX + 8 * TTM_NATIVE_FRAMES_MAX)
#define TTM_THREAD_NOTE_SIZE_MAX (4 + TTM_THREAD_NAME_MAX)
#define TTM_NAMED_STACK_NOTE_SIZE_MAX                                                              \
    (4 + (4 + TTM_FRAME_MODULE_MAX + TTM_FRAME_NAME_MAX) * TTM_NATIVE_FRAMES_MAX)
#define TTM_LOG_NOTE_SIZE_MAX (4 + TTM_LOG_NAME_MAX)

/*
 * Each returns the bytes used. Text beyond its limit is cut, at the border of a
 * character; counts beyond theirs are the caller's mistake.
 */
size_t ttm_code_note_encode(const struct ttm_code_note *note, uint8_t buf[TTM_CODE_NOTE_SIZE_MAX]);
size_t ttm_python_stack_note_encode(const struct ttm_python_stack_note *note,
                                    uint8_t buf[TTM_PYTHON_STACK_NOTE_SIZE_MAX]);
size_t ttm_module_note_encode(const struct ttm_module_note *note,
                              uint8_t buf[TTM_MODULE_NOTE_SIZE_MAX]);
size_t ttm_thread_note_encode(const struct ttm_thread_note *note,
                              uint8_t buf[TTM_THREAD_NOTE_SIZE_MAX]);

size_t ttm_named_stack_note_encode(const struct ttm_named_stack_note *note,
                                   uint8_t buf[TTM_NAMED_STACK_NOTE_SIZE_MAX]);
size_t ttm_log_note_encode(const struct ttm_log_note *note, uint8_t buf[TTM_LOG_NOTE_SIZE_MAX]);

/* A frame in a module beyond the first TTM_NATIVE_MODULES_MAX is written without one. */
size_t ttm_native_stack_note_encode(const struct ttm_native_stack_note *note,
                                    uint8_t buf[TTM_NATIVE_STACK_NOTE_SIZE_MAX]);

/* Each returns 0 or -EBADMSG. What they return lasts as long as 'buf'. */
int ttm_code_note_decode(const uint8_t *buf, size_t len, struct ttm_code_note *ret);
int ttm_python_stack_note_decode(const uint8_t *buf, size_t len, struct ttm_python_stack_note *ret);
int ttm_module_note_decode(const uint8_t *buf, size_t len, struct ttm_module_note *ret);
int ttm_native_stack_note_decode(const uint8_t *buf, size_t len, struct ttm_native_stack_note *ret);
int ttm_thread_note_decode(const uint8_t *buf, size_t len, struct ttm_thread_note *ret);
int ttm_named_stack_note_decode(const uint8_t *buf, size_t len, struct ttm_named_stack_note *ret);
int ttm_log_note_decode(const uint8_t *buf, size_t len, struct ttm_log_note *ret);
int ttm_operation_note_decode(const uint8_t *buf, size_t len, struct ttm_note_text *ret);

/* Whether a Python file is the user's own: neither the interpreter's start nor a part of ttnn or ttmem. */
bool ttm_is_users_file(const char *file, size_t length);

/* Whether a native module is the user's: none of TT-Metal's and ttnn's, of Python's or of C's. */
bool ttm_is_users_module(const char *path, size_t length);

/* Of lines "/usr/lib/libfoo.so+0x12", innermost first: the first of the user's, else the first. */
const char *ttm_users_native_line(const char *lines);

#endif /* TTM_WIRE_ORIGIN_H */
