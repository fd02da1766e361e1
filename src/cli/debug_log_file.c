/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/debug_log_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/debug_log.h"
#include "analysis/frame_names.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/quiet_thread.h"
#include "cli/terminal.h"
#include "recording/recording.h"
#include "recording/rotation.h"
#include "symbols/symbols.h"

#define LOOK_MS 200
#define QUIET_LOOKS 3 /* after which nothing is held back any longer */
#define BATCH_BYTES (256u << 10)

const char *ttm_debug_log_wish(void)
{
    const char *value = getenv("TT_BUFFER_DEBUG_LOG");

    if (!value || value[0] == '\0' || strcmp(value, "0") == 0)
        return NULL;
    return strcmp(value, "1") == 0 ? TTM_DEBUG_LOG_PATH : value;
}

/* ---- from a recording to text ---- */

struct copying {
    struct ttm_symbols *symbols;
    struct ttm_debug_log *log;
    struct ttm_text out;
    int fd;
};

static int copying_init(struct copying *copying, int fd)
{
    uint64_t seed;

    if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) < 0)
        seed = ttm_clock_monotonic_ns();
    copying->fd = fd;
    copying->symbols = ttm_symbols_new(NULL);
    const struct ttm_frame_namer namer = ttm_frame_names(copying->symbols);
    copying->log = ttm_debug_log_new(&namer, seed);
    ttm_text_init(&copying->out);
    return copying->log ? 0 : -ENOMEM;
}

static void copying_done(struct copying *copying)
{
    ttm_debug_log_free(copying->log);
    ttm_symbols_free(copying->symbols);
    ttm_text_done(&copying->out);
}

static int write_out(struct copying *copying)
{
    int r = ttm_text_failed(&copying->out) ? -ENOMEM : 0;

    if (r == 0 && copying->out.length > 0)
        r = ttm_terminal_write(copying->fd, &copying->out);
    ttm_text_clear(&copying->out);
    return r;
}

static int flush(struct copying *copying)
{
    ttm_debug_log_flush(copying->log, &copying->out);
    return write_out(copying);
}

/* As far as the recording has come. Returns how many records that were, or a negative errno. */
static int copy_some(struct copying *copying, struct ttm_recording *recording)
{
    const struct ttm_recorded *record;
    struct ttm_recording_info info = {0};
    int r, count = 0;

    while ((r = ttm_recording_next(recording, &record)) != 0) {
        if (r == -EBADMSG) /* what is damaged is passed over */
            continue;
        if (r < 0)
            return r;
        if (count == 0)
            ttm_recording_info(recording, &info);
        count += count < INT_MAX;
        r = ttm_debug_log_take(copying->log, record, info.wall_offset_ns, &copying->out);
        if (r == 0 && copying->out.length >= BATCH_BYTES)
            r = write_out(copying);
        if (r < 0)
            return r;
    }
    r = write_out(copying);
    return r < 0 ? r : count;
}

int ttm_debug_log_copy(struct ttm_recording *recording, int fd)
{
    struct copying copying;
    int r = copying_init(&copying, fd);

    if (r == 0)
        r = copy_some(&copying, recording);
    if (r >= 0)
        r = flush(&copying);
    copying_done(&copying);
    return r;
}

/* ---- a log that follows ---- */

struct ttm_debug_log_file {
    char *path;
    int fd;
    pthread_t thread;
    bool is_running;

    /* Of the thread, once it runs. */
    struct ttm_recording *recording;
    char *folder; /* NULL: one recording */
    bool is_spool;
    char name[TTM_ROTATION_NAME_SIZE]; /* of the recording in the folder, "" for none yet */

    /* Of both. */
    int wake_fd;
    _Atomic bool is_stopping;
};

/* Somebody who may write to /tmp must not be able to choose where we write. */
static int open_own(const char *path)
{
    const int fd = open(
        path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
    struct stat st;
    int r = 0;

    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0)
        r = -errno;
    else if (!S_ISREG(st.st_mode))
        r = -EINVAL;
    else if (st.st_uid != geteuid())
        r = -EACCES;
    else if (st.st_nlink != 1)
        r = -EMLINK;
    if (r < 0)
        (void)close(fd);
    return r < 0 ? r : fd;
}

static const char *reason_of(int r)
{
    return r == -EINVAL   ? "it is no plain file"
           : r == -EACCES ? "it is another user's or not for writing"
           : r == -EMLINK ? "it has a second name"
           : r == -ELOOP  ? "it is a symbolic link"
                          : strerror(-r);
}

static void free_file(struct ttm_debug_log_file *log)
{
    ttm_recording_close(log->recording);
    if (log->fd >= 0)
        (void)close(log->fd);
    if (log->wake_fd >= 0)
        (void)close(log->wake_fd);
    free(log->folder);
    free(log->path);
    free(log);
}

struct ttm_debug_log_file *ttm_debug_log_file_open(const char *path)
{
    struct ttm_debug_log_file *log = calloc(1, sizeof(*log));
    int r = -ENOMEM;

