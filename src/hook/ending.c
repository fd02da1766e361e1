/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/ending.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "hook/code.h"

typedef int (*is_finalizing_fn)(void);

static _Atomic(is_finalizing_fn) is_finalizing;
static const volatile uint64_t *word; /* written with the gate closed */

static const uint64_t never, always = 1;

#ifdef __x86_64__

/* The next 32 bits, counted from 'base'; NULL: from behind them. */
static const uint8_t *take_relative(struct ttm_code *code, const uint8_t *base)
{
    int32_t distance;

    memcpy(&distance, code->at, sizeof(distance));
    code->at += sizeof(distance);
    return (base ? base : code->at) + distance;
}

/* test %rax,%rax; setne %al; movzbl %al,%eax; ret */
static bool take_comparison(struct ttm_code *code)
{
    return TTM_CODE_TAKE(code, 0x48, 0x85, 0xc0, 0x0f, 0x95, 0xc0, 0x0f, 0xb6, 0xc0, 0xc3);
}

/* mov offset(%rax),%rax, of what lies at 'base'. */
static const uint8_t *take_field(struct ttm_code *code, const uint8_t *base)
{
    if (TTM_CODE_TAKE(code, 0x48, 0x8b, 0x80))
        return take_relative(code, base);
    if (!TTM_CODE_TAKE(code, 0x48, 0x8b, 0x40) || *code->at > INT8_MAX)
        return NULL;
    return base + *code->at++;
}

/* mov word(%rip),%rax, or the address of what has it and then mov offset(%rax),%rax. */
const volatile uint64_t *ttm_ending_read_code(const void *function)
{
    struct ttm_code code = {function};

    ttm_code_take_landing_pad(&code);
    const bool is_loaded = TTM_CODE_TAKE(&code, 0x48, 0x8b, 0x05);
    if (!is_loaded && !TTM_CODE_TAKE(&code, 0x48, 0x8d, 0x05)) /* lea */
        return NULL;
    const uint8_t *place = take_relative(&code, NULL);
    if (!is_loaded || !take_comparison(&code)) {
        if (is_loaded)
            place = *(const uint8_t *const *)(const void *)place; /* of the global offset table */
        place = take_field(&code, place);
        if (!place || !take_comparison(&code))
            return NULL;
    }
    return (const volatile uint64_t *)(const void *)place;
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
