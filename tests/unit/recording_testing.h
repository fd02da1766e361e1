/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording_testing - recordings in memory, their records as lines of text, and a
 * made-up run whose truth is known.
 */
#ifndef TTM_TESTS_UNIT_RECORDING_TESTING_H
#define TTM_TESTS_UNIT_RECORDING_TESTING_H

#include "testing.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "base/u64_map.h"
#include "recording/block.h"
#include "recording/encoder.h"
#include "recording/output.h"
#include "recording/recording.h"

#define FILE_ID 0x1122334455667788ull
#define START_NS 1000000000000ull
#define WALL_OFFSET_NS 1700000000000000000ll

/* What is in doubt follows where there is any: older recordings do not have it. */
static inline void put_counters_line(const struct ttm_recorded *r, char *ret)
{
    const struct ttm_recorded_counters *c = &r->counters;
    const int n =
        snprintf(ret, 512, "p%u counters %llu %llu %llu %llu %llu%s%s%s", r->process,
                 (unsigned long long)c->unknown_frees, (unsigned long long)c->ambiguous_frees,
                 (unsigned long long)c->replaced, (unsigned long long)c->refused,
                 (unsigned long long)c->lost_events, c->has_gap ? " gap" : "",
                 c->is_off ? " off" : "", c->is_inexact ? " inexact" : "");

    if (c->untracked || c->notes_left_out || c->trouble)
        (void)snprintf(ret + n, 512 - (size_t)n, " untracked %llu left out %llu trouble %u",
                       (unsigned long long)c->untracked, (unsigned long long)c->notes_left_out,
                       c->trouble);
}

/* A record as one line. */
static inline void describe(const struct ttm_recorded *r, char ret[512])
{
    const struct ttm_recorded_life *l = r->life;
    int n = snprintf(ret, 512, "%llu p%u ", (unsigned long long)r->time_ns, r->process);
    char *at = ret + n;
    const size_t room = 512 - (size_t)n;

    switch (r->type) {
    case TTM_RECORDED_PROCESS:
        (void)snprintf(at, room, "process pid %d uid %u source %u start %llu '%.*s'", r->seen.pid,
                       r->seen.uid, r->seen.source, (unsigned long long)r->seen.start_wall_ns,
                       (int)r->seen.command_length, r->seen.command);
        break;
    case TTM_RECORDED_PROCESS_END:
        (void)snprintf(at, room, "process end %u code %d", r->end.how, r->end.code);
        break;
    case TTM_RECORDED_DEVICE: /* may be told again, at another time */
        (void)snprintf(ret, 512, "p%u device %u arch %u cores %u asic %llx banks %llu x %u '%.*s'",
                       r->process, r->device.id, r->device.arch, r->device.core_count,
                       (unsigned long long)r->device.asic_id,
                       (unsigned long long)r->device.bank_bytes[0], r->device.bank_count[0],
                       (int)r->device.board_length, r->device.board);
        break;
    case TTM_RECORDED_NOTE:
        /* A note has no time of its own. */
        (void)snprintf(ret, 512, "p%u note %u kind %u '%.*s'", r->process, r->note.number,
                       r->note.kind, (int)r->note.length, (const char *)r->note.bytes);
        break;
    case TTM_RECORDED_BIRTH:
    case TTM_RECORDED_END:
    case TTM_RECORDED_RENAME:
        if (r->type == TTM_RECORDED_BIRTH && l->is_told)
            at = ret + snprintf(ret, 512, "p%u ", r->process); /* when it was told is no matter */
        (void)snprintf(
            at, 512 - (size_t)(at - ret),
            "%s %u%s serial %llx birth %llu id %llu at %llx bytes %llu/%llu allocator %u "
            "devices %u origin %u cores %u region %u kind %u flags %u",
            r->type == TTM_RECORDED_BIRTH ? "birth"
            : r->type == TTM_RECORDED_END ? "end"
                                          : "rename",
            r->type == TTM_RECORDED_END ? r->how : 0, l->is_told ? " told" : "",
            (unsigned long long)l->serial, (unsigned long long)l->birth_ns,
            (unsigned long long)l->id, (unsigned long long)l->address, (unsigned long long)l->bytes,
            (unsigned long long)l->footprint_bytes, l->allocator, l->devices, l->origin, l->cores,
            l->region, l->kind, l->flags);
        if (l->banks > 0)
            (void)snprintf(ret + strlen(ret), 512 - strlen(ret), " banks %u", l->banks);
        break;
    case TTM_RECORDED_DISPATCH:
        (void)snprintf(at, room, "dispatch %llu devices %u",
                       (unsigned long long)r->dispatch.program, r->dispatch.devices);
        break;
    case TTM_RECORDED_MARK:
        (void)snprintf(at, room, "mark '%.*s'", (int)r->mark.name_length, r->mark.name);
        break;
    case TTM_RECORDED_FAILURE:
        (void)snprintf(at, room, "failure %u region %u wanted %llu banks %llu %llu %llu origin %u",
                       r->failure.kind, r->failure.region,
                       (unsigned long long)r->failure.wanted_bytes,
                       (unsigned long long)r->failure.bank_wanted_bytes,
                       (unsigned long long)r->failure.bank_free_bytes,
                       (unsigned long long)r->failure.bank_largest_bytes, r->failure.origin);
        break;
    case TTM_RECORDED_LOSS:
        (void)snprintf(at, room, "loss %llu%s", (unsigned long long)r->loss.events,
                       r->loss.is_open ? " open" : "");
        break;
    case TTM_RECORDED_COUNTERS:
        put_counters_line(r, ret);
        break;
    case TTM_RECORDED_GAP:
        (void)snprintf(at, room, "gap of %llu events in %llu blocks",
                       (unsigned long long)r->gap.events, (unsigned long long)r->gap.blocks);
        break;
    default:
        fail_msg("type %u", r->type);
    }
}

