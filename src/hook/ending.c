/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/ending.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

typedef int (*is_finalizing_fn)(void);

static _Atomic(is_finalizing_fn) is_finalizing;
static const volatile uint64_t *word; /* written with the gate closed */

static const uint64_t never, always = 1;

#ifdef __x86_64__

/* One after the other: behind a function that differs there may be nothing. */
static const uint8_t *skip(const uint8_t *at, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; at && i < count; i++) {
        if (at[i] != bytes[i])
            return NULL;
    }
    return at ? at + count : NULL;
}

#define SKIP(at, ...)                                                                              \
    skip(at, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* What the 32 bits at 'at' say, counted from 'base'. */
static const uint8_t *relative(const uint8_t *at, const uint8_t *base)
{
    int32_t distance;

    memcpy(&distance, at, sizeof(distance));
    return base + distance;
}

/* test %rax,%rax; setne %al; movzbl %al,%eax; ret */
static bool is_comparison(const uint8_t *at)
{
    return SKIP(at, 0x48, 0x85, 0xc0, 0x0f, 0x95, 0xc0, 0x0f, 0xb6, 0xc0, 0xc3) != NULL;
}

/* mov word(%rip),%rax, or the address of what has it and then mov offset(%rax),%rax. */
static const uint8_t *read_load(const uint8_t *at)
{
    const uint8_t *loaded = SKIP(at, 0x48, 0x8b, 0x05);
    const uint8_t *computed = SKIP(at, 0x48, 0x8d, 0x05); /* lea */
    const uint8_t *place;

    if (!loaded && !computed)
        return NULL;
    at = (loaded ? loaded : computed) + 4;
    place = relative(at - 4, at);
    if (loaded && is_comparison(at))
        return place;
    if (loaded)
        place = *(const uint8_t *const *)(const void *)place; /* of the global offset table */
    const uint8_t *near = SKIP(at, 0x48, 0x8b, 0x40), *far = SKIP(at, 0x48, 0x8b, 0x80);
    if (near && *near <= INT8_MAX && is_comparison(near + 1))
        return place + *near;
    return far && is_comparison(far + 4) ? relative(far, place) : NULL;
}

const volatile uint64_t *ttm_ending_read_code(const void *function)
{
    const uint8_t *start = function;
    const uint8_t *landing_pad = SKIP(start, 0xf3, 0x0f, 0x1e, 0xfa); /* endbr64 */

    return (const volatile uint64_t *)(const void *)read_load(landing_pad ? landing_pad : start);
}

#else

const volatile uint64_t *ttm_ending_read_code(const void *function)
{
    (void)function;
    return NULL;
}

#endif

void ttm_ending_look(void)
{
    /* The public name is that of 3.13. Both read one word and need no lock. */
    void *found = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
    is_finalizing_fn function;

    if (!found)
        found = dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
    memcpy(&function, &found, sizeof(function));
    atomic_store_explicit(&is_finalizing, function, memory_order_relaxed); /* always the same */
    word = found ? ttm_ending_read_code(found) : &never;
    if (!word)
        word = &always;
}

bool ttm_ending_has_begun(void)
{
    const is_finalizing_fn ask = atomic_load_explicit(&is_finalizing, memory_order_relaxed);

    return __builtin_expect(ask != NULL, 1) && ask() != 0;
}

const volatile uint64_t *ttm_ending_word(void)
{
    return word ? word : &always;
}
