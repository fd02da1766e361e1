/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that load weights and end, programs that leak, and where a mark or a warm-up tells the
 * two apart.
 */
#include "report_scene.h"

#define WEIGHTS 48

static void end_scene_with(struct scene *scene, const struct ttm_report_options *options)
{
    struct ttm_recording *recording;
    struct bytes bytes;

    story_exit(&scene->story, 0);
    bytes = memory_end(&scene->file, true);
    assert_int_equal(ttm_recording_open_fd(memory_fd(bytes.data, bytes.length), &recording), 0);
    assert_int_equal(ttm_report_read(recording, options, &scene->report), 0);
    ttm_recording_close(recording);
    bytes_done(&bytes);
    scene->process = &scene->report.processes[0];
}

static void load(struct scene *scene, uint32_t line, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        story_birth(&scene->story, line, TTM_REGION_DRAM, 64 * KIB);
}

/* ---- nothing but loading ---- */

static void weights_of_one_line_and_nothing_else_are_unsure(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    load(&scene, story_line(&scene.story, "x.py:3:load", "ttnn.from_torch"), WEIGHTS);
    end_scene(&scene);
    expect(&scene, "ttnn.from_torch", TTM_CLASS_UNSURE, false);
    expect_why(&scene, "ttnn.from_torch", "nothing else happened");
    expect_why(&scene, "ttnn.from_torch", "loading and leaking look the same");
    const char *advice = find(scene.process, "ttnn.from_torch", "")->verdict.advice;
    assert_non_null(strstr(advice, "ttmem.mark("));
    assert_non_null(strstr(advice, "--after-mark"));
    assert_int_equal(ttm_report_leaked_bytes(&scene.report), 0);
    assert_true(ttm_report_unsure_bytes(&scene.report) > 0);
    ttm_report_done(&scene.report);
}

static void layers_of_several_lines_and_nothing_else_are_unsure(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const uint32_t a = story_line(&scene.story, "x.py:3:__init__|x.py:9:main", "ttnn.from_torch");
    const uint32_t b = story_line(&scene.story, "x.py:4:__init__|x.py:9:main", "ttnn.zeros");
    const uint32_t c =
        story_line(&scene.story, "x.py:7:__init__|x.py:5:__init__", "ttnn.as_tensor");
    for (unsigned i = 0; i < WEIGHTS; i++) {
        load(&scene, a, 1);
        load(&scene, b, 1);
        load(&scene, c, 2);
    }
    end_scene(&scene);
    expect(&scene, "ttnn.from_torch", TTM_CLASS_UNSURE, false);
    expect(&scene, "ttnn.zeros", TTM_CLASS_UNSURE, false);
    expect(&scene, "ttnn.as_tensor", TTM_CLASS_UNSURE, false);
    ttm_report_done(&scene.report);
}

/* Programs of conversions are in the program cache, and what was converted is freed. */
static void converted_weights_and_nothing_else_are_unsure(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const uint32_t raw = story_line(&scene.story, "x.py:3:load", "ttnn.to_device");
    const uint32_t tiled = story_line(&scene.story, "x.py:4:load", "ttnn.to_layout");
    const uint32_t cast = story_line(&scene.story, "x.py:5:load", "ttnn.typecast");
    for (unsigned i = 0; i < WEIGHTS; i++) {
        const uint64_t first = story_birth(&scene.story, raw, TTM_REGION_DRAM, 64 * KIB);
        if (i == 0)
            story_birth(&scene.story, tiled, TTM_REGION_CB, 4 * KIB);
        const uint64_t second = story_birth(&scene.story, tiled, TTM_REGION_DRAM, 64 * KIB);
        story_free(&scene.story, first);
        story_birth(&scene.story, cast, TTM_REGION_DRAM, 32 * KIB);
        story_free(&scene.story, second);
    }
    end_scene(&scene);
    expect(&scene, "ttnn.typecast", TTM_CLASS_UNSURE, false);
    expect(&scene, "ttnn.to_device", TTM_CLASS_TEMPORARY, false);
    ttm_report_done(&scene.report);
}