/* ---- what a reader makes of the records: it fails when they do not fit together ---- */

#define MIRROR_MAX 65536

struct mirror {
    struct ttm_u64_map live; /* process and serial → bytes */
    uint64_t bytes;
    uint64_t births;
    uint64_t ends;
    uint64_t gaps;
    uint64_t lost;
};

static inline uint64_t mirror_key(const struct ttm_recorded_life *life)
{
    return (uint64_t)life->process << 56 ^ life->serial;
}

static inline void mirror_apply(struct mirror *mirror, const struct ttm_recorded *record)
{
    const struct ttm_recorded_life *life = record->life;
    uint32_t bytes = 0;

    switch (record->type) {
    case TTM_RECORDED_BIRTH:
        assert_int_equal(ttm_u64_map_add(&mirror->live, mirror_key(life), (uint32_t)life->bytes),
                         0);
        mirror->bytes += life->bytes;
        mirror->births++;
        break;
    case TTM_RECORDED_END:
        assert_true(ttm_u64_map_take(&mirror->live, mirror_key(life), &bytes));
        assert_int_equal(bytes, life->bytes);
        mirror->bytes -= life->bytes;
        mirror->ends++;
        break;
    case TTM_RECORDED_RENAME:
        assert_true(ttm_u64_map_find(&mirror->live, mirror_key(life), &bytes));
        break;
    case TTM_RECORDED_GAP:
        mirror->gaps++;
        mirror->lost += record->gap.events;
        break;
    default:
        break;
    }
}

static inline void mirror_done(struct mirror *mirror)
{
    ttm_u64_map_done(&mirror->live);
}

/* ---- a recording in memory ---- */

struct memory_file {
    struct ttm_output *output;
    struct ttm_packer *packer;
    struct ttm_block block;
    struct ttm_encoder *encoder;
    char path[64];
    uint64_t refuse_from; /* blocks that are not taken: from this one */
    uint64_t refuse_until;
    uint64_t passed;
};

static inline struct ttm_block *memory_pass(void *arg, struct ttm_block *full)
{
    struct memory_file *file = arg;
    const uint64_t n = file->passed++;

    if (n >= file->refuse_from && n < file->refuse_until)
        return NULL;
    assert_int_equal(ttm_output_write(file->output, file->packer, full), 0);
    return full;
}

static inline void memory_begin(struct memory_file *file, uint32_t section_events)
{
    *file = (struct memory_file){.path = "/tmp/ttm-test-recording-XXXXXX"};
    const int fd = mkstemp(file->path);
    assert_true(fd >= 0);
    (void)close(fd);
    assert_int_equal(unlink(file->path), 0);
    assert_int_equal(ttm_output_open(file->path, FILE_ID, &file->output), 0);
    file->packer = ttm_packer_new();
    assert_non_null(file->packer);
    assert_int_equal(ttm_block_init(&file->block), 0);
    const struct ttm_encoder_options options = {
        .file_id = FILE_ID,
        .wall_offset_ns = WALL_OFFSET_NS,
        .start_ns = START_NS,
        .seed = 5,
        .section_events = section_events,
        .pass = memory_pass,
        .pass_arg = file,
        .block = &file->block,
    };
    file->encoder = ttm_encoder_new(&options);
    assert_non_null(file->encoder);
}

/* The bytes of the file, which is gone from the disk; 'is_finished' with index and end. */
static inline struct bytes memory_end(struct memory_file *file, bool is_finished)
{
    static uint8_t buf[32 << 20];

    ttm_encoder_finish(file->encoder);
    if (is_finished)
        assert_int_equal(ttm_output_finish(file->output, file->packer), 0);
    FILE *stream = fopen(file->path, "rb");
    assert_non_null(stream);
    const size_t length = fread(buf, 1, sizeof(buf), stream);
    assert_true(length < sizeof(buf));
    (void)fclose(stream);
    assert_int_equal(unlink(file->path), 0);
    assert_ptr_equal(ttm_encoder_free(file->encoder), &file->block);
    ttm_block_done(&file->block);
    ttm_packer_free(file->packer);
    ttm_output_free(file->output);
    return bytes_of(buf, length);
}

/* A file without a name that holds these bytes. */
static inline int memory_fd(const void *bytes, size_t length)
{
    const int fd = memfd_create("recording", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, length), length);
    return fd;
}

