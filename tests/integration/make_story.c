/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the recording of a made-up program.
 *
 *   make_story STORY FILE
 *
 * Nothing in it depends on the machine or the time, so reports can be compared.
 */
#include "../unit/recording_story.h"

#include <unistd.h>

#include "recording/recorder.h"
#include "wire/keepers.h"
#include "wire/origin_row.h"

#define START_NS 1000000000000ull
#define WALL_NS 1700000000000000000ull
#define KIB 1024ull

/* Circular buffers of a program on an 8 x 8 grid, and its kernel. */
static void cache_program(struct story *story, uint32_t origin, uint64_t program)
{
    const struct ttm_core_range grid = {0, 0, 7, 7};
    uint8_t cores[TTM_CORE_RANGE_SIZE];
    const uint32_t note = story->next_note++;

    ttm_cores_note_encode(&grid, 1, cores);
    story_note(story, note, TTM_NOTED_CORES, cores, sizeof(cores));
    for (uint32_t part = 0; part < 3; part++) {
        struct ttm_recorded_life life = story_life(story, origin, TTM_REGION_CB, 64 * 8 * KIB);
        life.id = program;
        life.allocator = part;
        life.address = 0x18b20 + part * 8 * KIB;
        life.footprint_bytes = life.bytes;
        life.cores = note;
        life.flags = TTM_SITE_PROGRAM | TTM_SITE_CORES;
        story_must(ttm_encoder_birth(story->enc, &life), "circular buffer");
    }
    struct ttm_recorded_life kernel = story_life(story, origin, TTM_REGION_KERNEL, 12 * KIB);
    kernel.id = program;
    kernel.flags = TTM_SITE_PROGRAM;
    story_must(ttm_encoder_birth(story->enc, &kernel), "kernel");
    const struct ttm_recorded_dispatch dispatch = {.program = program, .devices = story->devices};
    story_must(ttm_encoder_dispatch(story->enc, story->now_ns, story->process, &dispatch),
               "dispatch");
}

static void fail_l1(struct story *story, uint32_t origin)
{
    const struct ttm_recorded_failure failure = {
        .wanted_bytes = 32 << 20,
        .bank_wanted_bytes = 512 << 10,
        .bank_free_bytes = 640 << 10,
        .bank_largest_bytes = 320 << 10,
        .devices = story->devices,
        .origin = origin,
        .region = TTM_REGION_L1,
    };

    story_must(ttm_encoder_failure(story->enc, story->now_ns, story->process, &failure), "failure");
}

/* Circular buffers that would reach into what lies in L1: what is wanted of a bank is an address. */
static void clash(struct story *story)
{
    story_devices(story, 1);
    const uint32_t origin =
        story_line(story, "decode.py:44:attend|decode.py:61:main", "ttnn.matmul");
    const struct ttm_recorded_life held = story_life(story, origin, TTM_REGION_L1, 64 * KIB);
    story_must(ttm_encoder_birth(story->enc, &held), "buffer");
    for (uint64_t end = 0x54321; end < 0x400000; end += 0x200000) {
        const struct ttm_recorded_failure failure = {
            .wanted_bytes = 64 << 20,
            .bank_wanted_bytes = end,
            .bank_free_bytes = 2 << 20,
            .bank_largest_bytes = 128 << 10,
            .devices = story->devices,
            .origin = origin,
            .region = TTM_REGION_CB,
            .kind = TTM_FAILURE_CB_CLASH,
        };
        story_must(ttm_encoder_failure(story->enc, story->now_ns, story->process, &failure),
                   "failure");
    }
}

/* Twenty-five tries at one line, and before them one at another. */
static void fail_often(struct story *story)
{
    story_devices(story, 1);
    story_birth(story, story_line(story, "tries.py:3:load", "ttnn.zeros"), TTM_REGION_L1, 64 * KIB);
    const uint32_t once = story_line(story, "tries.py:7:first", "ttnn.zeros");
    const uint32_t again = story_line(story, "tries.py:9:next", "ttnn.zeros");
    story_wait(story, 5 * STORY_MS);
    fail_l1(story, once);
    for (unsigned i = 0; i < 25; i++) {
        story_wait(story, 5 * STORY_MS);
        fail_l1(story, again);
    }
}

