/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports of made-up programs whose truth is known: totals, peaks, classes, and what
 * is said when a recording is not whole.
 */
#include "report_scene.h"

/* ---- random histories against a reference that recomputes everything ---- */

#define DEVICES 4
#define ORIGINS 6
#define LIVES 64
#define SETS 6

struct reference_life {
    uint64_t serial; /* 0: none */
    unsigned origin, set;
    uint8_t region;
    uint64_t bytes, footprint_bytes;
    unsigned born;
};

struct reference {
    struct reference_life lives[LIVES];
    uint64_t allocs[DEVICES][TTM_REGION_COUNT], frees[DEVICES][TTM_REGION_COUNT];
    struct ttm_held closed[DEVICES][TTM_REGION_COUNT];
    uint64_t peak_bytes[DEVICES][TTM_REGION_COUNT], peak[DEVICES][TTM_REGION_COUNT];
    struct ttm_held at_peak[DEVICES][TTM_REGION_COUNT][ORIGINS];
    struct ttm_held at_mark[ORIGINS];
    uint64_t origin_allocs[ORIGINS], origin_frees[ORIGINS];
    unsigned step, marked, peaked[DEVICES][TTM_REGION_COUNT]; /* steps */
};

/* The devices of each set, as bits. */
static const unsigned set_bits[SETS] = {1, 2, 4, 8, 15, 6};

static struct ttm_held held_by(const struct reference *ref, unsigned device, unsigned region,
                               int origin)
{
    struct ttm_held sum = {0};

    for (unsigned i = 0; i < LIVES; i++) {
        const struct reference_life *life = &ref->lives[i];
        const struct ttm_held one = {1, life->bytes, life->footprint_bytes};
        if (life->serial && life->region == region && (set_bits[life->set] >> device & 1) &&
            (origin < 0 || life->origin == (unsigned)origin))
            ttm_held_add(&sum, &one);
    }
    return sum;
}

static void look_for_peaks(struct reference *ref)
{
    for (unsigned d = 0; d < DEVICES; d++) {
        for (unsigned r = 0; r < 2; r++) {
            const struct ttm_held now = held_by(ref, d, r, -1);
            if (now.bytes > ref->peak_bytes[d][r])
                ref->peak_bytes[d][r] = now.bytes;
            if (now.footprint_bytes <= ref->peak[d][r])
                continue;
            ref->peak[d][r] = now.footprint_bytes;
            ref->peaked[d][r] = ref->step;
            for (unsigned o = 0; o < ORIGINS; o++)
                ref->at_peak[d][r][o] = held_by(ref, d, r, (int)o);
        }
    }
}

static void count_end(struct reference *ref, struct reference_life *life, enum ttm_recorded_how how)
{
    const struct ttm_held one = {1, life->bytes, life->footprint_bytes};

    for (unsigned d = 0; d < DEVICES; d++) {
        if (!(set_bits[life->set] >> d & 1))
            continue;
        ref->frees[d][life->region] += how == TTM_ENDED_FREED;
        if (how == TTM_ENDED_DEVICE_CLOSED)
            ttm_held_add(&ref->closed[d][life->region], &one);
    }
    ref->origin_frees[life->origin] += how == TTM_ENDED_FREED;
    life->serial = 0;
}

/* A name holds from the birth on: what was live at a peak was live under it. */
static void rename_life(struct reference *ref, struct reference_life *life, unsigned origin)
{
    const struct ttm_held one = {1, life->bytes, life->footprint_bytes};

    for (unsigned d = 0; d < DEVICES; d++) {
        if ((set_bits[life->set] >> d & 1) && life->born <= ref->peaked[d][life->region]) {
            ttm_held_take(&ref->at_peak[d][life->region][life->origin], &one);
            ttm_held_add(&ref->at_peak[d][life->region][origin], &one);
        }
    }
    if (ref->marked > 0 && life->born <= ref->marked) {
        ttm_held_take(&ref->at_mark[life->origin], &one);
        ttm_held_add(&ref->at_mark[origin], &one);
    }
    ref->origin_allocs[life->origin]--;
    ref->origin_allocs[origin]++;
    life->origin = origin;
}

static void random_step(struct story *story, struct reference *ref, const uint32_t *origins,
                        uint64_t random)
{
    static const enum ttm_recorded_how ways[] = {TTM_ENDED_FREED, TTM_ENDED_FREED, TTM_ENDED_FREED,
                                                 TTM_ENDED_DEVICE_CLOSED, TTM_ENDED_REPLACED};
    struct reference_life *life = &ref->lives[(random >> 40) % LIVES];

    if (life->serial && (random >> 13) % 7 == 0) { /* it gets another name */
        const unsigned origin = (unsigned)(random >> 21) % ORIGINS;
        rename_life(ref, life, origin);
        story_must(ttm_encoder_rename(story->enc, story->now_ns, story->process, life->serial,
                                      origins[origin]),
                   "rename");
        return;
    }
    if (life->serial) {
        const enum ttm_recorded_how how = ways[(random >> 33) % 5];
        story_end(story, life->serial, how);
        count_end(ref, life, how);
        return;
    }
    *life = (struct reference_life){.origin = (unsigned)(random >> 21) % ORIGINS,
                                    .set = (unsigned)(random >> 27) % SETS,
                                    .region = (random >> 31) % 2,
                                    .born = ref->step,
                                    .bytes = 1 + (random >> 35) % 5000};
    story->devices = life->set < DEVICES ? life->set : STORY_MESH + life->set;
    const struct ttm_recorded_life born =
        story_life(story, origins[life->origin], life->region, life->bytes);
    story_must(ttm_encoder_birth(story->enc, &born), "birth");
    story_wait(story, 1000);
    life->serial = born.serial;
    life->footprint_bytes = born.footprint_bytes;
    ref->origin_allocs[life->origin]++;
    for (unsigned d = 0; d < DEVICES; d++)
        ref->allocs[d][life->region] += set_bits[life->set] >> d & 1;
}

static void say_sets(struct story *story)
{
    for (unsigned s = DEVICES; s < SETS; s++) {
        uint8_t list[2 * DEVICES];
        size_t n = 0;
        for (uint16_t d = 0; d < DEVICES; d++) {
            if (set_bits[s] >> d & 1) {
                put_le16(list + n, d);
                n += 2;
            }
        }
        story_note(story, STORY_MESH + s, TTM_NOTED_DEVICES, list, n);
    }
}

/* No peak is lost in a course, and it ends with what is there. */
static void compare_course(const struct ttm_course *course, uint64_t peak, uint64_t now)
{
    uint64_t most = 0;

    for (uint32_t i = 0; course && i < course->count; i++)
        most = course->spans[i].max > most ? course->spans[i].max : most;
    assert_int_equal(most, peak);
    assert_int_equal(course ? course->spans[course->count - 1].last : 0, now);
}

static void compare_region(const struct ttm_report_process *process, const struct reference *ref,
                           unsigned d, unsigned r)
{
    const struct ttm_report_region *region = &process->devices[d].region[r];
    struct ttm_held remaining = held_by(ref, d, r, -1), shares[ORIGINS] = {{0}};

    ttm_held_add(&remaining, &ref->closed[d][r]);
    assert_int_equal(region->allocs, ref->allocs[d][r]);
    assert_int_equal(region->frees, ref->frees[d][r]);
    assert_memory_equal(&region->remaining, &remaining, sizeof(remaining));
    assert_int_equal(region->peak_bytes, ref->peak_bytes[d][r]);
    assert_int_equal(region->peak_footprint_bytes, ref->peak[d][r]);
    compare_course(region->course, ref->peak[d][r], held_by(ref, d, r, -1).footprint_bytes);
    for (uint32_t i = 0; i < region->share_count; i++) {
        const char *name = process->origins[region->shares[i].origin].words.name;
        ttm_held_add(&shares[name[0] - 'a'], &region->shares[i].held);
    }
    assert_memory_equal(shares, ref->at_peak[d][r], sizeof(shares));
}

static void compare(const struct ttm_report_process *process, const struct reference *ref)
{
    struct ttm_held at_mark[ORIGINS] = {{0}};
    uint64_t allocs[ORIGINS] = {0}, frees[ORIGINS] = {0};

    assert_int_equal(process->device_count, DEVICES);
    for (unsigned d = 0; d < DEVICES; d++) {
        for (unsigned r = 0; r < 2; r++)
            compare_region(process, ref, d, r);
    }
    for (uint32_t i = 0; i < process->origin_count; i++) {
        const struct ttm_report_origin *origin = &process->origins[i];
        const unsigned o = (unsigned)(origin->words.name[0] - 'a');
        uint64_t sized = 0;
        allocs[o] += origin->allocs;
        frees[o] += origin->frees;
        ttm_held_add(&at_mark[o], &origin->moments[0]);
        for (uint32_t k = 0; k < origin->size_count; k++)
            sized += origin->sizes[k].count;
        assert_int_equal(sized, origin->remaining.count);
    }
    assert_memory_equal(allocs, ref->origin_allocs, sizeof(allocs));
    assert_memory_equal(frees, ref->origin_frees, sizeof(frees));
    assert_memory_equal(at_mark, ref->at_mark, sizeof(at_mark));
}

