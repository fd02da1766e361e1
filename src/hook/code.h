/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code - machine code of others that is read once, to know what it does.
 *
 * A small function that does nothing but read a word costs far more to be called than that, where the
 * caches have forgotten it. Where its code is known to the byte, the word can be read instead.
 */
#ifndef TTM_HOOK_CODE_H
#define TTM_HOOK_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Read from the start of a function on. */
struct ttm_code {
    const uint8_t *at;
};

/* Passes these bytes, if they come next. */
static inline bool ttm_code_take(struct ttm_code *code, const uint8_t *bytes, size_t count)
{
    /* One after the other: behind a function that differs there may be nothing. */
    for (size_t i = 0; i < count; i++) {
        if (code->at[i] != bytes[i])
            return false;
    }
    code->at += count;
    return true;
}

#define TTM_CODE_TAKE(code, ...)                                                                   \
    ttm_code_take(code, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* A function may begin with one. */
static inline void ttm_code_take_landing_pad(struct ttm_code *code)
{
    (void)TTM_CODE_TAKE(code, 0xf3, 0x0f, 0x1e, 0xfa); /* endbr64 */
}

#endif /* TTM_HOOK_CODE_H */
