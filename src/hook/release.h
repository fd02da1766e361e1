/* SPDX-License-Identifier: Apache-2.0 */
/*
 * release - which release of ttnn a library belongs to, as its package says.
 */
#ifndef TTM_HOOK_RELEASE_H
#define TTM_HOOK_RELEASE_H

#include <stddef.h>

#define TTM_RELEASES_KNOWN "ttnn 0.79 to 0.81"

enum ttm_release_age {
    TTM_RELEASE_KNOWN, /* or it cannot be told */
    TTM_RELEASE_OLDER,
    TTM_RELEASE_NEWER,
};

/*
 * Writes "ttnn 0.81.1" for a library (a handle of dlopen) that lies in an installed
 * package, and "TT-Metal" for any other. Returns how it stands to the releases that
 * the hook was seen to work with.
 */
enum ttm_release_age ttm_release_name(void *library, char *ret, size_t size);

/* The same of one that was loaded from that path. */
enum ttm_release_age ttm_release_name_at(const char *library, char *ret, size_t size);

#endif /* TTM_HOOK_RELEASE_H */
