/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "telemetry/attribute.h"

#define MAPS_MAX (64u << 20) /* of one process; a line is about 100 bytes */
#define PIECE_SIZE 16384

/* Up to size - 1 bytes of a file, ended by a NUL. Returns how many, or -errno. */
static ssize_t read_text(int folder_fd, const char *name, char *ret, size_t size)
{
    ssize_t n;

    ret[0] = '\0';
    const int fd = openat(folder_fd, name, O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    do {
        n = read(fd, ret, size - 1);
    } while (n < 0 && errno == EINTR);
    n = n < 0 ? -errno : n;
    (void)close(fd);
    ret[n > 0 ? n : 0] = '\0';
    return n;
}

/* The process's folder. Returns a fd, -ESRCH, or -EACCES when /proc hides it from us. */
static int open_process(const char *root, int32_t pid)
{
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/%d", pid);
    const int fd = ttm_folder_open(root, path);
    if (fd >= 0)
        return fd;
    /* Mounted with hidepid, /proc does not list others' processes; the kernel still tells. */
    const bool is_hidden = !root[0] && kill(pid, 0) < 0 && errno == EPERM;
    return is_hidden || fd == -EACCES ? -EACCES : -ESRCH;
}

/* A decimal number behind spaces; '*at' moves behind it. Returns whether there is one. */
static bool take_number(const char **at, uint64_t *ret)
{
    const char *digits = *at + strspn(*at, " \t");
    char *end;

    if (!isdigit((unsigned char)digits[0]))
        return false;
    errno = 0;
    *ret = strtoull(digits, &end, 10);
    *at = end;
    return errno == 0;
}

/* The field that is so many behind the one at 'text'; "" when there are not as many. */
static const char *skip_fields(const char *text, unsigned count)
{
    for (; count > 0; count--) {
        text += strcspn(text, " ");
        text += strspn(text, " ");
    }
    return text;
}

/*
 * "4242 (name) S 1 …": state is field 3, threads 20, start 22, in hundredths of a
 * second. The name may hold anything, so fields are counted from its last bracket.
 */
static int parse_stat(const char *stat, uint64_t *ret_start_ns)
{
    const char *bracket = strrchr(stat, ')');
    uint64_t threads = 1, ticks = 0;
    const long per_s = sysconf(_SC_CLK_TCK);

    *ret_start_ns = 0;
    if (!bracket)
        return 0;
    const char *state = skip_fields(bracket, 1);
    const char *at = skip_fields(state, 17);
    const bool is_whole = take_number(&at, &threads);
    /* A main thread that ended before the others looks like a process that has. */
    if (state[0] == 'X' || (state[0] == 'Z' && threads <= 1))
        return -ESRCH;
    at = skip_fields(state, 19);
    if (is_whole && take_number(&at, &ticks) && per_s > 0 && ticks < UINT64_MAX / TTM_NS_PER_S)
        *ret_start_ns = ticks * (TTM_NS_PER_S / (uint64_t)per_s);
    return 0;
}

static int read_start(int fd, uint64_t *ret)
{
    char stat[1024];

    *ret = 0;
    const ssize_t n = read_text(fd, "stat", stat, sizeof(stat));
    if (n == -ESRCH)
        return -ESRCH;
    return n <= 0 ? 0 : parse_stat(stat, ret);
}

int ttm_process_start_ns(const char *root, int32_t pid, uint64_t *ret)
{
    *ret = 0;
    const int fd = open_process(root, pid);
    if (fd < 0)
        return fd;
    const int r = read_start(fd, ret);
    (void)close(fd);
    return r;
}

uint64_t ttm_process_uptime_ns(const char *root)
{
    char text[64];
    uint64_t seconds = 0, hundredths = 0;
    const int fd = ttm_folder_open(root, "/proc");

    if (fd < 0)
        return 0;
    (void)read_text(fd, "uptime", text, sizeof(text));
    (void)close(fd);
    const char *at = text;
    if (!take_number(&at, &seconds) || seconds > UINT64_MAX / TTM_NS_PER_S - 1)
        return 0;
    if (*at == '.') { /* it has two decimals */
        at++;
        if (!take_number(&at, &hundredths) || hundredths > 99)
            hundredths = 0;
    }
    return seconds * TTM_NS_PER_S + hundredths * (TTM_NS_PER_S / 100);
}

/* "Uid: real effective saved file". */
static void read_uid(int fd, struct ttm_process *process)
{
    static const char head[] = "\nUid:";
    char status[2048];
    uint64_t real, effective;

    if (read_text(fd, "status", status, sizeof(status)) <= 0)
        return;
    const char *at = strstr(status, head);
    if (!at)
        return;
    at += sizeof(head) - 1;
    if (take_number(&at, &real) && take_number(&at, &effective) && effective <= UINT32_MAX) {
        process->has_uid = true;
        process->uid = (uint32_t)effective;
    }
}

static void read_command(int fd, struct ttm_process *process)
{
    char *command = process->command;
    ssize_t n = read_text(fd, "cmdline", command, TTM_PROCESS_COMMAND_SIZE);

    while (n > 0 && command[n - 1] == '\0')
        n--;
    for (ssize_t i = 0; i < n; i++) {
        if (command[i] == '\0')
            command[i] = ' ';
    }
    if (n > 0)
        command[n] = '\0';
    else
        (void)ttm_attribute_text(fd, "comm", command, TTM_PROCESS_COMMAND_SIZE);
}

/* Looks for the word in a file of any length; one that two pieces share is found too. */
static enum ttm_library find_library(int fd)
{
    static const char word[] = "/libttmem";
    const size_t overlap = sizeof(word) - 2;
    char buf[PIECE_SIZE + sizeof(word)];
    size_t kept = 0;

    for (size_t total = 0; total < MAPS_MAX;) {
        const ssize_t n = read(fd, buf + kept, PIECE_SIZE);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? TTM_LIBRARY_UNKNOWN : TTM_LIBRARY_NONE;
        const size_t have = kept + (size_t)n;
        if (memmem(buf, have, word, sizeof(word) - 1))
            return TTM_LIBRARY_LOADED;
        kept = have < overlap ? have : overlap;
        memmove(buf, buf + have - kept, kept);
        total += (size_t)n;
    }
    return TTM_LIBRARY_UNKNOWN;
}

static enum ttm_library read_library(int folder_fd)
{
    const int fd = openat(folder_fd, "maps", O_RDONLY | O_NOCTTY | O_CLOEXEC);

    if (fd < 0)
        return TTM_LIBRARY_UNKNOWN;
    const enum ttm_library library = find_library(fd);
    (void)close(fd);
    return library;
}

int ttm_process_read(const char *root, int32_t pid, struct ttm_process *ret)
{
    *ret = (struct ttm_process){.pid = pid};
    const int fd = open_process(root, pid);
    if (fd < 0)
        return fd;
    const int r = read_start(fd, &ret->start_ns);
    if (r == 0) {
        read_uid(fd, ret);
        read_command(fd, ret);
        ret->library = read_library(fd);
    }
    (void)close(fd);
    return r;
}

/* The number of "/dev/tenstorrent/3", also when that file has gone; -1 for other links. */
static int parse_device_link(const char *target)
{
    static const char head[] = "/dev/tenstorrent/";
    char *end;

    if (strncmp(target, head, sizeof(head) - 1) != 0 ||
        !isdigit((unsigned char)target[sizeof(head) - 1]))
        return -1;
    const unsigned long number = strtoul(target + sizeof(head) - 1, &end, 10);
    if (number > INT_MAX || (*end != '\0' && strcmp(end, " (deleted)") != 0))
        return -1;
    return (int)number;
}

/* Returns whether the process could be looked into, or has ended. */
static bool scan_process(int proc_fd, const char *pid, ttm_holder_fn fn, void *context)
{
    char path[32], target[64];
    const struct dirent *entry;

    (void)snprintf(path, sizeof(path), "%.10s/fd", pid);
    const int fd = openat(proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno != EACCES && errno != EPERM;
    DIR *dir = fdopendir(fd);
    if (!dir) {
        (void)close(fd);
        return false;
    }
    /* cppcheck-suppress readdirCalled ; glibc's is safe on a DIR of one's own */
    while ((entry = readdir(dir)) != NULL) {
        const ssize_t n = readlinkat(fd, entry->d_name, target, sizeof(target) - 1);
        if (n <= 0)
            continue;
        target[n] = '\0';
        const int number = parse_device_link(target);
        if (number >= 0)
            fn(context, (int32_t)strtol(pid, NULL, 10), (unsigned)number);
    }
    (void)closedir(dir);
    return true;
}

static bool is_pid(const char *name)
{
    return isdigit((unsigned char)name[0]) && name[0] != '0' &&
           strspn(name, "0123456789") == strlen(name) && strlen(name) < 10;
}

size_t ttm_process_scan(const char *root, ttm_holder_fn fn, void *context)
{
    const struct dirent *entry;
    size_t hidden = 0;
    const int fd = ttm_folder_open(root, "/proc");
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir) {
        if (fd >= 0)
            (void)close(fd);
        return 0;
    }
    /* cppcheck-suppress readdirCalled ; glibc's is safe on a DIR of one's own */
    while ((entry = readdir(dir)) != NULL) {
        if (is_pid(entry->d_name) && !scan_process(fd, entry->d_name, fn, context))
            hidden++;
    }
    (void)closedir(dir);
    return hidden;
}