/* A decode loop: weights, a cache, temporaries, cached programs; with leaks if asked for. */
static void decode(struct story *story, uint16_t devices, unsigned steps, int is_leaking,
                   int is_moved)
{
    story_devices(story, devices);
    const uint32_t open = story_line(story, "decode.py:12:main", "ttnn.open_device");
    const uint32_t weights =
        story_line(story, "decode.py:19:load_weights|decode.py:55:main", "ttnn.from_torch");
    const uint32_t cache =
        story_line(story, "decode.py:23:make_cache|decode.py:56:main", "ttnn.zeros");
    const uint32_t leak = story_line(story,
                                     is_moved ? "decode.py:128:cache_kv|decode.py:161:main"
                                              : "decode.py:28:cache_kv|decode.py:61:main",
                                     "ttnn.zeros");
    const uint32_t scratch =
        story_line(story, "decode.py:32:scratch|decode.py:61:main", "ttnn.add");
    const uint32_t matmul =
        story_line(story, "decode.py:37:forward|decode.py:61:main", "ttnn.matmul");
    const uint32_t softmax =
        story_line(story, "decode.py:38:forward|decode.py:61:main", "ttnn.softmax");

    story_birth(story, open, TTM_REGION_DRAM, 64 * KIB);
    story_wait(story, 100 * STORY_MS);
    for (unsigned i = 0; i < 8; i++)
        story_birth(story, weights, TTM_REGION_DRAM, 512 * KIB);
    for (unsigned i = 0; i < 2; i++)
        story_birth(story, cache, TTM_REGION_DRAM, 1024 * KIB);
    cache_program(story, matmul, 77);
    cache_program(story, softmax, 78);
    story_mark(story, "warm");
    for (unsigned step = 0; step < steps; step++) {
        story_flash(story, matmul, TTM_REGION_L1, 256 * KIB);
        story_flash(story, softmax, TTM_REGION_L1, 64 * KIB);
        if (is_leaking) {
            story_birth(story, leak, TTM_REGION_DRAM, 128 * KIB);
            const uint64_t kept = story_birth(story, scratch, TTM_REGION_L1, 32 * KIB);
            if (step % 4 != 0)
                story_free(story, kept);
        }
        story_wait(story, 20 * STORY_MS);
        if (step == steps / 2)
            story_mark(story, "half");
        if (is_leaking && step == steps - 1)
            fail_l1(story, matmul);
    }
}

/* A thousand times a thousand events from 320 lines: outputs of a few operations, weights, a leak. */
static void live_long(struct story *story, struct ttm_recorder *recorder, uint64_t events)
{
    uint32_t lines[320];
    uint64_t slots[12] = {0};

    for (unsigned i = 0; i < 320; i++) {
        char python[96];
        (void)snprintf(python, sizeof(python),
                       "model.py:%u:layer_%u|model.py:7:forward|run.py:61:main", i + 10, i / 4);
        const struct story_words words = {.python = python,
                                          .operation = i % 2 ? "ttnn.matmul" : "ttnn.add",
                                          .native_note = story_native(story, 40, 4096 * i)};
        lines[i] = story_origin(story, &words);
    }
    for (unsigned i = 0; i < 2000; i++)
        story_birth(story, lines[0], TTM_REGION_DRAM, 1 << 18);
    for (uint64_t i = 0; i < events / 2; i++) {
        uint64_t *slot = &slots[(i * 7 + i / 5) % 12];
        const uint8_t region = i % 3 == 0 ? TTM_REGION_DRAM : TTM_REGION_L1;
        if (*slot && i % 320 != 100)
            story_free(story, *slot);
        story->next_address[region] = 1 << 28 | (i * 7919 % 977) << 16;
        *slot = story_birth(story, lines[i % 320], region, 2048ull * (1 + i % 37));
        story_wait(story, 50000);
        if (i % (events / 20) == 0)
            story_mark(story, "epoch");
        if (i % 64 == 0)
            (void)ttm_recorder_tick(recorder, story->now_ns, story->now_ns);
        if (i % 4096 == 0) /* the disk of a real run has more time */
            (void)usleep(2000);
    }
}

