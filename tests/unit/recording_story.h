/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording_story - recordings of made-up programs, told in few words.
 *
 * A story speaks to an encoder. It has a clock of its own, gives serials, notes and
 * addresses, and ends the test when the encoder refuses something.
 */
#ifndef TTM_TESTS_UNIT_RECORDING_STORY_H
#define TTM_TESTS_UNIT_RECORDING_STORY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "recording/encoder.h"
#include "wire/life_row.h"
#include "wire/note.h"
#include "wire/origin.h"

#define STORY_MS 1000000ull
#define STORY_DRAM_BANKS 12
#define STORY_L1_BANKS 64
#define STORY_MESH 5000 /* number of the note of all devices */

struct story {
    struct ttm_encoder *enc;
    uint32_t process;
    uint64_t now_ns;
    uint64_t serial;
    uint32_t next_note;
    uint32_t main_thread; /* number of its note, once there is one */
    uint32_t devices;     /* what lives are on, from now on */
    uint64_t next_address[TTM_REGION_COUNT];
};

static inline void story_must(int r, const char *what)
{
    if (r >= 0)
        return;
    (void)fprintf(stderr, "story: %s: %s\n", what, strerror(-r));
    abort();
}

static inline void story_wait(struct story *story, uint64_t ns)
{
    story->now_ns += ns;
}

/* The user of a process: STORY_UID_1 is that of the first; without it, the caller. */
static inline uint32_t story_uid(uint32_t process)
{
    char name[32];

    (void)snprintf(name, sizeof(name), "STORY_UID_%u", process);
    const char *uid = getenv(name);
    return uid ? (uint32_t)strtoul(uid, NULL, 10) : (uint32_t)getuid();
}

static inline struct story story_begin(struct ttm_encoder *enc, uint32_t process, uint64_t now_ns,
                                       int32_t pid, const char *command)
{
    struct story story = {.enc = enc, .process = process, .now_ns = now_ns, .next_note = 6000};
    const struct ttm_recorded_process seen = {.pid = pid,
                                              .uid = story_uid(process),
                                              .source = TTM_SOURCE_TRACKED,
                                              .start_wall_ns = 0,
                                              .command = command,
                                              .command_length = strlen(command)};

    story_must(ttm_encoder_process(enc, now_ns, process, &seen), "process");
    return story;
}

static inline void story_note(struct story *story, uint32_t number, uint32_t kind,
                              const void *bytes, size_t length)
{
    const struct ttm_recorded_note note = {
        .number = number, .kind = kind, .bytes = bytes, .length = length};

    story_must(ttm_encoder_note(story->enc, story->process, &note), "note");
}

/* So many n150; from now on lives are on all of them. */
static inline void story_devices(struct story *story, uint16_t count)
{
    uint8_t list[2 * TTM_DEVICE_COUNT];

    for (uint16_t i = 0; i < count; i++) {
        const struct ttm_recorded_device device = {
            .id = i,
            .arch = TTM_ARCH_WORMHOLE_B0,
            .core_count = 64,
            .bank_bytes = {[TTM_REGION_DRAM] = 1ull << 30, [TTM_REGION_L1] = 1392640},
            .bank_count = {[TTM_REGION_DRAM] = STORY_DRAM_BANKS, [TTM_REGION_L1] = STORY_L1_BANKS},
            .board = "n150",
            .board_length = 4,
        };
        story_must(ttm_encoder_device(story->enc, story->now_ns, story->process, &device),
                   "device");
        put_le16(list + 2 * i, i);
    }
    story->devices = count > 1 ? STORY_MESH : 0;
    if (count > 1)
        story_note(story, STORY_MESH, TTM_NOTED_DEVICES, list, 2u * count);
}

static inline uint32_t story_string(struct story *story, const char *text)
{
    if (!text || text[0] == '\0')
        return 0;
    story_note(story, story->next_note, TTM_NOTED_STRING, text, strlen(text));
    return story->next_note++;
}

/* "decode.py:28:cache_kv|decode.py:61:main", innermost first. */
static inline uint32_t story_python(struct story *story, const char *frames)
{
    uint8_t buf[TTM_PYTHON_STACK_NOTE_SIZE_MAX + TTM_CODE_NOTE_SIZE_MAX];
    struct ttm_python_stack_note stack = {0};

    while (frames && *frames) {
        char file[256], function[128];
        unsigned line = 0;
        if (sscanf(frames, "%255[^:]:%u:%127[^|]", file, &line, function) != 3)
            story_must(-22, frames);
        const struct ttm_code_note code = {
            .first_line = 1,
            .file = {file, (uint16_t)strlen(file)},
            .name = {function, (uint16_t)strlen(function)},
        };
        story_note(story, story->next_note, TTM_NOTE_CODE, buf, ttm_code_note_encode(&code, buf));
        stack.frames[stack.count++] =
            (struct ttm_python_frame){.code = story->next_note++, .line = line};
        frames = strchr(frames, '|');
        frames = frames ? frames + 1 : NULL;
    }
    if (stack.count == 0)
        return 0;
    story_note(story, story->next_note, TTM_NOTE_PYTHON_STACK, buf,
               ttm_python_stack_note_encode(&stack, buf));
    return story->next_note++;
}

