/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cfi - how to get from one frame to the next, read from a module's .eh_frame.
 *
 * Compilers write, for each instruction, where the caller's registers are. Of
 * that a walk needs three: the stack pointer, rbp, and the return address. This is
 * the reading of it, for x86-64; native.c remembers the answers. No state, no
 * lock, no allocation; it reads the module's mapped memory and nothing else.
 */
#ifndef TTM_STACK_CFI_H
#define TTM_STACK_CFI_H

#include <stdint.h>

/*
 * The frame's address (CFA) is the caller's stack pointer; the return address is
 * right below it.
 */
enum ttm_row_kind {
    TTM_ROW_UNKNOWN = 0, /* no description, or one that needs other registers: stop here */
    TTM_ROW_RSP,         /* CFA = rsp + cfa_offset */
    TTM_ROW_RBP,         /* CFA = rbp + cfa_offset */
    TTM_ROW_REALIGNED,   /* CFA = *(rbp + cfa_offset), the saved rbp is at rbp */
    TTM_ROW_SIGNAL,      /* the kernel's frame of a signal: rsp is at its ucontext */
    TTM_ROW_OUTERMOST,   /* says of itself that nobody called it */
};

struct ttm_row {
    uint64_t address;
    int32_t cfa_offset;
    int16_t rbp_offset; /* of the saved rbp from the CFA, 0: rbp is as it was */
    uint8_t kind;       /* enum ttm_row_kind */
    uint8_t is_known;
};

/*
 * The row for the instruction at 'address' of a module mapped from 'start' to
 * 'end', whose PT_GNU_EH_FRAME is at 'header'. Never fails; 'kind' may be unknown.
 */
void ttm_cfi_read_row(uint64_t address, uintptr_t header, uintptr_t start, uintptr_t end,
                      struct ttm_row *ret);

#endif /* TTM_STACK_CFI_H */
