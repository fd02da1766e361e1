/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/attribute.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int ttm_folder_open(const char *root, const char *path)
{
    char whole[PATH_MAX];
    const int n = snprintf(whole, sizeof(whole), "%s%s", root, path);

    if (n < 0 || (size_t)n >= sizeof(whole))
        return -ENAMETOOLONG;
    const int fd = open(whole, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    return fd;
}

/* The first line of an open file. Returns as ttm_attribute_text(). */
static int read_line(int fd, char *ret, size_t size)
{
    ssize_t n;

    do {
        n = pread(fd, ret, size - 1, 0);
        if (n < 0 && errno == ESPIPE) /* a pipe in the place of a file, as tests have it */
            n = read(fd, ret, size - 1);
    } while (n < 0 && errno == EINTR);
    const int r = n < 0 ? -errno : 0;
    ret[n > 0 ? n : 0] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
    if (r < 0)
        return r;
    return ret[0] ? (int)strlen(ret) : -ENODATA;
}

int ttm_attribute_text(int folder_fd, const char *name, char *ret, size_t size)
{
    ret[0] = '\0';
    const int fd = openat(folder_fd, name, O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    const int r = read_line(fd, ret, size);
    (void)close(fd);
    return r;
}

enum ttm_validity ttm_validity_of(int r)
{
    switch (r) {
    case -ENODATA:
    case -EBUSY: /* some drivers' way of saying the same */
    case -EAGAIN:
        return TTM_IN_RESET;
    case -ENODEV:
    case -ENXIO:
        return TTM_REMOVED;
    case -EACCES:
    case -EPERM:
        return TTM_DENIED;
    default:
        return r >= 0 ? TTM_VALID : TTM_ABSENT;
    }
}

/* What 'text' says, of which reading it returned 'r'. */
static struct ttm_value parse_value(int r, const char *text, int base)
{
    struct ttm_value value = {.validity = ttm_validity_of(r)};
    char *end;

    if (value.validity != TTM_VALID)
        return value;
    /* strtoull would take a sign and turn -1 into a huge number. */
    errno = 0;
    value.number = strtoull(text, &end, base);
    if (!isxdigit((unsigned char)text[0]) || *end != '\0' || errno != 0)
        value = (struct ttm_value){.validity = TTM_IMPLAUSIBLE};
    return value;
}

static struct ttm_value within(struct ttm_value value, uint64_t min, uint64_t max)
{
    if (value.validity == TTM_VALID && (value.number < min || value.number > max))
        value = (struct ttm_value){.validity = TTM_IMPLAUSIBLE};
    return value;
}

struct ttm_value ttm_attribute_number(int folder_fd, const char *name, uint64_t min, uint64_t max)
{
    char text[32];
    const int r = ttm_attribute_text(folder_fd, name, text, sizeof(text));

    return within(parse_value(r, text, 10), min, max);
}

struct ttm_value ttm_attribute_again(int fd, uint64_t min, uint64_t max)
{
    char text[32];
    const int r = read_line(fd, text, sizeof(text));

    return within(parse_value(r, text, 10), min, max);
}

struct ttm_value ttm_attribute_hex(int folder_fd, const char *name)
{
    char text[32];
    const int r = ttm_attribute_text(folder_fd, name, text, sizeof(text));

    return parse_value(r, text, 16);
}

void ttm_attribute_link(int folder_fd, const char *name, char *ret, size_t size)
{
    char target[PATH_MAX];
    const ssize_t n = readlinkat(folder_fd, name, target, sizeof(target) - 1);

    ret[0] = '\0';
    if (n <= 0)
        return;
    target[n] = '\0';
    const char *slash = strrchr(target, '/');
    (void)snprintf(ret, size, "%s", slash ? slash + 1 : target);
}