/* 32 devices, each with a history of its own besides the one they share. */
static void serve_many(struct story *story)
{
    story_devices(story, 32);
    const uint32_t mesh = story->devices;
    const uint32_t weights =
        story_line(story, "serve.py:20:load|serve.py:80:main", "ttnn.from_torch");
    const uint32_t request =
        story_line(story, "serve.py:41:answer|serve.py:90:main", "ttnn.to_device");

    for (unsigned i = 0; i < 16; i++)
        story_birth(story, weights, TTM_REGION_DRAM, 4096 * KIB);
    for (unsigned step = 0; step < 400; step++) {
        const unsigned device = step * step % 32;
        story->devices = device;
        const uint64_t serial = story_birth(story, request, TTM_REGION_L1, (1 + device) * 64 * KIB);
        story_wait(story, 5 * STORY_MS);
        if (device % 4 != 0)
            story_free(story, serial);
        story->devices = mesh;
        story_flash(story, request, TTM_REGION_L1, 512 * KIB);
    }
}

static void flash_at(struct story *story, uint32_t origin, uint8_t region, uint64_t address)
{
    const uint64_t next = story->next_address[region];

    story->next_address[region] = address;
    story_flash(story, origin, region, 12 * KIB);
    story->next_address[region] = next;
}

/*
 * Eight devices, and a leak on four of them: 0, 1, 4 and 5. On these, twenty addresses of L1 are
 * used thrice; on all, one of DRAM twice.
 */
static void leak_on_half(struct story *story)
{
    static const uint16_t half[] = {0, 1, 4, 5};
    uint8_t list[sizeof(half)];

    story_devices(story, 8);
    const uint32_t note = story->next_note++;
    for (size_t i = 0; i < sizeof(half) / sizeof(half[0]); i++)
        put_le16(list + 2 * i, half[i]);
    story_note(story, note, TTM_NOTED_DEVICES, list, sizeof(list));
    story_birth(story, story_line(story, "half.py:5:load", "ttnn.zeros"), TTM_REGION_DRAM,
                96 * KIB);
    const uint32_t step = story_line(story, "half.py:8:step", "ttnn.add");
    for (unsigned i = 0; i < 2; i++)
        flash_at(story, step, TTM_REGION_DRAM, 1 << 24);
    story->devices = note;
    const uint32_t leak = story_line(story, "half.py:9:step", "ttnn.add");
    for (unsigned i = 0; i < 20; i++) {
        story_birth(story, leak, TTM_REGION_DRAM, 96 * KIB);
        for (unsigned k = 0; k < 3; k++)
            flash_at(story, step, TTM_REGION_L1, i << 12);
        story_wait(story, 5 * STORY_MS);
    }
}

/* A leak on one device of two that are known. */
static void leak_on(struct story *story, uint32_t device, const char *line, uint64_t bytes)
{
    story_devices(story, 2);
    story->devices = device;
    const uint32_t leak = story_line(story, line, "ttnn.add");
    for (unsigned i = 0; i < 20; i++) {
        story_birth(story, leak, TTM_REGION_DRAM, bytes);
        story_flash(story, leak, TTM_REGION_L1, 64 * KIB);
        story_wait(story, 5 * STORY_MS);
    }
}

#define CROWD 20 /* lines that leak, */
#define CAUGHT 5 /* of which an exception holds so many: every fourth */

/* The exception that holds what a line allocated. */
static void say_exception(struct story *story, uint32_t origin, unsigned line)
{
    struct ttm_keepers_note note = {
        .origin = origin, .round = 1, .cause = TTM_CAUSE_TRACEBACK, .count = 1, .roots = {1}};
    uint8_t buf[TTM_KEEPERS_NOTE_SIZE_MAX];
    char text[120];

    (void)snprintf(text, sizeof(text),
                   "traceback of ValueError: variable x%u of step (crowd.py:%u), held by list "
                   "ERRORS in module crowd",
                   line, line);
    note.keepers[0] = (struct ttm_note_text){text, (uint16_t)strlen(text)};
    story_note(story, story->next_note++, TTM_NOTE_KEEPERS, buf,
               ttm_keepers_note_encode(&note, buf));
}

