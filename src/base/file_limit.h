/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_limit - how large a file this process may make (ulimit -f).
 *
 * Memory that is shared as a file counts too. Whoever goes over it is sent SIGXFSZ, which
 * ends a program that does not expect it.
 */
#ifndef TTM_BASE_FILE_LIMIT_H
#define TTM_BASE_FILE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

static inline bool ttm_file_limit_allows(uint64_t bytes)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
           (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes);
}

#endif /* TTM_BASE_FILE_LIMIT_H */
