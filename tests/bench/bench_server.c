/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server costs, beside a reader that does nothing, in one run.
 *
 *   bench_server PATH-OF-TT-MEM [ROUNDS]
 *
 * Prints Markdown tables; judges nothing. Loads are real processes that do per
 * event what the original's client did: clear a message, ask for pid and time,
 * send it. Server and reader take turns, so that noise hits both; CPU time is
 * that of the server's process, from its CPU clock.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/original_client.h"
#include "query/answer.h"

#define MESSAGES 400000u
#define LIVE 64u
#define MILLION 1000000u
#define READ_SIZE 65536 /* the reader's; large, to be hard to beat */
#define ROUNDS_MAX 64

static const char *tt_mem;
static char folder[] = "/tmp/ttm-bench-XXXXXX";
static char native_path[64], legacy_path[64], reader_path[64];

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_server: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t cpu_ns(pid_t pid)
{
    clockid_t id;

    if (clock_getcpuclockid(pid, &id) != 0)
        die("no CPU clock");
    return ttm_clock_read_ns(id);
}

static void sleep_ms(long ms)
{
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    (void)nanosleep(&pause, NULL);
}

/* ---- the reader that does nothing ---- */

static int listen_at(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, 64) < 0)
        die(path);
    return fd;
}

static void read_and_forget(int listen_fd)
{
    static char buf[READ_SIZE];
    const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = listen_fd};

    (void)epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listen_fd, &ev);
    while (true) {
        struct epoll_event events[64];
        const int n = epoll_wait(epoll_fd, events, 64, -1);
        for (int i = 0; i < n; i++) {
            const int fd = events[i].data.fd;
            if (fd == listen_fd) {
                ev.data.fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
                (void)epoll_ctl(epoll_fd, EPOLL_CTL_ADD, ev.data.fd, &ev);
            } else if (recv(fd, buf, sizeof(buf), MSG_DONTWAIT) == 0) {
                (void)close(fd);
            }
        }
    }
}

static pid_t start_reader(void)
{
    const int fd = listen_at(reader_path);
    const pid_t pid = fork();

    if (pid == 0)
        read_and_forget(fd);
    (void)close(fd);
    return pid;
}

/* ---- the server ---- */

static pid_t start_server(void)
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
        sleep_ms(10);
    }
    errno = ETIMEDOUT;
    die("the server did not start");
    return -1;
}

static void stop(pid_t pid, int signal)
{
    (void)kill(pid, signal);
    (void)waitpid(pid, NULL, 0);
}

static struct ttm_status ask_status(void)
{
    struct ttm_connection conn;
    struct ttm_answer answer;

    ttm_answer_init(&answer);
    if (ttm_connection_open(&conn, native_path) < 0 ||
        ttm_answer_ask(&conn, TTM_FRAME_GET_STATUS, &answer) < 0)
        die("no status");
    const struct ttm_status status = answer.status;
    ttm_answer_done(&answer);
    ttm_connection_close(&conn);
    return status;
}

/* ---- load ---- */

static void send_or_die(struct ttm_original_client *client, uint8_t type, uint64_t id,
                        uint64_t bytes)
{
    const struct ttm_original_message msg = {.type = type, .buffer_id = id, .size = bytes};

    if (ttm_original_client_send(client, &msg) < 0)
        die("send");
}

/* Says that no more will come and waits until the other side has read it all. */
static void finish(struct ttm_original_client *client)
{
    char byte;

    (void)shutdown(client->fd, SHUT_WR);
    while (recv(client->fd, &byte, 1, 0) > 0)
        ;
    ttm_original_client_close(client);
}

static void load(const char *path, enum ttm_original_layout layout, unsigned messages)
{
    struct ttm_original_client client;

    if (ttm_original_client_open(&client, path, layout) < 0)
        die(path);
    for (unsigned i = 0; i < messages / 2; i++) {
        send_or_die(&client, TTM_ORIGINAL_ALLOC, i % LIVE << 12 | (i / LIVE % 2), 4096);
        if (i >= LIVE)
            send_or_die(&client, TTM_ORIGINAL_FREE,
                        (i - LIVE) % LIVE << 12 | ((i - LIVE) / LIVE % 2), 0);
    }
    finish(&client);
}

