/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attacks by what a tracked process says through shared memory, which is written here by hand: the
 * segment is one of src/ring, and what it says is nothing that libttmem would.
 */
#include "hostile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "model/cb_map.h"
#include "wire/attach.h"
#include "wire/frame.h"
#include "wire/note.h"
#include "wire/origin.h"

#define DEVICES 1024
#define WIDE_SET 1022
#define SETS 4200       /* more than the server has ever kept */
#define CORE_NOTES 8192 /* twice as many as the server keeps */
#define LIVE_FEW 3000
#define LIVE_CBS 16000 /* of one process */
#define LIVE_MILLION 1000000
#define MAPPINGS 64000 /* the usual limit is 65,530 */
#define CROWD 600
#define CROWD_STEP 50   /* that are begun in one go */
#define LOCK_HOLDERS 12 /* one after the other */
#define FULL_RINGS 32
#define THREADS 4
#define FULL_MS 400 /* a ring that is full for so long belongs to a connection that is closed */

/* ---- a segment ---- */

void hostile_segment_new(struct hostile_segment *segment)
{
    *segment = (struct hostile_segment){.fd = -1};
    if (ttm_producer_new(&segment->producer) < 0)
        hostile_die("cannot make a segment");
    segment->ring = ttm_producer_claim(&segment->producer, (uint32_t)getpid());
    if (!segment->ring)
        hostile_die("a new segment has no ring");
}

void hostile_segment_done(struct hostile_segment *segment)
{
    if (segment->fd >= 0)
        (void)close(segment->fd);
    ttm_producer_done(&segment->producer);
    segment->fd = -1;
}

void hostile_segment_attach(struct hostile_segment *segment)
{
    if (segment->fd >= 0)
        (void)close(segment->fd);
    segment->fd = hostile_greet();
    (void)hostile_attach(segment->fd, segment->producer.fd.fd, segment->producer.sleep_fd.fd);
}

uint64_t hostile_segment_push(struct hostile_segment *segment, struct ttm_record record)
{
    record.serial = record.serial != 0 ? record.serial : ++segment->serial;
    record.time_ns = ttm_clock_monotonic_ns();
    if (segment->serial % 1024 == 0 && !segment->ignores_tell)
        hostile_segment_answer(segment);
    uint64_t tail;
    struct ttm_record *slot;
    for (unsigned waits = 1; !(slot = ttm_ring_next(segment->ring, &tail)); waits++) {
        hostile_sleep_ms(1);
        hostile_segment_answer(segment);
        if (waits % FULL_MS == 0)
            hostile_segment_attach(segment);
    }
    *slot = record;
    ttm_ring_publish(&segment->producer, segment->ring, tail);
    return record.serial;
}

void hostile_segment_answer(struct hostile_segment *segment)
{
    uint8_t bytes[4096];
    ssize_t n = segment->fd >= 0 ? recv(segment->fd, bytes, sizeof(bytes), MSG_DONTWAIT) : 0;
    struct ttm_frame frame;
    long size;

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        hostile_sleep_ms(1);
        hostile_segment_attach(segment);
        return;
    }
    for (const uint8_t *at = bytes; n > 0; at += size, n -= size) {
        size = ttm_frame_parse(at, (size_t)n, sizeof(bytes), &frame);
        if (size <= 0)
            return;
        if (frame.type == TTM_FRAME_TELL && !segment->ignores_tell)
            (void)hostile_say(segment->fd, TTM_FRAME_TOLD_END, frame.payload, TTM_TOLD_HEAD_SIZE);
    }
}

/* The note of a set of devices from 'first' on. */
static uint32_t note_devices(struct hostile_segment *segment, uint16_t first, uint16_t count)
{
    uint8_t bytes[2 * DEVICES];

    for (uint16_t i = 0; i < count; i++)
        put_le16(bytes + 2 * i, (uint16_t)((first + i) % DEVICES));
    return ttm_producer_note(&segment->producer, TTM_NOTE_DEVICES, bytes, 2u * count);
}

