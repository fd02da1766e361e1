/* SPDX-License-Identifier: Apache-2.0 */
#include "stack/python_layout.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "stack/probe.h"

static const struct ttm_python_layout layouts[] = {
    {
        .minor = 10,
        .values = TTM_VALUES_NONE,
        .thread_frame = 24,
        .thread_id = 176,
        .cframe_frame = -1,
        .frame_code = 32,
        .frame_back = 24,
        .frame_instruction = 96,
        .frame_locals = 352,
        .code_file = 104,
        .code_name = 112,
        .code_first_line = 40,
        .code_lines = 120,
        .code_instructions = 48,
        .ascii_characters = 48,
        .compact_characters = 72,
        .type_cached_keys = 872,
    },
    {
        .minor = 11,
        .has_location_table = true,
        .values = TTM_VALUES_BEFORE,
        .thread_frame = 56,
        .thread_id = 152,
        .cframe_frame = 8,
        .frame_code = 32,
        .frame_back = 48,
        .frame_instruction = 56,
        .frame_owner = 69,
        .frame_locals = 72,
        .code_file = 112,
        .code_name = 128,
        .code_first_line = 72,
        .code_lines = 136,
        .code_instructions = 184,
        .code_first_traceable = 168,
        .ascii_characters = 48,
        .compact_characters = 72,
        .type_cached_keys = 872,
    },
    {
        .minor = 12,
        .has_location_table = true,
        .values = TTM_VALUES_TAGGED,
        .thread_frame = 56,
        .thread_id = 136,
        .cframe_frame = 0,
        .frame_code = 0,
        .frame_back = 8,
        .frame_instruction = 56,
        .frame_owner = 70,
        .frame_locals = 72,
        .code_file = 112,
        .code_name = 128,
        .code_first_line = 68,
        .code_lines = 136,
        .code_instructions = 192,
        .code_first_traceable = 176,
        .code_version = 92,
        .ascii_characters = 40,
        .compact_characters = 56,
        .type_cached_keys = 880,
    },
    {
        .minor = 13,
        .has_location_table = true,
        .values = TTM_VALUES_INLINE,
        .thread_frame = 72,
        .thread_id = 152,
        .cframe_frame = -1,
        .frame_code = 0,
        .frame_back = 8,
        .frame_instruction = 56,
        .frame_owner = 70,
        .frame_locals = 72,
        .code_file = 112,
        .code_name = 128,
        .code_first_line = 68,
        .code_lines = 136,
        .code_instructions = 200,
        .code_first_traceable = 184,
        .code_version = 92,
        .ascii_characters = 40,
        .compact_characters = 56,
        .type_cached_keys = 880,
        .values_first = 8,
    },
};

const struct ttm_python_layout *ttm_python_layout_find(const char *version)
{
    char *end;

    /* The build without a GIL has other headers in every object. */
    if (strncmp(version, "3.", 2) != 0 || strstr(version, "free-threading"))
        return NULL;
    const unsigned long minor = strtoul(version + 2, &end, 10);
    if (end == version + 2)
        return NULL;
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
        if (layouts[i].minor == minor)
            return &layouts[i];
    return NULL;
}

/* Places in _Py_DebugOffsets of 3.13, a list of u64. */
enum {
    DEBUG_FREE_THREADED = 16,
    DEBUG_THREAD_FRAME = 184,
    DEBUG_THREAD_ID = 192,
    DEBUG_FRAME_BACK = 232,
    DEBUG_FRAME_CODE = 240,
    DEBUG_FRAME_INSTRUCTION = 248,
    DEBUG_FRAME_LOCALS = 256,
    DEBUG_FRAME_OWNER = 264,
    DEBUG_CODE_FILE = 280,
    DEBUG_CODE_NAME = 296, /* the qualified one */
    DEBUG_CODE_LINES = 304,
    DEBUG_CODE_FIRST_LINE = 312,
    DEBUG_CODE_INSTRUCTIONS = 344,
    DEBUG_SIZE = 352,
};

bool ttm_python_layout_agrees(const struct ttm_python_layout *layout, const void *runtime)
{
    const uint8_t *p = runtime;

    if (layout->minor < 13)
        return true;
    if (!p || !ttm_probe((uintptr_t)p, DEBUG_SIZE) || memcmp(p, "xdebugpy", 8) != 0 ||
        get_le64(p + DEBUG_FREE_THREADED) != 0)
        return false;
    return get_le64(p + DEBUG_THREAD_FRAME) == layout->thread_frame &&
           get_le64(p + DEBUG_THREAD_ID) == layout->thread_id &&
           get_le64(p + DEBUG_FRAME_BACK) == layout->frame_back &&
           get_le64(p + DEBUG_FRAME_CODE) == layout->frame_code &&
           get_le64(p + DEBUG_FRAME_INSTRUCTION) == layout->frame_instruction &&
           get_le64(p + DEBUG_FRAME_LOCALS) == layout->frame_locals &&
           get_le64(p + DEBUG_FRAME_OWNER) == layout->frame_owner &&
           get_le64(p + DEBUG_CODE_FILE) == layout->code_file &&
           get_le64(p + DEBUG_CODE_NAME) == layout->code_name &&
           get_le64(p + DEBUG_CODE_LINES) == layout->code_lines &&
           get_le64(p + DEBUG_CODE_FIRST_LINE) == layout->code_first_line &&
           get_le64(p + DEBUG_CODE_INSTRUCTIONS) == layout->code_instructions;
}
