/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long it takes until a server that is new to a process knows exactly what it
 * holds, while the threads of the process go on.
 *
 *   bench_resync PATH-OF-TT-MEM [ROUNDS]
 *
 * Prints a Markdown table; judges nothing. In each round the server is killed and
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

/* Asks the server about us; returns whether it is exact. */
static bool is_exact(double *ret_ms, uint64_t *ret_lives)
{
    struct ttm_connection conn;
    struct ttm_answer answer;
    bool is_known = false;

    ttm_answer_init(&answer);
    if (ttm_connection_open(&conn, socket_path) == 0 &&
        ttm_answer_ask(&conn, TTM_FRAME_GET_STATUS, &answer) == 0) {
        for (size_t i = 0; i < answer.process_count; i++) {
            const struct ttm_process_row *row = &answer.processes[i].row;
            if (row->pid != getpid() || row->is_behind || row->resync_us == 0)
                continue;
            is_known = true;
            *ret_ms = row->resync_us / 1000.0;
            *ret_lives = row->lives;
        }
    }
    ttm_answer_done(&answer);
    ttm_connection_close(&conn);
    return is_known;
}

/* Kills the server and starts another. Returns what that one says. */
static double bench_restart(const char *tt_mem, pid_t *server, double *ret_found_ms)
{
    uint64_t lives = 0;
    double ms = 0;

    (void)kill(*server, SIGKILL);
    (void)waitpid(*server, NULL, 0);
    pause_us(50000);
    const uint64_t start = ttm_clock_monotonic_ns();
    *server = start_server(tt_mem);
    while (!is_exact(&ms, &lives))
        pause_us(2000);
    *ret_found_ms = (double)(ttm_clock_monotonic_ns() - start) / 1e6;
    return ms;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void print_row(uint64_t live, double *ms, double *found_ms, unsigned rounds)
{
    qsort(ms, rounds, sizeof(ms[0]), compare);
    qsort(found_ms, rounds, sizeof(found_ms[0]), compare);
    (void)printf("| %llu | %.1f [%.1f–%.1f] | %.0f [%.0f–%.0f] |\n", (unsigned long long)live,
                 ms[rounds / 2], ms[0], ms[rounds - 1], found_ms[rounds / 2], found_ms[0],
                 found_ms[rounds - 1]);
}

int main(int argc, char **argv)
{
    static const uint64_t steps[] = {1000, 10000, 100000, 1000000};
    const unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 9;
    pthread_t threads[THREADS];
    uint64_t live = 0;

    if (argc < 2 || rounds == 0 || rounds > ROUNDS_MAX || !mkdtemp(folder))
        return 2;
    (void)snprintf(socket_path, sizeof(socket_path), "%s/n", folder);
    (void)setenv("TTMEM_SOCKET", socket_path, 1);
    pid_t server = start_server(argv[1]);
    if (ttmem_enable() < 0)
        die("set-up");
    for (unsigned i = 0; i < THREADS; i++)
        (void)pthread_create(&threads[i], NULL, churn, (void *)(uintptr_t)(i + 1));
    (void)printf(
        "| live allocations | ms from the connection until exact | ms from the start of the "
        "server |\n|---|---|---|\n");
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        double ms[ROUNDS_MAX], found_ms[ROUNDS_MAX];
        for (; live < steps[i]; live++)
            ttmem_alloc(&(struct ttmem_allocation){
                .id = live, .address = live << 11, .bytes = 2048, .banks = 12});
        for (unsigned round = 0; round < rounds; round++)
            ms[round] = bench_restart(argv[1], &server, &found_ms[round]);
        print_row(live, ms, found_ms, rounds);
        (void)fflush(stdout);
    }
    atomic_store(&is_over, true);
    for (unsigned i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    (void)kill(server, SIGTERM);
    (void)waitpid(server, NULL, 0);
    (void)rmdir(folder);
    return 0;
}
