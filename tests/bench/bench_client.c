/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an event costs the program that reports it, in nanoseconds of thread CPU.
 *
 *   bench_client PATH-OF-TT-MEM [ROUNDS]
 *
 * Prints a Markdown table; judges nothing. All rows take turns in each round: the
 * floor (read the clock, write a record), the ring alone, the library as shipped
 * with a server draining, the library switched off, and the original's send(); and
 * what a record costs the server, when it reads along and when it finds full rings.
 */
#include <ttmem/ttmem.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/tick_clock.h"
#include "client/original_client.h"
#include "client/switch.h"
#include "query/answer.h"
#include "ring/control.h"
#include "ring/producer.h"
#include "ring/reader.h"

#define EVENTS 200000u
/* Events between two pauses: a program that allocates fast, not one that does nothing else. */
#define PACE 1000u
#define PAUSE_US 1000
#define THREADS_PAUSE_US 16000 /* of each of the threads: they and the server fit into two cores */
#define LIVE 64u
#define FILL 4000u /* events that a ring takes while nobody reads */
#define ROUNDS_MAX 64
#define THREADS 8

static char folder[] = "/tmp/ttm-bench-XXXXXX";
static char native_path[64], legacy_path[64];

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_client: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t thread_ns(void)
{
    return ttm_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void pause_us(long us)
{
    const struct timespec pause = {.tv_nsec = us * 1000};

    (void)nanosleep(&pause, NULL);
}

/* The least that any tracker does: read the clock, write 64 bytes where a reader will look. */
static double bench_floor(void)
{
    static struct ttm_record slots[4096];
    static volatile uint64_t tail;
    const uint64_t start = thread_ns();

    for (uint64_t i = 0; i < EVENTS; i++) {
        const struct ttm_record record = {.time_ns = ttm_clock_monotonic_ns(), .serial = i + 1};
        memcpy(&slots[tail % 4096], &record, sizeof(record));
        tail = tail + 1;
    }
    return (double)(thread_ns() - start) / EVENTS;
}

static double bench_ring(struct ttm_producer *producer, struct ttm_ring *ring,
                         struct ttm_ring_reader *reader)
{
    static struct ttm_record read_back[4096];
    static struct ttm_tick_clock clock;
    uint64_t spent = 0, passed = 0;

    ttm_tick_clock_begin(&clock);
    for (unsigned i = 0; i < EVENTS; i += PACE) {
        const uint64_t start = thread_ns();
        for (unsigned k = 0; k < PACE; k++) {
            const struct ttm_record record = {.time_ns = ttm_tick_clock_ns(&clock),
                                              .serial = k + 1};
            (void)ttm_ring_push(producer, ring, &record);
        }
        spent += thread_ns() - start;
        while (ttm_ring_reader_read(reader, read_back, 4096, &passed) > 0)
            ;
    }
    return (double)spent / EVENTS;
}

static void alloc_and_free(uint64_t base, uint64_t number)
{
    const uint64_t id = base + number;
    const struct ttmem_allocation a = {.id = id, .address = id % 4096 << 11, .bytes = 2048};

    ttmem_alloc(&a);
    if (number >= LIVE)
        ttmem_free(0, TTMEM_DRAM, id - LIVE);
}

static void free_rest(uint64_t base, uint64_t count)
{
    for (uint64_t i = count - LIVE; i < count; i++)
        ttmem_free(0, TTMEM_DRAM, base + i);
}

/* Births and frees with a few live, a burst at a time. */
static double bench_library(uint64_t base, long pause)
{
    uint64_t spent = 0;

    for (unsigned i = 0; i < EVENTS; i += PACE) {
        const uint64_t start = thread_ns();
        for (unsigned k = 0; k < PACE / 2; k++)
            alloc_and_free(base, i / 2 + k);
        spent += thread_ns() - start;
        pause_us(pause);
    }
    free_rest(base, EVENTS / 2);
    return (double)spent / EVENTS;
}

static double bench_context(uint64_t base)
{
    ttmem_context_push("bench");
    ttmem_context_push("step");
    const double cost = bench_library(base, PAUSE_US);
    ttmem_context_pop();
    ttmem_context_pop();
    return cost;
}

/* What a call of ttmem_name() costs. */
static double bench_names(uint64_t base)
{
    static const char *const names[] = {"weights", "activations", "cache", "logits"};
    const unsigned calls = EVENTS / 4;
    uint64_t spent = 0;

    for (unsigned i = 0; i < calls; i += LIVE) {
        for (unsigned k = 0; k < LIVE; k++)
            alloc_and_free(base, k);
        const uint64_t start = thread_ns();
        for (unsigned k = 0; k < LIVE; k++)
            ttmem_name(0, TTMEM_DRAM, base + k, names[k % 4], NULL);
        spent += thread_ns() - start;
        free_rest(base, LIVE);
        pause_us(PAUSE_US / 4);
    }
    return (double)spent / calls;
}

static double bench_off(void)
{
    const struct ttmem_allocation a = {.id = 1, .address = 4096, .bytes = 2048};
    const uint64_t start = thread_ns();

    for (unsigned i = 0; i < EVENTS; i++)
        ttmem_alloc(&a);
    return (double)(thread_ns() - start) / EVENTS;
}

/* What loading the library does, tracking wanted or not: it makes the switch. */
static double bench_load(void)
{
    const unsigned times = 200;
    uint64_t spent = 0;

    for (unsigned i = 0; i < times; i++) {
        const uint64_t start = thread_ns();
        struct ttm_own_fd fd = ttm_own_fd_of(ttm_control_new(false));
        if (fd.fd < 0)
            die("no control page");
        spent += thread_ns() - start;
        ttm_own_fd_close(&fd);
    }
    return (double)spent / times;
}

static double bench_send(struct ttm_original_client *client)
{
    const unsigned events = EVENTS / 10;
    uint64_t spent = 0;

    for (unsigned i = 0; i < events; i += 100) { /* bursts that its socket takes without waiting */
        const uint64_t start = thread_ns();
        for (unsigned k = 0; k < 100; k++)
            (void)ttm_original_client_alloc(client, 1, 0, i + k, 2048);
        spent += thread_ns() - start;
        pause_us(PAUSE_US);
    }
    return (double)spent / events;
}

/* Ids that nothing else has. */
static uint64_t next_base(void)
{
    static _Atomic uint64_t last = 1ull << 36;

    return atomic_fetch_add_explicit(&last, 1ull << 28, memory_order_relaxed);
}

static void *run_library(void *ret)
{
    *(double *)ret = bench_library(next_base(), THREADS_PAUSE_US);
    return NULL;
}

static double bench_threads(void)
{
    pthread_t threads[THREADS];
    double costs[THREADS], sum = 0;

    for (unsigned i = 0; i < THREADS; i++)
        (void)pthread_create(&threads[i], NULL, run_library, &costs[i]);
    for (unsigned i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
        sum += costs[i];
    }
    return sum / THREADS;
}

static pid_t start_server(const char *tt_mem)
{
    struct ttm_connection conn;
    const pid_t pid = fork();

    if (pid == 0) {
        const int null = open("/dev/null", O_RDWR);
        (void)dup2(null, STDOUT_FILENO);
        (void)dup2(null, STDERR_FILENO);
        (void)execl(tt_mem, tt_mem, "serve", "--socket", native_path, "--legacy-socket",
                    legacy_path, (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 500; i++) {
        const int r = ttm_connection_open(&conn, native_path);
        ttm_connection_close(&conn);
        if (r == 0)
            return pid;
        pause_us(10000);
    }
    die("the server did not start");
    return -1;
}

/* Since the last time that it was asked. */
static uint64_t lost_events(void)
{
    static uint64_t known;
    struct ttm_connection conn;
    struct ttm_answer answer;
    uint64_t lost = 0;

    ttm_answer_init(&answer);
    if (ttm_connection_open(&conn, native_path) == 0 &&
        ttm_answer_ask(&conn, TTM_FRAME_GET_STATUS, &answer) == 0) {
        for (size_t i = 0; i < answer.process_count; i++)
            lost += answer.processes[i].row.lost_events;
    }
    ttm_answer_done(&answer);
    ttm_connection_close(&conn);
    const uint64_t since = lost - known;
    known = lost;
    return since;
}

static pthread_barrier_t filled, drained;

static void *fill_ring(void *unused)
{
    const uint64_t base = next_base();

    (void)unused;
    for (unsigned i = 0; i < FILL / 2; i++)
        alloc_and_free(base, i);
    free_rest(base, FILL / 2);
    (void)pthread_barrier_wait(&filled);
    (void)pthread_barrier_wait(&drained); /* or the next thread would get this ring */
    return NULL;
}

static uint64_t server_ns(pid_t pid)
{
    clockid_t id;

    if (clock_getcpuclockid(pid, &id) != 0)
        die("no CPU clock");
    return ttm_clock_read_ns(id);
}

/* The server's CPU for each record that it finds in full rings. */
static double bench_drain(pid_t server)
{
    const struct ttm_tracker *tracker = &ttm_own_tracker;
    pthread_t threads[THREADS];

    (void)pthread_barrier_init(&filled, NULL, THREADS + 1);
    (void)pthread_barrier_init(&drained, NULL, THREADS + 1);
    (void)kill(server, SIGSTOP);
    (void)waitpid(server, NULL, WUNTRACED);
    const uint64_t before = server_ns(server);
    for (unsigned i = 0; i < THREADS; i++)
        (void)pthread_create(&threads[i], NULL, fill_ring, NULL);
    (void)pthread_barrier_wait(&filled);
    (void)kill(server, SIGCONT);
    for (uint32_t i = 0; i < atomic_load(&tracker->producer.segment->rings_used); i++) {
        const struct ttm_ring *ring = tracker->slots[i].ring;
        while (ring && atomic_load(&ring->head) != atomic_load(&ring->tail))
            pause_us(1000);
    }
    const uint64_t spent = server_ns(server) - before;
    (void)pthread_barrier_wait(&drained);
    for (unsigned i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    (void)pthread_barrier_destroy(&filled);
    (void)pthread_barrier_destroy(&drained);
    return (double)spent / (THREADS * FILL);
}

enum row { FLOOR, RING, SHIPPED, CONTEXT, NAMES, THREADED, OFF, LOAD, SEND, SERVER, DRAIN, ROWS };

static const char *const labels[ROWS] = {
    "floor: clock and a record written",
    "ring alone, with our clock",
    "libttmem as shipped, server draining",
    "the same, within two contexts",
    "a call of ttmem_name()",
    "the same, 8 threads at once, each",
    "libttmem switched off",
    "loading libttmem, once",
    "the original's send(), burst",
    "server CPU for each of the 8 threads' events",
    "server CPU for each record of 8 full rings",
};

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    static double values[ROWS][ROUNDS_MAX];
    uint64_t lost[ROWS] = {0};
    const unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 9;
    struct ttm_original_client client;
    struct ttm_producer producer;
    struct ttm_ring_reader reader;

    if (argc < 2 || rounds == 0 || rounds > ROUNDS_MAX || !mkdtemp(folder))
        return 2;
    (void)snprintf(native_path, sizeof(native_path), "%s/n", folder);
    (void)snprintf(legacy_path, sizeof(legacy_path), "%s/l", folder);
    (void)setenv("TTMEM_SOCKET", native_path, 1);
    const pid_t server = start_server(argv[1]);
    if (ttm_original_client_open(&client, legacy_path, TTM_ORIGINAL_V112) < 0 ||
        ttm_producer_new(&producer) < 0 || ttm_ring_reader_open(producer.fd.fd, &reader) < 0)
        die("set-up");
    struct ttm_ring *ring = ttm_producer_claim(&producer, 1);
    (void)ttmem_enable();
    pause_us(300000);
    for (unsigned i = 0; i < rounds; i++) {
        values[FLOOR][i] = bench_floor();
        values[RING][i] = bench_ring(&producer, ring, &reader);
        pause_us(500000); /* what the round before left to be told is told */
        values[SHIPPED][i] = bench_library(next_base(), PAUSE_US);
        values[CONTEXT][i] = bench_context(next_base());
        values[NAMES][i] = bench_names(next_base());
        pause_us(500000);
        lost[SHIPPED] += lost_events();
        const uint64_t before = server_ns(server);
        values[THREADED][i] = bench_threads();
        values[SERVER][i] = (double)(server_ns(server) - before) / (THREADS * EVENTS);
        pause_us(100000); /* the rings are empty */
        lost[THREADED] += lost_events();
        values[DRAIN][i] = bench_drain(server);
        lost[DRAIN] += lost_events();
        ttmem_disable();
        values[OFF][i] = bench_off();
        values[LOAD][i] = bench_load();
        (void)ttmem_enable();
        values[SEND][i] = bench_send(&client);
    }
    (void)printf("## What an event costs the program\n\n| | ns, thread CPU |\n|---|---|\n");
    for (unsigned row = 0; row < ROWS; row++) {
        qsort(values[row], rounds, sizeof(double), compare);
        (void)printf("| %s | %.1f [%.1f–%.1f] |\n", labels[row], values[row][rounds / 2],
                     values[row][0], values[row][rounds - 1]);
    }
    (void)printf(
        "\nEvents lost to full rings: %llu with one thread, %llu with 8, %llu when filled.\n",
        (unsigned long long)lost[SHIPPED], (unsigned long long)lost[THREADED],
        (unsigned long long)lost[DRAIN]);
    (void)kill(server, SIGTERM);
    (void)waitpid(server, NULL, 0);
    (void)rmdir(folder);
    return 0;
}