/* An operation that makes a tensor may make others on the way, and free them itself. */
static void weights_that_an_operation_makes_in_several_steps_are_unsure(void **state)
{
    (void)state;
    for (unsigned steps = 1; steps <= 3; steps++) {
        struct scene scene;
        begin_scene(&scene);
        const uint32_t lines[] = {story_line(&scene.story, "x.py:3:load", "ttnn.rand"),
                                  story_line(&scene.story, "x.py:4:load", "ttnn.ones")};
        for (unsigned i = 0; i < 2 * WEIGHTS; i++) {
            uint64_t before = story_birth(&scene.story, lines[i % 2], TTM_REGION_DRAM, 64 * KIB);
            for (unsigned k = 0; k < steps; k++) {
                const uint64_t next =
                    story_birth(&scene.story, lines[i % 2], TTM_REGION_DRAM, 64 * KIB);
                story_free(&scene.story, before);
                before = next;
            }
        }
        end_scene(&scene);
        expect(&scene, "ttnn.rand", TTM_CLASS_UNSURE, false);
        expect(&scene, "ttnn.ones", TTM_CLASS_UNSURE, false);
        ttm_report_done(&scene.report);
    }
}

static void weights_loaded_after_a_computation_and_before_the_end_are_unsure(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    run_steps(&scene, 20);
    const uint32_t a = story_line(&scene.story, "x.py:3:load", "ttnn.from_torch");
    const uint32_t b = story_line(&scene.story, "x.py:4:load", "ttnn.to_device");
    for (unsigned i = 0; i < WEIGHTS; i++) {
        load(&scene, a, 1);
        load(&scene, b, 1);
    }
    end_scene(&scene);
    expect(&scene, "ttnn.from_torch", TTM_CLASS_UNSURE, false);
    expect(&scene, "ttnn.to_device", TTM_CLASS_UNSURE, false);
    ttm_report_done(&scene.report);
}

static void weights_that_are_freed_when_the_program_ends_are_temporary(void **state)
{
    struct scene scene;
    uint64_t serials[WEIGHTS];
    (void)state;

    begin_scene(&scene);
    const uint32_t line = story_line(&scene.story, "x.py:3:load", "ttnn.from_torch");
    for (unsigned i = 0; i < WEIGHTS; i++)
        serials[i] = story_birth(&scene.story, line, TTM_REGION_DRAM, 64 * KIB);
    for (unsigned i = 0; i < WEIGHTS; i++)
        story_free(&scene.story, serials[i]);
    end_scene(&scene);
    expect(&scene, "ttnn.from_torch", TTM_CLASS_TEMPORARY, false);
    ttm_report_done(&scene.report);
}

/* Tensors from data of one line, each in a context of its own. */
static uint32_t line_in_context(struct scene *scene, const char *context)
{
    static uint32_t python, operation;

    if (scene->story.serial == 0) {
        python = story_python(&scene->story, "x.py:3:load");
        operation = story_string(&scene->story, "ttnn.from_torch");
    }
    const struct story_words words = {
        .python_note = python, .operation_note = operation, .context = context};
    return story_origin(&scene->story, &words);
}

/* Contexts of layers inside one of loading. */
static void contexts_of_layers_are_no_rounds(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    for (unsigned i = 0; i < WEIGHTS; i++) {
        char context[32];
        (void)snprintf(context, sizeof(context), "load/layer %u", i);
        load(&scene, line_in_context(&scene, context), 1);
    }
    end_scene(&scene);
    expect(&scene, "ttnn.from_torch", TTM_CLASS_UNSURE, false);
    ttm_report_done(&scene.report);
}

/* ---- the same, and something beside it ---- */

enum beside { A_RESULT, A_PROGRAM, INPUTS, MARKS, CONTEXTS, BESIDE_COUNT };

