/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/export_debug_log.h"

#include <errno.h>

#include "cli/command.h"
#include "cli/debug_log_file.h"
#include "cli/export_file.h"
#include "cli/recording_file.h"
#include "recording/recording.h"

static int copy(int fd, void *arg)
{
    return ttm_debug_log_copy(arg, fd);
}

/* Whether anything is left of it, before a file is written over. */
static int check(const char *path)
{
    struct ttm_recording *recording;
    const struct ttm_recorded *record;
    struct ttm_recording_info info;
    int r = ttm_recording_open(path, &recording);

    if (r < 0)
        return ttm_recording_failed(path, r);
    do
        r = ttm_recording_next(recording, &record);
    while (r == -EBADMSG);
    ttm_recording_info(recording, &info);
    ttm_recording_close(recording);
    return r < 0 ? ttm_recording_failed(path, r) : ttm_recording_check(path, &info);
}

int ttm_export_debug_log(const char *path, const char *output)
{
    struct ttm_recording *recording;
    struct ttm_recording_info info;
    int status = check(path);

    if (status != TTM_EXIT_OK)
        return status;
    const int r = ttm_recording_open(path, &recording);
    if (r < 0)
        return ttm_recording_failed(path, r);
    status = ttm_export_file(output, copy, recording);
    if (status == TTM_EXIT_OK) {
        ttm_recording_info(recording, &info);
        ttm_recording_caution(path, &info);
    }
    ttm_recording_close(recording);
    return status;
}