static struct ttm_record allocation_on(uint32_t devices, uint64_t id)
{
    return (struct ttm_record){
        .id = id,
        .address = id * 4096,
        .bytes = 1000,
        .footprint_bytes = 2048,
        .devices = devices,
        .banks = 8,
        .op = TTM_RECORD_BIRTH,
    };
}

static void push_free(struct hostile_segment *segment, uint64_t serial)
{
    const uint64_t last = segment->serial;

    (void)hostile_segment_push(segment,
                               (struct ttm_record){.serial = serial, .op = TTM_RECORD_END});
    segment->serial = last;
}

/* ---- a process whose memory map is locked ---- */

static void *read_locked_page(void *argument)
{
    char byte;

    (void)pread(*(const int *)argument, &byte, 1, 0);
    return NULL;
}

static void *map_locked_page(void *argument)
{
    hostile_sleep_ms(50); /* the page is being read by now */
    (void)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, *(const int *)argument, 0);
    return NULL;
}

/* Returns when another thread has the lock for writing; from then on this thread must not need it. */
static void lock_own_map(void)
{
    static pthread_t threads[2];
    static int fds[2];
    char name[32];

    (void)snprintf(name, sizeof(name), "lock-%d", (int)getpid());
    fds[0] = hostile_fuse_open(name, O_RDONLY);
    fds[1] = hostile_fuse_open(name, O_RDWR);
    if (fds[0] < 0 || fds[1] < 0 ||
        pthread_create(&threads[0], NULL, read_locked_page, &fds[0]) != 0 ||
        pthread_create(&threads[1], NULL, map_locked_page, &fds[1]) != 0)
        hostile_die("cannot lock the memory map");
    hostile_sleep_ms(150);
}

/* Reports before or after; the server wants to know who that is, or whether it is still there. */
static void hold_map_lock(unsigned number)
{
    static struct hostile_segment first, second;

    hostile_segment_new(&first);
    hostile_segment_new(&second);
    (void)hostile_segment_push(&first, allocation_on(0, 1));
    (void)hostile_segment_push(&second, allocation_on(0, 1));
    const int native = hostile_greet(), original = hostile_connect(HOSTILE_LEGACY);
    if (number % 4 >= 2) {
        hostile_segment_attach(&first);
        hostile_sleep_ms(50);
    }
    if (number % 4 == 3) { /* it is to look whether the program has gone, by itself */
        (void)close(first.fd);
        (void)close(native);
        (void)close(original);
    }
    lock_own_map();
    if (number % 4 == 0)
        (void)hostile_attach(native, first.producer.fd.fd, first.producer.sleep_fd.fd);
    else if (number % 4 == 1)
        (void)hostile_report_original(original, false, 0, 1, 100);
    else if (number % 4 == 2) /* another program in the same process */
        (void)hostile_attach(native, second.producer.fd.fd, second.producer.sleep_fd.fd);
    hostile_count();
    for (;;)
        pause();
}

static void lock_memory_maps(unsigned number)
{
    for (unsigned i = 0; i < LOCK_HOLDERS; i++) {
        if (hostile_fork() == 0)
            hold_map_lock(number + i);
        hostile_sleep_ms(500);
    }
    for (;;)
        pause();
}

/* ---- a process with very many mappings ---- */

static void have_many_mappings(unsigned number)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct hostile_segment segment;

    /* The segment is mapped first: it comes last in /proc/PID/maps, and all lines before it are read. */
    hostile_segment_new(&segment);
    char *region = mmap(NULL, MAPPINGS * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (region == MAP_FAILED)
        hostile_die("cannot map memory");
    for (size_t i = 0; i < MAPPINGS; i += 2)
        (void)mprotect(region + i * page, page, PROT_READ);
    while (number == 0) /* this one never connects */
        pause();
    for (;;) {
        hostile_segment_attach(&segment);
        (void)hostile_segment_push(&segment, allocation_on(0, 1));
        hostile_sleep_ms(20);
        (void)close(segment.fd);
        segment.fd = -1;
        hostile_count();
        hostile_sleep_ms(3000);
    }
}