/* Many lines leak, each more than the next; one exception holds what some of them made. */
static void leak_in_crowds(struct story *story)
{
    uint32_t leaks[CROWD];

    story_devices(story, 1);
    for (unsigned k = 0; k < CROWD; k++) {
        char line[64];
        (void)snprintf(line, sizeof(line), "crowd.py:%u:step|crowd.py:99:main", 10 + k);
        leaks[k] = story_line(story, line, "ttnn.add");
    }
    for (unsigned i = 0; i < 20; i++) {
        for (unsigned k = 0; k < CROWD; k++) {
            story_birth(story, leaks[k], TTM_REGION_DRAM, (CROWD - k) * 64 * KIB);
            story_flash(story, leaks[k], TTM_REGION_L1, 64 * KIB);
        }
        story_wait(story, 5 * STORY_MS);
    }
    for (unsigned k = 0; k < CAUGHT; k++)
        say_exception(story, leaks[4 * k + 3], 13 + 4 * k);
}

/* 'rounds' of a line that keeps its result, beside one that does not. */
static void train(struct story *story, const char *keeps, const char *gives_back, unsigned rounds)
{
    const uint32_t leak = story_line(story, keeps, "ttnn.multiply");
    const uint32_t step = story_line(story, gives_back, "ttnn.add");

    for (unsigned i = 0; i < rounds; i++) {
        story_flash(story, step, TTM_REGION_DRAM, 96 * KIB);
        story_birth(story, leak, TTM_REGION_DRAM, 96 * KIB);
        story_wait(story, STORY_MS);
    }
}

/* A loop that leaked is over, and another one goes on: clean, or with a leak of its own. */
static void leak_and_go_on(struct story *story, int is_leaking)
{
    story_devices(story, 1);
    train(story, "run.py:5:train|run.py:20:main", "run.py:4:train|run.py:20:main", 200);
    for (unsigned i = 0; i < 100; i++) {
        story_flash(story, story_line(story, "run.py:9:evaluate|run.py:21:main", "ttnn.exp"),
                    TTM_REGION_DRAM, 96 * KIB);
        story_flash(story, story_line(story, "run.py:10:evaluate|run.py:21:main", "ttnn.sqrt"),
                    TTM_REGION_DRAM, 96 * KIB);
        story_wait(story, STORY_MS);
    }
    if (is_leaking)
        train(story, "run.py:15:serve|run.py:22:main", "run.py:14:serve|run.py:22:main", 200);
}

/* The device is opened and closed three times, and each time something is left. */
static void close_thrice(struct story *story)
{
    story_devices(story, 1);
    const uint32_t line = story_line(story, "again.py:9:session", "ttnn.add");
    for (unsigned session = 0; session < 3; session++) {
        const uint64_t first = story->serial + 1;
        for (unsigned i = 0; i < 5 + session; i++) {
            story_birth(story, line, TTM_REGION_DRAM, 96 * KIB);
            story_wait(story, STORY_MS);
        }
        cache_program(story, line, 77 + session);
        story_mark(story, "full");
        for (uint64_t serial = first, last = story->serial; serial <= last; serial++)
            story_end(story, serial, TTM_ENDED_DEVICE_CLOSED);
        story_wait(story, 5 * STORY_MS);
    }
}

/* The same program as two versions of Python tell it. */
static void name_like(struct story *story, int is_310)
{
    static const char *const lines[][2] = {
        {"model.py:8:step|model.py:30:<module>", "model.py:8:Model.step|model.py:30:<module>"},
        {"model.py:14:cb|model.py:30:<module>",
         "model.py:14:make.<locals>.cb|model.py:30:<module>"},
        {"model.py:20:load|model.py:22:<listcomp>|model.py:22:__init__|model.py:29:<module>",
         "model.py:20:load|model.py:22:Model.__init__|model.py:29:<module>"},
        {"model.py:26:<dictcomp>|model.py:26:main", "model.py:26:main"},
    };

    story_devices(story, 1);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        story_birth(story, story_line(story, lines[i][is_310 ? 0 : 1], "ttnn.add"), TTM_REGION_DRAM,
                    96 * KIB);
    if (is_310)
        return;
    /* Another class with a method of that name. */
    story_birth(story, story_line(story, "model.py:50:Other.step|model.py:60:<module>", "ttnn.add"),
                TTM_REGION_DRAM, 48 * KIB);
}