    if (log) {
        log->wake_fd = -1;
        log->path = strdup(path);
        log->fd = r = open_own(path);
    }
    if (r >= 0) {
        log->wake_fd = eventfd(0, EFD_CLOEXEC);
        r = log->wake_fd < 0 ? -errno : !log->path ? -ENOMEM : 0;
    }
    if (r == 0)
        return log;
    ttm_log("cannot write the debug log '%s': %s; going on without it", path, reason_of(r));
    if (log)
        free_file(log);
    return NULL;
}

/* The file of the folder behind the one at hand or, without one, the newest; "" when there is none. */
static int find_in_folder(const struct ttm_debug_log_file *log, char ret[TTM_ROTATION_NAME_SIZE])
{
    const bool wants_newest = log->name[0] == '\0';
    const struct dirent *entry;
    DIR *folder = opendir(log->folder);

    ret[0] = '\0';
    if (!folder)
        return -errno;
    /* cppcheck-suppress readdirCalled ; this thread alone reads the folder */
    while ((entry = readdir(folder)) != NULL) {
        const size_t length = strlen(entry->d_name);
        if (length >= TTM_ROTATION_NAME_SIZE || !ttm_rotation_is_name(entry->d_name) ||
            strcmp(entry->d_name, log->name) <= 0)
            continue;
        if (ret[0] == '\0' || (strcmp(entry->d_name, ret) > 0) == wants_newest)
            memcpy(ret, entry->d_name, length + 1);
    }
    (void)closedir(folder);
    return 0;
}

/* Goes on with the next file of the folder. Returns 1, 0 when there is none, or a negative errno. */
static int next_in_folder(struct ttm_debug_log_file *log)
{
    char name[TTM_ROTATION_NAME_SIZE], path[PATH_MAX];
    struct ttm_recording *next;
    int r = find_in_folder(log, name);

    if (r < 0 || name[0] == '\0')
        return r;
    if (log->is_spool && log->name[0] != '\0') {
        (void)snprintf(path, sizeof(path), "%s/%s", log->folder, log->name);
        (void)unlink(path);
    }
    (void)snprintf(path, sizeof(path), "%s/%s", log->folder, name);
    r = ttm_recording_open(path, &next);
    if (r < 0)
        return r;
    ttm_recording_close(log->recording);
    log->recording = next;
    memcpy(log->name, name, sizeof(name));
    return 1;
}

/* Returns whether more is to come from the recording at hand. */
static bool is_finished(const struct ttm_debug_log_file *log)
{
    struct ttm_recording_info info;

    ttm_recording_info(log->recording, &info);
    return info.is_finished || !info.is_being_written;
}

static void wait_for_more(const struct ttm_debug_log_file *log)
{
    struct pollfd wake = {.fd = log->wake_fd, .events = POLLIN};

    (void)poll(&wake, 1, LOOK_MS);
}

/* Until the recording has ended, and we are told so. Returns 0 or a negative errno. */
static int follow(struct ttm_debug_log_file *log, struct copying *copying)
{
    unsigned quiet = 0;

    for (;;) {
        /* acquire: pairs with the release in close; the recording is whole when we see it. */
        const bool is_stopping = atomic_load_explicit(&log->is_stopping, memory_order_acquire);
        const int count = copy_some(copying, log->recording);
        if (count < 0)
            return count;
        if (log->folder && (is_stopping || is_finished(log))) {
            const int r = next_in_folder(log);
            if (r < 0)
                return r;
            if (r > 0)
                continue;
        }
        if (is_stopping)
            return flush(copying);
        quiet = count > 0 ? 0 : quiet + 1;
        const int r = quiet == QUIET_LOOKS ? flush(copying) : 0;
        if (r < 0)
            return r;
        wait_for_more(log);
    }
}

static void *run(void *arg)
{
    struct ttm_debug_log_file *log = arg;
    struct copying copying;
    int r = copying_init(&copying, log->fd);

    if (r == 0)
        r = follow(log, &copying);
    if (r < 0)
        ttm_log("cannot go on with the debug log '%s': %s", log->path, strerror(-r));
    copying_done(&copying);
    return NULL;
}

static int start(struct ttm_debug_log_file *log, int r)
{
    if (r == 0)
        r = ttm_quiet_thread_start(&log->thread, NULL, run, log);
    if (r < 0)
        ttm_log("cannot write the debug log '%s': %s; going on without it", log->path,
                strerror(-r));
    log->is_running = r == 0;
    return r;
}

int ttm_debug_log_file_follow(struct ttm_debug_log_file *log, const char *path)
{
    return start(log, ttm_recording_open(path, &log->recording));
}

int ttm_debug_log_file_follow_folder(struct ttm_debug_log_file *log, const char *folder,
                                     bool is_spool)
{
    log->is_spool = is_spool;
    log->folder = strdup(folder);
    /* The newest is the one that has just been begun. */
    const int r = log->folder ? next_in_folder(log) : -ENOMEM;
    return start(log, r > 0 ? 0 : r < 0 ? r : -ENOENT);
}

void ttm_debug_log_file_close(struct ttm_debug_log_file *log)
{
    const uint64_t one = 1;

    if (!log)
        return;
    if (log->is_running) {
        /* release: pairs with the acquire in follow(). */
        atomic_store_explicit(&log->is_stopping, true, memory_order_release);
        (void)!write(log->wake_fd, &one, sizeof(one));
        (void)pthread_join(log->thread, NULL);
    }
    free_file(log);
}
