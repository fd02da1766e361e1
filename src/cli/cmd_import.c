/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/overwrite.h"
#include "logs/import.h"
#include "recording/recorder.h"

static const struct ttm_option options[] = {
    {.id = 'o', .name = "output", .arg = "FILE", .help = "the recording that is made"},
    TTM_OPTION_HELP_ROW,
    {0},
};

/* The log as it is read: a window that moves over it. */
struct window {
    const char *path;
    int fd;
    char *text;
    size_t length;
    bool is_last; /* nothing comes behind it */
};

static int fail(const char *what, const char *path, int r)
{
    ttm_log("cannot %s '%s': %s", what, path, strerror(-r));
    return TTM_EXIT_FAILED;
}

/* Fills the window. Returns 0 or a negative errno. */
static int fill(struct window *window)
{
    while (window->length < TTM_IMPORT_WINDOW && !window->is_last) {
        const ssize_t n =
            read(window->fd, window->text + window->length, TTM_IMPORT_WINDOW - window->length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        window->length += (size_t)n;
        window->is_last = n == 0;
    }
    return 0;
}

static int open_log(const char *path, const char *output, struct window *window, struct stat *st)
{
    window->path = path;
    window->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (window->fd < 0 || fstat(window->fd, st) < 0)
        return fail("read", path, -errno);
    const int status = ttm_overwrite_input(output, path, "log");
    if (status != TTM_EXIT_OK)
        return status;
    window->text = malloc(TTM_IMPORT_WINDOW);
    const int r = window->text ? fill(window) : -ENOMEM;
    return r < 0 ? fail("read", path, r) : TTM_EXIT_OK;
}

/* ---- what was found ---- */

static void say_broken(const char *path, const struct ttm_import_result *result)
{
    char count[TTM_NUMBER_SIZE];
    struct ttm_text lines;

    if (result->broken == 0)
        return;
    ttm_text_init(&lines);
    for (unsigned i = 0; i < result->broken && i < TTM_IMPORT_LINES; i++)
        ttm_text_format(&lines, "%s%" PRIu64, i > 0 ? ", " : "", result->broken_lines[i]);
    if (result->broken > TTM_IMPORT_LINES)
        ttm_text_append(&lines, ", …");
    ttm_log("'%s': %s broken %s left out: line%s %s", path, ttm_format_count(result->broken, count),
            result->broken == 1 ? "place" : "places", result->broken == 1 ? "" : "s",
            ttm_text_string(&lines));
    ttm_text_done(&lines);
}

static void say(const char *path, uint64_t count, const char *one, const char *many)
{
    char number[TTM_NUMBER_SIZE];

    if (count > 0)
        ttm_log("'%s': %s %s", path, ttm_format_count(count, number), count == 1 ? one : many);
}

static void say_what_is_in_it(const struct window *window, const char *output,
                              const struct ttm_import_result *result)
{
    char events[TTM_NUMBER_SIZE], births[TTM_NUMBER_SIZE], frees[TTM_NUMBER_SIZE];

    say_broken(window->path, result);
    say(window->path, result->lost, "line lost when it was written: its reader was too slow",
        "lines lost when it was written: its reader was too slow");
    say(window->path, result->unknown_frees, "free of what it has no allocation of",
        "frees of what it has no allocation of");
    say(window->path, result->replaced,
        "allocation where another one was live, whose free is not in it",
        "allocations where another one was live, whose free is not in it");
    say(window->path, result->references,
        "free of one that another allocation had replaced by then",
        "frees of one that another allocation had replaced by then");
    say(window->path, result->others,
        "buffer of type OTHER, which is TRACE or SYSTEM_MEMORY: taken as TRACE",
        "buffers of type OTHER, which is TRACE or SYSTEM_MEMORY: taken as TRACE");
    ttm_log("'%s' has %s %s: %s %s, %s %s; now try: tt-mem report %s", window->path,
            ttm_format_count(result->events, events), result->events == 1 ? "event" : "events",
            ttm_format_count(result->births, births),
            result->births == 1 ? "allocation" : "allocations",
            ttm_format_count(result->frees, frees), result->frees == 1 ? "free" : "frees", output);
}

/* ---- the work ---- */

static int feed(struct ttm_import *import, struct window *window)
{
    int r = 0;

    while (r == 0 && window->length > 0) {
        size_t taken;
        r = ttm_import_feed(import, window->text, window->length, window->is_last, &taken);
        window->length -= taken;
        memmove(window->text, window->text + taken, window->length);
        if (r == 0)
            r = fill(window);
    }
    return r;
}

static int64_t utc_offset_s(time_t at)
{
    struct tm local;

    return localtime_r(&at, &local) ? local.tm_gmtoff : 0;
}

static int convert(struct window *window, const struct stat *st, enum ttm_log_format format,
                   struct ttm_recorder *recorder, struct ttm_import_result *ret)
{
    const char *slash = strrchr(window->path, '/');
    struct ttm_import_options with = {
        .format = format,
        .name = slash ? slash + 1 : window->path,
        .written_wall_ns = (uint64_t)st->st_mtim.tv_sec * TTM_NS_PER_S,
        .utc_offset_s = utc_offset_s(st->st_mtim.tv_sec),
        .encoder = ttm_recorder_encoder(recorder),
    };

    if (getrandom(&with.seed, sizeof(with.seed), GRND_NONBLOCK) < 0)
        with.seed = ttm_clock_monotonic_ns();
    struct ttm_import *import = ttm_import_new(&with);
    int r = import ? feed(import, window) : -ENOMEM;
    if (r == 0)
        r = ttm_import_finish(import, ret);
    ttm_import_free(import);
    return r;
}

/* The recording's clock is the wall clock: the log knows no other. */
static int record(struct window *window, const struct stat *st, enum ttm_log_format format,
                  const char *output)
{
    const uint64_t written_ns = (uint64_t)st->st_mtim.tv_sec * TTM_NS_PER_S;
    struct ttm_recorder_options with = {
        .path = output, .now_ns = written_ns, .now_wall_ns = written_ns, .is_patient = true};
    struct ttm_import_result result = {0};
    struct ttm_recorder *recorder;
    char *path = NULL;

    with.seed = ttm_clock_monotonic_ns();
    int r = ttm_recorder_open(&with, &recorder);
    if (r < 0)
        return fail("write", output, r);
    const int read = convert(window, st, format, recorder, &result);
    r = ttm_recorder_close(recorder, &path);
    if (path && (r < 0 || read < 0))
        (void)unlink(path); /* a part of it is of no use: the log is still there */
    free(path);
    if (read < 0)
        return fail("read", window->path, read);
    if (r < 0)
        return fail("write", output, r);
    say_what_is_in_it(window, output, &result);
    return TTM_EXIT_OK;
}

static int import(const char *path, const char *output)
{
    struct window window = {.fd = -1};
    struct stat st;
    int status = open_log(path, output, &window, &st);

    if (status == TTM_EXIT_OK) {
        const enum ttm_log_format format = ttm_log_recognise(window.text, window.length);
        if (format == TTM_LOG_FORMAT_NONE) {
            ttm_log("cannot import '%s': it has neither blocks of TT_BUFFER_DEBUG_LOG nor lines of "
                    "the allocation server",
                    path);
            status = TTM_EXIT_FAILED;
        } else {
            status = record(&window, &st, format, output);
        }
    }
    free(window.text);
    if (window.fd >= 0)
        (void)close(window.fd);
    return status;
}

static int run(int argc, char **argv)
{
    struct ttm_options parsed;
    const char *output = NULL;
    int id;

    ttm_options_init(&parsed, &ttm_command_import, argc, argv);
    while ((id = ttm_options_next(&parsed)) > 0)
        output = parsed.value;
    if (id != TTM_OPTION_END)
        return id == TTM_OPTION_HELP ? TTM_EXIT_OK : TTM_EXIT_USAGE;
    char **rest = ttm_options_rest(&parsed);
    if (!rest[0] || rest[1] || !output) {
        (void)ttm_options_complain(&parsed, !rest[0]  ? "which log?"
                                            : rest[1] ? "one log, please"
                                                      : "where to, with -o?");
        return TTM_EXIT_USAGE;
    }
    return import(rest[0], output);
}

const struct ttm_command ttm_command_import = {
    .name = "import",
    .synopsis = "LOG -o FILE",
    .summary = "Makes a recording from a text log of the original system.",
    .details = "LOG has the blocks of TT_BUFFER_DEBUG_LOG or what an allocation server printed;\n"
               "which of them is seen by its content.",
    .options = options,
    .run = run,
    .takes_operands = true,
};
