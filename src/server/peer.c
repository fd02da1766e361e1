/* SPDX-License-Identifier: Apache-2.0 */
#include "server/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/older_headers.h"

#define MAPS_BYTES_MAX (1u << 20) /* some ten thousand mappings */

int ttm_peer_open_pidfd(int fd, pid_t pid, bool *ret_is_sure)
{
    int pidfd = -1;
    socklen_t size = sizeof(pidfd);

    *ret_is_sure = true;
    if (pid <= 0)
        return -1;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0)
        return pidfd;
    if (errno !=
        ENOPROTOOPT) /* the kernel knows the option, so it knows that the process is gone */
        return -1;
    *ret_is_sure = false; /* an older kernel: by number */
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

bool ttm_peer_has_ended(int pidfd)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

static size_t read_proc(pid_t pid, const char *name, char *buf, size_t size)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    const ssize_t n = read(fd, buf, size - 1);
    (void)close(fd);
    buf[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

static uint64_t read_start_ns(pid_t pid)
{
    char stat[1024];

    if (read_proc(pid, "stat", stat, sizeof(stat)) == 0)
        return 0;
    /* Field 22, counted after the name, which may itself hold spaces and brackets. */
    const char *p = strrchr(stat, ')');
    for (int field = 2; p && field < 22; field++)
        p = strchr(p + 1, ' ');
    if (!p)
        return 0;
    return strtoull(p, NULL, 10) * (TTM_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* Which namespace that is, as the kernel names it. Returns whether it can be known. */
static bool read_namespace(const char *process, const char *name, char ret[64])
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%s/ns/%s", process, name);
    const ssize_t n = readlink(path, ret, 63);
    ret[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* From the clock of the machine to that of a process, or rather of its children. */
static int64_t read_clock_offset_ns(pid_t pid)
{
    char text[256];
    char *at;

    if (read_proc(pid, "timens_offsets", text, sizeof(text)) == 0 ||
        !(at = strstr(text, "monotonic")))
        return 0;
    const int64_t seconds = strtoll(at + strlen("monotonic"), &at, 10);
    return seconds * (int64_t)TTM_NS_PER_S + strtoll(at, NULL, 10);
}

static int64_t read_clock_ahead_ns(pid_t pid)
{
    char process[16], own[64], theirs[64], childrens[64];

    (void)snprintf(process, sizeof(process), "%d", (int)pid);
    if (pid <= 0 || !read_namespace("self", "time", own) ||
        !read_namespace(process, "time", theirs) || strcmp(own, theirs) == 0)
        return 0;
    /* One that has made a namespace for its children is not in it. */
    if (!read_namespace(process, "time_for_children", childrens) || strcmp(theirs, childrens) != 0)
        return 0;
    return read_clock_offset_ns(pid) - read_clock_offset_ns(getpid());
}

/* Of text that was cut at 'n' bytes: where its last whole character ends. */
static size_t drop_cut_character(char *text, size_t n)
{
    size_t at = n;

    while (at > 0 && n - at < 3 && ((unsigned char)text[at - 1] & 0xc0) == 0x80)
        at--;
    if (at == 0 || (unsigned char)text[at - 1] < 0xc0)
        return n;
    const unsigned char lead = (unsigned char)text[at - 1];
    const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (n - (at - 1) >= length)
        return n;
    text[at - 1] = '\0';
    return at - 1;
}

void ttm_peer_read_command(pid_t pid, char ret[TTM_STRING_MAX + 1])
{
    char text[TTM_STRING_MAX + 1];
    size_t n = read_proc(pid, "cmdline", text, sizeof(text));

    if (n == TTM_STRING_MAX)
        n = drop_cut_character(text, n);
    while (n > 0 && text[n - 1] == '\0')
        n--;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\0')
            text[i] = ' ';
    }
    if (n == 0)
        return;
    memcpy(ret, text, n);
    ret[n] = '\0';
}

void ttm_peer_read_facts(pid_t pid, struct ttm_peer_facts *ret)
{
    ret->start_ns = read_start_ns(pid);
    ret->clock_ahead_ns = read_clock_ahead_ns(pid);
    ret->command[read_proc(pid, "comm", ret->command, sizeof(ret->command))] = '\0';
    ret->command[strcspn(ret->command, "\n")] = '\0';
}

/* Of a line of /proc/PID/maps: "7f12-7f34 rw-s 00000000 00:01 12345 /memfd:tt-mem (deleted)". */
static uint64_t inode_of_mapping(const char *line)
{
    const char *at = line;

    for (int field = 0; at && field < 4; field++) {
        at = strchr(at, ' ');
        at = at ? at + strspn(at, " ") : NULL;
    }
    return at ? strtoull(at, NULL, 10) : 0;
}

bool ttm_peer_has_unmapped(pid_t pid, uint64_t inode)
{
    char path[64], line[512];
    bool is_mapped = false;
    size_t bytes = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    while (!is_mapped && bytes < MAPS_BYTES_MAX && fgets(line, sizeof(line), file)) {
        bytes += strlen(line);
        is_mapped = inode_of_mapping(line) == inode;
    }
    (void)fclose(file);
    return bytes > 0 && bytes < MAPS_BYTES_MAX && !is_mapped;
}
