/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file, little-endian, the same in versions 2, 3 and 4:
 *
 *      0 u32 version          32 u64 asic id
 *      4 u32 active           40 i32 device id
 *      8 u64 time             48 u64 × 5 totals
 *     16 u32 references       88 16 × 48: u32 id, u32 is remote, u64 × 5 totals
 *     24 u64 board serial    856 64 × 120: i32 pid, 8 u64 × 5 totals, 48 u64 time, 56 name[64]
 *   8536 u32 "REDY" (version 4 alone)
 *
 * A version 2 of 9248 bytes exists as well: it counts kernels in between, so every
 * offset behind the totals differs. The size tells them apart.
 */
#include "telemetry/upstream.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "telemetry/attribute.h"
#include "telemetry/process.h"

#define VERSION_MIN 2
#define VERSION_MAX 4
#define VERSION_WITH_STATE 4
#define STATE_READY 0x52454459u

#define TOTALS_AT 48
#define CHIPS_AT 88
#define CHIP_SIZE 48
#define PROCESSES_AT 856
#define PROCESS_SIZE 120
#define STATE_AT 8536

#define NO_CHIP 0xffffffffu
#define PID_MAX 4194304 /* the kernel's own limit */

/* How far a start may lie behind an entry's time: clocks are set, and starts are rounded. */
#define START_SLACK_NS (2 * TTM_NS_PER_S)

static struct ttm_upstream_totals decode_totals(const uint8_t *at)
{
    struct ttm_upstream_totals totals = {0};

    for (size_t i = 0; i < TTM_UPSTREAM_REGION_COUNT; i++) {
        totals.bytes[i] = get_le64(at + 8 * i);
        totals.is_absurd |= totals.bytes[i] > TTM_UPSTREAM_BYTES_MAX;
    }
    if (totals.is_absurd)
        memset(totals.bytes, 0, sizeof(totals.bytes));
    return totals;
}

static bool is_zero(const struct ttm_upstream_totals *totals)
{
    for (size_t i = 0; i < TTM_UPSTREAM_REGION_COUNT; i++) {
        if (totals->bytes[i] != 0)
            return false;
    }
    return !totals->is_absurd;
}

static void decode_chips(const uint8_t *buf, struct ttm_upstream_file *file)
{
    for (size_t i = 0; i < TTM_UPSTREAM_CHIPS; i++) {
        const uint8_t *at = buf + CHIPS_AT + i * CHIP_SIZE;
        const struct ttm_upstream_chip chip = {
            .id = get_le32(at),
            .is_remote = get_le32(at + 4) != 0,
            .totals = decode_totals(at + 8),
        };
        /* Version 2 marks an empty place with 0, which is also the number of the first chip. */
        if (chip.id == NO_CHIP || (file->version < 3 && chip.id == 0 && is_zero(&chip.totals)))
            continue;
        file->chips[file->chip_count++] = chip;
    }
}

static void decode_processes(const uint8_t *buf, struct ttm_upstream_file *file)
{
    for (size_t i = 0; i < TTM_UPSTREAM_PROCESSES; i++) {
        const uint8_t *at = buf + PROCESSES_AT + i * PROCESS_SIZE;
        struct ttm_upstream_process process = {
            .pid = (int32_t)get_le32(at),
            .totals = decode_totals(at + 8),
            .time_ns = get_le64(at + 48),
        };
        if (process.pid == 0)
            continue;
        if (process.pid < 0 || process.pid > PID_MAX || process.totals.is_absurd) {
            file->broken_count++;
            continue;
        }
        memcpy(process.name, at + 56, TTM_UPSTREAM_NAME_SIZE - 1);
        file->processes[file->process_count++] = process;
    }
}