static void do_beside(struct scene *scene, enum beside beside, unsigned round, uint32_t input)
{
    struct story *story = &scene->story;

    if (beside == A_RESULT)
        story_flash(story, scene->other, TTM_REGION_L1, 4 * KIB);
    else if (beside == A_PROGRAM && round == 0) /* it is compiled once, and computes in place */
        story_birth(story, scene->other, TTM_REGION_CB, 4 * KIB);
    else if (beside == INPUTS)
        story_flash(story, input, TTM_REGION_DRAM, KIB);
    else if (beside == MARKS)
        story_mark(story, "step");
}

static void what_is_loaded_while_something_else_happens_is_growing(void **state)
{
    (void)state;
    for (unsigned beside = 0; beside < BESIDE_COUNT; beside++) {
        struct scene scene;
        begin_scene(&scene);
        const uint32_t input = story_line(&scene.story, "x.py:4:step", "ttnn.to_device");
        for (unsigned i = 0; i < WEIGHTS; i++) {
            char context[32];
            (void)snprintf(context, sizeof(context), "step %u", i);
            load(&scene, line_in_context(&scene, beside == CONTEXTS ? context : NULL), 1);
            do_beside(&scene, (enum beside)beside, i, input);
        }
        end_scene(&scene);
        expect(&scene, "ttnn.from_torch", TTM_CLASS_GROWING, true);
        ttm_report_done(&scene.report);
    }
}

static void a_tensor_from_data_that_is_freed_most_times_is_growing(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const uint32_t line = story_line(&scene.story, "x.py:3:step", "ttnn.from_torch");
    for (unsigned i = 0; i < 100; i++) {
        const uint64_t serial = story_birth(&scene.story, line, TTM_REGION_DRAM, 64 * KIB);
        if (i % 5 != 0)
            story_free(&scene.story, serial);
    }
    end_scene(&scene);
    expect(&scene, "ttnn.from_torch", TTM_CLASS_GROWING, true);
    ttm_report_done(&scene.report);
}

static void results_that_fill_the_run_are_growing(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    load(&scene, story_line(&scene.story, "x.py:2:main", "ttnn.zeros"), 1);
    load(&scene, story_line(&scene.story, "x.py:3:step", "ttnn.matmul"), WEIGHTS);
    end_scene(&scene);
    expect(&scene, "ttnn.matmul", TTM_CLASS_GROWING, true);
    ttm_report_done(&scene.report);
}

/* ---- native programs, which have no operations ---- */

static const struct ttm_verdict *verdict_of_most(const struct scene *scene)
{
    assert_true(scene->process->origin_count > 0);
    return &scene->process->origins[0].verdict;
}

static void a_native_program_that_allocates_and_frees_nothing_is_unsure(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const struct story_words words = {.native_note = story_native(&scene.story, 2, 0)};
    load(&scene, story_origin(&scene.story, &words), WEIGHTS);
    end_scene(&scene);
    assert_int_equal(verdict_of_most(&scene)->class, TTM_CLASS_UNSURE);
    assert_non_null(strstr(verdict_of_most(&scene)->why, "nothing else happened"));
    assert_non_null(strstr(verdict_of_most(&scene)->advice, "ttmem_mark("));
    ttm_report_done(&scene.report);
}

static void a_native_program_that_frees_something_else_meanwhile_is_growing(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const struct story_words words = {.native_note = story_native(&scene.story, 2, 0)};
    const struct story_words others = {.native_note = story_native(&scene.story, 2, 4096)};
    const uint32_t leak = story_origin(&scene.story, &words);
    const uint32_t scratch = story_origin(&scene.story, &others);
    for (unsigned i = 0; i < WEIGHTS; i++) {
        load(&scene, leak, 1);
        story_flash(&scene.story, scratch, TTM_REGION_L1, 4 * KIB);
    }
    end_scene(&scene);
    assert_int_equal(verdict_of_most(&scene)->class, TTM_CLASS_GROWING);
    assert_true(verdict_of_most(&scene)->is_suspect);
    ttm_report_done(&scene.report);
}

/* ---- a mark decides ---- */

static const struct ttm_report_options after_warm = {.after_mark = "warm", .seed = 9};

