/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzzing - what the fuzzers share.
 *
 * Each fuzz_<decoder>.c is built with libFuzzer (-Dfuzz=true), or else with
 * replay.c, which runs it over the files of its corpus.
 */
#ifndef TTM_TESTS_FUZZ_FUZZING_H
#define TTM_TESTS_FUZZ_FUZZING_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One input. Returns 0; a finding aborts. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Something that must hold whatever the input. Unlike assert() it is always there. */
#define MUST(claim)                                                                                \
    do {                                                                                           \
        if (!(claim)) {                                                                            \
            (void)fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #claim);       \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* A copy of exactly that size, so that the address sanitizer sees a read beyond it. */
static inline uint8_t *exact_copy(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);

    MUST(copy);
    if (size > 0)
        memcpy(copy, data, size);
    return copy;
}

#endif /* TTM_TESTS_FUZZ_FUZZING_H */
