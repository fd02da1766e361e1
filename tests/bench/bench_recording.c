/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a recording costs: bytes and nanoseconds an event, to write and to read.
 *
 *   bench_recording [EVENTS]
 *
 * Prints a Markdown table; judges nothing. A made-up decoder: layers of operations
 * that each allocate an output and free an input, addresses as a first-fit
 * allocator gives them, ids that count up, about 55 us between operations with
 * jitter. Then the same less even: each operation is dispatched too, and every fifth
 * address is another than last time. Then with sizes and addresses that differ every
 * time, which is the worst case. Making up the events is part of what is measured.
 * Times are CPU time of the whole process, the recorder's thread included.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "recording/recorder.h"
#include "recording/recording.h"

#define OPERATIONS 320 /* of one token */
#define LIVE_FIRST 2000
#define SLOTS 12 /* outputs that are alive at once */
#define ROUNDS 5

struct shape {
    const char *name;
    bool is_uneven; /* dispatches, and some addresses at random */
    bool is_random; /* sizes and addresses */
    unsigned processes;
};

static uint64_t random_state = 88172645463325252ull;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static void die(const char *what, int error)
{
    (void)fprintf(stderr, "bench_recording: %s: %s\n", what, strerror(-error));
    exit(1);
}

static uint64_t cpu_ns(void)
{
    return ttm_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* One process of the workload. */
struct worker {
    uint32_t number;
    uint64_t serial;
    uint64_t id;
    uint64_t slots[SLOTS]; /* serials */
    uint64_t operation;
};

static void birth(struct ttm_encoder *enc, struct worker *worker, const struct shape *shape,
                  uint64_t time_ns, unsigned op)
{
    const uint64_t bytes =
        shape->is_random ? 32 * (1 + next_random() % 100000) : 2048ull * (1 + op % 37);
    const bool is_elsewhere = shape->is_uneven && next_random() % 5 == 0;
    const struct ttm_recorded_life life = {
        .process = worker->number,
        .serial = ++worker->serial,
        .birth_ns = time_ns,
        .id = ++worker->id,
        .address = shape->is_random ? 32 * (next_random() % 30000000)
                   : is_elsewhere   ? 2048 * (next_random() % 500)
                                    : 4096ull * (op % 977 + 1),
        .bytes = bytes,
        .footprint_bytes = (bytes + 24575) / 24576 * 24576,
        .origin = 2000 + op,
        .region = op % 3 == 0,
    };
    const int r = ttm_encoder_birth(enc, &life);
    if (r < 0)
        die("birth", r);
}

/* Notes of the size that real ones have: a tuple, a Python stack, a native stack. */
static void begin_worker(struct ttm_encoder *enc, struct worker *worker, const struct shape *shape,
                         uint64_t time_ns)
{
    const struct ttm_recorded_process seen = {.pid = (int32_t)(4242 + worker->number),
                                              .command = "python3 decode.py",
                                              .command_length = 17,
                                              .source = 1};
    uint8_t bytes[300];

    if (ttm_encoder_process(enc, time_ns, worker->number, &seen) < 0)
        die("process", -EINVAL);
    for (uint32_t i = 0; i < OPERATIONS * 3; i++) {
        const size_t length = i % 3 == 0 ? 24 : i % 3 == 1 ? 64 : 300;
        for (size_t k = 0; k < length; k++)
            bytes[k] = (uint8_t)(k % 8 < 3 ? next_random() % 64 : k % 8);
        const struct ttm_recorded_note note = {
            .number = 2000 + i, .kind = 3, .bytes = bytes, .length = length};
        if (ttm_encoder_note(enc, worker->number, &note) < 0)
            die("note", -EINVAL);
    }
    for (unsigned i = 0; i < LIVE_FIRST; i++)
        birth(enc, worker, shape, time_ns + i * 20000ull, i % OPERATIONS);
}

/* One operation: an output, and the input that is no longer needed. Returns the events. */
static unsigned step(struct ttm_encoder *enc, struct worker *worker, const struct shape *shape,
                     uint64_t time_ns)
{
    const unsigned op = (unsigned)(worker->operation++ % OPERATIONS);
    uint64_t *slot = &worker->slots[(op * 7 + op / 5) % SLOTS];

    birth(enc, worker, shape, time_ns, op);
    if (*slot != 0 && ttm_encoder_end(enc, time_ns + 3000 + next_random() % 2000, worker->number,
                                      *slot, TTM_ENDED_FREED) < 0)
        die("end", -EINVAL);
    *slot = worker->serial;
    if (!shape->is_uneven)
        return 2;
    const struct ttm_recorded_dispatch dispatch = {.program = 5000 + op};
    if (ttm_encoder_dispatch(enc, time_ns + 9000 + next_random() % 3000, worker->number,
                             &dispatch) < 0)
        die("dispatch", -EINVAL);
    return 3;
}

static double write_file(const char *path, const struct shape *shape, uint64_t events)
{
    const struct ttm_recorder_options options = {
        .path = path, .now_ns = TTM_NS_PER_S, .now_wall_ns = 1700000000 * TTM_NS_PER_S, .seed = 7};
    static struct worker workers[16];
    struct ttm_recorder *rec;
    uint64_t time_ns = options.now_ns;
    int r;

    (void)unlink(path);
    memset(workers, 0, sizeof(workers));
    r = ttm_recorder_open(&options, &rec);
    if (r < 0)
        die(path, r);
    struct ttm_encoder *enc = ttm_recorder_encoder(rec);
    for (unsigned i = 0; i < shape->processes; i++) {
        workers[i].number = i + 1;
        begin_worker(enc, &workers[i], shape, time_ns);
    }
    uint64_t start = 0;
    for (uint64_t i = 0, done = 0; done < events; i++) {
        time_ns += (30000 + next_random() % 50000) / shape->processes;
        done += step(enc, &workers[i / 8 % shape->processes], shape, time_ns);
        if (i == 0)
            start = cpu_ns();
        if (i % 64 == 0)
            (void)ttm_recorder_tick(rec, time_ns, time_ns + options.now_wall_ns);
        /* The disk of a real run has 55 us for each event: here it gets what it needs. */
        if (i % 4096 == 0) {
            const struct timespec pause = {.tv_nsec = 2000000};
            (void)nanosleep(&pause, NULL);
        }
    }
    struct ttm_recorder_status status;
    ttm_recorder_status(rec, &status);
    r = ttm_recorder_close(rec, NULL);
    if (r < 0)
        die("close", r);
    if (status.lost_events > 0)
        (void)fprintf(stderr, "bench_recording: %llu events lost\n",
                      (unsigned long long)status.lost_events);
    return (double)(cpu_ns() - start) / (double)events;
}

static double read_file(const char *path, uint64_t events)
{
    const struct ttm_recorded *record;
    struct ttm_recording *rec;
    struct ttm_recording_info info;
    uint64_t sum = 0;
    int r = ttm_recording_open(path, &rec);

    if (r < 0)
        die(path, r);
    const uint64_t start = cpu_ns();
    while ((r = ttm_recording_next(rec, &record)) > 0) {
        if (record->life)
            sum += record->life->bytes;
    }
    const uint64_t spent = cpu_ns() - start;
    ttm_recording_info(rec, &info);
    if (r < 0 || !info.is_complete || sum == 0)
        die("read", r < 0 ? r : -EBADMSG);
    ttm_recording_close(rec);
    return (double)spent / (double)events;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void run(const char *path, const struct shape *shape, uint64_t events)
{
    double writes[ROUNDS], reads[ROUNDS];
    struct rusage usage;
    struct stat st;

    for (int i = 0; i < ROUNDS; i++) {
        writes[i] = write_file(path, shape, events);
        reads[i] = read_file(path, events);
    }
    qsort(writes, ROUNDS, sizeof(writes[0]), compare);
    qsort(reads, ROUNDS, sizeof(reads[0]), compare);
    if (stat(path, &st) < 0)
        die(path, -errno);
    (void)getrusage(RUSAGE_SELF, &usage);
    printf("| %s | %.2f | %.0f (%.0f-%.0f) | %.0f (%.0f-%.0f) | %ld |\n", shape->name,
           (double)st.st_size / (double)events, writes[ROUNDS / 2], writes[0], writes[ROUNDS - 1],
           reads[ROUNDS / 2], reads[0], reads[ROUNDS - 1], usage.ru_maxrss / 1024);
}

int main(int argc, char **argv)
{
    static const struct shape shapes[] = {
        {"decode loop", false, false, 1},
        {"8 processes at once", false, false, 8},
        {"less even, with dispatches", true, false, 1},
        {"random sizes and addresses", false, true, 1},
    };
    const uint64_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    char path[] = "/tmp/ttm-bench-recording-XXXXXX";
    const int fd = mkstemp(path);

    if (fd < 0)
        die(path, -errno);
    (void)close(fd);
    printf("%llu events, median of %d (least-most), CPU time\n\n", (unsigned long long)events,
           ROUNDS);
    printf("| workload | bytes/event | ns/event to write | ns/event to read | peak MiB |\n");
    printf("|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        run(path, &shapes[i], events);
    (void)unlink(path);
    return 0;
}
