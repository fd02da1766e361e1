/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording of any bytes, and what is made of it: the report, as text and as JSON.
 * The first byte chooses what is asked for; the rest is the file. What a report says
 * must fit together whatever was in the file.
 */
#include "fuzzing.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analysis/debug_log.h"
#include "analysis/history.h"
#include "analysis/report.h"
#include "cli/page_data.h"
#include "cli/report_json.h"
#include "cli/report_text.h"
#include "logs/debug_block.h"

static struct ttm_recording *open_bytes(const uint8_t *data, size_t size)
{
    const int fd = memfd_create("recording", MFD_CLOEXEC);
    struct ttm_recording *recording = NULL;

    MUST(fd >= 0);
    MUST(write(fd, data, size) == (ssize_t)size);
    if (ttm_recording_open_fd(fd, &recording) < 0) {
        (void)close(fd);
        return NULL;
    }
    return recording;
}

static void check_bank(const struct ttm_bank *bank, uint32_t origin_count)
{
    uint64_t end = bank ? bank->start : 0, held = 0;

    for (uint32_t i = 0; bank && i < bank->run_count; i++) {
        const struct ttm_bank_run *run = &bank->runs[i];
        MUST(run->start >= end && run->end > run->start);
        MUST(run->origin < origin_count);
        end = run->end;
        held += run->held_bytes;
    }
    MUST(!bank || (end == bank->end && held == bank->held_bytes));
}

static void check_process(const struct ttm_report_process *process)
{
    for (uint32_t i = 0; i < process->origin_count; i++) {
        const struct ttm_report_origin *origin = &process->origins[i];
        MUST(origin->device_count > 0);
        MUST(origin->frees + origin->remaining.count + origin->replaced <= origin->allocs);
        MUST(origin->verdict.class < TTM_CLASS_COUNT);
        MUST(!origin->verdict.is_suspect || origin->remaining.count > 0);
        MUST(i == 0 || origin->remaining.footprint_bytes <=
                           process->origins[i - 1].remaining.footprint_bytes);
    }
    for (uint32_t d = 0; d < process->device_count; d++) {
        for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
            const struct ttm_report_region *region = &process->devices[d].region[r];
            uint64_t sum = 0;
            for (uint32_t i = 0; i < region->share_count; i++) {
                MUST(region->shares[i].origin < process->origin_count);
                sum += region->shares[i].held.footprint_bytes;
            }
            MUST(sum == region->peak_footprint_bytes);
            check_bank(region->bank, process->origin_count);
            MUST(region->frees + region->remaining.count <= region->allocs);
        }
    }
}

static void draw(const struct ttm_report *report, uint8_t way)
{
    const struct ttm_report_choice choice = {
        .at = way % 3,
        .mark = "warm",
        .devices.is_all = true,
        .region = way & 4 ? TTM_REGION_L1 : -1,
        .is_unfolded = (way & 8) != 0,
        .has_full_paths = (way & 16) != 0,
    };
    const struct ttm_terminal terminal = {.is_terminal = (way & 32) != 0,
                                          .has_colour = (way & 32) != 0,
                                          .has_utf8 = (way & 64) != 0,
                                          .columns = way & 128 ? 120 : 40,
                                          .rows = 24};
    struct ttm_text out;

    ttm_text_init(&out);
    MUST(ttm_report_text(report, &choice, "x.ttmem", &terminal, &out) == 0);
    MUST(ttm_report_json(report, &choice, &out) == 0);
    ttm_text_clear(&out);
    MUST(ttm_page_data(report, "x.ttmem", NULL, &out) == 0);
    ttm_text_done(&out);
}

/* Whatever the address: lives end after they are born, if they do. */
static void tell_history(const uint8_t *data, size_t size)
{
    struct ttm_history_options options = {
        .address = 0x10000 + data[0] * 64u, .devices.is_all = true, .region = -1, .seed = 1};
    struct ttm_recording *recording = open_bytes(data + 1, size - 1);
    struct ttm_history history;

    if (!recording)
        return;
    if (ttm_history_read(recording, &options, &history) == 0) {
        for (uint64_t i = 0; i < history.count; i++)
            MUST(history.lives[i].is_inside || history.lives[i].life.address == options.address);
        ttm_history_done(&history);
    }
    ttm_recording_close(recording);
}

/* The same as text, which is read again. */
static void write_debug_log(const uint8_t *data, size_t size)
{
    const struct ttm_frame_namer namer = {0};
    struct ttm_recording *recording = open_bytes(data + 1, size - 1);
    struct ttm_debug_log *log = ttm_debug_log_new(&namer, 1);
    const struct ttm_recorded *record;
    struct ttm_debug_block block;
    struct ttm_text out;
    uint64_t line;
    int r;

    MUST(log);
    ttm_text_init(&out);
    while (recording && (r = ttm_recording_next(recording, &record)) != 0 && out.length < 1 << 20) {
        if (r > 0)
            MUST(ttm_debug_log_take(log, record, 0, &out) == 0);
        else if (r != -EBADMSG)
            break;
    }
    ttm_debug_log_flush(log, &out);
    struct ttm_debug_reader reader = {ttm_text_string(&out), ttm_text_string(&out) + out.length, 1};
    /* A life may have 0 bytes, or a device that is none: that much is refused again. */
    while (ttm_debug_block_next(&reader, &block, &line) != 0)
        MUST(reader.line > line);
    ttm_text_done(&out);
    ttm_debug_log_free(log);
    ttm_recording_close(recording);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct ttm_report_options options = {
        .moments = {"warm"}, .wants_drawings = true, .seed = 1};
    struct ttm_report report;

    if (size < 1)
        return 0;
    struct ttm_recording *recording = open_bytes(data + 1, size - 1);
    if (!recording)
        return 0;
    if (ttm_report_read(recording, &options, &report) == 0) {
        for (uint32_t i = 0; i < report.process_count; i++)
            check_process(&report.processes[i]);
        draw(&report, data[0]);
        ttm_report_done(&report);
    }
    ttm_recording_close(recording);
    tell_history(data, size);
    write_debug_log(data, size);
    return 0;
}
