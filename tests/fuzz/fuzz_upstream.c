/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of the runtime in /dev/shm, which any user may write.
 */
#include "fuzzing.h"

#include <errno.h>

#include "telemetry/upstream.h"

static void check_totals(const struct ttm_upstream_totals *totals)
{
    for (size_t i = 0; i < TTM_UPSTREAM_REGION_COUNT; i++) {
        MUST(totals->bytes[i] <= TTM_UPSTREAM_BYTES_MAX);
        MUST(!totals->is_absurd || totals->bytes[i] == 0);
    }
}

static void check_file(struct ttm_upstream_file *file)
{
    const struct ttm_upstream_moment now = {1700000000000000000, 5000000000, 7000000000};
    struct ttm_upstream_totals live, unclaimed;

    MUST(file->version >= 2 && file->version <= 4);
    MUST(file->chip_count <= TTM_UPSTREAM_CHIPS);
    MUST(file->process_count + file->broken_count <= TTM_UPSTREAM_PROCESSES);
    check_totals(&file->totals);
    for (size_t i = 0; i < file->chip_count; i++)
        check_totals(&file->chips[i].totals);
    for (size_t i = 0; i < file->process_count; i++) {
        struct ttm_upstream_process *process = &file->processes[i];
        check_totals(&process->totals);
        MUST(process->pid > 0);
        MUST(memchr(process->name, '\0', sizeof(process->name)));
        process->is_stale = ttm_upstream_is_stale(process, 6000000000, &now);
    }
    ttm_upstream_live(file, &live);
    ttm_upstream_unclaimed(file, &unclaimed);
    for (size_t i = 0; i < TTM_UPSTREAM_REGION_COUNT; i++) {
        MUST(live.bytes[i] <= TTM_UPSTREAM_PROCESSES * TTM_UPSTREAM_BYTES_MAX);
        MUST(unclaimed.bytes[i] <= file->totals.bytes[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ttm_upstream_file file;
    const int r = ttm_upstream_decode(data, size, &file);

    MUST(r == 0 || r == -EBADMSG || r == -EAGAIN || r == -EPROTONOSUPPORT);
    if (r == 0)
        check_file(&file);
    return 0;
}