/* ---- a run in which everything happens ---- */

static inline struct ttm_recorded_life sample_life(uint32_t process, uint64_t serial)
{
    return (struct ttm_recorded_life){
        .process = process,
        .serial = serial,
        .birth_ns = START_NS + serial % 4096 * 55000,
        .id = 100 + serial % 4096,
        .address = 0x1000 + serial % 7 * 32,
        .bytes = 2048 * (1 + serial % 3),
        .footprint_bytes = 24576,
        .allocator = 1,
        .devices = 1030,
        .origin = 1100 + (uint32_t)(serial % 5),
        .region = serial % 2,
        .flags = serial % 11 == 0,
    };
}

static inline void sample_process(struct ttm_encoder *enc, uint32_t number)
{
    const struct ttm_recorded_process seen = {.pid = 4000 + (int32_t)number,
                                              .uid = 1000,
                                              .source = TTM_SOURCE_TRACKED,
                                              .start_wall_ns = 1690000000000000000ull,
                                              .command = "python3 run.py",
                                              .command_length = 14};
    const struct ttm_recorded_device device = {.id = (uint16_t)number,
                                               .arch = 2,
                                               .core_count = 64,
                                               .asic_id = 0xabcdef,
                                               .bank_bytes = {1ull << 30, 1499136},
                                               .bank_count = {12, 64},
                                               .board = "n300",
                                               .board_length = 4};

    assert_int_equal(ttm_encoder_process(enc, START_NS + number, number, &seen), 0);
    assert_int_equal(ttm_encoder_device(enc, START_NS + number + 5, number, &device), 0);
    for (uint32_t i = 0; i < 5; i++) {
        char text[32];
        (void)snprintf(text, sizeof(text), "run.py:%u:main", 10 + i);
        const struct ttm_recorded_note note = {
            .number = 1100 + i, .kind = 7, .bytes = (const uint8_t *)text, .length = strlen(text)};
        assert_int_equal(ttm_encoder_note(enc, number, &note), 0);
    }
}

/* Some of everything; two processes, one of which ends. Flushed now and then. */
static inline void sample_run(struct ttm_encoder *enc)
{
    const struct ttm_recorded_mark mark = {.name = "warm", .name_length = 4};
    const struct ttm_recorded_dispatch dispatch = {.program = 77, .devices = 0};
    const struct ttm_recorded_counters counters = {.unknown_frees = 1,
                                                   .ambiguous_frees = 2,
                                                   .replaced = 3,
                                                   .refused = 4,
                                                   .lost_events = 5,
                                                   .untracked = 6,
                                                   .notes_left_out = 7,
                                                   .trouble = 1101,
                                                   .has_gap = true,
                                                   .is_inexact = true};
    const struct ttm_recorded_failure failure = {.wanted_bytes = 1 << 30,
                                                 .bank_wanted_bytes = 1 << 26,
                                                 .bank_free_bytes = 1 << 25,
                                                 .bank_largest_bytes = 1 << 24,
                                                 .region = TTM_REGION_L1,
                                                 .origin = 1101,
                                                 .kind = 1};
    const struct ttm_recorded_process_end end = {.how = TTM_PROCESS_SIGNALLED, .code = 9};

    sample_process(enc, 1);
    sample_process(enc, 2);
    for (uint64_t i = 1; i <= 100; i++) {
        for (uint32_t p = 1; p <= 2; p++) {
            struct ttm_recorded_life life = sample_life(p, (uint64_t)p << 48 | i);
            life.is_told = i == 3;
            life.banks = i % 20 < 15 ? 12 : 0;
            if (i % 10 == 7) {
                life.region = TTM_REGION_CB;
                life.cores = 1104;
            }
            assert_int_equal(ttm_encoder_birth(enc, &life), 0);
            if (i > 4 && i % 40 != 0)
                assert_int_equal(ttm_encoder_end(enc, life.birth_ns + 700, p,
                                                 (uint64_t)p << 48 | (i - 2),
                                                 (enum ttm_recorded_how)(i % 5)),
                                 0);
        }
        const uint64_t now = START_NS + i * 55000 + 900;
        if (i == 20) {
            assert_int_equal(ttm_encoder_mark(enc, now, 1, &mark), 0);
            assert_int_equal(ttm_encoder_dispatch(enc, now, 1, &dispatch), 0);
            assert_int_equal(ttm_encoder_failure(enc, now, 2, &failure), 0);
            assert_int_equal(ttm_encoder_loss(enc, now, 2, 12), 0);
            assert_int_equal(ttm_encoder_loss(enc, now, 2, 0), 0);
            assert_int_equal(ttm_encoder_counters(enc, now, 2, &counters), 0);
        }
        if (i == 30)
            assert_int_equal(ttm_encoder_rename(enc, now, 1, 1ull << 48 | 30, 1102), 0);
        if (i % 8 == 0)
            ttm_encoder_flush(enc);
    }
    assert_int_equal(ttm_encoder_process_end(enc, START_NS + 100 * 55000 + 2000, 2, &end), 0);
}

#endif /* TTM_TESTS_UNIT_RECORDING_TESTING_H */