static void what_is_loaded_before_the_mark_is_steady_and_after_it_growing(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    load(&scene, story_line(&scene.story, "x.py:3:load", "ttnn.from_torch"), WEIGHTS);
    story_mark(&scene.story, "other");
    story_mark(&scene.story, "warm");
    load(&scene, story_line(&scene.story, "x.py:8:step", "ttnn.zeros"), WEIGHTS);
    story_mark(&scene.story, "warm"); /* the first one counts */
    end_scene_with(&scene, &after_warm);
    expect(&scene, "ttnn.from_torch", TTM_CLASS_STEADY, false);
    expect(&scene, "ttnn.zeros", TTM_CLASS_GROWING, true);
    assert_false(scene.process->is_unjudged);
    ttm_report_done(&scene.report);
}

/* Each round leaks before the mark, and none after it. */
static void what_grew_before_the_mark_alone_is_no_suspect(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const uint32_t line = story_line(&scene.story, "x.py:5:step", "ttnn.matmul");
    for (unsigned i = 0; i < 200; i++) {
        run_steps(&scene, 1);
        story_birth(&scene.story, line, TTM_REGION_DRAM, 64 * KIB);
    }
    story_mark(&scene.story, "warm");
    for (unsigned i = 0; i < 3; i++) {
        run_steps(&scene, 1);
        story_flash(&scene.story, line, TTM_REGION_DRAM, 64 * KIB);
    }
    end_scene_with(&scene, &after_warm);
    expect(&scene, "ttnn.matmul", TTM_CLASS_STEADY, false);
    assert_int_equal(ttm_report_leaked_bytes(&scene.report), 0);
    ttm_report_done(&scene.report);
}

static void only_what_came_after_the_mark_counts_of_a_line_that_leaks_all_the_time(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const uint32_t line = story_line(&scene.story, "x.py:5:step", "ttnn.matmul");
    for (unsigned i = 0; i < 30; i++) {
        if (i == 20)
            story_mark(&scene.story, "warm");
        run_steps(&scene, 1);
        story_birth(&scene.story, line, TTM_REGION_DRAM, 12 * 32 * KIB);
    }
    end_scene_with(&scene, &after_warm);
    expect(&scene, "ttnn.matmul", TTM_CLASS_GROWING, true);
    const struct ttm_report_origin *origin = find(scene.process, "ttnn.matmul", "");
    assert_int_equal(origin->remaining.count, 30);
    assert_int_equal(origin->judged.count, 10);
    assert_int_equal(ttm_report_leaked_bytes(&scene.report), 10 * 12 * 32 * KIB);
    assert_null(strstr(origin->verdict.why, "session"));
    ttm_report_done(&scene.report);
}

/* What was there before the mark is closed with the device, and the next one has a story of its own. */
static void a_device_that_is_closed_after_the_mark_begins_anew(void **state)
{
    struct scene scene;
    uint64_t serials[14];
    (void)state;

    begin_scene(&scene);
    const uint32_t line = story_line(&scene.story, "x.py:5:step", "ttnn.matmul");
    for (unsigned session = 0; session < 2; session++) {
        for (unsigned i = 0; i < 7; i++) {
            serials[i] = story_birth(&scene.story, line, TTM_REGION_DRAM, 64 * KIB);
            run_steps(&scene, 1);
        }
        if (session == 0)
            story_mark(&scene.story, "warm");
        for (unsigned i = 7; session == 0 && i < 9; i++)
            serials[i] = story_birth(&scene.story, line, TTM_REGION_DRAM, 64 * KIB);
        for (unsigned i = session == 0 ? 9 : 7; i > 0; i--) /* those before the mark are the last */
            story_end(&scene.story, serials[i - 1], TTM_ENDED_DEVICE_CLOSED);
    }
    end_scene_with(&scene, &after_warm);
    const struct ttm_report_origin *origin = find(scene.process, "ttnn.matmul", "");
    assert_int_equal(scene.process->session_count,
                     4); /* two of the first, one of the second, none of the last */
    assert_int_equal(origin->verdict.class, TTM_CLASS_GROWING);
    assert_int_equal(origin->judged.count, 7);
    ttm_report_done(&scene.report);
}