/* Two releases of a program: its file has another name and other lines, and so has a helper's. */
static void release(struct story *story, int is_second)
{
    static const char *const lines[][2] = {
        {"run_v1.py:8:step|run_v1.py:30:<module>", "run_v2.py:9:step|run_v2.py:44:<module>"},
        {"layer.py:3:load|run_v1.py:28:<module>", "layer.py:3:load|run_v2.py:42:<module>"},
        {"old.py:5:help|run_v1.py:29:<module>", "new.py:5:help|run_v2.py:43:<module>"},
    };

    story_devices(story, 1);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        story_birth(story, story_line(story, lines[i][is_second], "ttnn.add"), TTM_REGION_DRAM,
                    96 * KIB);
}

/* Whatever a program may call its things. */
static void speak_evil(struct story *story)
{
    static const char evil[] = "</script><script>document.title='hurt'</script><!--<img src=x "
                               "onerror=document.title='hurt'>\"'&amp;\u2028\u2029\xc2\x9b"
                               "31m\u202e\u2066\u200f\u061c"
                               "\x1b[31m\r\n\t,\"=cmd|\"";
    const struct story_words words = {
        .python = "</script>.py:3:<b onclick=alert(1)>evil</b>|\xe2\x80\xae.py:9:__proto__",
        .operation = evil,
        .name = evil,
        .context = evil,
        .thread = evil};

    story_devices(story, 1);
    const uint32_t origin = story_origin(story, &words);
    for (unsigned i = 0; i < 8; i++) {
        story_birth(story, origin, TTM_REGION_DRAM, 64 * KIB);
        story_mark(story, evil);
        story_wait(story, STORY_MS);
    }
    fail_l1(story, origin);
}

