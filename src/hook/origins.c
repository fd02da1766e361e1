/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/origins.h"

#include <stdlib.h>

#include "client/guest.h"
#include "stack/stack.h"

static bool has_begun; /* guarded by the gate, which is closed when tracking begins */

static bool has_frames; /* likewise */

/* The number in the environment, or the default for what is none. */
static uint16_t frames_of(const char *name, uint16_t otherwise)
{
    const char *text = getenv(name);
    char *end;

    if (!text || text[0] == '\0')
        return otherwise;
    const long number = strtol(text, &end, 10);
    if (*end != '\0' || number < 0)
        return otherwise;
    return number < UINT16_MAX ? (uint16_t)number : UINT16_MAX;
}

static uint32_t make_note(const struct ttm_stack *stack, uint32_t context)
{
    const struct ttmem_guest_origin from = {
        .thread = stack->thread,
        .operation = stack->operation,
        .python = stack->python,
        .native = stack->native,
    };

    return ttmem_guest_origin_note(&from, context);
}

static void start(const void *ours)
{
    struct ttm_stack_options options = TTM_STACK_DEFAULT_OPTIONS;

    options.python_frames = frames_of("TTMEM_PYTHON_FRAMES", options.python_frames);
    options.native_frames = frames_of("TTMEM_NATIVE_FRAMES", options.native_frames);
    has_frames = options.python_frames > 0 || options.native_frames > 0;
    options.ours[0] = &has_begun;
    options.ours[1] = (const void *)(uintptr_t)&ttmem_alloc;
    options.ours[2] = ours;
    options.origin = make_note;
    ttm_stack_start(&options, ttmem_guest_note);
}

void ttm_origins_begin(const void *ours)
{
    if (has_begun) {
        ttm_stack_forget();
        return;
    }
    has_begun = true;
    start(ours);
}

void ttm_origins_use_gil(void)
{
    ttm_stack_use_gil();
}

bool ttm_origins_have_frames(void)
{
    return has_frames;
}

const char *ttm_origins_trouble(void)
{
    return has_begun ? ttm_stack_trouble() : "";
}
