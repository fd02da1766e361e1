/* SPDX-License-Identifier: Apache-2.0 */
#include "recording/rotation.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define PREFIX "tt-mem-"
#define SUFFIX ".ttmem"
#define FILES_MAX 100000

void ttm_rotation_limits_fill(struct ttm_rotation_limits *limits)
{
    if (limits->file_bytes == 0)
        limits->file_bytes = 64ull << 20;
    if (limits->file_age_ns == 0)
        limits->file_age_ns = 24 * (3600 * TTM_NS_PER_S);
    if (limits->total_bytes == 0)
        limits->total_bytes = 1ull << 30;
}

void ttm_rotation_name(uint64_t wall_ns, unsigned n, char ret[TTM_ROTATION_NAME_SIZE])
{
    const time_t seconds = (time_t)(wall_ns / TTM_NS_PER_S);
    char stamp[32] = "", number[16] = "";
    struct tm tm;

    if (gmtime_r(&seconds, &tm))
        (void)strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &tm);
    if (n > 0)
        (void)snprintf(number, sizeof(number), "-%u", n);
    (void)snprintf(ret, TTM_ROTATION_NAME_SIZE, PREFIX "%s%s" SUFFIX, stamp, number);
}

static bool are_digits(const char *text, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
    }
    return true;
}

bool ttm_rotation_is_name(const char *name)
{
    const size_t length = strlen(name), stamp = 16;
    const char *at = name + strlen(PREFIX);

    if (length < strlen(PREFIX) + stamp + strlen(SUFFIX) ||
        strncmp(name, PREFIX, strlen(PREFIX)) != 0 ||
        strcmp(name + length - strlen(SUFFIX), SUFFIX) != 0)
        return false;
    if (!are_digits(at, 8) || at[8] != 'T' || !are_digits(at + 9, 6) || at[15] != 'Z')
        return false;
    at += stamp;
    const size_t rest = length - strlen(PREFIX) - stamp - strlen(SUFFIX);
    return rest == 0 || (rest >= 2 && rest <= 11 && at[0] == '-' && are_digits(at + 1, rest - 1));
}

struct file {
    char name[TTM_ROTATION_NAME_SIZE];
    uint64_t bytes;
};

/* The stamp first, then the number: "-10" comes after "-9". */
static int compare_files(const void *a, const void *b)
{
    const char *left = ((const struct file *)a)->name, *right = ((const struct file *)b)->name;
    const size_t stamp = strlen(PREFIX) + 16;
    const int order = strncmp(left, right, stamp);

    if (order != 0)
        return order;
    const unsigned long m = left[stamp] == '-' ? strtoul(left + stamp + 1, NULL, 10) : 0;
    const unsigned long n = right[stamp] == '-' ? strtoul(right + stamp + 1, NULL, 10) : 0;
    return (m > n) - (m < n);
}

static int list_files(DIR *dir, struct file **ret, size_t *ret_count)
{
    struct file *files = NULL;
    size_t count = 0, room = 0;
    struct dirent *entry;

    /* cppcheck-suppress readdirCalled ; of a stream that nobody else has */
    while ((entry = readdir(dir)) && count < FILES_MAX) {
        struct stat st;
        if (!ttm_rotation_is_name(entry->d_name) ||
            strlen(entry->d_name) >= TTM_ROTATION_NAME_SIZE ||
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(st.st_mode))
            continue;
        if (count == room) {
            room = room ? room * 2 : 64;
            struct file *grown = realloc(files, room * sizeof(files[0]));
            if (!grown) {
                free(files);
                return -ENOMEM;
            }
            files = grown;
        }
        memcpy(files[count].name, entry->d_name, strlen(entry->d_name) + 1);
        files[count++].bytes = (uint64_t)st.st_size;
    }
    *ret = files;
    *ret_count = count;
    return 0;
}

/* A writer holds the lock of its file. */
static bool is_being_written(int folder, const char *name)
{
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0)
        return false;
    const bool is_locked = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    (void)close(fd);
    return is_locked;
}

int ttm_rotation_trim(const char *folder, uint64_t total_bytes, const char *keep)
{
    struct file *files = NULL;
    size_t count = 0;
    uint64_t sum = 0;
    int removed = 0;
    DIR *dir = opendir(folder);

    if (!dir)
        return -errno;
    const int r = list_files(dir, &files, &count);
    if (r < 0) {
        (void)closedir(dir);
        return r;
    }
    for (size_t i = 0; i < count; i++)
        sum += files[i].bytes;
    if (count > 0)
        qsort(files, count, sizeof(files[0]), compare_files);
    for (size_t i = 0; i < count && sum > total_bytes; i++) {
        if ((keep && strcmp(files[i].name, keep) == 0) ||
            is_being_written(dirfd(dir), files[i].name) ||
            unlinkat(dirfd(dir), files[i].name, 0) < 0)
            continue;
        sum -= files[i].bytes;
        removed++;
    }
    free(files);
    (void)closedir(dir);
    return removed;
}
