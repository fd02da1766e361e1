/* SPDX-License-Identifier: Apache-2.0 */
/*
 * release - which release of ttnn a library belongs to, as its package says.
 */
#ifndef TTM_HOOK_RELEASE_H
#define TTM_HOOK_RELEASE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Writes "ttnn 0.81.1" for a library (a handle of dlopen) that lies in an installed
 * package, and "TT-Metal" for any other. Returns whether it is known to be older
 * than 0.79.
 */
bool ttm_release_name(void *library, char *ret, size_t size);

#endif /* TTM_HOOK_RELEASE_H */