/* A native stack of so many frames in libtt_metal.so, told apart by 'salt'. */
static inline uint32_t story_native(struct story *story, unsigned frames, uint64_t salt)
{
    static const char path[] = "/opt/lib/libtt_metal.so";
    uint8_t buf[TTM_NATIVE_STACK_NOTE_SIZE_MAX];
    const struct ttm_module_note module = {.bias = 0x7f0000000000,
                                           .start = 0x7f0000000000,
                                           .end = 0x7f0001000000,
                                           .path = {path, sizeof(path) - 1}};
    struct ttm_native_stack_note stack = {.count = (uint16_t)frames};
    const uint32_t module_note = story->next_note++;

    story_note(story, module_note, TTM_NOTE_MODULE, buf, ttm_module_note_encode(&module, buf));
    for (unsigned i = 0; i < frames; i++)
        stack.frames[i] =
            (struct ttm_native_frame){.module = module_note, .address = 0x1000 + salt + 64 * i};
    story_note(story, story->next_note, TTM_NOTE_NATIVE_STACK, buf,
               ttm_native_stack_note_encode(&stack, buf));
    return story->next_note++;
}

struct story_words {
    const char *python;
    const char *operation;
    const char *name;
    const char *context;
    const char *thread;   /* NULL: MainThread */
    uint32_t python_note; /* instead of 'python' */
    uint32_t native_note;
    uint32_t operation_note; /* instead of 'operation' */
};

static inline uint32_t story_thread(struct story *story, const char *name)
{
    if (name)
        return story_string(story, name);
    if (story->main_thread == 0)
        story->main_thread = story_string(story, "MainThread");
    return story->main_thread;
}

static inline uint32_t story_origin(struct story *story, const struct story_words *words)
{
    uint8_t buf[TTM_ORIGIN_NOTE_SIZE];
    const struct ttm_origin_note note = {
        .context = story_string(story, words->context),
        .name = story_string(story, words->name),
        .thread = story_thread(story, words->thread),
        .operation =
            words->operation_note ? words->operation_note : story_string(story, words->operation),
        .python = words->python_note ? words->python_note : story_python(story, words->python),
        .native = words->native_note,
    };

    ttm_origin_note_encode(&note, buf);
    story_note(story, story->next_note, TTM_NOTED_ORIGIN, buf, sizeof(buf));
    return story->next_note++;
}

static inline uint32_t story_line(struct story *story, const char *python, const char *operation)
{
    const struct story_words words = {.python = python, .operation = operation};

    return story_origin(story, &words);
}

/* A life as the allocator would make it: whole pages in each bank, one behind the other. */
static inline struct ttm_recorded_life story_life(struct story *story, uint32_t origin,
                                                  uint8_t region, uint64_t bytes)
{
    const uint64_t banks = region == TTM_REGION_DRAM ? STORY_DRAM_BANKS : STORY_L1_BANKS;
    const uint64_t bank_bytes = (bytes + banks * 32 - 1) / (banks * 32) * 32;
    const struct ttm_recorded_life life = {
        .process = story->process,
        .serial = ++story->serial,
        .birth_ns = story->now_ns,
        .id = story->serial,
        .address = 0x10000 + story->next_address[region],
        .bytes = bytes,
        .footprint_bytes = bank_bytes * banks,
        .devices = story->devices,
        .origin = origin,
        .region = region,
    };

    story->next_address[region] += bank_bytes;
    return life;
}

static inline uint64_t story_birth(struct story *story, uint32_t origin, uint8_t region,
                                   uint64_t bytes)
{
    const struct ttm_recorded_life life = story_life(story, origin, region, bytes);

    story_must(ttm_encoder_birth(story->enc, &life), "birth");
    story_wait(story, 20000);
    return life.serial;
}

static inline void story_end(struct story *story, uint64_t serial, enum ttm_recorded_how how)
{
    story_must(ttm_encoder_end(story->enc, story->now_ns, story->process, serial, how), "end");
    story_wait(story, 5000);
}

static inline void story_free(struct story *story, uint64_t serial)
{
    story_end(story, serial, TTM_ENDED_FREED);
}

/* Born and freed at once. */
static inline void story_flash(struct story *story, uint32_t origin, uint8_t region, uint64_t bytes)
{
    const uint64_t serial = story_birth(story, origin, region, bytes);

    story_wait(story, 30000);
    story_free(story, serial);
}

static inline void story_mark(struct story *story, const char *name)
{
    const struct ttm_recorded_mark mark = {.name = name, .name_length = strlen(name)};

    story_must(ttm_encoder_mark(story->enc, story->now_ns, story->process, &mark), "mark");
}

static inline void story_exit(struct story *story, int code)
{
    const struct ttm_recorded_process_end end = {.how = TTM_PROCESS_EXITED, .code = code};

    story_must(ttm_encoder_process_end(story->enc, story->now_ns, story->process, &end),
               "process end");
}

#endif /* TTM_TESTS_UNIT_RECORDING_STORY_H */