static void random_histories_agree_with_a_reference(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct memory_file file;
        struct reference ref = {0};
        struct ttm_report report;
        uint64_t random = seed * 7919;
        uint32_t origins[ORIGINS];

        memory_begin(&file, seed % 3 == 0 ? 50 : 0);
        struct story story = story_begin(file.encoder, 1, START_NS, 7, "random");
        say_sets(&story);
        for (unsigned o = 0; o < ORIGINS; o++) {
            const char name[2] = {(char)('a' + o), '\0'};
            origins[o] = story_origin(&story, &(struct story_words){.name = name});
        }
        for (unsigned d = 0; d < DEVICES; d++) { /* so that each device is named */
            ref.lives[d] = (struct reference_life){.set = d, .region = 0, .bytes = 32};
            story.devices = d;
            const struct ttm_recorded_life born = story_life(&story, origins[0], 0, 32);
            story_must(ttm_encoder_birth(story.enc, &born), "birth");
            ref.lives[d].serial = born.serial;
            ref.lives[d].footprint_bytes = born.footprint_bytes;
            ref.allocs[d][0]++;
            ref.origin_allocs[0]++;
            look_for_peaks(&ref);
        }
        for (unsigned step = 0; step < 600; step++) {
            random = random * 6364136223846793005ull + 1442695040888963407ull;
            ref.step = step + 1;
            random_step(&story, &ref, origins, random);
            look_for_peaks(&ref);
            if (step == 200 || step == 400) { /* the last of that name counts */
                story_mark(&story, "here");
                ref.marked = ref.step;
                memset(ref.at_mark, 0, sizeof(ref.at_mark));
                for (unsigned i = 0; i < LIVES; i++) {
                    const struct reference_life *life = &ref.lives[i];
                    const struct ttm_held one = {1, life->bytes, life->footprint_bytes};
                    if (life->serial)
                        ttm_held_add(&ref.at_mark[life->origin], &one);
                }
            }
        }
        end_story(&file, "here", &report);
        assert_int_equal(report.process_count, 1);
        compare(&report.processes[0], &ref);
        ttm_report_done(&report);
    }
}

/* ---- banks ---- */

/* What lay there before the device was opened again has no place in the bank. */
static void a_bank_shows_what_lay_there_when_the_device_was_last_closed(void **state)
{
    struct memory_file file;
    struct ttm_report report;
    (void)state;

    memory_begin(&file, 0);
    struct story story = story_begin(file.encoder, 1, START_NS, 7, "python3 x.py");
    story_devices(&story, 1);
    const uint32_t a = story_line(&story, "x.py:5:first", "ttnn.zeros");
    const uint32_t b = story_line(&story, "x.py:6:second", "ttnn.ones");
    const uint64_t early[] = {story_birth(&story, a, TTM_REGION_DRAM, 12 * 64 * KIB),
                              story_birth(&story, a, TTM_REGION_L1, 64 * 4 * KIB)};
    for (unsigned i = 0; i < COUNT_OF(early); i++)
        story_end(&story, early[i], TTM_ENDED_DEVICE_CLOSED);
    story.next_address[TTM_REGION_DRAM] = 0;
    const uint64_t freed = story_birth(&story, b, TTM_REGION_DRAM, 12 * 2 * KIB);
    const uint64_t kept = story_birth(&story, b, TTM_REGION_DRAM, 12 * 4 * KIB);
    const uint64_t last = story_birth(&story, b, TTM_REGION_DRAM, 12 * 6 * KIB);
    const uint64_t middle = story_birth(&story, b, TTM_REGION_DRAM, 12 * 8 * KIB);
    story_birth(&story, a, TTM_REGION_DRAM, 12 * 10 * KIB);
    story_free(&story, freed);
    story_free(&story, middle);
    story_end(&story, kept, TTM_ENDED_DEVICE_CLOSED);
    story_end(&story, last, TTM_ENDED_DEVICE_CLOSED);
    story_exit(&story, 0);
    end_story(&file, NULL, &report);
    const struct ttm_report_process *process = &report.processes[0];
    const struct ttm_bank *bank = process->devices[0].region[TTM_REGION_DRAM].bank;
    assert_non_null(bank);
    assert_null(process->devices[0].region[TTM_REGION_L1].bank);
    assert_int_equal(bank->start, 0x10000 + 2 * KIB);
    assert_int_equal(bank->end, 0x10000 + 30 * KIB);
    assert_int_equal(bank->held_bytes, 20 * KIB);
    assert_int_equal(bank->gap_count, 1);
    assert_int_equal(bank->largest_gap_bytes, 8 * KIB);
    assert_int_equal(bank->run_count, 2);
    assert_string_equal(process->origins[bank->runs[0].origin].words.operation, "ttnn.ones");
    assert_int_equal(bank->runs[0].count, 2);
    assert_string_equal(process->origins[bank->runs[1].origin].words.operation, "ttnn.zeros");
    ttm_report_done(&report);
}

/* ---- classes ---- */

static void what_a_loop_keeps_is_growing_and_what_it_frees_is_temporary(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const uint32_t leak = story_line(&scene.story, "x.py:5:keep|x.py:9:main", "ttnn.zeros");
    for (unsigned i = 0; i < 10; i++) {
        run_steps(&scene, 3);
        story_birth(&scene.story, leak, TTM_REGION_DRAM, 128 * KIB);
    }
    end_scene(&scene);
    expect(&scene, "ttnn.zeros", TTM_CLASS_GROWING, true);
    expect(&scene, "ttnn.add", TTM_CLASS_TEMPORARY, false);
    const struct ttm_report_origin *origin = find(scene.process, "ttnn.zeros", "");
    assert_int_equal(origin->remaining.count, 10);
    assert_int_equal(origin->size_count, 1);
    assert_int_equal(origin->sizes[0].bytes, 128 * KIB);
    assert_int_equal(origin->words.python_count, 2);
    assert_string_equal(origin->words.python[0].function, "keep");
    ttm_report_done(&scene.report);
}

/* A kind of allocation that stays with programs in their cache. */
struct cached {
    uint8_t region;
    uint8_t kind;
    uint8_t flags;
    enum ttm_class class;
};

static const struct cached cached_kinds[] = {
    {TTM_REGION_DRAM, TTM_BUFFER_OF_PROGRAM, 0, TTM_CLASS_PROGRAM_CACHE},
    {TTM_REGION_L1_SMALL, TTM_BUFFER_OF_PROGRAM, 0, TTM_CLASS_PROGRAM_CACHE},
    {TTM_REGION_CB, 0, TTM_SITE_PROGRAM, TTM_CLASS_CIRCULAR_BUFFER},
    {TTM_REGION_KERNEL, TTM_KERNEL_APPLICATION, TTM_SITE_PROGRAM, TTM_CLASS_KERNEL},
};

/* In each step a new shape: a result that is freed, and something that its program keeps. */
static void run_new_shapes(struct scene *scene, const struct cached *cached, unsigned steps,
                           uint64_t *serials)
{
    const uint32_t origin = story_line(&scene->story, "x.py:5:step", "ttnn.reshape");

    for (unsigned i = 0; i < steps; i++) {
        run_steps(scene, 2);
        const uint64_t result = story_birth(&scene->story, origin, TTM_REGION_DRAM, 64 * KIB);
        struct ttm_recorded_life life =
            story_life(&scene->story, origin, cached->region, (i + 1) * KIB);
        life.kind = cached->kind;
        life.flags = cached->flags;
        story_must(ttm_encoder_birth(scene->story.enc, &life), "birth");
        serials[i] = life.serial;
        story_free(&scene->story, result);
    }
}

static void what_the_program_cache_keeps_is_never_a_suspect_however_it_grows(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(cached_kinds) / sizeof(cached_kinds[0]); k++) {
        struct scene scene;
        uint64_t serials[30];
        unsigned found = 0;
        begin_scene(&scene);
        run_new_shapes(&scene, &cached_kinds[k], 30, serials);
        end_scene(&scene);
        for (uint32_t i = 0; i < scene.process->origin_count; i++) {
            const struct ttm_report_origin *origin = &scene.process->origins[i];
            assert_false(origin->verdict.is_suspect);
            if (origin->remaining.count == 0)
                continue;
            found++;
            assert_int_equal(origin->remaining.count, 30);
            assert_int_equal(origin->allocs, 30); /* the results are others */
            assert_int_equal(origin->verdict.class, cached_kinds[k].class);
            assert_true(origin->verdict.is_growing_cache);
            assert_non_null(strstr(origin->verdict.advice, "clear_program_cache()"));
        }
        assert_int_equal(found, 1);
        assert_int_equal(ttm_report_leaked_bytes(&scene.report), 0);
        assert_true(ttm_report_leaked_or_cached_bytes(&scene.report) > 0);
        ttm_report_done(&scene.report);
    }
}

static void a_program_cache_that_ends_with_its_device_has_not_grown(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(cached_kinds) / sizeof(cached_kinds[0]); k++) {
        struct scene scene;
        uint64_t serials[30];
        begin_scene(&scene);
        run_new_shapes(&scene, &cached_kinds[k], 30, serials);
        for (unsigned i = 0; i < 30; i++)
            story_free(&scene.story, serials[i]);
        end_scene(&scene);
        for (uint32_t i = 0; i < scene.process->origin_count; i++)
            assert_int_not_equal(scene.process->origins[i].verdict.class, TTM_CLASS_GROWING);
        ttm_report_done(&scene.report);
    }
}

