/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of another thread without its help:
 *
 *   - /proc/self/task/TID/schedstat: how long it has run, in nanoseconds. The functions
 *     take microseconds, so a thread that ran for RUN_NS since the beginning has come
 *     out of them, or was never inside.
 *   - /proc/self/task/TID/syscall: of one that sleeps, its stack pointer. Inside the
 *     functions it can only sleep in something that they have called, so that the way
 *     back lies on its stack. Where no word of the stack points into them it is outside.
 *     Words that were left over may look like it; then only running will tell.
 *
 * A thread that is runnable and does not get to run has no stack pointer to see and is
 * waited for, on a busy machine longer than any fixed pause. One that was started
 * meanwhile finds the new way.
 */
#include "hook/quiesce.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define THREADS_MAX 4096u
#define RUN_NS 2000000ull
#define LOOK_EVERY_NS 200000L
#define SLEEPER_MS 50u
#define RUNNER_MS 1000u
#define STACK_MAX (1u << 20) /* of a stack that is looked at; deeper, nobody sleeps */
#define PIECE 4096u

struct thread {
    pid_t tid;
    uint64_t ran_ns; /* when we began */
};

/* Returns the bytes read, or -1; 'ret' is a string then. */
static ssize_t read_file(pid_t tid, const char *name, char *ret, size_t size)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/%s", (int)tid, name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    const ssize_t n = read(fd, ret, size - 1);
    (void)close(fd);
    if (n >= 0)
        ret[n] = '\0';
    return n;
}

/* UINT64_MAX: not known, or it has ended. */
static uint64_t ran_ns(pid_t tid)
{
    char text[128], *end;

    if (read_file(tid, "schedstat", text, sizeof(text)) <= 0)
        return UINT64_MAX;
    const uint64_t ns = strtoull(text, &end, 10);
    return *end == ' ' ? ns : UINT64_MAX;
}

/* Of a thread that sleeps; 0 when it does not, or nobody tells. */
static uintptr_t stack_pointer(pid_t tid)
{
    char text[256];

    if (read_file(tid, "syscall", text, sizeof(text)) <= 0)
        return 0;
    /* "NR ARG... SP PC", or "-1 SP PC", or "running". */
    char *last = strrchr(text, ' ');
    if (!last)
        return 0;
    *last = '\0';
    char *before = strrchr(text, ' ');
    return before ? (uintptr_t)strtoull(before + 1, NULL, 16) : 0;
}

static bool points_into(const uintptr_t *words, size_t count, const struct ttm_code *functions,
                        uint32_t function_count)
{
    for (size_t i = 0; i < count; i++) {
        for (uint32_t f = 0; f < function_count; f++) {
            if (words[i] > functions[f].start && words[i] <= functions[f].end)
                return true;
        }
    }
    return false;
}

/* Read by the kernel, so that a stack that goes away is an error and no fault. */
static bool is_stack_clear(uintptr_t sp, const struct ttm_code *functions, uint32_t count)
{
    uintptr_t words[PIECE / sizeof(uintptr_t)];
    uintptr_t at = sp & ~(sizeof(uintptr_t) - 1);

    for (size_t done = 0; done < STACK_MAX; done += PIECE) {
        /* Up to the end of a page, as what lies behind may not be there. */
        const size_t length = PIECE - at % PIECE;
        const struct iovec ours = {words, length};
        const struct iovec theirs = {(void *)at, length}; // NOLINT(performance-no-int-to-ptr)
        const ssize_t n = process_vm_readv(getpid(), &ours, 1, &theirs, 1, 0);
        if (n <= 0)
            return done > 0; /* the end of the stack; or nobody may read it */
        if (points_into(words, (size_t)n / sizeof(words[0]), functions, count))
            return false;
        at += (size_t)n;
    }
    return true;
}

enum outcome { OUTSIDE, ASLEEP, RUNNABLE };

static enum outcome look_at(const struct thread *thread, const struct ttm_code *functions,
                            uint32_t count)
{
    const uint64_t before_ns = ran_ns(thread->tid);

    if (before_ns == UINT64_MAX) /* it has ended, or nobody counts: then it is asleep to us */
        return syscall(SYS_tgkill, getpid(), thread->tid, 0) < 0 && errno == ESRCH ? OUTSIDE
                                                                                   : ASLEEP;
    if (before_ns - thread->ran_ns >= RUN_NS)
        return OUTSIDE;
    const uintptr_t sp = stack_pointer(thread->tid);
    if (sp == 0)
        return RUNNABLE;
    /* Only if it slept all the while. */
    return is_stack_clear(sp, functions, count) && stack_pointer(thread->tid) == sp &&
                   ran_ns(thread->tid) == before_ns
               ? OUTSIDE
               : ASLEEP;
}

/* All others; NULL when memory is short or there is no list. */
static struct thread *list_threads(uint32_t *ret_count)
{
    struct thread *threads = malloc(THREADS_MAX * sizeof(threads[0]));
    DIR *folder = threads ? opendir("/proc/self/task") : NULL;
    const pid_t own = (pid_t)syscall(SYS_gettid);
    uint32_t count = 0;

    if (!folder) {
        free(threads);
        return NULL;
    }
    /* cppcheck-suppress readdirCalled ; of a stream that nobody else has */
    for (struct dirent *entry; count < THREADS_MAX && (entry = readdir(folder));) {
        const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid > 0 && tid != own)
            threads[count++] = (struct thread){tid, ran_ns(tid)};
    }
    (void)closedir(folder);
    *ret_count = count;
    return threads;
}

static void pause_shortly(void)
{
    const struct timespec pause = {.tv_nsec = LOOK_EVERY_NS};

    (void)nanosleep(&pause, NULL);
}

bool ttm_quiesce(const struct ttm_code *functions, uint32_t count)
{
    const uint64_t start_ns = ttm_clock_monotonic_ns();
    uint32_t left = 0;
    struct thread *threads = list_threads(&left);
    bool is_known = true;

    if (!threads)
        return false;
    while (left > 0) {
        const uint64_t waited_ms = (ttm_clock_monotonic_ns() - start_ns) / 1000000;
        uint32_t kept = 0;
        for (uint32_t i = 0; i < left; i++) {
            const enum outcome outcome = look_at(&threads[i], functions, count);
            const bool is_over = waited_ms >= (outcome == ASLEEP ? SLEEPER_MS : RUNNER_MS);
            if (outcome != OUTSIDE && is_over)
                is_known = false;
            else if (outcome != OUTSIDE)
                threads[kept++] = threads[i];
        }
        left = kept;
        if (left > 0)
            pause_shortly();
    }
    free(threads);
    return is_known;
}
