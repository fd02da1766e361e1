/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_frame - fields of frames, for a layout that was proven. Reads nothing but
 * memory of a frame, or code object, of the calling thread.
 */
#ifndef TTM_STACK_PYTHON_FRAME_H
#define TTM_STACK_PYTHON_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "stack/probe.h"
#include "stack/python_layout.h"

/* The innermost frame of a thread state, 0 for none. */
static inline uintptr_t ttm_python_first_frame(const struct ttm_python_layout *layout,
                                               uintptr_t thread)
{
    const uintptr_t first = ttm_load_u64(thread + layout->thread_frame);

    if (layout->cframe_frame < 0 || first == 0)
        return first;
    return ttm_load_u64(first + (uintptr_t)layout->cframe_frame);
}

/* How many bytes into its code a frame is. */
static inline uint32_t ttm_python_offset(const struct ttm_python_layout *layout, uintptr_t frame,
                                         uintptr_t code)
{
    if (layout->minor == 10)
        return 2 * ttm_load_u32(frame + layout->frame_instruction);
    return (uint32_t)(ttm_load_u64(frame + layout->frame_instruction) - code -
                      layout->code_instructions);
}

/* Frames of C, and frames whose function has not quite begun: Python does not show them either. */
static inline bool ttm_python_is_shown(const struct ttm_python_layout *layout, uintptr_t frame,
                                       uintptr_t code)
{
    if (layout->frame_owner == 0)
        return true;
    const uint8_t owner = ttm_load_u8(frame + layout->frame_owner);
    const uintptr_t first = code + layout->code_instructions +
                            2 * (uintptr_t)ttm_load_u32(code + layout->code_first_traceable);

    return owner == TTM_OWNED_BY_GENERATOR ||
           ttm_load_u64(frame + layout->frame_instruction) >= first;
}

static inline bool ttm_python_is_of_c(const struct ttm_python_layout *layout, uintptr_t frame)
{
    return layout->minor >= 12 && ttm_load_u8(frame + layout->frame_owner) == TTM_OWNED_BY_C_STACK;
}

#endif /* TTM_STACK_PYTHON_FRAME_H */
