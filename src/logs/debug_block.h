/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debug_block - one event of the log that TT_BUFFER_DEBUG_LOG asks for, both ways.
 *
 *   ═══════════════════════════════════════════════════════════
 *   BUFFER ALLOCATED
 *   Time: 14:32:15
 *   Device: 0
 *   Address: 0x18b20 (101152)
 *   Size: 32768 bytes (32 KB)
 *   Type: L1
 *   Buffer*: 0x7f8a4c001230
 *   Owns Data: yes
 *   Hooked: no
 *   Call Stack:
 *       libtt_metal.so: tt::tt_metal::Buffer::allocate_impl()
 *       /project/decode.py:28: cache_kv
 *                                           (an empty line)
 *
 * The other two titles have neither "Owns Data" nor "Hooked". The Python line is ours: the
 * original had native frames alone. Pure: nothing is kept, and no memory is taken but the
 * text's.
 */
#ifndef TTM_LOGS_DEBUG_BLOCK_H
#define TTM_LOGS_DEBUG_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "wire/origin.h"

enum ttm_debug_title {
    TTM_DEBUG_ALLOCATED,
    TTM_DEBUG_DEALLOCATED,
    TTM_DEBUG_DESTRUCTOR, /* gone while it was still allocated */
};

#define TTM_DEBUG_NO_TIME UINT32_MAX

struct ttm_debug_block {
    enum ttm_debug_title title;
    uint32_t second; /* of the day, TTM_DEBUG_NO_TIME: not said */
    uint16_t device;
    uint8_t region;
    bool is_other; /* "Type: OTHER": TRACE or SYSTEM_MEMORY; 'region' says TRACE */
    bool is_view;  /* does not own its data */
    bool is_hooked;
    uint64_t address;
    uint64_t bytes;
    uint64_t pointer;
    struct ttm_note_text stack; /* its lines as they are, each with its end; may be empty */
};

/* Where a reader is. */
struct ttm_debug_reader {
    const char *at;
    const char *end;
    uint64_t line; /* number of the line at 'at', from 1 */
};

/*
 * Reads to the end of the next block, whose first line's number is '*ret_line'. Returns 1;
 * 0 at the end of the text; -EBADMSG for a block, or something between blocks, that is
 * broken, which has been passed over.
 */
int ttm_debug_block_next(struct ttm_debug_reader *reader, struct ttm_debug_block *ret,
                         uint64_t *ret_line);

/* Whether the line is one of the three titles. */
bool ttm_debug_block_is_title(const char *line, size_t length);

/* Whether the line is the rule that begins a block. */
bool ttm_debug_block_is_rule(const char *line, size_t length);

/* Appends the block; 'stack' is written as it is. */
void ttm_debug_block_append(struct ttm_text *out, const struct ttm_debug_block *block);

/* A line of a call stack, taken apart. */
struct ttm_debug_frame {
    struct ttm_note_text module; /* of a Python frame: the file */
    struct ttm_note_text name;
    uint32_t line; /* of a Python frame, else 0 */
};

/* Takes the next line off 'stack'. Returns whether there was one. */
bool ttm_debug_frame_next(struct ttm_note_text *stack, struct ttm_debug_frame *ret);

#define TTM_DEBUG_FRAMES 8 /* as many as the original writes */

/* Appends a line of a call stack. 'line' is that of a Python frame, else 0. */
void ttm_debug_frame_append(struct ttm_text *out, const char *module, uint32_t line,
                            const char *name);

#endif /* TTM_LOGS_DEBUG_BLOCK_H */