/* ---- circular buffers ---- */

/* All cores, 256 times over; notes with the same 'salt' are alike. */
static uint32_t note_cores(struct hostile_segment *segment, uint32_t salt, bool is_refused)
{
    struct ttm_core_range ranges[TTM_CORE_RANGES_MAX];
    uint8_t bytes[TTM_CORE_RANGES_MAX * TTM_CORE_RANGE_SIZE];

    for (uint32_t i = 0; i < TTM_CORE_RANGES_MAX; i++)
        ranges[i] = (struct ttm_core_range){0, 0, TTM_CORE_GRID - 1, TTM_CORE_GRID - 1};
    ranges[0].start_x = (uint8_t)(salt % TTM_CORE_GRID);
    ranges[0].start_y = (uint8_t)(salt / TTM_CORE_GRID % TTM_CORE_GRID);
    if (is_refused) /* found by the last range */
        ranges[TTM_CORE_RANGES_MAX - 1].end_x = 255;
    ttm_cores_note_encode(ranges, TTM_CORE_RANGES_MAX, bytes);
    return ttm_producer_note(&segment->producer, TTM_NOTE_CORES, bytes, sizeof(bytes));
}

static struct ttm_record circular_buffer(uint32_t devices, uint32_t cores, uint64_t program)
{
    return (struct ttm_record){
        .id = program,
        .address = 4096 * (program % 64), /* they overlap */
        .bytes = cores,
        .footprint_bytes = 1u << 20,
        .devices = devices,
        .op = TTM_RECORD_BIRTH,
        .region = TTM_REGION_CB,
        .flags = TTM_RECORD_CORES | TTM_RECORD_PROGRAM,
    };
}

/* More notes of cores than are kept, and some that are refused: each one is read again and again. */
static void refer_to_many_cores(void)
{
    static uint32_t notes[CORE_NOTES];
    static uint64_t live[LIVE_FEW]; /* what is freed at once is taken in by a shorter way */
    struct hostile_segment segment;

    hostile_segment_new(&segment);
    for (uint32_t i = 0; i < CORE_NOTES; i++)
        notes[i] = note_cores(&segment, i, i % 4 == 3);
    hostile_segment_attach(&segment);
    for (uint64_t i = 0;; i++) {
        uint64_t *place = &live[i % LIVE_FEW];
        if (*place != 0)
            push_free(&segment, *place);
        *place = hostile_segment_push(&segment, circular_buffer(0, notes[i % CORE_NOTES], i));
        hostile_count();
    }
}

/* A set of a single core, or of a row or a column, so that no two cores have the same sets. */
static uint32_t note_few_cores(struct hostile_segment *segment, uint32_t number)
{
    const uint8_t x = (uint8_t)(number % TTM_CORE_GRID),
                  y = (uint8_t)(number / TTM_CORE_GRID % TTM_CORE_GRID);
    const struct ttm_core_range ranges[] = {
        {x, y, x, y}, {x, 0, x, TTM_CORE_GRID - 1}, {0, y, TTM_CORE_GRID - 1, y}};
    uint8_t bytes[3 * TTM_CORE_RANGE_SIZE];

    ttm_cores_note_encode(ranges, 3, bytes);
    return ttm_producer_note(&segment->producer, TTM_NOTE_CORES, bytes, sizeof(bytes));
}

