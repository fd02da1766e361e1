/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/source_line.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

#define FILE_MAX (16 << 20) /* larger ones are no source that a person wrote */
#define LINE_MAX_BYTES 512

/* A file for reading that is a plain one and old enough, or NULL. */
static FILE *open_source(const char *file, uint64_t until_wall_ns)
{
    const int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;

    if (fd < 0)
        return NULL;
    const bool is_known = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= FILE_MAX;
    const uint64_t changed_ns =
        is_known ? (uint64_t)st.st_mtim.tv_sec * TTM_NS_PER_S + (uint64_t)st.st_mtim.tv_nsec : 0;
    FILE *stream = is_known && changed_ns <= until_wall_ns ? fdopen(fd, "re") : NULL;
    if (!stream)
        (void)close(fd);
    return stream;
}

bool ttm_source_line(const char *file, uint32_t line, uint64_t until_wall_ns, struct ttm_text *out)
{
    char text[LINE_MAX_BYTES];
    uint32_t at = 1;
    bool is_found = false;
    FILE *stream = line > 0 && file[0] != '\0' ? open_source(file, until_wall_ns) : NULL;

    while (stream && !is_found && at <= line && fgets(text, sizeof(text), stream)) {
        is_found = at == line;
        at += strchr(text, '\n') != NULL;
    }
    if (stream)
        (void)fclose(stream);
    if (!is_found)
        return false;
    text[strcspn(text, "\r\n")] = '\0';
    const char *start = text + strspn(text, " \t");
    if (*start == '\0')
        return false;
    ttm_text_append_safe(out, start);
    return true;
}