int ttm_upstream_decode(const uint8_t *buf, size_t len, struct ttm_upstream_file *ret)
{
    if (len < 4)
        return -EBADMSG;
    const uint32_t version = get_le32(buf);
    if (version == 0) /* made, and not filled in */
        return -EAGAIN;
    if (version < VERSION_MIN || version > VERSION_MAX || len > TTM_UPSTREAM_FILE_SIZE)
        return -EPROTONOSUPPORT;
    if (len < TTM_UPSTREAM_FILE_SIZE)
        return -EBADMSG;
    if (version >= VERSION_WITH_STATE && get_le32(buf + STATE_AT) != STATE_READY)
        return -EAGAIN;

    *ret = (struct ttm_upstream_file){
        .version = version,
        .references = get_le32(buf + 16),
        .asic_id = get_le64(buf + 32),
        .device_id = (int32_t)get_le32(buf + 40),
        .totals = decode_totals(buf + TOTALS_AT),
    };
    decode_chips(buf, ret);
    decode_processes(buf, ret);
    return 0;
}

/* "tt_device_9956368527_memory". Returns whether it is such a name. */
static bool parse_name(const char *name, uint64_t *ret)
{
    static const char head[] = "tt_device_";
    char *end;

    if (strncmp(name, head, sizeof(head) - 1) != 0 ||
        !isdigit((unsigned char)name[sizeof(head) - 1]))
        return false;
    errno = 0;
    *ret = strtoull(name + sizeof(head) - 1, &end, 10);
    return errno == 0 && strcmp(end, "_memory") == 0;
}

