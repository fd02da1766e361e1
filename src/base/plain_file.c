/* SPDX-License-Identifier: Apache-2.0 */
#include "base/plain_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int ttm_plain_file_find(const char *path, struct stat *ret)
{
    const int found = open(path, O_PATH | O_CLOEXEC);
    int r = found < 0 ? -errno : 0;

    if (r == 0 && fstat(found, ret) < 0)
        r = -errno;
    if (r == 0 && !S_ISREG(ret->st_mode))
        r = -EINVAL;
    if (r < 0 && found >= 0)
        (void)close(found);
    return r < 0 ? r : found;
}

int ttm_plain_file_open_found(int found)
{
    char self[32];

    (void)snprintf(self, sizeof(self), "/proc/self/fd/%d", found);
    const int fd = open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    /* cppcheck-suppress resourceLeak ; the caller owns it */
    return fd < 0 ? -errno : fd;
}

int ttm_plain_file_open(const char *path, struct stat *ret)
{
    const int found = ttm_plain_file_find(path, ret);

    if (found < 0)
        return found;
    const int fd = ttm_plain_file_open_found(found);
    (void)close(found);
    return fd;
}