/* What keeps an origin, as the program said it in that round. */
static void say_keepers(struct scene *scene, uint32_t origin, uint8_t cause, uint16_t round,
                        const char *keeper)
{
    const struct ttm_keepers_note note = {
        .origin = origin,
        .round = round,
        .cause = cause,
        .count = keeper ? 1 : 0,
        .keepers = {{keeper, (uint16_t)(keeper ? strlen(keeper) : 0)}},
    };
    uint8_t buf[TTM_KEEPERS_NOTE_SIZE_MAX];

    story_note(&scene->story, scene->story.next_note++, TTM_NOTE_KEEPERS, buf,
               ttm_keepers_note_encode(&note, buf));
}

static void the_last_word_on_what_keeps_an_origin_is_told_and_no_other(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const uint32_t leak = story_line(&scene.story, "x.py:5:keep|x.py:9:main", "ttnn.zeros");
    const uint32_t native = story_line(&scene.story, "x.py:6:lost|x.py:9:main", "ttnn.ones");
    for (unsigned i = 0; i < 10; i++) {
        run_steps(&scene, 3);
        story_birth(&scene.story, leak, TTM_REGION_DRAM, 128 * KIB);
        story_birth(&scene.story, native, TTM_REGION_DRAM, 128 * KIB);
    }
    say_keepers(&scene, leak, TTM_CAUSE_FRAME, 1, "variable x of main");
    say_keepers(&scene, leak, TTM_CAUSE_CYCLE, 2, "cycle through Node.me");
    say_keepers(&scene, native, TTM_CAUSE_NONE, 2, NULL);
    say_keepers(&scene, 99999, TTM_CAUSE_CYCLE, 2, "nobody knows this origin");
    end_scene(&scene);
    const struct ttm_report_origin *kept = find(scene.process, "ttnn.zeros", "");
    assert_true(kept->keepers.is_known && kept->verdict.is_suspect);
    assert_string_equal(ttm_cause_name(kept->keepers.cause), "cycle");
    assert_int_equal(kept->keepers.count, 1);
    assert_string_equal(kept->keepers.texts[0], "cycle through Node.me");
    assert_non_null(strstr(kept->verdict.advice, "gc.collect()"));
    const struct ttm_report_origin *unseen = find(scene.process, "ttnn.ones", "");
    assert_true(unseen->keepers.is_known && unseen->keepers.count == 0);
    assert_null(ttm_cause_name(unseen->keepers.cause));
    assert_false(find(scene.process, "ttnn.add", "")->keepers.is_known);
    ttm_report_done(&scene.report);
}

static void weights_of_one_comprehension_are_steady_also_at_the_very_end(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const uint32_t weights = story_line(&scene.story, "x.py:3:load", "ttnn.from_torch");
    run_steps(&scene, 20);
    for (unsigned i = 0; i < 8; i++)
        story_birth(&scene.story, weights, TTM_REGION_DRAM, KIB << i);
    end_scene(&scene);
    expect(&scene, "ttnn.from_torch", TTM_CLASS_STEADY, false);
    ttm_report_done(&scene.report);
}

/* As when tracking was stopped and begins again: all that is live is told at once. */
static void what_was_told_later_is_no_loop(void **state)
{
    (void)state;
    for (unsigned has_line = 0; has_line < 2; has_line++) {
        struct scene scene;
        begin_scene(&scene);
        const uint32_t line =
            has_line ? story_line(&scene.story, "x.py:3:step", "ttnn.multiply") : 0;
        for (unsigned i = 0; i < 36; i++) {
            struct ttm_recorded_life life =
                story_life(&scene.story, line, TTM_REGION_DRAM, (1 + i % 2) * 4 * KIB);
            life.is_told = true;
            story_must(ttm_encoder_birth(scene.story.enc, &life), "birth");
        }
        end_scene(&scene);
        const struct ttm_report_origin *origin = &scene.process->origins[0];
        assert_int_equal(origin->remaining.count, 36);
        assert_int_equal(origin->verdict.class, TTM_CLASS_UNSURE);
        assert_false(origin->verdict.is_suspect);
        ttm_report_done(&scene.report);
    }
}

static void births_of_one_size_without_an_origin_are_no_loop(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    for (unsigned i = 0; i < 36; i++)
        story_birth(&scene.story, 0, TTM_REGION_DRAM, 4 * KIB);
    end_scene(&scene);
    expect(&scene, "", TTM_CLASS_UNSURE, false);
    expect_why(&scene, "", "nothing is known of where they come from");
    ttm_report_done(&scene.report);
}

/* As the hook tells what is live when tracking begins again. */
static void births_of_one_moment_without_an_origin_are_no_loop(void **state)
{
    (void)state;
    for (unsigned is_spread = 0; is_spread < 2; is_spread++) {
        struct scene scene;
        begin_scene(&scene);
        const uint64_t begin_ns = scene.story.now_ns;
        const uint32_t line = story_line(&scene.story, "x.py:3:main", "ttnn.zeros");
        story_free(&scene.story, story_birth(&scene.story, line, TTM_REGION_DRAM, 4 * KIB));
        for (unsigned i = 0; i < 36; i++) {
            story_birth(&scene.story, 0, TTM_REGION_DRAM, (1 + i % 2) * 4 * KIB);
            story_flash(&scene.story, line, TTM_REGION_DRAM, 4 * KIB);
            story_wait(&scene.story, is_spread ? 100000000 : 0);
        }
        story_wait(&scene.story, 100 * (scene.story.now_ns - begin_ns) * !is_spread + 1000000);
        end_scene(&scene);
        expect(&scene, "", is_spread ? TTM_CLASS_GROWING : TTM_CLASS_UNSURE, is_spread);
        ttm_report_done(&scene.report);
    }
}

static uint32_t named_stack(struct story *story, const char *caller)
{
    static uint8_t buf[TTM_NAMED_STACK_NOTE_SIZE_MAX];
    static const char callee[] = "tt::tt_metal::BufferImpl::create";
    const struct ttm_named_stack_note stack = {
        .count = 2,
        .frames = {{.name = {callee, sizeof(callee) - 1}},
                   {.name = {caller, (uint16_t)strlen(caller)}}},
    };

    story_note(story, story->next_note, TTM_NOTE_NAMED_STACK, buf,
               ttm_named_stack_note_encode(&stack, buf));
    return story->next_note++;
}

static const struct ttm_verdict *verdict_of_line(const struct scene *scene, uint32_t line)
{
    for (uint32_t i = 0; i < scene->process->origin_count; i++) {
        const struct ttm_report_origin *origin = &scene->process->origins[i];
        if (origin->words.python_count > 0 && origin->words.python[0].line == line)
            return &origin->verdict;
    }
    fail_msg("nothing of line %u", line);
    return NULL;
}

/* As a log has it: native functions tell at most that data was brought to a device. */
static void an_operation_that_is_not_known_does_not_load(void **state)
{
    (void)state;
    for (unsigned rounds = 20; rounds <= 200; rounds += 180) {
        for (unsigned is_over = 0; is_over < 2; is_over++) {
            struct scene scene;
            uint32_t lines[3];
            begin_scene(&scene);
            for (unsigned i = 0; i < 3; i++) {
                char python[32];
                (void)snprintf(python, sizeof(python), "x.py:%u:step", 5 + i);
                const struct story_words words = {
                    .python = python,
                    .native_note = named_stack(&scene.story, i == 0 ? "tt::tt_metal::to_device"
                                                                    : "ttnn::prim::binary_ng")};
                lines[i] = story_origin(&scene.story, &words);
            }
            for (unsigned i = 0; i < 30; i++)
                story_birth(&scene.story, lines[0], TTM_REGION_DRAM, 64 * KIB);
            for (unsigned i = 0; i < rounds; i++) {
                const uint64_t serial =
                    story_birth(&scene.story, lines[1], TTM_REGION_DRAM, 64 * KIB);
                story_birth(&scene.story, lines[2], TTM_REGION_DRAM, 64 * KIB);
                story_free(&scene.story, serial);
            }
            run_steps(&scene, is_over ? 4 * rounds : 1);
            end_scene(&scene);
            assert_int_equal(verdict_of_line(&scene, 5)->class, TTM_CLASS_STEADY);
            assert_int_equal(verdict_of_line(&scene, 7)->class,
                             is_over ? TTM_CLASS_UNSURE : TTM_CLASS_GROWING);
            ttm_report_done(&scene.report);
        }
    }
}

static void weights_loaded_layer_by_layer_before_the_loop_are_steady(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const uint32_t a = story_line(&scene.story, "x.py:3:load", "ttnn.from_torch");
    const uint32_t b = story_line(&scene.story, "x.py:4:load", "ttnn.to_device");
    for (unsigned i = 0; i < 32; i++) {
        story_birth(&scene.story, a, TTM_REGION_DRAM, 64 * KIB);
        story_birth(&scene.story, b, TTM_REGION_DRAM, 64 * KIB);
    }
    run_steps(&scene, 200);
    end_scene(&scene);
    expect(&scene, "ttnn.from_torch", TTM_CLASS_STEADY, false);
    expect(&scene, "ttnn.to_device", TTM_CLASS_STEADY, false);
    ttm_report_done(&scene.report);
}

