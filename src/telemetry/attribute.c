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

int ttm_attribute_text(int folder_fd, const char *name, char *ret, size_t size)
{
    ssize_t n;

    ret[0] = '\0';
    const int fd = openat(folder_fd, name, O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    do {
        n = read(fd, ret, size - 1);
    } while (n < 0 && errno == EINTR);
    const int r = n < 0 ? -errno : 0;
    (void)close(fd);
    ret[n > 0 ? n : 0] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
    if (r < 0)
        return r;
    return ret[0] ? (int)strlen(ret) : -ENODATA;
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

static struct ttm_value read_value(int folder_fd, const char *name, int base, uint64_t *ret)
{
    char text[32];
    char *end;
    const int r = ttm_attribute_text(folder_fd, name, text, sizeof(text));
    struct ttm_value value = {.validity = ttm_validity_of(r)};

    if (value.validity != TTM_VALID)
        return value;
    /* strtoull would take a sign and turn -1 into a huge number. */
    errno = 0;
    const unsigned long long number = strtoull(text, &end, base);
    if (!isxdigit((unsigned char)text[0]) || *end != '\0' || errno != 0)
        value.validity = TTM_IMPLAUSIBLE;
    *ret = number;
    return value;
}

struct ttm_value ttm_attribute_number(int folder_fd, const char *name, uint64_t min, uint64_t max)
{
    uint64_t number = 0;
    struct ttm_value value = read_value(folder_fd, name, 10, &number);

    if (value.validity == TTM_VALID && (number < min || number > max))
        value.validity = TTM_IMPLAUSIBLE;
    if (value.validity == TTM_VALID)
        value.number = number;
    return value;
}

struct ttm_value ttm_attribute_hex(int folder_fd, const char *name)
{
    uint64_t number = 0;
    struct ttm_value value = read_value(folder_fd, name, 16, &number);

    if (value.validity == TTM_VALID)
        value.number = number;
    return value;
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