/* Thousands of circular buffers on nearly every device, and programs sent to all of them. */
static void place_many_buffers(void)
{
    struct hostile_segment segment;

    hostile_segment_new(&segment);
    segment.ignores_tell = true; /* else a resync would free all that is live */
    const uint32_t devices = note_devices(&segment, 0, WIDE_SET);
    hostile_segment_attach(&segment);
    for (uint32_t i = 0; i < LIVE_CBS; i++)
        (void)hostile_segment_push(&segment,
                                   circular_buffer(devices, note_few_cores(&segment, i % 4096), i));
    for (uint64_t i = 0;; i++) {
        struct ttm_segment *header = segment.producer.segment;
        for (uint32_t d = 0; d < WIDE_SET; d++) {
            struct ttm_device_cell *cell = &header->devices[d];
            atomic_store(&cell->programs[i % TTM_SEGMENT_PROGRAMS], i % LIVE_CBS);
            atomic_fetch_add(&cell->dispatched, 1);
        }
        const uint32_t cores = note_few_cores(&segment, (uint32_t)i % 4096);
        push_free(&segment, hostile_segment_push(&segment, circular_buffer(devices, cores, i)));
        hostile_segment_answer(&segment);
        hostile_count();
        hostile_sleep_ms(1);
        if (cores == 0) /* the room for notes is full */
            segment.producer.notes_used = 0;
    }
}

static void make_circular_buffers(unsigned number)
{
    if (number == 0)
        refer_to_many_cores();
    else
        place_many_buffers();
}

/* ---- allocations on very many devices ---- */

/* Some are live for a while and some end at once; one process never answers a request for a resync. */
static void allocate_widely(unsigned number)
{
    static uint64_t live[LIVE_FEW];
    struct hostile_segment segment;

    hostile_segment_new(&segment);
    segment.ignores_tell = number == 1;
    const uint32_t devices = note_devices(&segment, (uint16_t)number, WIDE_SET);
    hostile_segment_attach(&segment);
    for (uint64_t i = 0;; i++) {
        uint64_t *place = &live[i % LIVE_FEW];
        struct ttm_record record = allocation_on(devices, i + 1);
        record.region = (uint8_t)(i % 2);
        record.footprint_bytes = 2048 * (1 + i % 1000); /* each one is a peak of its own */
        if (*place != 0)
            push_free(&segment, *place);
        *place = hostile_segment_push(&segment, record);
        hostile_count();
    }
}

/* Failed allocations, marks, new peaks, names and frees of what is not there, notes that do not exist. */
static void report_events(unsigned number)
{
    static const uint8_t ops[] = {TTM_RECORD_FAILURE, TTM_RECORD_PEAKS,    TTM_RECORD_NAMED,
                                  TTM_RECORD_MARK,    TTM_RECORD_REPLACED, TTM_RECORD_DEVICE,
                                  TTM_RECORD_KEPT,    TTM_RECORD_CLOSED,   255};
    struct hostile_segment segment;

    hostile_segment_new(&segment);
    segment.ignores_tell = true; /* else a resync would free all that is live */
    const uint32_t devices = note_devices(&segment, 0, WIDE_SET);
    hostile_segment_attach(&segment);
    for (uint64_t i = 0; i < 50000; i++)
        (void)hostile_segment_push(&segment, allocation_on(i % 8 ? 0 : devices, i + 1));
    for (uint64_t i = 0;; i++) {
        struct ttm_record record = allocation_on(i % 3 ? devices : 0x7fffffff, 1ull << 40);
        /* One process has failures alone, the other all of them. */
        record.op = number == 0 ? TTM_RECORD_FAILURE : ops[i % sizeof(ops)];
        record.origin = i % 2 ? 0 : (uint32_t)(TTM_NOTE_FIRST + i);
        record.serial = record.op == TTM_RECORD_NAMED ? 1 + i % 50000 : 0;
        (void)hostile_segment_push(&segment, record);
        hostile_count();
    }
}

/* ---- origins ---- */

static struct ttm_note_text text_of(const char *bytes, size_t length)
{
    return (struct ttm_note_text){.bytes = bytes, .length = (uint16_t)length};
}

