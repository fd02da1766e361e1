/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/record_file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/seed.h"
#include "recording/recorder.h"

/* 'next' is what follows from it, when it fails. */
static struct ttm_recorder *open_with(struct ttm_recorder_options *options, const char *where,
                                      const char *next)
{
    struct ttm_recorder *recorder = NULL;

    options->now_ns = ttm_clock_monotonic_ns();
    options->now_wall_ns = ttm_clock_wall_ns();
    options->seed = ttm_seed_random();
    const int r = ttm_recorder_open(options, &recorder);
    if (r < 0) {
        ttm_log("cannot record to '%s': %s%s", where, strerror(-r), next);
        return NULL;
    }
    return recorder;
}

struct ttm_recorder *ttm_record_file_open(const char *path)
{
    struct ttm_recorder_options options = {.path = path};

    return open_with(&options, path, ", there will be no recording");
}

struct ttm_recorder *ttm_record_folder_open(const char *folder)
{
    struct ttm_recorder_options options = {.folder = folder};

    return open_with(&options, folder, "");
}

int ttm_record_file_close(struct ttm_recorder *recorder, char **ret_path, uint64_t *ret_bytes)
{
    struct ttm_recorder_status before;
    struct stat st;

    *ret_path = NULL;
    *ret_bytes = 0;
    if (!recorder)
        return 0;
    ttm_recorder_status(recorder, &before);
    const int r = ttm_recorder_close(recorder, ret_path);
    if (r < 0 && !before.is_error_said)
        ttm_log("cannot finish the recording: %s", strerror(-r));
    if (*ret_path && stat(*ret_path, &st) == 0)
        *ret_bytes = (uint64_t)st.st_size;
    return r;
}
