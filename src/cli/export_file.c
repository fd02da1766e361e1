/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/export_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/command.h"

static int write_to_file(const char *path, ttm_export_fn write, void *arg)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    if (fd < 0)
        return -errno;
    int r = write(fd, arg);
    /* Some file systems tell only now that there was no room. */
    if (close(fd) < 0 && r == 0)
        r = -errno;
    return r;
}

int ttm_export_file(const char *output, ttm_export_fn write, void *arg)
{
    const bool is_stdout = strcmp(output, "-") == 0;

    /* An export that ends early is of no use, so it is said, where a report would just end. */
    (void)signal(SIGPIPE, SIG_IGN);
    const int r = is_stdout ? write(STDOUT_FILENO, arg) : write_to_file(output, write, arg);
    if (r == 0)
        return TTM_EXIT_OK;
    if (is_stdout)
        ttm_log("cannot write the output: %s", strerror(-r));
    else
        ttm_log("cannot write '%s': %s", output, strerror(-r));
    return TTM_EXIT_FAILED;
}

int ttm_export_bytes(int fd, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;

    while (length > 0) {
        const ssize_t n = write(fd, at, length);
        if (n < 0 && errno != EINTR)
            return -errno;
        at += n > 0 ? n : 0;
        length -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}