/* 64 frames, each in a file with as long a name as there may be. */
static uint32_t note_python(struct hostile_segment *segment)
{
    struct ttm_python_stack_note stack = {.count = TTM_PYTHON_FRAMES_MAX};
    uint8_t code_bytes[TTM_CODE_NOTE_SIZE_MAX], stack_bytes[TTM_PYTHON_STACK_NOTE_SIZE_MAX];
    char name[TTM_CODE_FILE_MAX];

    memset(name, 'p', sizeof(name));
    for (uint16_t i = 0; i < TTM_PYTHON_FRAMES_MAX; i++) {
        const struct ttm_code_note code = {.first_line = 1,
                                           .file = text_of(name, TTM_CODE_FILE_MAX),
                                           .name = text_of(name, TTM_CODE_NAME_MAX)};
        const size_t n = ttm_code_note_encode(&code, code_bytes);
        stack.frames[i].code =
            ttm_producer_note(&segment->producer, TTM_NOTE_CODE, code_bytes, (uint32_t)n);
        stack.frames[i].line = i;
    }
    const size_t n = ttm_python_stack_note_encode(&stack, stack_bytes);
    return ttm_producer_note(&segment->producer, TTM_NOTE_PYTHON_STACK, stack_bytes, (uint32_t)n);
}

/* 128 frames in 64 modules, likewise. */
static uint32_t note_native(struct hostile_segment *segment)
{
    static struct ttm_native_stack_note stack = {.count = TTM_NATIVE_FRAMES_MAX};
    uint8_t module_bytes[TTM_MODULE_NOTE_SIZE_MAX], stack_bytes[TTM_NATIVE_STACK_NOTE_SIZE_MAX];
    uint32_t modules[TTM_NATIVE_MODULES_MAX];
    char path[TTM_MODULE_PATH_MAX];

    memset(path, 'n', sizeof(path));
    for (uint16_t i = 0; i < TTM_NATIVE_MODULES_MAX; i++) {
        const struct ttm_module_note module = {
            .start = 4096, .end = 1u << 30, .path = text_of(path, sizeof(path))};
        const size_t n = ttm_module_note_encode(&module, module_bytes);
        modules[i] =
            ttm_producer_note(&segment->producer, TTM_NOTE_MODULE, module_bytes, (uint32_t)n);
    }
    for (uint16_t i = 0; i < TTM_NATIVE_FRAMES_MAX; i++)
        stack.frames[i] = (struct ttm_native_frame){.module = modules[i % TTM_NATIVE_MODULES_MAX],
                                                    .address = i * 16u};
    const size_t n = ttm_native_stack_note_encode(&stack, stack_bytes);
    return ttm_producer_note(&segment->producer, TTM_NOTE_NATIVE_STACK, stack_bytes, (uint32_t)n);
}

/* Every allocation has an origin of its own, with stacks as large as they may be. */
static void report_origins(unsigned number)
{
    struct hostile_segment segment;

    (void)number;
    for (;; hostile_segment_done(&segment)) {
        hostile_segment_new(&segment);
        const uint32_t python = note_python(&segment), native = note_native(&segment);
        hostile_segment_attach(&segment);
        for (uint64_t i = 0; i < 500000; i++) {
            uint8_t bytes[TTM_ORIGIN_NOTE_SIZE];
            const struct ttm_origin_note note = {.python = python, .native = native};
            ttm_origin_note_encode(&note, bytes);
            struct ttm_record record = allocation_on(0, i + 1);
            record.origin =
                ttm_producer_note(&segment.producer, TTM_NOTE_ORIGIN, bytes, sizeof(bytes));
            push_free(&segment, hostile_segment_push(&segment, record));
            hostile_count();
        }
    }
}

/* ---- more device sets than the server keeps ---- */

/* Sets of three, which differ from those of other rounds; then the process ends. */
static void name_many_sets(uint32_t round)
{
    struct hostile_segment segment;

    hostile_segment_new(&segment);
    hostile_segment_attach(&segment);
    for (uint32_t i = 0; i < SETS; i++) {
        const uint32_t salt = round * SETS + i;
        uint8_t bytes[6];
        put_le16(bytes, (uint16_t)(salt % 1000));
        put_le16(bytes + 2, (uint16_t)(1000 + salt / 1000 % 20));
        put_le16(bytes + 4, (uint16_t)(1020 + salt / 20000 % 4));
        const uint32_t note =
            ttm_producer_note(&segment.producer, TTM_NOTE_DEVICES, bytes, sizeof(bytes));
        (void)hostile_segment_push(&segment, allocation_on(note, i + 1));
    }
    hostile_count();
    hostile_sleep_ms(300);
}

