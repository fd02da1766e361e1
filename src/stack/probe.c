/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt_sigprocmask() with a 'how' that does not exist copies the set in and then
 * refuses: EFAULT when the set cannot be read, else EINVAL. It changes nothing, needs
 * no descriptor, and no sandbox forbids it, unlike process_vm_readv().
 */
#include "stack/probe.h"

#include <errno.h>
#include <sys/syscall.h>

#define PAGE 4096u
#define WORD 8u
#define NO_SUCH_HOW (-1L)

/* Not by syscall(), which would write to the host's errno. */
static long refuse_set(uintptr_t set)
{
    register long size __asm__("r10") = WORD;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"((long)SYS_rt_sigprocmask), "D"(NO_SUCH_HOW), "S"(set), "d"(0L), "r"(size)
                     : "rcx", "r11", "memory");
    return result;
}

bool ttm_probe(uintptr_t address, size_t size)
{
    if (address < PAGE || size == 0 || address > UINTPTR_MAX / 2 || size > UINTPTR_MAX / 4)
        return false;

    const uintptr_t last = (address + size - 1) / WORD * WORD;
    for (uintptr_t at = address / WORD * WORD; at < last; at = (at / PAGE + 1) * PAGE)
        if (refuse_set(at) != -EINVAL)
            return false;
    return refuse_set(last) == -EINVAL;
}
