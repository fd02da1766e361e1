/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/export_debug_log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/debug_log_file.h"
#include "cli/recording_file.h"
#include "recording/recording.h"

static int write_to(struct ttm_recording *recording, const char *output)
{
    if (strcmp(output, "-") == 0) {
        const int r = ttm_debug_log_copy(recording, STDOUT_FILENO);
        return r < 0 ? ttm_ask_unwritten(r) : TTM_EXIT_OK;
    }
    const int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int r = fd < 0 ? -errno : ttm_debug_log_copy(recording, fd);
    if (fd >= 0 && close(fd) < 0 && r == 0)
        r = -errno;
    if (r == 0)
        return TTM_EXIT_OK;
    ttm_log("cannot write '%s': %s", output, strerror(-r));
    return TTM_EXIT_FAILED;
}

int ttm_export_debug_log(const char *path, const char *output)
{
    struct ttm_recording *recording;
    struct ttm_recording_info info;
    const int r = ttm_recording_open(path, &recording);

    if (r < 0)
        return ttm_recording_failed(path, r);
    int status = write_to(recording, output);
    if (status == TTM_EXIT_OK) {
        ttm_recording_info(recording, &info);
        status = ttm_recording_check(path, &info);
    }
    if (status == TTM_EXIT_OK)
        ttm_recording_caution(path, &info);
    ttm_recording_close(recording);
    return status;
}