/* Runs 'clients' loads at once; returns the wall time. */
static uint64_t run_loads(const char *path, enum ttm_original_layout layout, unsigned clients)
{
    const uint64_t start_ns = ttm_clock_monotonic_ns();

    for (unsigned i = 0; i < clients; i++) {
        if (fork() == 0) {
            load(path, layout, MESSAGES / clients);
            _exit(0);
        }
    }
    for (unsigned i = 0; i < clients; i++) {
        int status;
        if (wait(&status) < 0 || status != 0)
            die("a load failed");
    }
    return ttm_clock_monotonic_ns() - start_ns;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return x < y ? -1 : x > y;
}

struct series {
    double values[ROUNDS_MAX];
    unsigned count;
};

static void note(struct series *series, double value)
{
    series->values[series->count++] = value;
}

static double median(struct series *series)
{
    qsort(series->values, series->count, sizeof(double), compare);
    return series->values[series->count / 2];
}

static void print_series(struct series *series, int decimals)
{
    const double middle = median(series);

    (void)printf("%.*f [%.*f–%.*f]", decimals, middle, decimals, series->values[0], decimals,
                 series->values[series->count - 1]);
}

static void bench_cost(unsigned rounds)
{
    static const unsigned clients[] = {1, 8};
    static const enum ttm_original_layout layouts[] = {TTM_ORIGINAL_V72, TTM_ORIGINAL_V112,
                                                       TTM_ORIGINAL_V144};
    const pid_t reader = start_reader();
    const pid_t server = start_server();

    (void)printf("## Server CPU per original message\n\n"
                 "| layout | clients | do-nothing reader, ns | tt-mem serve, ns | ratio | "
                 "messages/s reader | messages/s tt-mem |\n|---|---|---|---|---|---|---|\n");
    for (size_t l = 0; l < 3; l++) {
        for (size_t c = 0; c < 2; c++) {
            struct series cpu[2] = {0}, rate[2] = {0}, ratio = {0};
            for (unsigned i = 0; i < rounds; i++) {
                double spent[2];
                for (unsigned k = 0; k < 2; k++) {
                    const unsigned who = (i + k) % 2; /* take turns at going first */
                    const pid_t pid = who == 0 ? reader : server;
                    const uint64_t before = cpu_ns(pid);
                    const uint64_t wall =
                        run_loads(who == 0 ? reader_path : legacy_path, layouts[l], clients[c]);
                    spent[who] = (double)(cpu_ns(pid) - before) / MESSAGES;
                    note(&cpu[who], spent[who]);
                    note(&rate[who], MESSAGES * 1e9 / (double)wall);
                }
                note(&ratio, spent[1] / spent[0]);
            }
            (void)printf("| %d | %u | ", layouts[l], clients[c]);
            print_series(&cpu[0], 0);
            (void)printf(" | ");
            print_series(&cpu[1], 0);
            (void)printf(" | ");
            print_series(&ratio, 2);
            (void)printf(" | %.0f k | %.0f k |\n", median(&rate[0]) / 1e3, median(&rate[1]) / 1e3);
            (void)fflush(stdout);
        }
    }
    stop(reader, SIGKILL);
    stop(server, SIGTERM);
}

/* ---- latency ---- */

static void query(struct ttm_original_client *client)
{
    char answer[TTM_ORIGINAL_SIZE_MAX];
    size_t got = 0;

    send_or_die(client, TTM_ORIGINAL_QUERY, 0, 0);
    while (got < client->layout) {
        const ssize_t n = recv(client->fd, answer, client->layout - got, 0);
        if (n <= 0)
            die("no answer");
        got += (size_t)n;
    }
}

