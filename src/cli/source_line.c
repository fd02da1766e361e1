/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/source_line.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/plain_file.h"

#define FILE_MAX (4 << 20)   /* larger ones are no source that a person wrote */
#define ALL_MAX (512u << 20) /* of a report: a second of reading */
#define LINE_MAX_BYTES 511
#define CHUNK 65536

bool ttm_source_is_own(const struct ttm_source_lines *sources,
                       const struct ttm_report_process *process)
{
    const uint32_t caller = (uint32_t)geteuid();

    /* A text log that was imported does not say whose program it was. */
    return !process->is_logged && process->uid == caller &&
           sources->report->info.owner_uid == caller;
}

/* Files of /proc are empty for stat(), and have secrets: the environment, the memory. */
static bool is_source(const struct ttm_source_lines *sources, const struct stat *st)
{
    const uint64_t until_ns = ttm_report_wall(sources->report, sources->report->info.last_ns);
    const uint64_t changed_ns =
        (uint64_t)st->st_mtim.tv_sec * TTM_NS_PER_S + (uint64_t)st->st_mtim.tv_nsec;

    return st->st_size > 0 && st->st_size <= FILE_MAX && changed_ns <= until_ns;
}

/* An fd for reading, or a negative errno: -EPERM for one that is left out. */
static int open_source(const struct ttm_source_lines *sources, bool is_own, const char *file)
{
    struct stat st;
    const int found = ttm_plain_file_find(file, &st);
    int r = -EPERM;

    if (found < 0)
        return found;
    if (!is_source(sources, &st))
        r = -EINVAL;
    else if (sources->reads_any_file || (is_own && st.st_uid == geteuid()))
        r = ttm_plain_file_open_found(found);
    (void)close(found);
    return r;
}

/* A line of a file that is read from its start. */
struct reading {
    uint32_t left; /* lines before it */
    size_t length; /* what there is of it so far */
    bool is_whole;
    char text[LINE_MAX_BYTES + 1];
};

static void take_chunk(struct reading *reading, const char *bytes, size_t length)
{
    while (length > 0 && !reading->is_whole) {
        const char *end = memchr(bytes, '\n', length);
        const size_t n = end ? (size_t)(end - bytes) : length;
        const size_t room = LINE_MAX_BYTES - reading->length;
        if (reading->left == 0) {
            memcpy(reading->text + reading->length, bytes, n < room ? n : room);
            reading->length += n < room ? n : room;
            reading->is_whole = end || reading->length == LINE_MAX_BYTES;
        } else if (end) {
            reading->left--;
        }
        bytes += n + (end != NULL);
        length -= n + (end != NULL);
    }
}

/* It may grow while it is read, so what is read is counted. */
static bool read_line(struct ttm_source_lines *sources, int fd, struct reading *reading)
{
    char chunk[CHUNK];
    size_t all = 0;

    while (!reading->is_whole && all < FILE_MAX && sources->read_bytes < ALL_MAX) {
        const ssize_t n = read(fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        take_chunk(reading, chunk, (size_t)n);
        all += (size_t)n;
        sources->read_bytes += (size_t)n;
    }
    reading->text[reading->length] = '\0';
    return reading->length > 0;
}

bool ttm_source_line(struct ttm_source_lines *sources, bool is_own, const char *file, uint32_t line,
                     struct ttm_text *out)
{
    const int fd =
        sources && line > 0 && file[0] != '\0' ? open_source(sources, is_own, file) : -ENOENT;

    if (fd == -EPERM)
        sources->left_out++;
    if (fd < 0)
        return false;
    struct reading reading = {.left = line - 1};
    const bool is_found = read_line(sources, fd, &reading);
    (void)close(fd);
    if (!is_found)
        return false;
    reading.text[strcspn(reading.text, "\r\n")] = '\0';
    const char *start = reading.text + strspn(reading.text, " \t");
    if (*start == '\0')
        return false;
    ttm_text_append_safe(out, start);
    return true;
}