static void use_up_device_sets(unsigned number)
{
    for (uint32_t round = number;; round++) {
        const pid_t pid = hostile_fork();
        if (pid == 0) {
            name_many_sets(round);
            _exit(0);
        }
        (void)waitpid(pid, NULL, 0);
    }
}

/* ---- very many processes ---- */

/* One event, by a segment or the original protocol, and the connection is closed. */
static void report_once(unsigned number)
{
    struct hostile_segment segment;

    if (number % 2) {
        hostile_segment_new(&segment);
        (void)hostile_segment_push(&segment, allocation_on(0, 1));
        hostile_segment_attach(&segment);
        hostile_sleep_ms(20);
        (void)close(segment.fd);
    } else {
        const int fd = hostile_connect(HOSTILE_LEGACY);
        (void)hostile_report_original(fd, false, 0, 1, 100);
        (void)close(fd);
    }
    hostile_count();
    for (;;)
        pause();
}

static void be_a_crowd(unsigned number)
{
    (void)number;
    for (unsigned i = 0; i < CROWD; i++) {
        if (hostile_fork() == 0)
            report_once(i);
        if (i % CROWD_STEP == CROWD_STEP - 1)
            hostile_sleep_ms(100);
    }
    for (;;)
        pause();
}

/* Processes that hold something on each device there can be. */
static void name_all_devices(unsigned number)
{
    struct hostile_segment segment;

    hostile_segment_new(&segment);
    hostile_segment_attach(&segment);
    for (uint64_t i = 0;; i++) {
        struct ttm_record record = allocation_on((uint32_t)((i + number) % DEVICES), i + 1);
        record.region = (uint8_t)(i / DEVICES % TTM_REGION_CB);
        push_free(&segment, hostile_segment_push(&segment, record));
        if (i < DEVICES)
            (void)hostile_segment_push(&segment, record);
        if (i % DEVICES == DEVICES - 1)
            hostile_sleep_ms(100);
        hostile_count();
    }
}

/* ---- what looks like a program ---- */

static void *report_at_full_speed(void *argument)
{
    struct hostile_segment *segment = argument;
    struct hostile_segment own = *segment; /* with a ring of its own; the segment is shared */

    own.ring = ttm_producer_claim(&segment->producer, (uint32_t)syscall(SYS_gettid));
    if (!own.ring)
        hostile_die("no ring for a thread");
    for (uint64_t i = 0;; i++) {
        struct ttm_record record = allocation_on((uint32_t)(i % 4), i + 1);
        record.serial = ((uint64_t)(uintptr_t)own.ring << 24) + 2 * i + 1;
        record.time_ns = ttm_clock_monotonic_ns();
        while (!ttm_ring_push(&segment->producer, own.ring, &record) && i % 2 == 0)
            ; /* full: half of the threads wait, and lose nothing but the count of it */
        record.op = TTM_RECORD_END;
        (void)ttm_ring_push(&segment->producer, own.ring, &record);
        if (i % 1024 == 0)
            hostile_count();
    }
    return NULL;
}

static void report_with_threads(unsigned number)
{
    static struct hostile_segment segment;
    pthread_t thread;

    (void)number;
    hostile_segment_new(&segment);
    hostile_segment_attach(&segment);
    for (unsigned i = 0; i < THREADS; i++) {
        if (pthread_create(&thread, NULL, report_at_full_speed, &segment) != 0)
            hostile_die("no thread");
    }
    for (;; hostile_sleep_ms(5))
        hostile_segment_answer(&segment);
}

static void say_switched(struct hostile_segment *segment, uint32_t is_on)
{
    uint8_t payload[TTM_TOLD_HEAD_SIZE];

    ttm_told_head_encode(is_on, 0, payload);
    (void)hostile_say(segment->fd, TTM_FRAME_SWITCHED, payload, sizeof(payload));
}