static void a_name_that_is_given_after_the_mark_does_not_move_what_came_before_it(void **state)
{
    struct scene scene;
    uint64_t serials[WEIGHTS];
    (void)state;

    begin_scene(&scene);
    const uint32_t line = story_line(&scene.story, "x.py:3:load", "ttnn.from_torch");
    for (unsigned i = 0; i < WEIGHTS; i++) {
        serials[i] = story_birth(&scene.story, line, TTM_REGION_DRAM, 64 * KIB);
        run_steps(&scene, 1);
    }
    story_mark(&scene.story, "warm");
    const struct story_words words = {
        .python = "x.py:3:load", .operation = "ttnn.from_torch", .name = "w"};
    const uint32_t named = story_origin(&scene.story, &words);
    for (unsigned i = 0; i < WEIGHTS; i++)
        story_must(ttm_encoder_rename(scene.story.enc, scene.story.now_ns, scene.story.process,
                                      serials[i], named),
                   "rename");
    for (unsigned i = 0; i < 10; i++) {
        run_steps(&scene, 1);
        load(&scene, named, 1);
    }
    end_scene_with(&scene, &after_warm);
    const struct ttm_report_origin *origin = find(scene.process, "ttnn.from_torch", "w");
    assert_int_equal(origin->remaining.count, WEIGHTS + 10);
    assert_true(origin->verdict.is_suspect);
    assert_int_equal(origin->judged.count, 10);
    assert_int_equal(scene.process->allocs, 2 * WEIGHTS + 20);
    ttm_report_done(&scene.report);
}

/* A shape for each step of the warm-up. */
static void programs_that_were_cached_before_the_mark_are_no_suspects(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const uint32_t early = story_line(&scene.story, "x.py:3:warm_up", "ttnn.softmax");
    for (unsigned i = 0; i < 30; i++) {
        run_steps(&scene, 1);
        story_birth(&scene.story, early, TTM_REGION_CB, 4 * KIB);
    }
    story_mark(&scene.story, "warm");
    run_steps(&scene, 1);
    end_scene_with(&scene, &after_warm);
    expect(&scene, "ttnn.softmax", TTM_CLASS_CIRCULAR_BUFFER, false);
    expect_why(&scene, "ttnn.softmax", "kept by programs");
    ttm_report_done(&scene.report);
}

static void a_process_that_never_sets_the_mark_is_not_judged(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const uint32_t line = story_line(&scene.story, "x.py:5:step", "ttnn.matmul");
    for (unsigned i = 0; i < 30; i++) {
        run_steps(&scene, 1);
        story_birth(&scene.story, line, TTM_REGION_DRAM, 64 * KIB);
    }
    story_mark(&scene.story, "warmer");
    end_scene_with(&scene, &after_warm);
    assert_true(scene.process->is_unjudged);
    expect(&scene, "ttnn.matmul", TTM_CLASS_STEADY, false);
    expect_why(&scene, "ttnn.matmul", "before the leak check began");
    ttm_report_done(&scene.report);
}

static void leak_in(struct story *story, unsigned count)
{
    const uint32_t line = story_line(story, "x.py:5:step", "ttnn.matmul");
    const uint32_t other = story_line(story, "x.py:6:step", "ttnn.add");

    for (unsigned i = 0; i < count; i++) {
        story_birth(story, line, TTM_REGION_DRAM, 64 * KIB);
        story_flash(story, other, TTM_REGION_L1, 4 * KIB);
    }
}

