/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe - may this memory be read? Asked of the kernel, without a signal, a lock or a file.
 *
 * What we read of an interpreter or of a stack lies where another program's
 * headers say it lies. Before that was proven, and wherever an end is not known,
 * the kernel is asked first; a wrong guess is then an answer and not a crash.
 */
#ifndef TTM_STACK_PROBE_H
#define TTM_STACK_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Functions that read stacks or foreign objects: the sanitizers know only objects of our own. */
#define TTM_READS_FOREIGN __attribute__((no_sanitize("address", "thread", "undefined")))

/* Are 'size' bytes there, all readable? About 100 ns for each page. Any thread, any time. */
bool ttm_probe(uintptr_t address, size_t size);

/* For memory that is known to be there. */
TTM_READS_FOREIGN static inline uint64_t ttm_load_u64(uintptr_t address)
{
    return *(const uint64_t *)address;
}

TTM_READS_FOREIGN static inline uint32_t ttm_load_u32(uintptr_t address)
{
    return *(const uint32_t *)address;
}

TTM_READS_FOREIGN static inline uint8_t ttm_load_u8(uintptr_t address)
{
    return *(const uint8_t *)address;
}

/*
 * Asks for the line of the cache, and for no answer: there may be nothing. Not by
 * __builtin_prefetch(): a function that does nothing else the compiler takes for one without effect.
 */
static inline void ttm_fetch(uintptr_t address)
{
    __asm__ volatile("prefetcht0 (%0)" : : "r"(address));
}

/* Asks first. Returns false, and 0 in 'ret', when it is not there. */
static inline bool ttm_probe_u64(uintptr_t address, uint64_t *ret)
{
    *ret = 0;
    if (!ttm_probe(address, sizeof(*ret)))
        return false;
    *ret = ttm_load_u64(address);
    return true;
}

#endif /* TTM_STACK_PROBE_H */