/* A million live allocations, switched off and on again and again. */
static void switch_a_million(unsigned number)
{
    struct hostile_segment segment;

    (void)number;
    hostile_segment_new(&segment);
    segment.ignores_tell = true;
    hostile_segment_attach(&segment);
    for (;;) {
        for (uint64_t i = 0; i < LIVE_MILLION; i++)
            (void)hostile_segment_push(&segment, allocation_on((uint32_t)(i % 4), i + 1));
        for (int i = 0; i < 20; i++) {
            say_switched(&segment, 0);
            say_switched(&segment, 1);
            hostile_segment_answer(&segment);
            hostile_count();
        }
    }
}

/* All rings full before the server has seen any of it, and then the process is killed. */
static void fill_rings_and_die(void)
{
    struct hostile_segment segment;

    hostile_segment_new(&segment);
    for (unsigned r = 1; r < FULL_RINGS; r++) {
        struct ttm_record record = allocation_on(r % 8, 1);
        record.time_ns = ttm_clock_monotonic_ns();
        for (uint32_t i = 0; i < TTM_RING_SLOTS; i++) {
            record.serial = (uint64_t)r * TTM_RING_SLOTS + i + 1;
            record.id = record.serial;
            (void)ttm_ring_push(&segment.producer, segment.ring, &record);
        }
        segment.ring = ttm_producer_claim(&segment.producer, r);
    }
    hostile_segment_attach(&segment);
    hostile_sleep_ms(1);
    hostile_count();
    (void)raise(SIGKILL);
}

static void die_with_full_rings(unsigned number)
{
    (void)number;
    for (;; hostile_sleep_ms(50)) {
        const pid_t pid = hostile_fork();
        if (pid == 0)
            fill_rings_and_die();
        (void)waitpid(pid, NULL, 0);
    }
}

/* ---- a segment that loses its pages ---- */

static void *punch_holes(void *argument)
{
    const struct hostile_segment *segment = argument;
    const off_t bytes = (off_t)segment->producer.segment->segment_bytes;

    for (unsigned i = 0;; i++) {
        /* The rings alone at times: the header and its magic number stay. */
        const off_t from = i % 2 ? 1 << 20 : 0;
        (void)fallocate(segment->producer.fd.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from,
                        bytes - from);
        hostile_count();
    }
    return NULL;
}

static void lose_pages(unsigned number)
{
    static struct hostile_segment segment;
    pthread_t thread;

    (void)number;
    hostile_segment_new(&segment);
    hostile_segment_attach(&segment);
    if (pthread_create(&thread, NULL, punch_holes, &segment) != 0)
        hostile_die("no thread");
    for (uint64_t i = 0;; i++) {
        struct ttm_record record = allocation_on((uint32_t)(i % 4), i + 1);
        record.serial = i + 1;
        record.origin = note_devices(&segment, 0, 2);
        if (record.origin == 0)
            segment.producer.notes_used = 0;
        (void)ttm_ring_push(&segment.producer, segment.ring, &record);
        if (i % 4096 == 0)
            hostile_segment_answer(&segment);
    }
}

const struct hostile_attack hostile_segment_attacks[] = {
    {.name = "map_locks", .processes = 1, .needs_fuse = true, .run = lock_memory_maps},
    {.name = "mappings", .processes = 5, .run = have_many_mappings},
    {.name = "circular_buffers", .processes = 2, .run = make_circular_buffers},
    {.name = "wide_allocations", .processes = 3, .run = allocate_widely},
    {.name = "events", .processes = 2, .run = report_events},
    {.name = "origins", .processes = 2, .run = report_origins},
    {.name = "device_sets", .processes = 1, .run = use_up_device_sets},
    {.name = "crowd", .processes = 1, .run = be_a_crowd},
    {.name = "all_devices", .processes = 20, .run = name_all_devices},
    {.name = "full_speed", .processes = 1, .run = report_with_threads},
    {.name = "switches", .processes = 1, .run = switch_a_million},
    {.name = "full_rings", .processes = 1, .run = die_with_full_rings},
    {.name = "holes", .processes = 1, .run = lose_pages},
    {0},
};