static void a_process_that_begins_after_the_mark_of_another_is_judged(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    story_wait(&scene.story, STORY_MS);
    story_mark(&scene.story, "warm");
    struct story early = story_begin(scene.file.encoder, 2, START_NS, 8, "python3 y.py");
    struct story late =
        story_begin(scene.file.encoder, 3, START_NS + 1000 * STORY_MS, 9, "python3 z.py");
    leak_in(&early, 30);
    leak_in(&late, 30);
    story_exit(&early, 0);
    story_exit(&late, 0);
    end_scene_with(&scene, &after_warm);
    assert_int_equal(scene.report.process_count, 3);
    assert_false(scene.report.processes[0].is_unjudged);
    assert_true(scene.report.processes[1].is_unjudged);
    assert_false(scene.report.processes[2].is_unjudged);
    assert_false(find(&scene.report.processes[1], "ttnn.matmul", "")->verdict.is_suspect);
    assert_true(find(&scene.report.processes[2], "ttnn.matmul", "")->verdict.is_suspect);
    ttm_report_done(&scene.report);
}

/* ---- a warm-up ---- */

static void what_is_loaded_in_the_warm_up_is_steady_and_after_it_growing(void **state)
{
    const struct ttm_report_options options = {
        .has_warmup = true, .warmup_ns = 500 * STORY_MS, .seed = 9};
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    load(&scene, story_line(&scene.story, "x.py:3:load", "ttnn.from_torch"), WEIGHTS);
    story_wait(&scene.story, 500 * STORY_MS);
    load(&scene, story_line(&scene.story, "x.py:8:step", "ttnn.zeros"), WEIGHTS);
    end_scene_with(&scene, &options);
    expect(&scene, "ttnn.from_torch", TTM_CLASS_STEADY, false);
    expect(&scene, "ttnn.zeros", TTM_CLASS_GROWING, true);
    assert_false(scene.process->is_unjudged);
    ttm_report_done(&scene.report);
}

static void a_process_that_ends_in_its_warm_up_is_not_judged(void **state)
{
    const struct ttm_report_options options = {
        .has_warmup = true, .warmup_ns = 60000 * STORY_MS, .seed = 9};
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    leak_in(&scene.story, 30);
    end_scene_with(&scene, &options);
    assert_true(scene.process->is_unjudged);
    expect(&scene, "ttnn.matmul", TTM_CLASS_STEADY, false);
    ttm_report_done(&scene.report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_of_one_line_and_nothing_else_are_unsure),
        cmocka_unit_test(layers_of_several_lines_and_nothing_else_are_unsure),
        cmocka_unit_test(converted_weights_and_nothing_else_are_unsure),
        cmocka_unit_test(weights_that_an_operation_makes_in_several_steps_are_unsure),
        cmocka_unit_test(weights_loaded_after_a_computation_and_before_the_end_are_unsure),
        cmocka_unit_test(weights_that_are_freed_when_the_program_ends_are_temporary),
        cmocka_unit_test(contexts_of_layers_are_no_rounds),
        cmocka_unit_test(what_is_loaded_while_something_else_happens_is_growing),
        cmocka_unit_test(a_tensor_from_data_that_is_freed_most_times_is_growing),
        cmocka_unit_test(results_that_fill_the_run_are_growing),
        cmocka_unit_test(a_native_program_that_allocates_and_frees_nothing_is_unsure),
        cmocka_unit_test(a_native_program_that_frees_something_else_meanwhile_is_growing),
        cmocka_unit_test(what_is_loaded_before_the_mark_is_steady_and_after_it_growing),
        cmocka_unit_test(what_grew_before_the_mark_alone_is_no_suspect),
        cmocka_unit_test(only_what_came_after_the_mark_counts_of_a_line_that_leaks_all_the_time),
        cmocka_unit_test(a_device_that_is_closed_after_the_mark_begins_anew),
        cmocka_unit_test(a_name_that_is_given_after_the_mark_does_not_move_what_came_before_it),
        cmocka_unit_test(programs_that_were_cached_before_the_mark_are_no_suspects),
        cmocka_unit_test(a_process_that_never_sets_the_mark_is_not_judged),
        cmocka_unit_test(a_process_that_begins_after_the_mark_of_another_is_judged),
        cmocka_unit_test(what_is_loaded_in_the_warm_up_is_steady_and_after_it_growing),
        cmocka_unit_test(a_process_that_ends_in_its_warm_up_is_not_judged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
