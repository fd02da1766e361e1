/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long it takes until a server that is new to a process knows exactly what it
 * holds, while the threads of the process go on.
 *
 *   bench_resync PATH-OF-TT-MEM [ROUNDS [THREADS [LIVES]]]
 *
 * Prints a Markdown table; judges nothing. THREADS may be 0: the process does nothing
 * else; with LIVES that many alone are looked at. In each round the server is killed and
 * another one started; its own clock tells how long it took from the connection of
 * the process to the end of the telling.
 */
#include <ttmem/ttmem.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "query/answer.h"

#define ROUNDS_MAX 64
#define THREADS 4
#define THREADS_MAX 64
#define RING UINT64_C(8192)
#define RINGS 9   /* its own, and those that it may go on in */
#define BURST 500 /* events of each thread between two pauses of a millisecond */

static char folder[] = "/tmp/ttm-bench-XXXXXX";
static char socket_path[64];
static _Atomic bool is_over;

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_resync: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void pause_us(long us)
{
    const struct timespec pause = {.tv_nsec = us * 1000};

    (void)nanosleep(&pause, NULL);
}

static pid_t start_server(const char *tt_mem)
{
    const pid_t pid = fork();

    if (pid == 0) {
        const int null = open("/dev/null", O_RDWR);
        (void)dup2(null, STDOUT_FILENO);
        (void)dup2(null, STDERR_FILENO);
        (void)execl(tt_mem, tt_mem, "serve", "--socket", socket_path, "--no-legacy", (char *)NULL);
        _exit(127);
    }
    return pid;
}

/* Allocates and frees, each id by another thread than the one before. */
static void *churn(void *arg)
{
    const uint64_t base = (uint64_t)(uintptr_t)arg << 40;

    for (uint64_t n = 0; !atomic_load(&is_over); n++) {
        const struct ttmem_allocation a = {
            .id = base + n, .address = n % 4096 << 11, .bytes = 2048, .devices = 1};
        ttmem_alloc(&a);
        if (n >= 64)
            ttmem_free(0, TTMEM_DRAM, base + n - 64);
        if (n % (BURST / 2) == 0)
            pause_us(1000);
    }
    return NULL;
}

/* What one round has shown. */
struct round {
    double ms;       /* by the server's clock */
    double found_ms; /* since its start */
    double cpu_ms;   /* that it has taken in all */
    double tellings;
    uint64_t lost;
    double again_ms; /* after a full ring, what is live being known but for a little */
    uint64_t resyncs;
};

/* Asks the server about us; returns whether it is exact. */
static bool is_exact(uint64_t lost_least, struct round *ret)
{
    struct ttm_connection conn;
    struct ttm_answer answer;
    bool is_known = false;

    ttm_answer_init(&answer);
    if (ttm_connection_open(&conn, socket_path) == 0 &&
        ttm_answer_ask(&conn, TTM_FRAME_GET_STATUS, &answer) == 0) {
        for (size_t i = 0; i < answer.process_count; i++) {
            const struct ttm_process_row *row = &answer.processes[i].row;
            if (row->pid != getpid() || row->is_behind || row->resync_us == 0 ||
                row->lost_events < lost_least)
                continue;
            is_known = true;
            ret->ms = row->resync_us / 1000.0;
            ret->resyncs = row->resyncs;
            ret->lost = row->lost_events;
        }
    }
    ttm_answer_done(&answer);
    ttm_connection_close(&conn);
    return is_known;
}

static double cpu_ms(pid_t pid)
{
    clockid_t clock;
    struct timespec time = {0};

    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) < 0)
        return 0;
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

/* Stops the server until a ring is full, and lets it go on. */
static void bench_loss(pid_t server, struct round *ret)
{
    struct round again = {0};

    (void)kill(server, SIGSTOP);
    for (uint64_t n = 0; n < RINGS * RING; n++) {
        const struct ttmem_allocation a = {.id = UINT64_MAX - n % 64, .bytes = 2048};
        ttmem_alloc(&a);
        ttmem_free(0, TTMEM_DRAM, a.id);
    }
    (void)kill(server, SIGCONT);
    while (!is_exact(ret->lost + 1, &again))
        pause_us(2000);
    ret->again_ms = again.ms;
}

/* Kills the server and starts another. */
static void bench_restart(const char *tt_mem, pid_t *server, struct round *ret)
{
    (void)kill(*server, SIGKILL);
    (void)waitpid(*server, NULL, 0);
    pause_us(50000);
    const uint64_t start = ttm_clock_monotonic_ns();
    *server = start_server(tt_mem);
    while (!is_exact(0, ret))
        pause_us(2000);
    ret->cpu_ms = cpu_ms(*server);
    ret->found_ms = (double)(ttm_clock_monotonic_ns() - start) / 1e6;
    ret->tellings = (double)ret->resyncs;
    bench_loss(*server, ret);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Prints the median of a member of all rounds, the least and the most. */
static void print_cell(const struct round *results, unsigned rounds, size_t offset)
{
    double values[ROUNDS_MAX];

    for (unsigned i = 0; i < rounds; i++)
        memcpy(&values[i], (const char *)&results[i] + offset, sizeof(values[i]));
    qsort(values, rounds, sizeof(values[0]), compare);
    (void)printf(" %.1f [%.1f–%.1f] |", values[rounds / 2], values[0], values[rounds - 1]);
}

static void print_row(uint64_t live, const struct round *results, unsigned rounds)
{
    static const size_t offsets[] = {offsetof(struct round, ms), offsetof(struct round, found_ms),
                                     offsetof(struct round, cpu_ms),
                                     offsetof(struct round, tellings),
                                     offsetof(struct round, again_ms)};

    (void)printf("| %llu |", (unsigned long long)live);
    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
        print_cell(results, rounds, offsets[i]);
    (void)printf("\n");
}

int main(int argc, char **argv)
{
    static const uint64_t steps[] = {1000, 10000, 100000, 1000000};
    const unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 9;
    const unsigned busy = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : THREADS;
    const uint64_t only = argc > 4 ? strtoull(argv[4], NULL, 10) : 0;
    pthread_t threads[THREADS_MAX];
    uint64_t live = 0;

    if (argc < 2 || rounds == 0 || rounds > ROUNDS_MAX || busy > THREADS_MAX || !mkdtemp(folder))
        return 2;
    (void)snprintf(socket_path, sizeof(socket_path), "%s/n", folder);
    (void)setenv("TTMEM_SOCKET", socket_path, 1);
    pid_t server = start_server(argv[1]);
    if (ttmem_enable() < 0)
        die("set-up");
    for (unsigned i = 0; i < busy; i++)
        (void)pthread_create(&threads[i], NULL, churn, (void *)(uintptr_t)(i + 1));
    (void)printf(
        "| live allocations | ms from the connection until exact | ms from the start of the "
        "server | CPU of the server, ms | tellings | ms after a full ring |\n|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct round results[ROUNDS_MAX];
        if (only != 0 && steps[i] != only)
            continue;
        for (; live < steps[i]; live++)
            ttmem_alloc(&(struct ttmem_allocation){
                .id = live, .address = live << 11, .bytes = 2048, .banks = 12});
        for (unsigned round = 0; round < rounds; round++)
            bench_restart(argv[1], &server, &results[round]);
        print_row(live, results, rounds);
        (void)fflush(stdout);
    }
    atomic_store(&is_over, true);
    for (unsigned i = 0; i < busy; i++)
        (void)pthread_join(threads[i], NULL);
    (void)kill(server, SIGTERM);
    (void)waitpid(server, NULL, 0);
    (void)rmdir(folder);
    return 0;
}
