/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hot - small words of several modules that every event reads and hardly anybody
 * writes: put side by side, they are one cache line and not one each.
 */
#ifndef TTM_HOOK_HOT_H
#define TTM_HOOK_HOT_H

#define TTM_HOT_DATA __attribute__((section(".data.ttm_hot")))

#endif /* TTM_HOOK_HOT_H */