static void buffers_that_take_turns_are_a_working_set(void **state)
{
    struct scene scene;
    uint64_t ring[4] = {0};
    (void)state;

    begin_scene(&scene);
    const uint32_t turn = story_line(&scene.story, "x.py:6:swap", "ttnn.empty");
    for (unsigned i = 0; i < 100; i++) {
        run_steps(&scene, 1);
        if (ring[i % 4])
            story_free(&scene.story, ring[i % 4]);
        ring[i % 4] = story_birth(&scene.story, turn, TTM_REGION_L1, 8 * KIB);
    }
    end_scene(&scene);
    expect(&scene, "ttnn.empty", TTM_CLASS_STEADY, false);
    ttm_report_done(&scene.report);
}

static void a_free_that_is_sometimes_missing_is_growing(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const uint32_t leak = story_line(&scene.story, "x.py:6:attempt", "ttnn.matmul");
    for (unsigned i = 0; i < 100; i++) {
        run_steps(&scene, 1);
        const uint64_t serial = story_birth(&scene.story, leak, TTM_REGION_L1, 8 * KIB);
        if (i % 10 != 0)
            story_free(&scene.story, serial);
    }
    end_scene(&scene);
    expect(&scene, "ttnn.matmul", TTM_CLASS_GROWING, true);
    assert_non_null(strstr(find(scene.process, "ttnn.matmul", "")->verdict.advice, "exception"));
    ttm_report_done(&scene.report);
}

static void a_leak_is_seen_although_each_buffer_has_a_name_of_its_own(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const uint32_t python = story_python(&scene.story, "x.py:5:keep");
    const uint32_t operation = story_string(&scene.story, "ttnn.zeros");
    for (unsigned i = 0; i < 12; i++) {
        uint8_t buf[TTM_ORIGIN_NOTE_SIZE];
        char name[16];
        (void)snprintf(name, sizeof(name), "kv_%u", i);
        const struct ttm_origin_note note = {
            .name = story_string(&scene.story, name), .python = python, .operation = operation};
        ttm_origin_note_encode(&note, buf);
        const uint32_t origin = scene.story.next_note++;
        story_note(&scene.story, origin, TTM_NOTED_ORIGIN, buf, sizeof(buf));
        run_steps(&scene, 2);
        story_birth(&scene.story, origin, TTM_REGION_DRAM, 64 * KIB);
    }
    end_scene(&scene);
    const struct ttm_report_origin *origin = find(scene.process, "ttnn.zeros", "kv_3");
    assert_int_equal(origin->verdict.class, TTM_CLASS_GROWING);
    assert_true(origin->verdict.is_suspect);
    assert_int_equal(origin->remaining.count, 1);
    ttm_report_done(&scene.report);
}

static void a_tight_loop_is_seen_by_its_marks(void **state)
{
    (void)state;
    for (int has_marks = 0; has_marks < 2; has_marks++) {
        struct scene scene;
        begin_scene(&scene);
        run_steps(&scene, 3);
        const uint32_t leak = story_line(&scene.story, "x.py:5:keep", "ttnn.zeros");
        for (unsigned i = 0; i < 10; i++) {
            if (has_marks)
                story_mark(&scene.story, "step");
            story_birth(&scene.story, leak, TTM_REGION_DRAM, 64 * KIB);
        }
        story_wait(&scene.story, 1000 * STORY_MS);
        end_scene(&scene);
        expect(&scene, "ttnn.zeros", has_marks ? TTM_CLASS_GROWING : TTM_CLASS_STEADY, has_marks);
        ttm_report_done(&scene.report);
    }
}

static void layers_loaded_before_a_few_steps_are_steady(void **state)
{
    (void)state;
    for (unsigned steps = 1; steps <= 16; steps *= 2) {
        struct scene scene;
        begin_scene(&scene);
        const uint32_t a = story_line(&scene.story, "x.py:3:load", "ttnn.from_torch");
        const uint32_t b = story_line(&scene.story, "x.py:4:load", "ttnn.to_device");
        const uint32_t c = story_line(&scene.story, "x.py:20:step", "ttnn.mul");
        const uint32_t d = story_line(&scene.story, "x.py:21:step", "ttnn.exp");
        for (unsigned i = 0; i < 300; i++) {
            story_birth(&scene.story, a, TTM_REGION_DRAM, 64 * KIB);
            story_birth(&scene.story, b, TTM_REGION_DRAM, 64 * KIB);
        }
        for (unsigned i = 0; i < steps; i++) {
            run_steps(&scene, 1);
            story_flash(&scene.story, c, TTM_REGION_L1, 4 * KIB);
            story_flash(&scene.story, d, TTM_REGION_L1, 4 * KIB);
        }
        end_scene(&scene);
        expect(&scene, "ttnn.from_torch", TTM_CLASS_STEADY, false);
        expect(&scene, "ttnn.to_device", TTM_CLASS_STEADY, false);
        ttm_report_done(&scene.report);
    }
}

static void a_leak_before_a_few_last_words_is_growing(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const uint32_t leak = story_line(&scene.story, "x.py:5:keep", "ttnn.zeros");
    for (unsigned i = 0; i < 10; i++) {
        run_steps(&scene, 1);
        story_birth(&scene.story, leak, TTM_REGION_DRAM, 128 * KIB);
    }
    run_steps(&scene, 1);
    for (unsigned i = 0; i < 3; i++) {
        const char *const words[] = {"x.py:30:end", "x.py:31:end", "x.py:32:end"};
        story_flash(&scene.story, story_line(&scene.story, words[i], "ttnn.exp"), TTM_REGION_L1,
                    4 * KIB);
    }
    end_scene(&scene);
    expect(&scene, "ttnn.zeros", TTM_CLASS_GROWING, true);
    ttm_report_done(&scene.report);
}

/* Two lines of another thread than the first: "ttnn.zeros" and "ttnn.mul". */
static void make_thread_lines(struct scene *scene, uint32_t lines[2])
{
    struct ttm_origin_note note = {.thread = story_string(&scene->story, "Thread-1")};

    for (unsigned i = 0; i < 2; i++) {
        uint8_t buf[TTM_ORIGIN_NOTE_SIZE];
        note.operation = story_string(&scene->story, i == 0 ? "ttnn.zeros" : "ttnn.mul");
        note.python = story_python(&scene->story, i == 0 ? "x.py:5:work" : "x.py:6:work");
        ttm_origin_note_encode(&note, buf);
        lines[i] = scene->story.next_note++;
        story_note(&scene->story, lines[i], TTM_NOTED_ORIGIN, buf, sizeof(buf));
    }
}

static void a_leak_of_a_thread_that_ends_is_growing_and_what_it_loaded_is_not(void **state)
{
    (void)state;
    for (int is_working = 0; is_working < 2; is_working++) {
        struct scene scene;
        begin_scene(&scene);
        run_steps(&scene, 1); /* the first thread is the program's */
        uint32_t lines[2];
        make_thread_lines(&scene, lines);
        for (unsigned i = 0; i < 20; i++) {
            story_birth(&scene.story, lines[0], TTM_REGION_DRAM, 64 * KIB);
            if (is_working)
                story_flash(&scene.story, lines[1], TTM_REGION_L1, 4 * KIB);
            else
                story_birth(&scene.story, lines[1], TTM_REGION_L1, 4 * KIB);
        }
        const uint32_t late = story_line(&scene.story, "x.py:50:rest", "ttnn.exp");
        for (unsigned i = 0; i < 100; i++) {
            run_steps(&scene, 1);
            story_flash(&scene.story, late, TTM_REGION_L1, 4 * KIB);
        }
        end_scene(&scene);
        expect(&scene, "ttnn.zeros", is_working ? TTM_CLASS_GROWING : TTM_CLASS_STEADY, is_working);
        ttm_report_done(&scene.report);
    }
}

/* The first thread got most of the processor in the middle: in its births the leak looks settled. */
static void a_leak_of_a_thread_that_others_outran_is_growing(void **state)
{
    struct scene scene;
    uint32_t lines[2];
    (void)state;

    begin_scene(&scene);
    const uint32_t second = story_line(&scene.story, "x.py:98:step", "ttnn.mul");
    run_steps(&scene, 1);
    make_thread_lines(&scene, lines);
    for (unsigned i = 0; i < 41; i++) {
        if (i < 40)
            story_birth(&scene.story, lines[0], TTM_REGION_DRAM, 64 * KIB);
        for (unsigned step = i == 36 ? 300 : i == 40 ? 50 : 5; step > 0; step--) {
            run_steps(&scene, 1);
            story_flash(&scene.story, second, TTM_REGION_L1, 4 * KIB);
        }
    }
    end_scene(&scene);
    expect(&scene, "ttnn.zeros", TTM_CLASS_GROWING, true);
    ttm_report_done(&scene.report);
}

/* 'room' buffers are kept and the oldest goes, or one at random. */
static void a_cache_that_evicts_is_a_working_set(void **state)
{
    (void)state;
    for (unsigned room = 4; room <= 32; room *= 2) {
        struct scene scene;
        uint64_t kept[32] = {0}, random = room;
        begin_scene(&scene);
        const uint32_t fifo = story_line(&scene.story, "x.py:6:swap", "ttnn.empty");
        const uint32_t chance = story_line(&scene.story, "x.py:7:swap", "ttnn.full");
        uint64_t other[32] = {0};
        for (unsigned i = 0; i < room * 4; i++) {
            run_steps(&scene, 1);
            random = random * 6364136223846793005ull + 1442695040888963407ull;
            const unsigned at = i < room ? i : (unsigned)(random >> 33) % room;
            if (kept[i % room])
                story_free(&scene.story, kept[i % room]);
            kept[i % room] = story_birth(&scene.story, fifo, TTM_REGION_L1, 8 * KIB);
            if (other[at])
                story_free(&scene.story, other[at]);
            other[at] = story_birth(&scene.story, chance, TTM_REGION_L1, 8 * KIB);
        }
        end_scene(&scene);
        expect(&scene, "ttnn.empty", TTM_CLASS_STEADY, false);
        expect(&scene, "ttnn.full", TTM_CLASS_STEADY, false);
        ttm_report_done(&scene.report);
    }
}