static void bench_latency(int nice_value)
{
    static double wall[100000];
    unsigned count = 0;
    struct ttm_original_client monitor;
    const pid_t server = start_server();
    pid_t loads[8];

    if (setpriority(PRIO_PROCESS, (id_t)server, nice_value) < 0) {
        (void)printf("\n(no right to nice value %d: not measured)\n", nice_value);
        stop(server, SIGTERM);
        return;
    }
    if (ttm_original_client_open(&monitor, legacy_path, TTM_ORIGINAL_V144) < 0)
        die("monitor");
    query(&monitor); /* its layout is known from here on */
    for (unsigned i = 0; i < 8; i++) {
        loads[i] = fork();
        if (loads[i] == 0) {
            while (true)
                load(legacy_path, TTM_ORIGINAL_V112, MESSAGES);
        }
    }
    const uint64_t until_ns = ttm_clock_monotonic_ns() + 5 * TTM_NS_PER_S;
    while (ttm_clock_monotonic_ns() < until_ns && count < 100000) {
        const uint64_t start_ns = ttm_clock_monotonic_ns();
        query(&monitor);
        wall[count++] = (double)(ttm_clock_monotonic_ns() - start_ns) / 1e3;
        sleep_ms(1);
    }
    const struct ttm_status status = ask_status();
    for (unsigned i = 0; i < 8; i++)
        stop(loads[i], SIGKILL);
    qsort(wall, count, sizeof(double), compare);
    (void)printf(
        "\n## A query while 8 clients send at full speed, server at nice %d (%u queries, 1 ms "
        "apart)\n\n| | p50 | p99 | max |\n|---|---|---|---|\n"
        "| in the server, from arrival to answer | %.0f µs | %.0f µs | %.0f µs |\n"
        "| for the asker, by the wall clock | %.0f µs | %.0f µs | %.0f µs |\n",
        nice_value, count, (double)status.counter[TTM_COUNTER_QUERY_P50_NS] / 1e3,
        (double)status.counter[TTM_COUNTER_QUERY_P99_NS] / 1e3,
        (double)status.counter[TTM_COUNTER_QUERY_MAX_NS] / 1e3, wall[count / 2],
        wall[count * 99 / 100], wall[count - 1]);
    ttm_original_client_close(&monitor);
    stop(server, SIGTERM);
}

/* ---- memory ---- */

