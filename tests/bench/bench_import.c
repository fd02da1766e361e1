/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast text logs become recordings.
 *
 *   bench_import [MEGABYTES]
 *
 * Prints a Markdown table; judges nothing. Logs of a made-up decoder: 4,096 places that are used
 * again and again on 8 devices, 320 call stacks of 8 frames. The log is in memory, the
 * recording goes to a file in /tmp and is compressed by the same thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "logs/debug_block.h"
#include "logs/import.h"
#include "recording/recorder.h"

#define ROUNDS 5
#define PLACES 4096
#define STACKS 320
#define PATH "/tmp/ttm-bench-import.ttmem"

static void must(int is_fine, const char *what)
{
    if (is_fine)
        return;
    (void)fprintf(stderr, "bench_import: %s\n", what);
    exit(1);
}

static void make_server_log(struct ttm_text *out, size_t length)
{
    static unsigned sizes[PLACES];

    for (uint64_t i = 0; out->length < length; i++) {
        const unsigned place = (unsigned)(i * 7919 % PLACES), device = place % 8;
        if (sizes[place])
            ttm_text_format(out, "✗ [PID 4242] Freed buffer 0x%x on device %u (%u bytes, FINAL)\n",
                            0x100000 + place * 2048, device, sizes[place]);
        sizes[place] = 2048 * (1 + (unsigned)(i % 37));
        ttm_text_format(out,
                        "✓ [PID 4242] Allocated %u bytes of %s on device %u (buffer_id=0x%x)\n",
                        sizes[place], place % 3 ? "L1" : "DRAM", device, 0x100000 + place * 2048);
    }
}

static void make_debug_log(struct ttm_text *out, size_t length)
{
    static struct ttm_debug_block live[PLACES];
    static char stacks[STACKS][1024];

    for (unsigned i = 0; i < STACKS; i++) {
        for (unsigned k = 0; k < 8; k++) {
            const size_t at = strlen(stacks[i]);
            (void)snprintf(stacks[i] + at, sizeof(stacks[i]) - at,
                           "    libtt_metal.so: tt::tt_metal::operations::step_%u::run_%u()\n", i,
                           k);
        }
    }
    for (uint64_t i = 0; out->length < length; i++) {
        const unsigned place = (unsigned)(i * 7919 % PLACES);
        struct ttm_debug_block *block = &live[place];
        const char *stack = stacks[i % STACKS];
        if (block->bytes > 0) {
            block->title = TTM_DEBUG_DEALLOCATED;
            ttm_debug_block_append(out, block);
        }
        *block = (struct ttm_debug_block){
            .second = (uint32_t)(i / 20000 % 86400),
            .device = place % 8,
            .region = place % 3 ? TTM_REGION_L1 : TTM_REGION_DRAM,
            .address = 0x100000 + place * 2048,
            .bytes = 2048 * (1 + i % 37),
            .pointer = 0x7f8a4c000000 + (i * 31 % 65536) * 64,
            .stack = {stack, (uint16_t)strlen(stack)},
        };
        ttm_debug_block_append(out, block);
    }
}

/* Megabytes a second of CPU time. */
static double import_once(const struct ttm_text *log, enum ttm_log_format format, uint64_t *events)
{
    const struct ttm_recorder_options recording = {
        .path = PATH, .now_ns = 1, .now_wall_ns = 1, .seed = 7, .is_patient = true};
    struct ttm_recorder *recorder;
    struct ttm_import_result result;
    size_t taken;

    (void)unlink(PATH);
    const uint64_t start_ns = ttm_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
    must(ttm_recorder_open(&recording, &recorder) == 0, "cannot write " PATH);
    const struct ttm_import_options options = {.format = format,
                                               .name = "bench.log",
                                               .written_wall_ns = 1700000000 * TTM_NS_PER_S,
                                               .seed = 5,
                                               .encoder = ttm_recorder_encoder(recorder)};
    struct ttm_import *import = ttm_import_new(&options);
    must(import != NULL, "memory is short");
    for (size_t at = 0; at < log->length; at += taken) {
        const size_t left = log->length - at;
        const size_t n = left < TTM_IMPORT_WINDOW ? left : TTM_IMPORT_WINDOW;
        must(ttm_import_feed(import, log->data + at, n, n == left, &taken) == 0 && taken > 0,
             "the import failed");
    }
    must(ttm_import_finish(import, &result) == 0 && result.broken == 0, "the import failed");
    ttm_import_free(import);
    must(ttm_recorder_close(recorder, NULL) == 0, "cannot write " PATH);
    *events = result.events;
    const uint64_t took_ns = ttm_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - start_ns;
    return (double)log->length / 1e6 / ((double)took_ns / 1e9);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void measure(const char *name, const struct ttm_text *log, enum ttm_log_format format)
{
    double rates[ROUNDS];
    uint64_t events = 0;

    for (unsigned i = 0; i < ROUNDS; i++)
        rates[i] = import_once(log, format, &events);
    qsort(rates, ROUNDS, sizeof(rates[0]), by_size);
    printf("| %s | %.0f | %.1f | %.0f (%.0f–%.0f) |\n", name, (double)log->length / 1e6,
           (double)events / 1e6, rates[ROUNDS / 2], rates[0], rates[ROUNDS - 1]);
}

int main(int argc, char **argv)
{
    const size_t length = (argc > 1 ? strtoul(argv[1], NULL, 10) : 100) * 1000000;
    struct ttm_text log;

    printf("| log | MB | million events | MB/s of CPU time |\n|---|---|---|---|\n");
    ttm_text_init(&log);
    make_server_log(&log, length);
    measure("server's output", &log, TTM_LOG_FORMAT_SERVER);
    ttm_text_clear(&log);
    make_debug_log(&log, length);
    measure("debug log", &log, TTM_LOG_FORMAT_DEBUG);
    must(!ttm_text_failed(&log), "memory is short");
    ttm_text_done(&log);
    (void)unlink(PATH);
    return 0;
}
