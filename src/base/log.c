/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/quiet_thread.h"
#include "base/text.h"

#define BUFFER_SIZE 65536
#define LINE_SIZE 1024
#define LINES_PER_SECOND 50

/* Guards everything below but 'dropped'. Held for copies only, never across a write. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed; /* on the monotonic clock, set up by ttm_log_start() */
static char buffer[BUFFER_SIZE];
static size_t used;
static bool is_running;
static bool is_stopping;

static int log_fd = STDERR_FILENO;
static pthread_t writer;
static uint64_t window_start_ns; /* of the second that is being counted */
static unsigned window_lines;
static uint64_t window_skipped;

static atomic_uint_fast64_t dropped;

static void write_whole(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        const ssize_t n = write(fd, bytes, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) /* the reader is gone or the disk is full: nobody is left to be told */
            return;
        bytes += n;
        length -= (size_t)n;
    }
}

static void *write_lines(void *arg)
{
    static char batch[BUFFER_SIZE];
    (void)arg;

    pthread_mutex_lock(&lock);
    while (true) {
        while (used == 0 && !is_stopping)
            pthread_cond_wait(&changed, &lock);
        if (used == 0)
            break;
        const size_t length = used;
        memcpy(batch, buffer, length);
        used = 0;
        pthread_mutex_unlock(&lock);
        write_whole(log_fd, batch, length);
        pthread_mutex_lock(&lock);
    }
    is_running = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int ttm_log_start(int fd)
{
    pthread_condattr_t attr;
    int r;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attr);
    pthread_condattr_destroy(&attr);
    log_fd = fd;
    is_stopping = false;
    r = ttm_quiet_thread_start(&writer, NULL, write_lines, NULL);
    if (r < 0)
        return r;
    pthread_mutex_lock(&lock);
    is_running = true;
    pthread_mutex_unlock(&lock);
    return 0;
}

void ttm_log_stop(unsigned timeout_ms)
{
    const uint64_t until_ns = ttm_clock_monotonic_ns() + timeout_ms * TTM_NS_PER_MS;
    const struct timespec until = {.tv_sec = (time_t)(until_ns / TTM_NS_PER_S),
                                   .tv_nsec = (long)(until_ns % TTM_NS_PER_S)};

    pthread_mutex_lock(&lock);
    if (!is_running) {
        pthread_mutex_unlock(&lock);
        return;
    }
    is_stopping = true;
    pthread_cond_broadcast(&changed);
    while (is_running && pthread_cond_timedwait(&changed, &lock, &until) == 0)
        ;
    const bool has_ended = !is_running;
    pthread_mutex_unlock(&lock);
    if (has_ended)
        pthread_join(writer, NULL);
    else
        pthread_detach(
            writer); /* it hangs in a write that nobody reads; the process is about to end */
}

/* Whether this second still takes a line. What it did not take is told when the next one begins. */
static bool take_line(char *note, size_t size)
{
    const uint64_t now_ns = ttm_clock_monotonic_ns();

    note[0] = '\0';
    if (now_ns - window_start_ns >= TTM_NS_PER_S) {
        if (window_skipped > 0)
            (void)snprintf(note, size, "tt-mem: %llu more lines in that second\n",
                           (unsigned long long)window_skipped);
        window_start_ns = now_ns;
        window_lines = 0;
        window_skipped = 0;
    }
    if (window_lines >= LINES_PER_SECOND) {
        window_skipped++;
        return false;
    }
    window_lines++;
    return true;
}

static bool append_line(const char *line, size_t length)
{
    if (length > BUFFER_SIZE - used)
        return false;
    memcpy(buffer + used, line, length);
    used += length;
    return true;
}

void ttm_log(const char *format, ...)
{
    static const char prefix[] = "tt-mem: ";
    const size_t prefix_length = sizeof(prefix) - 1;
    char text[LINE_SIZE], line[LINE_SIZE];
    char note[96];
    va_list args;

    va_start(args, format);
    const int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (n < 0)
        return;
    memcpy(line, prefix, prefix_length);
    size_t length = prefix_length + ttm_text_copy_safe(line + prefix_length,
                                                       sizeof(line) - prefix_length - 1, text);
    line[length++] = '\n';

    pthread_mutex_lock(&lock);
    const bool is_direct = !is_running;
    bool is_taken = true;
    if (!is_direct) {
        is_taken = take_line(note, sizeof(note)) && append_line(note, strlen(note)) &&
                   append_line(line, length);
        pthread_cond_signal(&changed);
    }
    pthread_mutex_unlock(&lock);

    if (is_direct)
        write_whole(STDERR_FILENO, line, length);
    if (!is_taken)
        /* relaxed: a counter that nothing else hangs on. */
        atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
}

void ttm_log_text(const char *text, size_t length)
{
    pthread_mutex_lock(&lock);
    const bool is_direct = !is_running;
    const bool is_taken = is_direct || append_line(text, length);
    if (!is_direct)
        pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);

    if (is_direct)
        write_whole(STDERR_FILENO, text, length);
    if (!is_taken)
        /* relaxed: as above. */
        atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
}

uint64_t ttm_log_dropped(void)
{
    return atomic_load_explicit(&dropped, memory_order_relaxed); /* only a number to show */
}
