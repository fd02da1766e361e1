/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that test_stack_native.c loads and unloads. It is built twice, with
 * frames of different sizes, so that the second differs from the first wherever it comes to lie.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

typedef void (*module_call_fn)(void *);

EXPORT int module_call(module_call_fn call, void *data);

__attribute__((noinline)) static int inner(module_call_fn call, void *data)
{
    volatile char frame[FRAME_BYTES];

    frame[0] = 1;
    call(data);
    return frame[0];
}

EXPORT int module_call(module_call_fn call, void *data)
{
    volatile char frame[2 * FRAME_BYTES];

    frame[1] = (char)inner(call, data);
    return frame[1];
}

/* The loader runs it while it holds its lock. Whom to call comes in the environment. */
__attribute__((constructor)) static void call_at_load(void)
{
    const char *text = getenv("TTM_TEST_AT_LOAD");
    const uintptr_t address = text ? (uintptr_t)strtoull(text, NULL, 16) : 0;

    if (address)
        (void)module_call((module_call_fn)address, NULL);
}
