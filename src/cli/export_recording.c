/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/export_recording.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/export_file.h"
#include "cli/recording_file.h"
#include "recording/block.h"
#include "recording/recording.h"

#define CHUNK 65536

/* The first 'length' bytes, which are there. */
static int copy(int from, uint64_t length, int to)
{
    static uint8_t chunk[CHUNK];

    for (uint64_t at = 0; at < length;) {
        const size_t wanted = length - at < CHUNK ? (size_t)(length - at) : CHUNK;
        const ssize_t n = pread(from, chunk, wanted, (off_t)at);
        if (n == 0)
            return -EIO; /* it has become shorter */
        if (n < 0 && errno != EINTR)
            return -errno;
        const int r = n > 0 ? ttm_export_bytes(to, chunk, (size_t)n) : 0;
        if (r < 0)
            return r;
        at += n > 0 ? (uint64_t)n : 0;
    }
    return 0;
}

struct original {
    int fd;
    struct ttm_recording_info info;
};

/* What has no end gets one, behind the last whole block; an index is not needed. */
static int copy_and_end(int to, void *arg)
{
    const struct original *original = arg;
    const struct ttm_recording_info *info = &original->info;
    const int from = original->fd;
    uint8_t head[TTM_FILE_HEAD_SIZE], end[TTM_FILE_END_SIZE];
    uint64_t file_id;

    if (info->is_finished)
        return copy(from, info->size_bytes, to);
    if (pread(from, head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
        ttm_file_head_decode(head, &file_id) < 0)
        return -EBADMSG;
    const int r = copy(from, info->offset, to);
    if (r < 0)
        return r;
    ttm_file_end_encode(file_id, info->offset, end);
    return ttm_export_bytes(to, end, sizeof(end));
}

/* Reads all of it, to know how far it goes. */
static int measure(const char *path, struct ttm_recording_info *ret)
{
    struct ttm_recording *recording;
    const struct ttm_recorded *record;
    int r = ttm_recording_open(path, &recording);

    if (r < 0)
        return ttm_recording_failed(path, r);
    do
        r = ttm_recording_next(recording, &record);
    while (r > 0 || r == -EBADMSG);
    ttm_recording_info(recording, ret);
    ttm_recording_close(recording);
    if (r < 0)
        return ttm_recording_failed(path, r);
    if (ret->is_finished || ret->is_being_written)
        return ttm_recording_check(path, ret);
    ttm_log("cannot copy '%s': it breaks off, and a copy that ends would not tell", path);
    return TTM_EXIT_FAILED;
}

int ttm_export_recording(const char *path, const char *output)
{
    struct original original = {.fd = -1};
    int status = measure(path, &original.info);

    if (status != TTM_EXIT_OK)
        return status;
    original.fd = open(path, O_RDONLY | O_CLOEXEC);
    if (original.fd < 0)
        return ttm_recording_failed(path, -errno);
    status = ttm_export_file(output, copy_and_end, &original);
    (void)close(original.fd);
    if (status == TTM_EXIT_OK && !original.info.is_being_written) /* that is what this is for */
        ttm_recording_caution(path, &original.info);
    return status;
}