static void a_line_that_frees_at_first_and_then_keeps_is_growing(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const uint32_t leak = story_line(&scene.story, "x.py:6:attempt", "ttnn.matmul");
    for (unsigned i = 0; i < 100; i++) {
        run_steps(&scene, 1);
        const uint64_t serial = story_birth(&scene.story, leak, TTM_REGION_L1, 8 * KIB);
        if (i < 80)
            story_free(&scene.story, serial);
    }
    end_scene(&scene);
    expect(&scene, "ttnn.matmul", TTM_CLASS_GROWING, true);
    ttm_report_done(&scene.report);
}

/* The same function makes them for two callers, who take turns. */
static void callers_of_one_function_are_different_visits(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const uint32_t a = story_line(&scene.story, "x.py:2:new|x.py:8:main", "ttnn.exp");
    const uint32_t b = story_line(&scene.story, "x.py:2:new|x.py:9:main", "ttnn.log");
    for (unsigned i = 0; i < 10; i++) {
        story_birth(&scene.story, a, TTM_REGION_DRAM, 64 * KIB);
        story_birth(&scene.story, b, TTM_REGION_DRAM, 64 * KIB);
    }
    end_scene(&scene);
    expect(&scene, "ttnn.exp", TTM_CLASS_GROWING, true);
    expect(&scene, "ttnn.log", TTM_CLASS_GROWING, true);
    ttm_report_done(&scene.report);
}

static void a_warm_up_is_over_when_one_line_alone_goes_on(void **state)
{
    struct scene scene;
    uint64_t last = 0;
    (void)state;

    begin_scene(&scene);
    const uint32_t cache = story_line(&scene.story, "x.py:6:mask", "ttnn.full");
    for (unsigned i = 0; i < 10; i++) {
        if (i < 3)
            story_birth(&scene.story, cache, TTM_REGION_L1, 8 * KIB);
        const uint64_t next = story_birth(&scene.story, scene.other, TTM_REGION_L1, 4 * KIB);
        if (last)
            story_free(&scene.story, last);
        last = next;
    }
    end_scene(&scene);
    expect(&scene, "ttnn.full", TTM_CLASS_STEADY, false);
    expect(&scene, "ttnn.add", TTM_CLASS_STEADY, false);
    ttm_report_done(&scene.report);
}

/* Buckets of lengths: one after the other is met for the first time, more and more rarely. */
static void a_cache_that_fills_ever_more_slowly_has_settled(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const uint32_t cache = story_line(&scene.story, "x.py:6:mask", "ttnn.full");
    for (unsigned i = 1; i <= 160; i++) {
        run_steps(&scene, 1);
        if (i <= 10 || i == 14 || i == 20 || i == 100)
            story_birth(&scene.story, cache, TTM_REGION_L1, 8 * KIB);
    }
    end_scene(&scene);
    expect(&scene, "ttnn.full", TTM_CLASS_STEADY, false);
    ttm_report_done(&scene.report);
}

/* What comes after a phase: two lines of their own. */
static void run_another_phase(struct scene *scene, unsigned steps)
{
    const uint32_t a = story_line(&scene->story, "x.py:70:evaluate", "ttnn.exp");
    const uint32_t b = story_line(&scene->story, "x.py:71:evaluate", "ttnn.sqrt");

    for (unsigned i = 0; i < steps; i++) {
        story_flash(&scene->story, a, TTM_REGION_L1, 4 * KIB);
        story_flash(&scene->story, b, TTM_REGION_L1, 4 * KIB);
    }
}

static void results_kept_by_a_loop_that_is_over_are_growing_or_unsure(void **state)
{
    (void)state;
    for (unsigned rounds = 20; rounds <= 500; rounds *= 5) {
        struct scene scene;
        begin_scene(&scene);
        const uint32_t leak = story_line(&scene.story, "x.py:5:train", "ttnn.multiply");
        for (unsigned i = 0; i < rounds; i++) {
            run_steps(&scene, 1);
            story_birth(&scene.story, leak, TTM_REGION_DRAM, 64 * KIB);
        }
        run_another_phase(&scene, rounds);
        end_scene(&scene);
        const bool is_long = rounds > 128; /* more than a model has layers */
        expect(&scene, "ttnn.multiply", is_long ? TTM_CLASS_GROWING : TTM_CLASS_UNSURE, is_long);
        expect_why(&scene, "ttnn.multiply", "a loop that is over");
        ttm_report_done(&scene.report);
    }
}

static void births_within_a_millisecond_are_told_in_words(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const uint32_t leak = story_line(&scene.story, "x.py:5:train", "ttnn.multiply");
    for (unsigned i = 0; i < 40; i++)
        story_birth(&scene.story, leak, TTM_REGION_DRAM, 64 * KIB);
    end_scene(&scene);
    expect_why(&scene, "ttnn.multiply", "40 were born over less than 1 ms, up to the end");
    ttm_report_done(&scene.report);
}

static void a_cell_of_a_notebook_is_the_same_code_however_often_it_is_run(void **state)
{
    struct scene scene;
    char line[96];
    (void)state;

    begin_scene(&scene);
    struct story_words words = {.python = line,
                                .operation_note = story_string(&scene.story, "ttnn.multiply")};
    for (unsigned i = 0; i < 12; i++) {
        run_steps(&scene, 1);
        (void)snprintf(line, sizeof(line), "<ipython-input-%u-00aa11bb22cc>:3:<module>", 5 + 2 * i);
        story_birth(&scene.story, story_origin(&scene.story, &words), TTM_REGION_DRAM, 64 * KIB);
        (void)snprintf(line, sizeof(line), "<ipython-input-%u-%012u>:3:<module>", 6 + 2 * i, i);
        story_birth(&scene.story, story_line(&scene.story, line, "ttnn.sqrt"), TTM_REGION_DRAM,
                    64 * KIB);
    }
    end_scene(&scene);
    expect(&scene, "ttnn.multiply", TTM_CLASS_GROWING, true);
    assert_int_equal(find(scene.process, "ttnn.multiply", "")->remaining.count, 12);
    assert_string_equal(find(scene.process, "ttnn.multiply", "")->words.python[0].file,
                        "<ipython-input-5-00aa11bb22cc>");
    /* Cells with another text are others. */
    assert_int_equal(find(scene.process, "ttnn.sqrt", "")->remaining.count, 1);
    ttm_report_done(&scene.report);
}

static void two_operations_on_one_line_are_a_loop(void **state)
{
    struct scene scene;
    uint64_t last = 0;
    (void)state;

    begin_scene(&scene);
    const uint32_t python = story_python(&scene.story, "x.py:5:train");
    const uint32_t sum = story_origin(
        &scene.story, &(struct story_words){.python_note = python, .operation = "ttnn.subtract"});
    const uint32_t leak = story_origin(
        &scene.story, &(struct story_words){.python_note = python, .operation = "ttnn.multiply"});
    for (unsigned i = 0; i < 200; i++) {
        const uint64_t serial = story_birth(&scene.story, sum, TTM_REGION_DRAM, 64 * KIB);
        if (last)
            story_free(&scene.story, last);
        last = serial;
        story_birth(&scene.story, leak, TTM_REGION_DRAM, 64 * KIB);
    }
    run_steps(&scene, 1);
    end_scene(&scene);
    expect(&scene, "ttnn.multiply", TTM_CLASS_GROWING, true);
    ttm_report_done(&scene.report);
}

static void results_of_one_line_before_others_are_unsure(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const uint32_t leak = story_line(&scene.story, "x.py:5:train", "ttnn.multiply");
    for (unsigned i = 0; i < 50; i++)
        story_birth(&scene.story, leak, TTM_REGION_DRAM, 64 * KIB);
    run_another_phase(&scene, 50);
    end_scene(&scene);
    expect(&scene, "ttnn.multiply", TTM_CLASS_UNSURE, false);
    expect_why(&scene, "ttnn.multiply", "one after the other");
    ttm_report_done(&scene.report);
}

static void weights_brought_into_another_form_before_a_few_steps_are_steady(void **state)
{
    (void)state;
    for (unsigned steps = 1; steps <= 256; steps *= 4) {
        struct scene scene;
        begin_scene(&scene);
        const uint32_t raw = story_line(&scene.story, "x.py:5:load", "ttnn.from_torch");
        const uint32_t tiled = story_line(&scene.story, "x.py:6:load", "ttnn.to_layout");
        const uint32_t kept = story_line(&scene.story, "x.py:7:load", "ttnn.typecast");
        for (unsigned i = 0; i < 500; i++) {
            story_flash(&scene.story, raw, TTM_REGION_DRAM, 64 * KIB);
            story_flash(&scene.story, tiled, TTM_REGION_DRAM, 64 * KIB);
            story_birth(&scene.story, kept, TTM_REGION_DRAM, 32 * KIB);
        }
        run_another_phase(&scene, steps);
        end_scene(&scene);
        expect(&scene, "ttnn.typecast", TTM_CLASS_STEADY, false);
        ttm_report_done(&scene.report);
    }
}

