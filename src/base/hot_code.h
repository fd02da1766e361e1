/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hot_code - where the code lies that every event of a tracked program runs through.
 *
 * In one page, and nothing else there: between two events the program makes the processor forget
 * pages as it does lines. The linker sorts these sections by their names; one that does not
 * puts them anywhere, which is slower and does no harm.
 */
#ifndef TTM_BASE_HOT_CODE_H
#define TTM_BASE_HOT_CODE_H

/* The function that the page begins with: one of a library. */
#define TTM_HOT_FIRST __attribute__((hot, aligned(4096), section(".text.sorted.ttm0")))
/* Those behind it. */
#define TTM_HOT_NEXT __attribute__((hot, aligned(64), section(".text.sorted.ttm1")))

#endif /* TTM_BASE_HOT_CODE_H */