static void tell(const char *name, struct ttm_encoder *enc, struct ttm_recorder *recorder)
{
    if (strcmp(name, "empty") == 0)
        return;
    struct story story = story_begin(enc, 1, START_NS, 4242,
                                     strcmp(name, "evil") == 0
                                         ? "python3 </script><script>document.title='hurt'</script>"
                                         : "python3 decode.py");
    if (strcmp(name, "leak") == 0) {
        decode(&story, 1, 100, 1, 0);
        story_exit(&story, 0);
    } else if (strcmp(name, "moved") == 0) { /* the same, a hundred lines further down */
        decode(&story, 1, 100, 1, 1);
        story_exit(&story, 0);
    } else if (strcmp(name, "clean") == 0) {
        decode(&story, 1, 100, 0, 0);
        story_exit(&story, 0);
    } else if (strcmp(name, "mesh8") == 0) {
        decode(&story, 8, 100, 1, 0);
        story_exit(&story, 1);
    } else if (strcmp(name, "two") == 0) {
        struct story other =
            story_begin(enc, 2, START_NS, 4243, "/usr/bin/python3 worker.py --all");
        decode(&story, 1, 60, 1, 0);
        other.now_ns = story.now_ns;
        decode(&other, 1, 10, 0, 0);
        story.now_ns = other.now_ns;
        const struct ttm_recorded_process_end killed = {.how = TTM_PROCESS_SIGNALLED, .code = 9};
        story_must(ttm_encoder_process_end(enc, story.now_ns, 1, &killed), "end");
    } else if (strcmp(name, "halves") == 0) {
        leak_on_half(&story);
        story_exit(&story, 0);
    } else if (strcmp(name, "py310") == 0 || strcmp(name, "py312") == 0) {
        name_like(&story, strcmp(name, "py310") == 0);
        story_exit(&story, 0);
    } else if (strcmp(name, "first") == 0 || strcmp(name, "second") == 0) {
        release(&story, strcmp(name, "second") == 0);
        story_exit(&story, 0);
    } else if (strcmp(name, "again") == 0) {
        close_thrice(&story);
        story_exit(&story, 0);
    } else if (strcmp(name, "over") == 0 || strcmp(name, "over_and_on") == 0) {
        leak_and_go_on(&story, strcmp(name, "over_and_on") == 0);
        story_exit(&story, 0);
    } else if (strcmp(name, "apart") == 0) { /* two leaks, each on a device of its own */
        struct story other = story_begin(enc, 2, START_NS, 4243, "python3 small.py");
        leak_on(&story, 0, "large.py:9:step", 960 * KIB);
        other.now_ns = story.now_ns;
        leak_on(&other, 1, "small.py:9:step", 96 * KIB);
        story_exit(&other, 0);
        story.now_ns = other.now_ns;
        story_exit(&story, 0);
    } else if (strcmp(name, "crowd") == 0) {
        leak_in_crowds(&story);
        story_exit(&story, 0);
    } else if (strcmp(name, "million") == 0) {
        story_devices(&story, 1);
        live_long(&story, recorder, 1000000);
        story_exit(&story, 0);
    } else if (strcmp(name, "rounds") == 0) { /* each round has twice the buffers of the last */
        story_devices(&story, 1);
        const uint32_t line = story_line(&story, "rounds.py:7:step", "ttnn.zeros");
        for (unsigned n = 0, count = 1; n < 4; n++, count *= 2) {
            story_mark(&story, "begin");
            for (unsigned i = 0; i < count; i++)
                story_birth(&story, line, TTM_REGION_DRAM, 96 * KIB);
            story_wait(&story, STORY_MS);
            if (n < 3)
                story_mark(&story, "end");
        }
        story_mark(&story, "last");
        story_exit(&story, 0);
    } else if (strcmp(name, "folder") == 0) {
        story_devices(&story, 1);
        story_birth(&story, story_line(&story, "/srv/app/serve.py:7:load", "ttnn.zeros"),
                    TTM_REGION_DRAM, 96 * KIB);
        story_exit(&story, 0);
    } else if (strcmp(name, "tries") == 0) {
        fail_often(&story);
        story_exit(&story, 0);
    } else if (strcmp(name, "clash") == 0) {
        clash(&story);
        story_exit(&story, 1);
    } else if (strcmp(name, "many") == 0) {
        serve_many(&story);
        story_exit(&story, 0);
    } else if (strcmp(name, "evil") == 0) {
        speak_evil(&story);
        story_exit(&story, 1);
    } else if (strcmp(name, "bare") ==
               0) { /* nothing is known but sizes; and one that does nothing */
        struct story idle = story_begin(enc, 2, START_NS, 4243, "");
        for (unsigned i = 0; i < 20; i++) {
            story_birth(&story, 0, TTM_REGION_DRAM, 64 * KIB);
            story_wait(&story, STORY_MS);
        }
        story_mark(&idle, "here");
        story_exit(&idle, 0);
    } else if (strcmp(name, "unfinished") == 0) { /* and it stays open until stdin ends */
        decode(&story, 1, 20, 1, 0);
        ttm_recorder_flush(recorder);
        (void)puts("written");
        (void)fflush(stdout);
        while (getchar() != EOF)
            ;
    } else {
        (void)fprintf(stderr, "make_story: there is no story '%s'\n", name);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    const struct ttm_recorder_options options = {
        .path = argc > 2 ? argv[2] : NULL, .now_ns = START_NS, .now_wall_ns = WALL_NS, .seed = 1};
    struct ttm_recorder *recorder;

    if (argc != 3) {
        (void)fprintf(stderr, "usage: make_story STORY FILE\n");
        return 2;
    }
    story_must(ttm_recorder_open(&options, &recorder), argv[2]);
    tell(argv[1], ttm_recorder_encoder(recorder), recorder);
    story_must(ttm_recorder_close(recorder, NULL), "close");
    return 0;
}
