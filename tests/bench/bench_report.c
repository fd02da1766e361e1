/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a report and a diff cost: seconds of CPU per million events, reading included.
 *
 *   bench_report [EVENTS]
 *
 * Prints a Markdown table; judges nothing. A made-up decoder with 320 lines of code:
 * outputs that live for a few operations, 2,000 weights, a leak in each token; on one
 * device and on a mesh of 32, and with names that differ for each allocation.
 */
#include "../unit/recording_story.h"

#include <sys/resource.h>
#include <unistd.h>

#include "analysis/diff.h"
#include "analysis/report.h"
#include "base/clock.h"
#include "recording/recorder.h"

#define LINES 320
#define SLOTS 12
#define WEIGHTS 2000
#define ROUNDS 5

static uint64_t cpu_ns(void)
{
    return ttm_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static void write_file(const char *path, uint16_t devices, uint64_t events)
{
    const struct ttm_recorder_options options = {
        .path = path, .now_ns = TTM_NS_PER_S, .now_wall_ns = 1700000000 * TTM_NS_PER_S, .seed = 7};
    struct ttm_recorder *recorder;
    uint32_t lines[LINES];
    uint64_t slots[SLOTS] = {0};

    (void)unlink(path);
    story_must(ttm_recorder_open(&options, &recorder), path);
    struct story story =
        story_begin(ttm_recorder_encoder(recorder), 1, options.now_ns, 1, "python3 decode.py");
    story_devices(&story, devices);
    for (unsigned i = 0; i < LINES; i++) {
        char python[64];
        (void)snprintf(python, sizeof(python), "model.py:%u:forward|decode.py:61:main", i + 10);
        const struct story_words words = {.python = python,
                                          .operation = "ttnn.matmul",
                                          .native_note = story_native(&story, 24, 4096 * i)};
        lines[i] = story_origin(&story, &words);
    }
    for (unsigned i = 0; i < WEIGHTS; i++)
        story_birth(&story, lines[0], TTM_REGION_DRAM, 1 << 18);
    for (uint64_t i = 0; i < events / 2; i++) {
        uint64_t *slot = &slots[(i * 7 + i / 5) % SLOTS];
        const uint8_t region = i % 3 == 0 ? TTM_REGION_DRAM : TTM_REGION_L1;
        if (*slot && i % LINES != 100)
            story_free(&story, *slot);
        story.next_address[region] = 1 << 28 | (i * 7919 % 977) << 16;
        *slot = story_birth(&story, lines[i % LINES], region, 2048ull * (1 + i % 37));
        story_wait(&story, 50000);
        if (i % 64 == 0)
            (void)ttm_recorder_tick(recorder, story.now_ns, story.now_ns);
        if (i % 4096 == 0) /* the disk of a real run has more time */
            (void)usleep(2000);
    }
    story_exit(&story, 0);
    story_must(ttm_recorder_close(recorder, NULL), "close");
}

/* So many processes with one allocation each. */
static void write_crowd(const char *path, uint32_t count)
{
    const struct ttm_recorder_options options = {
        .path = path, .now_ns = TTM_NS_PER_S, .now_wall_ns = 1700000000 * TTM_NS_PER_S, .seed = 7};
    struct ttm_recorder *recorder;

    (void)unlink(path);
    story_must(ttm_recorder_open(&options, &recorder), path);
    for (uint32_t i = 1; i <= count; i++) {
        struct story story = story_begin(ttm_recorder_encoder(recorder), i, options.now_ns,
                                         (int32_t)(1000 + i), "worker");
        story_devices(&story, 1);
        story_birth(&story, 0, TTM_REGION_DRAM, 1024);
        if (i % 64 == 0)
            (void)ttm_recorder_tick(recorder, options.now_ns, options.now_ns);
        if (i % 4096 == 0)
            (void)usleep(2000);
    }
    story_must(ttm_recorder_close(recorder, NULL), "close");
}

static void open_or_die(const char *path, struct ttm_recording **ret)
{
    story_must(ttm_recording_open(path, ret), path);
}

static double seconds_to_read(const char *path)
{
    const struct ttm_recorded *record;
    struct ttm_recording *recording;
    const uint64_t start = cpu_ns();

    open_or_die(path, &recording);
    while (ttm_recording_next(recording, &record) != 0)
        ;
    ttm_recording_close(recording);
    return (double)(cpu_ns() - start) / 1e9;
}

static void read_report(const char *path, struct ttm_report *ret)
{
    const struct ttm_report_options options = {.seed = 3};
    struct ttm_recording *recording;

    open_or_die(path, &recording);
    story_must(ttm_report_read(recording, &options, ret), "report");
    ttm_recording_close(recording);
}

static double seconds_to_report(const char *path, uint64_t *ret_records)
{
    struct ttm_report report;
    const uint64_t start = cpu_ns();

    read_report(path, &report);
    *ret_records = report.records;
    ttm_report_done(&report);
    return (double)(cpu_ns() - start) / 1e9;
}

/* Of a recording with itself: both sides are read. */
static double seconds_to_diff(const char *path)
{
    struct ttm_report from, to;
    struct ttm_diff diff;
    const uint64_t start = cpu_ns();

    read_report(path, &from);
    read_report(path, &to);
    story_must(
        ttm_diff_make(&(struct ttm_diff_side){&from, -1}, &(struct ttm_diff_side){&to, -1}, &diff),
        "diff");
    ttm_diff_done(&diff);
    ttm_report_done(&from);
    ttm_report_done(&to);
    return (double)(cpu_ns() - start) / 1e9;
}

static void bench(const char *name, uint16_t devices, uint64_t events)
{
    static const char path[] = "bench_report.ttmem";
    double read = 1e9, whole = 1e9, both = 1e9;
    uint64_t records = 1;
    struct rusage usage;

    write_file(path, devices, events);
    for (unsigned i = 0; i < ROUNDS; i++) {
        const double a = seconds_to_read(path), b = seconds_to_report(path, &records);
        read = a < read ? a : read;
        whole = b < whole ? b : whole;
        const double c = seconds_to_diff(path);
        both = c < both ? c : both;
    }
    (void)getrusage(RUSAGE_SELF, &usage);
    printf("| %s | %llu | %.3f | %.3f | %.3f | %ld |\n", name, (unsigned long long)records,
           read * 1e6 / (double)records, whole * 1e6 / (double)records,
           both * 1e6 / (2 * (double)records), usage.ru_maxrss / 1024);
    (void)unlink(path);
}

/* What a process costs must not depend on how many there are. */
static void bench_crowd(uint32_t count)
{
    static const char path[] = "bench_report.ttmem";
    double seconds = 1e9;

    write_crowd(path, count);
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t records;
        const double s = seconds_to_report(path, &records);
        seconds = s < seconds ? s : seconds;
    }
    printf("| %u | %.1f |\n", count, seconds * 1e6 / count);
    (void)unlink(path);
}

int main(int argc, char **argv)
{
    const uint64_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;

    printf("| load | records | reading, s/M | report, s/M | diff of two, s/M | memory, MiB |\n"
           "|---|---|---|---|---|---|\n");
    bench("one device", 1, events);
    bench("mesh of 32", 32, events);
    printf("\n| processes | report, µs a process |\n|---|---|\n");
    bench_crowd(1024);
    bench_crowd(16384);
    return 0;
}