static uint64_t resident_bytes(pid_t pid)
{
    char path[64];
    unsigned long long total, resident;

    (void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file || fscanf(file, "%llu %llu", &total, &resident) != 2)
        die(path);
    (void)fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void await_lives(uint64_t lives)
{
    while (ask_status().counter[TTM_COUNTER_LIVES] != lives)
        sleep_ms(5);
}

/* A million lives, then a byte on the pipe; on the next byte they are freed, or it is killed. */
static void hold_a_million(int go)
{
    struct ttm_original_client client;
    char byte;

    if (ttm_original_client_open(&client, legacy_path, TTM_ORIGINAL_V72) < 0)
        die("client");
    for (uint64_t i = 0; i < MILLION; i++)
        send_or_die(&client, TTM_ORIGINAL_ALLOC, 0x100000 + i * 2048, 2048);
    (void)!read(go, &byte, 1);
    for (uint64_t i = 0; i < MILLION; i++) /* in another order than they were born */
        send_or_die(&client, TTM_ORIGINAL_FREE, 0x100000 + i * 7919 % MILLION * 2048, 0);
    (void)!read(go, &byte, 1);
    _exit(0);
}

static pid_t start_holder(int *ret_go)
{
    int go[2];

    if (pipe2(go, O_CLOEXEC) < 0)
        die("pipe");
    const pid_t pid = fork();
    if (pid == 0) {
        (void)close(go[1]);
        hold_a_million(go[0]);
    }
    (void)close(go[0]);
    *ret_go = go[1];
    return pid;
}

static void bench_memory(void)
{
    pid_t server = start_server();
    int go;
    const uint64_t start = resident_bytes(server);
    pid_t holder = start_holder(&go);

    await_lives(MILLION);
    const uint64_t full = resident_bytes(server);
    const uint64_t counted = ask_status().counter[TTM_COUNTER_LIFE_BYTES];
    (void)!write(go, "x", 1);
    await_lives(0);
    sleep_ms(50);
    const uint64_t after = resident_bytes(server);
    (void)close(go);
    (void)waitpid(holder, NULL, 0);
    stop(server, SIGTERM);

    server = start_server(); /* a new one, so that its longest turn is of this alone */
    holder = start_holder(&go);
    await_lives(MILLION);
    const uint64_t before_ns = ask_status().counter[TTM_COUNTER_LONGEST_TURN_NS];
    stop(holder, SIGKILL);
    const uint64_t killed_ns = ttm_clock_monotonic_ns();
    while (ask_status().counter[TTM_COUNTER_LIVES] != 0)
        ;
    const uint64_t gone_ns = ttm_clock_monotonic_ns() - killed_ns;
    sleep_ms(200);
    const uint64_t turn_ns = ask_status().counter[TTM_COUNTER_LONGEST_TURN_NS];
    const uint64_t ended = resident_bytes(server);
    (void)close(go);
    stop(server, SIGTERM);

    (void)printf("\n## A million live allocations\n\n| | |\n|---|---|\n"
                 "| memory of the server, empty | %.1f MiB |\n"
                 "| with 1,000,000 live | %.1f MiB: %.1f B each (%.1f by its own count) |\n"
                 "| after all were freed, in another order | %.1f MiB |\n"
                 "| their process killed: totals gone after | %.1f ms |\n"
                 "| longest that anybody was held up meanwhile | %.2f ms (%.2f ms before) |\n"
                 "| memory after that | %.1f MiB |\n",
                 (double)start / 1048576, (double)full / 1048576, (double)(full - start) / MILLION,
                 (double)counted / MILLION, (double)after / 1048576, (double)gone_ns / 1e6,
                 (double)turn_ns / 1e6, (double)before_ns / 1e6, (double)ended / 1048576);
}

/* ---- idle ---- */

static void bench_idle(void)
{
    struct rlimit limit;
    const pid_t server = start_server();
    static struct ttm_original_client clients[1000];

    (void)getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    for (unsigned i = 0; i < 1000; i++) {
        if (ttm_original_client_open(&clients[i], legacy_path, TTM_ORIGINAL_V144) < 0)
            die("idle client");
        send_or_die(&clients[i], TTM_ORIGINAL_ALLOC, 4096 * (i + 1), 4096);
    }
    await_lives(1000);
    const uint64_t before = cpu_ns(server);
    sleep_ms(3000);
    const uint64_t spent = cpu_ns(server) - before;
    (void)printf("\n## 1000 idle clients\n\n%.3f ms of CPU in 3 s.\n", (double)spent / 1e6);
    for (unsigned i = 0; i < 1000; i++)
        ttm_original_client_close(&clients[i]);
    stop(server, SIGTERM);
}

int main(int argc, char **argv)
{
    const unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 9;

    if (argc < 2 || rounds == 0 || rounds > ROUNDS_MAX) {
        (void)fprintf(stderr, "usage: bench_server TT-MEM [ROUNDS]\n");
        return 2;
    }
    tt_mem = argv[1];
    if (!mkdtemp(folder))
        die("mkdtemp");
    (void)snprintf(native_path, sizeof(native_path), "%s/n", folder);
    (void)snprintf(legacy_path, sizeof(legacy_path), "%s/l", folder);
    (void)snprintf(reader_path, sizeof(reader_path), "%s/r", folder);
    bench_cost(rounds);
    bench_latency(0);
    bench_latency(-5); /* as the systemd unit sets it */
    bench_memory();
    bench_idle();
    (void)unlink(reader_path);
    (void)rmdir(folder);
    return 0;
}