/* Reads up to 'size' bytes. Returns how many, or -errno. */
static ssize_t read_whole(int fd, uint8_t *buf, size_t size)
{
    size_t have = 0;

    while (have < size) {
        const ssize_t n = pread(fd, buf + have, size - have, (off_t)have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        have += (size_t)n;
    }
    return (ssize_t)have;
}

static int read_file(int folder_fd, const char *name, struct ttm_upstream_file *ret)
{
    uint8_t buf[TTM_UPSTREAM_FILE_SIZE + 1]; /* one more shows that it is longer */
    struct stat st;

    /* Without O_NONBLOCK a FIFO of that name would hold us up. */
    const int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EBADMSG;
    if (n == 0)
        n = read_whole(fd, buf, sizeof(buf));
    (void)close(fd);
    return n < 0 ? (int)n : ttm_upstream_decode(buf, (size_t)n, ret);
}

/* Room for one more, doubling. Returns the place, or NULL. */
static struct ttm_upstream_file *next_place(struct ttm_upstream *upstream)
{
    const size_t count = upstream->count;

    if ((count & (count - 1)) == 0) {
        void *grown =
            realloc(upstream->files, (count ? count * 2 : 1) * sizeof(upstream->files[0]));
        if (!grown)
            return NULL;
        upstream->files = grown;
    }
    return &upstream->files[count];
}

static void count_trouble(struct ttm_upstream *upstream, int r)
{
    if (r == -EACCES || r == -EPERM)
        upstream->denied_count++;
    else if (r == -EPROTONOSUPPORT)
        upstream->unknown_count++;
    else if (r != -ENOENT) /* it was deleted since it was listed */
        upstream->broken_count++;
}

static int read_folder(DIR *dir, struct ttm_upstream *upstream)
{
    const struct dirent *entry;
    uint64_t id = 0;

    /* cppcheck-suppress readdirCalled ; glibc's is safe on a DIR of one's own */
    while (upstream->count < TTM_UPSTREAM_FILES_MAX && (entry = readdir(dir)) != NULL) {
        if (!parse_name(entry->d_name, &id))
            continue;
        struct ttm_upstream_file *file = next_place(upstream);
        if (!file)
            return -ENOMEM;
        const int r = read_file(dirfd(dir), entry->d_name, file);
        if (r < 0) {
            count_trouble(upstream, r);
            continue;
        }
        file->unique_id = id;
        upstream->count++;
    }
    return 0;
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = ((const struct ttm_upstream_file *)a)->unique_id;
    const uint64_t y = ((const struct ttm_upstream_file *)b)->unique_id;

    return x < y ? -1 : x > y;
}

/* A recorded tree has a clock of its own, so the time since boot comes from it. */
static struct ttm_upstream_moment read_clocks(const char *root)
{
    struct ttm_upstream_moment now = {
        .wall_ns = ttm_clock_wall_ns(),
        .monotonic_ns = ttm_clock_monotonic_ns(),
        .boot_ns = ttm_clock_read_ns(CLOCK_BOOTTIME),
    };

    if (root[0]) {
        now.boot_ns = ttm_process_uptime_ns(root);
        now.monotonic_ns = now.boot_ns;
    }
    return now;
}

static void mark_stale(const char *root, struct ttm_upstream *upstream)
{
    const struct ttm_upstream_moment now = read_clocks(root);

    for (size_t i = 0; i < upstream->count; i++) {
        struct ttm_upstream_file *file = &upstream->files[i];
        for (size_t p = 0; p < file->process_count; p++) {
            struct ttm_upstream_process *process = &file->processes[p];
            uint64_t start_ns = 0;
            const int r = ttm_process_start_ns(root, process->pid, &start_ns);
            process->is_stale = r == -ESRCH || ttm_upstream_is_stale(process, start_ns, &now);
        }
    }
}

int ttm_upstream_read(const char *root, struct ttm_upstream *ret)
{
    *ret = (struct ttm_upstream){0};
    const int fd = ttm_folder_open(root, "/dev/shm");
    if (fd < 0)
        return 0;
    DIR *dir = fdopendir(fd);
    if (!dir) {
        (void)close(fd);
        return -ENOMEM;
    }
    const int r = read_folder(dir, ret);
    (void)closedir(dir);
    if (ret->count > 0)
        qsort(ret->files, ret->count, sizeof(ret->files[0]), compare);
    mark_stale(root, ret);
    return r;
}

void ttm_upstream_done(struct ttm_upstream *upstream)
{
    free(upstream->files);
    *upstream = (struct ttm_upstream){0};
}

bool ttm_upstream_is_stale(const struct ttm_upstream_process *process, uint64_t start_ns,
                           const struct ttm_upstream_moment *now)
{
    if (process->time_ns == 0 || start_ns == 0 || now->boot_ns < start_ns)
        return false;
    if (process->time_ns > now->monotonic_ns + TTM_NS_PER_S) {
        /* Since the epoch. The process has run for so long. */
        const uint64_t back_ns = now->boot_ns - start_ns + START_SLACK_NS;
        return now->wall_ns > back_ns && process->time_ns < now->wall_ns - back_ns;
    }
    /*
     * Since boot, without the time that the machine slept, which is part of the start.
     * All of that sleep may have come before the entry.
     */
    const uint64_t slept_ns =
        now->boot_ns > now->monotonic_ns ? now->boot_ns - now->monotonic_ns : 0;
    return process->time_ns + slept_ns + START_SLACK_NS < start_ns;
}

void ttm_upstream_live(const struct ttm_upstream_file *file, struct ttm_upstream_totals *ret)
{
    *ret = (struct ttm_upstream_totals){0};
    for (size_t p = 0; p < file->process_count; p++) {
        for (size_t i = 0; i < TTM_UPSTREAM_REGION_COUNT && !file->processes[p].is_stale; i++)
            ret->bytes[i] += file->processes[p].totals.bytes[i];
    }
}

void ttm_upstream_unclaimed(const struct ttm_upstream_file *file, struct ttm_upstream_totals *ret)
{
    *ret = file->totals;
    for (size_t p = 0; p < file->process_count; p++) {
        for (size_t i = 0; i < TTM_UPSTREAM_REGION_COUNT; i++) {
            const uint64_t bytes = file->processes[p].totals.bytes[i];
            ret->bytes[i] -= bytes < ret->bytes[i] ? bytes : ret->bytes[i];
        }
    }
}
