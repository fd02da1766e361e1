/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/recording_file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/frame_names.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/seed.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "symbols/symbols.h"

#define SUFFIX ".ttmem"

char *ttm_recording_newest(void)
{
    struct timespec newest = {0};
    char *found = NULL;
    const struct dirent *entry;
    DIR *folder = opendir(".");

    /* cppcheck-suppress readdirCalled ; the folder is ours alone */
    while (folder && (entry = readdir(folder)) != NULL) {
        const size_t length = strlen(entry->d_name);
        struct stat st;
        if (length <= strlen(SUFFIX) || entry->d_name[0] == '.' ||
            strcmp(entry->d_name + length - strlen(SUFFIX), SUFFIX) != 0 ||
            stat(entry->d_name, &st) < 0 || !S_ISREG(st.st_mode))
            continue;
        const bool is_newer =
            !found || st.st_mtim.tv_sec > newest.tv_sec ||
            (st.st_mtim.tv_sec == newest.tv_sec && st.st_mtim.tv_nsec > newest.tv_nsec);
        if (!is_newer)
            continue;
        free(found);
        found = strdup(entry->d_name);
        newest = st.st_mtim;
    }
    if (folder)
        (void)closedir(folder);
    return found;
}

/* ---- progress ---- */

#define PATIENCE_NS TTM_NS_PER_S
#define REDRAW_NS (100 * TTM_NS_PER_MS)

struct progress {
    struct ttm_terminal terminal;
    uint64_t next_ns;
    bool is_drawn;
};

static void draw(void *arg, uint64_t offset, uint64_t size)
{
    struct progress *progress = arg;
    const uint64_t now_ns = ttm_clock_monotonic_ns();
    char done[TTM_NUMBER_SIZE], all[TTM_NUMBER_SIZE];
    struct ttm_text line;

    if (!progress->terminal.is_terminal || now_ns < progress->next_ns)
        return;
    progress->next_ns = now_ns + REDRAW_NS;
    progress->is_drawn = true;
    ttm_text_init(&line);
    ttm_text_append(&line, "\r  reading ");
    ttm_terminal_bar(&progress->terminal, &line, offset, size, 30);
    ttm_text_format(&line, " %s of %s \033[K", ttm_format_bytes(offset, done),
                    ttm_format_bytes(size, all));
    (void)ttm_terminal_write(STDERR_FILENO, &line);
    ttm_text_done(&line);
}

static void wipe(const struct progress *progress)
{
    struct ttm_text line;

    if (!progress->is_drawn)
        return;
    ttm_text_init(&line);
    ttm_text_append(&line, "\r\033[K");
    (void)ttm_terminal_write(STDERR_FILENO, &line);
    ttm_text_done(&line);
}

/* ---- reading ---- */

static const char *reason_of(int r)
{
    return r == -EBADMSG   ? "it is no recording of tt-mem"
           : r == -ENOTSUP ? "it was written by a newer tt-mem"
                           : strerror(-r);
}

int ttm_recording_failed(const char *path, int r)
{
    ttm_log("cannot read '%s': %s", path, reason_of(r));
    return TTM_EXIT_FAILED;
}

/* Whether parts of it are gone for good; more of one that is being written may still come. */
static bool is_damaged(const struct ttm_recording_info *info)
{
    return info->damaged_blocks + info->skipped_blocks + info->lost_events > 0 ||
           info->is_head_damaged || (info->torn_bytes > 0 && !info->is_being_written);
}

int ttm_recording_check(const char *path, const struct ttm_recording_info *info)
{
    struct ttm_text flaws;

    if (info->blocks > 0 || !is_damaged(info))
        return TTM_EXIT_OK;
    ttm_text_init(&flaws);
    ttm_recording_flaws(info, &flaws);
    ttm_log("cannot read '%s': nothing is left of it: %s", path, ttm_text_string(&flaws));
    ttm_text_done(&flaws);
    return TTM_EXIT_FAILED;
}

void ttm_recording_caution(const char *path, const struct ttm_recording_info *info)
{
    struct ttm_text flaws;

    ttm_text_init(&flaws);
    ttm_recording_flaws(info, &flaws);
    if (flaws.length > 0)
        ttm_log("'%s': %s", path, ttm_text_string(&flaws));
    ttm_text_done(&flaws);
}

int ttm_recording_report(const char *path, const struct ttm_report_options *options,
                         struct ttm_report *ret)
{
    struct progress progress = {.terminal = ttm_terminal_of(STDERR_FILENO),
                                .next_ns = ttm_clock_monotonic_ns() + PATIENCE_NS};
    struct ttm_report_options own = *options;
    struct ttm_symbols *symbols = ttm_symbols_new(NULL);
    struct ttm_recording *recording;

    own.namer = ttm_frame_names(symbols);
    own.progress = draw;
    own.progress_arg = &progress;
    own.seed = ttm_seed_random();
    int r = ttm_recording_open(path, &recording);
    if (r == 0) {
        r = ttm_report_read(recording, &own, ret);
        ttm_recording_close(recording);
    }
    wipe(&progress);
    ttm_symbols_free(symbols);
    return r == 0 ? ttm_recording_check(path, &ret->info) : ttm_recording_failed(path, r);
}

/* ---- what is missing ---- */

void ttm_recording_flaws(const struct ttm_recording_info *info, struct ttm_text *out)
{
    char number[TTM_NUMBER_SIZE];
    const unsigned long long places = info->damaged_blocks + info->is_head_damaged;

    if (info->damaged_blocks + info->skipped_blocks > 0 || info->is_head_damaged)
        ttm_text_format(out, "the recording is damaged in %llu %s", places,
                        places == 1 ? "place" : "places");
    if (info->lost_events > 0)
        ttm_text_format(out, "%s%s events are not in the recording", out->length ? ", " : "",
                        ttm_format_count(info->lost_events, number));
    if (!info->is_finished && !info->is_being_written)
        ttm_text_format(out, "%sit breaks off%s",
                        out->length ? ", " : "the recording is not whole: ",
                        info->torn_bytes > 0 ? " in the middle of a block" : "");
    else if (info->is_being_written)
        ttm_text_format(out, "%sthe recording is still being written", out->length ? ", " : "");
}
