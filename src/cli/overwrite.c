/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/overwrite.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/log.h"
#include "cli/command.h"
#include "recording/recording.h"

int ttm_overwrite_input(const char *output, const char *input, const char *what)
{
    struct stat from, to;

    if (stat(input, &from) < 0 || stat(output, &to) < 0 || !S_ISREG(from.st_mode) ||
        from.st_dev != to.st_dev || from.st_ino != to.st_ino)
        return TTM_EXIT_OK;
    ttm_log("cannot write '%s': it is the %s itself", output, what);
    return TTM_EXIT_FAILED;
}

int ttm_overwrite_other(const char *output)
{
    struct ttm_recording *recording = NULL;
    struct stat st;

    if (stat(output, &st) < 0)
        return TTM_EXIT_OK;
    if (!S_ISREG(st.st_mode)) {
        ttm_log("cannot record to '%s': it is no regular file (--no-record records nothing)",
                output);
        return TTM_EXIT_USAGE;
    }
    if (st.st_size == 0)
        return TTM_EXIT_OK;
    const int r = ttm_recording_open(output, &recording);
    ttm_recording_close(recording);
    if (r != -EBADMSG)
        return TTM_EXIT_OK;
    ttm_log("cannot record to '%s': the file is there and is no recording of tt-mem", output);
    return TTM_EXIT_USAGE;
}