/*
 * The loop that filled it goes on for a while, and is over too when the program ends. Of a great
 * many results nobody can tell whether that is a cache that is full.
 */
static void what_its_loop_needed_no_longer_has_settled(void **state)
{
    (void)state;
    for (unsigned rounds = 50; rounds <= 150; rounds += 100) {
        struct scene scene;
        begin_scene(&scene);
        const uint32_t cache = story_line(&scene.story, "x.py:6:mask", "ttnn.multiply");
        const uint32_t data = story_line(&scene.story, "x.py:7:mask", "ttnn.full");
        for (unsigned i = 0; i < 3 * rounds; i++) {
            run_steps(&scene, 1);
            if (i < rounds) {
                story_birth(&scene.story, cache, TTM_REGION_L1, 8 * KIB);
                story_birth(&scene.story, data, TTM_REGION_L1, 8 * KIB);
            }
        }
        run_another_phase(&scene, 50);
        end_scene(&scene);
        expect(&scene, "ttnn.multiply", rounds < 128 ? TTM_CLASS_STEADY : TTM_CLASS_UNSURE, false);
        expect_why(&scene, "ttnn.multiply", "kept, and then no more while");
        expect(&scene, "ttnn.full", TTM_CLASS_STEADY, false);
        expect_why(&scene, "ttnn.full", "has settled");
        ttm_report_done(&scene.report);
    }
}

static void what_was_freed_of_one_line_is_told_by_age(void **state)
{
    static const char *const words[] = {"the newest 6 of 12", "the oldest 6 of 12", "6 of 12"};
    (void)state;

    for (unsigned way = 0; way < 3; way++) {
        struct scene scene;
        uint64_t kept[12];
        begin_scene(&scene);
        const uint32_t line = story_line(&scene.story, "x.py:6:load", "ttnn.from_torch");
        for (unsigned i = 0; i < 12; i++)
            kept[i] = story_birth(&scene.story, line, TTM_REGION_DRAM, 8 * KIB);
        run_steps(&scene, 1);
        for (unsigned i = 0; i < 12; i++) {
            if (way == 0 ? i < 6 : way == 1 ? i >= 6 : i % 2)
                story_free(&scene.story, kept[i]);
        }
        run_steps(&scene, 1);
        end_scene(&scene);
        expect(&scene, "ttnn.from_torch", TTM_CLASS_STEADY, false);
        const char *why = find(scene.process, "ttnn.from_torch", "")->verdict.why;
        assert_ptr_equal(strstr(why, words[way]), why);
        ttm_report_done(&scene.report);
    }
}

static void what_is_freed_only_at_the_end_has_grown_but_does_not_remain(void **state)
{
    uint64_t kept[20];
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const uint32_t list = story_line(&scene.story, "x.py:5:keep", "ttnn.zeros");
    const uint32_t weights = story_line(&scene.story, "x.py:6:load", "ttnn.from_torch");
    uint64_t loaded[8];
    for (unsigned i = 0; i < 8; i++)
        loaded[i] = story_birth(&scene.story, weights, TTM_REGION_DRAM, 64 * KIB);
    for (unsigned i = 0; i < 20; i++) {
        run_steps(&scene, 1);
        kept[i] = story_birth(&scene.story, list, TTM_REGION_DRAM, 64 * KIB);
    }
    run_steps(&scene, 1);
    for (unsigned i = 0; i < 20; i++)
        story_free(&scene.story, kept[i]);
    for (unsigned i = 0; i < 8; i++)
        story_free(&scene.story, loaded[i]);
    end_scene(&scene);
    expect(&scene, "ttnn.zeros", TTM_CLASS_GROWING, false);
    expect(&scene, "ttnn.from_torch", TTM_CLASS_TEMPORARY, false);
    assert_int_equal(find(scene.process, "ttnn.zeros", "")->late.count, 20);
    /* Whether the program did it because it ended is not known. */
    expect_why(&scene, "ttnn.zeros", "freed only when nothing more was allocated");
    ttm_report_done(&scene.report);
}

static void what_opening_a_device_allocates_is_the_systems(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const struct story_words words = {
        .python = "/usr/lib/python3/dist-packages/ttnn/device.py:40:open_device|x.py:2:main",
        .operation = ""};
    const uint32_t open = story_origin(&scene.story, &words);
    for (unsigned i = 0; i < 5; i++)
        story_birth(&scene.story, open, TTM_REGION_DRAM, 4 * KIB);
    run_steps(&scene, 50);
    end_scene(&scene);
    const struct ttm_report_origin *origin = find(scene.process, "", "");
    assert_int_equal(origin->verdict.class, TTM_CLASS_SYSTEM);
    assert_int_equal(origin->words.python_count, 1); /* ttnn's own frame is left out */
    assert_string_equal(origin->words.python[0].file, "x.py");
    ttm_report_done(&scene.report);
}

/* Threads of TT-Metal have no lines; one of the user's may have none either. */
static void without_lines_what_no_operation_has_called_is_the_systems(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const struct story_words of_runtime = {
        .operation = "", .native_note = named_stack(&scene.story, "tf::Executor::_invoke")};
    const struct story_words of_user = {.operation = "",
                                        .native_note = named_stack(&scene.story, "ttnn::zeros")};
    const uint32_t origins[] = {story_origin(&scene.story, &of_runtime),
                                story_origin(&scene.story, &of_user)};
    story_birth(&scene.story, origins[0], TTM_REGION_DRAM, 4 * KIB);
    story_birth(&scene.story, origins[1], TTM_REGION_DRAM, 4 * KIB);
    run_steps(&scene, 50);
    end_scene(&scene);
    unsigned found = 0;
    for (uint32_t i = 0; i < scene.process->origin_count; i++) {
        const struct ttm_report_origin *origin = &scene.process->origins[i];

        if (origin->words.native_count != 2)
            continue;
        const bool is_users = strcmp(origin->words.native[1], "ttnn::zeros") == 0;
        assert_int_equal(origin->verdict.class, is_users ? TTM_CLASS_STEADY : TTM_CLASS_SYSTEM);
        found++;
    }
    assert_int_equal(found, 2);
    ttm_report_done(&scene.report);
}

static void births_at_one_address_without_frees_are_an_artefact(void **state)
{
    struct scene scene;
    uint64_t last = 0;
    (void)state;

    begin_scene(&scene);
    const uint32_t base = story_line(&scene.story, "x.py:7:run", "ttnn.softmax");
    for (unsigned i = 0; i < 176; i++) {
        run_steps(&scene, 1);
        if (last)
            story_end(&scene.story, last, TTM_ENDED_REPLACED);
        struct ttm_recorded_life life =
            story_life(&scene.story, base, TTM_REGION_L1, (1 + i % 5) * 4 * KIB);
        life.address = 0x18b20;
        story_must(ttm_encoder_birth(scene.story.enc, &life), "birth");
        last = life.serial;
    }
    end_scene(&scene);
    expect(&scene, "ttnn.softmax", TTM_CLASS_UNSURE, false);
    const struct ttm_report_origin *origin = find(scene.process, "ttnn.softmax", "");
    assert_int_equal(origin->replaced, 175);
    assert_int_equal(origin->remaining.count, 1);
    assert_non_null(strstr(origin->verdict.why, "artefact"));
    ttm_report_done(&scene.report);
}

/* ---- findings ---- */

static void overlaps_are_found_within_one_memory_only(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    struct ttm_recorded_life a = story_life(&scene.story, scene.other, TTM_REGION_DRAM, 12 * KIB);
    struct ttm_recorded_life b = a, c = a, d = a;
    b.serial = 1000, b.region = TTM_REGION_L1;
    c.serial = 1001, c.allocator = 5;
    d.serial = 1002, d.address += 512; /* within the 1 KiB that 'a' takes of each bank */
    story_must(ttm_encoder_birth(scene.story.enc, &a), "a");
    story_must(ttm_encoder_birth(scene.story.enc, &b), "b");
    story_must(ttm_encoder_birth(scene.story.enc, &c), "c");
    story_must(ttm_encoder_birth(scene.story.enc, &d), "d");
    end_scene(&scene);
    assert_int_equal(scene.process->overlaps, 1);
    assert_int_equal(scene.process->overlap[0].start, a.address + 512);
    assert_int_equal(scene.process->overlap[1].end, a.address + KIB);
    ttm_report_done(&scene.report);
}

static void a_failure_knows_who_held_the_memory_then(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const uint32_t big = story_line(&scene.story, "x.py:5:keep", "ttnn.zeros");
    const uint64_t serial = story_birth(&scene.story, big, TTM_REGION_L1, 640 * KIB);
    story_birth(&scene.story, scene.other, TTM_REGION_L1, 64 * KIB);
    story_birth(&scene.story, scene.other, TTM_REGION_DRAM, 6400 * KIB);
    const struct ttm_recorded_failure failure = {.wanted_bytes = 1 << 20,
                                                 .bank_wanted_bytes = 1 << 14,
                                                 .bank_free_bytes = 1 << 13,
                                                 .origin = scene.other,
                                                 .region = TTM_REGION_L1};
    story_must(ttm_encoder_failure(scene.story.enc, scene.story.now_ns, 1, &failure), "failure");
    story_free(&scene.story, serial);
    end_scene(&scene);
    assert_int_equal(scene.process->failure_count, 1);
    const struct ttm_report_failure *failed = &scene.process->failures[0];
    assert_int_equal(failed->owner_count, 2);
    assert_string_equal(scene.process->origins[failed->owners[0].origin].words.operation,
                        "ttnn.zeros");
    assert_int_equal(failed->owners[0].held.bytes, 640 * KIB);
    assert_string_equal(failed->words.operation, "ttnn.add");
    ttm_report_done(&scene.report);
}

static void fail_often(struct scene *scene, uint32_t count, uint32_t origin, uint8_t region,
                       uint64_t bank_free_bytes)
{
    const struct ttm_recorded_failure failure = {.wanted_bytes = 1 << 20,
                                                 .bank_wanted_bytes = 1 << 14,
                                                 .bank_free_bytes = bank_free_bytes,
                                                 .origin = origin,
                                                 .region = region};

    for (uint32_t i = 0; i < count; i++) {
        story_wait(&scene->story, 1000);
        story_must(ttm_encoder_failure(scene->story.enc, scene->story.now_ns, 1, &failure),
                   "failure");
    }
}

static void of_failures_that_are_alike_the_first_and_the_last_are_kept(void **state)
{
    struct scene scene;
    uint64_t count = 0;
    (void)state;

    begin_scene(&scene);
    fail_often(&scene, 1, scene.other, TTM_REGION_DRAM, 0);
    const uint64_t first_ns = scene.story.now_ns + 1000;
    fail_often(&scene, 1000, scene.other, TTM_REGION_L1, 0);
    const uint64_t last_ns = scene.story.now_ns;
    fail_often(&scene, 3, scene.other, TTM_REGION_L1, 1 << 14); /* another verdict */
    end_scene(&scene);
    const struct ttm_report_process *process = scene.process;
    const struct ttm_report_failure *l1 = NULL;
    assert_int_equal(process->failures_ever, 1004);
    assert_int_equal(process->failure_count, TTM_LEDGER_FAILURES);
    for (uint32_t i = 0; i < process->failure_count; i++) {
        const struct ttm_report_failure *failure = &process->failures[i];
        assert_true(i == 0 || failure->time_ns > process->failures[i - 1].time_ns);
        count += failure->is_last ? failure->alike : 0;
        if (failure->is_last && failure->alike == 1000)
            l1 = failure;
    }
    assert_int_equal(count, 1004);
    assert_non_null(l1);
    assert_int_equal(l1->time_ns, last_ns);
    assert_int_equal(l1->first_ns, first_ns);
    assert_int_equal(process->failures[0].failure.region, TTM_REGION_DRAM);
    assert_int_equal(process->failures[1].time_ns, first_ns);
    assert_true(process->failures[process->failure_count - 1].is_last);
    ttm_report_done(&scene.report);
}

static void the_last_failure_is_kept_however_many_kinds_there_are(void **state)
{
    struct scene scene;
    char line[32];
    uint32_t origin = 0;
    (void)state;

    begin_scene(&scene);
    for (uint32_t i = 0; i < 2 * TTM_LEDGER_FAILURES; i++) {
        (void)snprintf(line, sizeof(line), "x.py:%u:f", i + 1);
        origin = story_line(&scene.story, line, "ttnn.zeros");
        fail_often(&scene, 1, origin, TTM_REGION_L1, 0);
    }
    end_scene(&scene);
    const struct ttm_report_failure *last =
        &scene.process->failures[scene.process->failure_count - 1];
    assert_int_equal(scene.process->failure_count, TTM_LEDGER_FAILURES);
    assert_int_equal(last->failure.origin, origin);
    assert_int_equal(last->alike, 1);
    ttm_report_done(&scene.report);
}

/* ---- trust ---- */

static void a_recording_that_breaks_off_is_not_called_complete(void **state)
{
    struct memory_file file;
    struct ttm_report report;
    (void)state;

    memory_begin(&file, 0);
    struct story story = story_begin(file.encoder, 1, START_NS, 7, "x");
    story_devices(&story, 1);
    story_birth(&story, 0, TTM_REGION_DRAM, 4 * KIB);
    struct bytes bytes = memory_end(&file, false);
    read_report(bytes.data, bytes.length, NULL, &report);
    bytes_done(&bytes);
    assert_int_equal(report.process_count, 1);
    assert_false(report.processes[0].is_complete);
    assert_false(report.processes[0].is_history_complete);
    assert_non_null(strstr(report.processes[0].why_incomplete, "breaks off"));
    ttm_report_done(&report);
}

static void losses_leave_the_live_set_exact_and_the_history_not(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    run_steps(&scene, 2);
    story_must(ttm_encoder_loss(scene.story.enc, scene.story.now_ns, 1, 12), "loss");
    story_must(ttm_encoder_loss(scene.story.enc, scene.story.now_ns, 1, 0), "made good");
    end_scene(&scene);
    assert_true(scene.process->is_complete);
    assert_false(scene.process->is_history_complete);
    assert_int_equal(scene.process->counters.lost_events, 12);
    ttm_report_done(&scene.report);
}

static void a_peak_is_what_was_held_for_sure(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    struct story *story = &scene.story;
    const uint32_t origin = story_line(story, "x.py:4:f", "ttnn.add");
    const uint64_t first = story_birth(story, origin, TTM_REGION_DRAM, 64 * KIB);
    story_must(ttm_encoder_loss(story->enc, story->now_ns, 1, 12), "loss"); /* its end */
    const uint64_t second = story_birth(story, origin, TTM_REGION_DRAM, 64 * KIB);
    story_birth(story, origin, TTM_REGION_DRAM, 8 * KIB);
    story_birth(story, origin, TTM_REGION_DRAM, 64 * KIB);
    story_end(story, first, TTM_ENDED_UNHEARD);
    story_end(story, second, TTM_ENDED_UNHEARD);
    story_must(ttm_encoder_loss(story->enc, story->now_ns, 1, 0), "made good");
    end_scene(&scene);
    const struct ttm_report_region *region = &scene.process->devices[0].region[TTM_REGION_DRAM];
    assert_int_equal(region->peak_bytes, 72 * KIB);
    assert_int_equal(region->frees, 0);
    ttm_report_done(&scene.report);
}

/* A program that is laid out, dispatched and freed before its cores are summed. */
static void what_is_resident_is_registered_however_short(void **state)
{
    const struct ttm_core_range grid = {0, 0, 7, 7};
    uint8_t buf[TTM_CORE_RANGE_SIZE];
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    struct story *story = &scene.story;
    const uint32_t cores = story->next_note++;
    const struct ttm_recorded_dispatch dispatch = {.program = 40};
    uint64_t serials[3];
    ttm_cores_note_encode(&grid, 1, buf);
    story_note(story, cores, TTM_NOTED_CORES, buf, sizeof(buf));
    for (unsigned i = 0; i < 3; i++) {
        struct ttm_recorded_life life =
            story_life(story, scene.other, TTM_REGION_CB, 64 * (i + 1) * KIB);
        life.cores = cores;
        life.id = dispatch.program;
        serials[i] = life.serial;
        story_must(ttm_encoder_birth(story->enc, &life), "birth");
    }
    story_must(ttm_encoder_dispatch(story->enc, story->now_ns, story->process, &dispatch),
               "dispatch");
    for (unsigned i = 0; i < 3; i++)
        story_free(story, serials[i]);
    end_scene(&scene);
    const struct ttm_cb_totals *cbs = &scene.process->devices[0].cbs;
    assert_int_equal(cbs->peak_resident_bytes, 6 * 64 * KIB);
    assert_int_equal(cbs->peak_registered_bytes, cbs->peak_resident_bytes);
    assert_int_equal(cbs->registered_bytes, 0);
    ttm_report_done(&scene.report);
}

static void losses_that_were_not_made_good_leave_nothing_exact(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    run_steps(&scene, 2);
    story_must(ttm_encoder_loss(scene.story.enc, scene.story.now_ns, 1, 12), "loss");
    story_must(ttm_encoder_loss(scene.story.enc, scene.story.now_ns, 1, 0), "made good");
    story_must(ttm_encoder_loss(scene.story.enc, scene.story.now_ns, 1, 1), "another");
    end_scene(&scene);
    assert_false(scene.process->is_complete);
    assert_false(scene.process->is_history_complete);
    assert_int_equal(scene.process->counters.lost_events, 13);
    assert_non_null(strstr(scene.process->why_incomplete, "before that was made good"));
    ttm_report_done(&scene.report);
}

/* Of a process with those counters, and a buffer that was freed. */
static void say_counters(struct scene *scene, const struct ttm_recorded_counters *counters)
{
    static const char trouble[] = "no symbol x";
    const struct ttm_recorded_note note = {.number = 5000,
                                           .kind = TTM_NOTED_STRING,
                                           .bytes = (const uint8_t *)trouble,
                                           .length = sizeof(trouble) - 1};

    begin_scene(scene);
    run_steps(scene, 2);
    story_must(ttm_encoder_note(scene->story.enc, 1, &note), "note");
    story_must(ttm_encoder_counters(scene->story.enc, scene->story.now_ns, 1, counters),
               "counters");
    end_scene(scene);
}

static void a_gap_costs_the_history_alone(void **state)
{
    const struct ttm_recorded_counters counters = {.has_gap = true};
    struct scene scene;
    (void)state;

    say_counters(&scene, &counters);
    assert_true(scene.process->is_complete);
    assert_false(scene.process->is_history_complete);
    assert_true(scene.process->has_missed);
    assert_non_null(strstr(scene.process->why_incomplete, "without a break"));
    ttm_report_done(&scene.report);
}

static void each_doubt_about_what_remains_is_said(void **state)
{
    static const struct {
        struct ttm_recorded_counters counters;
        bool has_missed;
        const char *why;
    } doubts[] = {
        {{.untracked = 1}, true, "no room"},
        {{.refused = 1}, true, "made no sense"},
        {{.unknown_frees = 1}, false, "freed it twice"},
        {{.is_off = true}, true, "off when it ended"},
        {{.is_inexact = true}, false, "before it had told"},
        {{.trouble = 5000}, false, "no symbol x"},
        {{.trouble = 5001}, false, "was not tracked"},
    };
    struct scene scene;
    (void)state;

    for (size_t i = 0; i < COUNT_OF(doubts); i++) {
        say_counters(&scene, &doubts[i].counters);
        assert_false(scene.process->is_complete);
        assert_false(scene.process->is_history_complete);
        assert_int_equal(scene.process->has_missed, doubts[i].has_missed);
        assert_non_null(strstr(scene.process->why_incomplete, doubts[i].why));
        ttm_report_done(&scene.report);
    }
}

static void names_without_room_are_no_doubt_about_what_remains(void **state)
{
    const struct ttm_recorded_counters counters = {.notes_left_out = 3};
    struct scene scene;
    (void)state;

    say_counters(&scene, &counters);
    assert_true(scene.process->is_history_complete);
    assert_int_equal(scene.process->counters.notes_left_out, 3);
    ttm_report_done(&scene.report);
}

static void a_report_without_memory_is_no_report_and_leaks_nothing(void **state)
{
    struct scene scene;
    bool has_failed = true;
    (void)state;

    begin_scene(&scene);
    const uint32_t leak = story_line(&scene.story, "x.py:5:keep", "ttnn.zeros");
    for (unsigned i = 0; i < 4; i++) {
        run_steps(&scene, 1);
        story_mark(&scene.story, "step");
        story_birth(&scene.story, leak, TTM_REGION_DRAM, 64 * KIB);
    }
    story_exit(&scene.story, 0);
    struct bytes bytes = memory_end(&scene.file, true);
    for (unsigned grants = 0; has_failed; grants++) {
        const struct ttm_report_options options = {.wants_drawings = true, .seed = 9};
        struct ttm_recording *recording;
        struct ttm_report report;
        assert_int_equal(ttm_recording_open_fd(memory_fd(bytes.data, bytes.length), &recording), 0);
        faults_begin(grants);
        const int r = ttm_report_read(recording, &options, &report);
        has_failed = faults_end();
        assert_true(has_failed || r == 0);
        /* What could do without its memory has all the same numbers. */
        if (r == 0)
            assert_int_equal(report.processes[0].allocs, 8);
        else
            assert_int_equal(r, -ENOMEM);
        ttm_report_done(&report);
        ttm_recording_close(recording);
    }
    bytes_done(&bytes);
}

/* Whatever byte is wrong: never a crash, and never all that is claimed when something is missing. */
static void every_flipped_byte_gives_an_honest_report(void **state)
{
    static uint8_t copy[1 << 20];
    struct ttm_report whole;
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const uint32_t leak = story_line(&scene.story, "x.py:5:keep", "ttnn.zeros");
    for (unsigned i = 0; i < 20; i++) {
        run_steps(&scene, 1);
        story_birth(&scene.story, leak, TTM_REGION_DRAM, 64 * KIB);
        ttm_encoder_flush(scene.file.encoder);
    }
    story_exit(&scene.story, 0);
    struct bytes bytes = memory_end(&scene.file, true);
    assert_true(bytes.length < sizeof(copy));
    memcpy(copy, bytes.data, bytes.length);
    read_report(copy, bytes.length, NULL, &whole);
    const uint64_t allocs = whole.processes[0].allocs;
    assert_true(whole.processes[0].is_history_complete);
    for (size_t at = 0; at < bytes.length; at += 3) {
        const struct ttm_report_options options = {.seed = 9};
        struct ttm_recording *recording;
        struct ttm_report report;
        copy[at] ^= 0x55;
        const int fd = memory_fd(copy, bytes.length);
        const int r = ttm_recording_open_fd(fd, &recording);
        if (r < 0)
            (void)close(fd);
        if (r == 0) {
            assert_int_equal(ttm_report_read(recording, &options, &report), 0);
            ttm_recording_close(recording);
            for (uint32_t i = 0; i < report.process_count; i++)
                assert_true(report.processes[i].allocs == allocs ||
                            !report.processes[i].is_history_complete);
            ttm_report_done(&report);
        }
        copy[at] ^= 0x55;
    }
    bytes_done(&bytes);
    ttm_report_done(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_histories_agree_with_a_reference),
        cmocka_unit_test(a_bank_shows_what_lay_there_when_the_device_was_last_closed),
        cmocka_unit_test(what_a_loop_keeps_is_growing_and_what_it_frees_is_temporary),
        cmocka_unit_test(the_last_word_on_what_keeps_an_origin_is_told_and_no_other),
        cmocka_unit_test(weights_of_one_comprehension_are_steady_also_at_the_very_end),
        cmocka_unit_test(what_the_program_cache_keeps_is_never_a_suspect_however_it_grows),
        cmocka_unit_test(a_program_cache_that_ends_with_its_device_has_not_grown),
        cmocka_unit_test(what_was_told_later_is_no_loop),
        cmocka_unit_test(births_of_one_size_without_an_origin_are_no_loop),
        cmocka_unit_test(births_of_one_moment_without_an_origin_are_no_loop),
        cmocka_unit_test(an_operation_that_is_not_known_does_not_load),
        cmocka_unit_test(weights_loaded_layer_by_layer_before_the_loop_are_steady),
        cmocka_unit_test(buffers_that_take_turns_are_a_working_set),
        cmocka_unit_test(a_free_that_is_sometimes_missing_is_growing),
        cmocka_unit_test(a_leak_is_seen_although_each_buffer_has_a_name_of_its_own),
        cmocka_unit_test(a_tight_loop_is_seen_by_its_marks),
        cmocka_unit_test(layers_loaded_before_a_few_steps_are_steady),
        cmocka_unit_test(a_leak_before_a_few_last_words_is_growing),
        cmocka_unit_test(a_leak_of_a_thread_that_ends_is_growing_and_what_it_loaded_is_not),
        cmocka_unit_test(a_leak_of_a_thread_that_others_outran_is_growing),
        cmocka_unit_test(a_cache_that_evicts_is_a_working_set),
        cmocka_unit_test(a_line_that_frees_at_first_and_then_keeps_is_growing),
        cmocka_unit_test(callers_of_one_function_are_different_visits),
        cmocka_unit_test(a_warm_up_is_over_when_one_line_alone_goes_on),
        cmocka_unit_test(a_cache_that_fills_ever_more_slowly_has_settled),
        cmocka_unit_test(results_kept_by_a_loop_that_is_over_are_growing_or_unsure),
        cmocka_unit_test(births_within_a_millisecond_are_told_in_words),
        cmocka_unit_test(a_cell_of_a_notebook_is_the_same_code_however_often_it_is_run),
        cmocka_unit_test(two_operations_on_one_line_are_a_loop),
        cmocka_unit_test(results_of_one_line_before_others_are_unsure),
        cmocka_unit_test(weights_brought_into_another_form_before_a_few_steps_are_steady),
        cmocka_unit_test(what_its_loop_needed_no_longer_has_settled),
        cmocka_unit_test(what_was_freed_of_one_line_is_told_by_age),
        cmocka_unit_test(what_is_freed_only_at_the_end_has_grown_but_does_not_remain),
        cmocka_unit_test(what_opening_a_device_allocates_is_the_systems),
        cmocka_unit_test(without_lines_what_no_operation_has_called_is_the_systems),
        cmocka_unit_test(births_at_one_address_without_frees_are_an_artefact),
        cmocka_unit_test(overlaps_are_found_within_one_memory_only),
        cmocka_unit_test(a_failure_knows_who_held_the_memory_then),
        cmocka_unit_test(of_failures_that_are_alike_the_first_and_the_last_are_kept),
        cmocka_unit_test(the_last_failure_is_kept_however_many_kinds_there_are),
        cmocka_unit_test(a_recording_that_breaks_off_is_not_called_complete),
        cmocka_unit_test(losses_leave_the_live_set_exact_and_the_history_not),
        cmocka_unit_test(a_peak_is_what_was_held_for_sure),
        cmocka_unit_test(what_is_resident_is_registered_however_short),
        cmocka_unit_test(losses_that_were_not_made_good_leave_nothing_exact),
        cmocka_unit_test(a_gap_costs_the_history_alone),
        cmocka_unit_test(each_doubt_about_what_remains_is_said),
        cmocka_unit_test(names_without_room_are_no_doubt_about_what_remains),
        cmocka_unit_test(a_report_without_memory_is_no_report_and_leaks_nothing),
        cmocka_unit_test(every_flipped_byte_gives_an_honest_report),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
