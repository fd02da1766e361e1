/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that open and close a device more than once: each time is a story of its own. */
#include "report_scene.h"

#define SESSION_LIVES 64

/* What there is when the device is closed. */
struct session {
    uint64_t kept[SESSION_LIVES];
    unsigned count;
};

static void keep(struct scene *scene, struct session *session, uint32_t origin, uint8_t region)
{
    assert_true(session->count < SESSION_LIVES);
    session->kept[session->count++] = story_birth(&scene->story, origin, region, 8 * KIB);
}

static void close_device(struct scene *scene, struct session *session)
{
    for (unsigned i = 0; i < session->count; i++)
        story_end(&scene->story, session->kept[i], TTM_ENDED_DEVICE_CLOSED);
    session->count = 0;
    story_wait(&scene->story, 50 * STORY_MS);
}

/* Lines of a model, and of a step that computes. */
struct model {
    uint32_t weights;
    uint32_t cbs;
    uint32_t leak;
};

static struct model make_model(struct scene *scene)
{
    return (struct model){
        .weights = story_line(&scene->story, "x.py:3:load", "ttnn.zeros"),
        .cbs = story_line(&scene->story, "x.py:8:step", "ttnn.softmax"),
        .leak = story_line(&scene->story, "x.py:9:step", "ttnn.multiply"),
    };
}

static void run_session(struct scene *scene, const struct model *model, unsigned leaks)
{
    struct session session = {0};

    for (unsigned i = 0; i < 4; i++)
        keep(scene, &session, model->weights, TTM_REGION_DRAM);
    run_steps(scene, 1);
    for (unsigned i = 0; i < 3; i++)
        keep(scene, &session, model->cbs, TTM_REGION_CB);
    for (unsigned i = 0; i < 20; i++) {
        run_steps(scene, 1);
        if (leaks > 0 && i % (20 / leaks) == 0)
            keep(scene, &session, model->leak, TTM_REGION_DRAM);
    }
    close_device(scene, &session);
}

static void what_each_session_left_does_not_grow(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const struct model model = make_model(&scene);
    for (unsigned i = 0; i < 6; i++)
        run_session(&scene, &model, 1);
    end_scene(&scene);
    expect(&scene, "ttnn.zeros", TTM_CLASS_STEADY, false);
    expect(&scene, "ttnn.softmax", TTM_CLASS_CIRCULAR_BUFFER, false);
    expect(&scene, "ttnn.multiply", TTM_CLASS_STEADY, false);
    expect_why(&scene, "ttnn.zeros", "4 born one after the other and kept; the like in all 6 ses");
    /* An origin is one row all the same, and nothing of it is left out. */
    assert_int_equal(find(scene.process, "ttnn.zeros", "")->remaining.count, 24);
    assert_int_equal(scene.process->origin_count, 4);
    assert_int_equal(ttm_report_leaked_bytes(&scene.report), 0);
    ttm_report_done(&scene.report);
}

static bool is_suspect(const void *arg, const struct ttm_report_origin *origin)
{
    (void)arg;
    return origin->verdict.is_suspect;
}

static void a_leak_of_any_session_is_found_and_takes_what_one_held(void **state)
{
    (void)state;
    for (unsigned where = 0; where < 5; where++) { /* in one of four, or in each */
        struct scene scene;
        begin_scene(&scene);
        const struct model model = make_model(&scene);
        for (unsigned i = 0; i < 4; i++)
            run_session(&scene, &model, where == 4 || where == i ? 20 : where > 1 ? 1 : 0);
        end_scene(&scene);
        expect(&scene, "ttnn.multiply", TTM_CLASS_GROWING, true);
        expect(&scene, "ttnn.zeros", TTM_CLASS_STEADY, false);
        if (where > 1)
            expect_why(&scene, "ttnn.multiply",
                       where == 4 ? "; the like in all 4 sessions" : ", in one of 4 sessions");
        const struct ttm_report_origin *leak = find(scene.process, "ttnn.multiply", "");
        const unsigned left = where == 4 ? 80 : where > 1 ? 23 : 20; /* others leave one each */
        assert_int_equal(leak->remaining.count, left);
        assert_int_equal(ttm_report_leaked_bytes(&scene.report),
                         leak->remaining.footprint_bytes / left * 20);
        assert_int_equal(leak->judged.count, where == 4 ? 80 : 20);
        assert_int_equal(leak->judged.footprint_bytes,
                         leak->remaining.footprint_bytes / left * leak->judged.count);
        assert_int_equal(ttm_report_most_judged(scene.process, is_suspect, NULL),
                         leak->remaining.footprint_bytes / left * 20);
        ttm_report_done(&scene.report);
    }
}

/* As where ends are of another thread than births. */
static void a_leak_is_found_where_the_close_seems_to_be_before_the_last_birth(void **state)
{
    struct session session = {0};
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const struct model model = make_model(&scene);
    for (unsigned i = 0; i < 20; i++) {
        run_steps(&scene, 1);
        keep(&scene, &session, model.leak, TTM_REGION_DRAM);
    }
    scene.story.now_ns -= 2 * STORY_MS;
    close_device(&scene, &session);
    end_scene(&scene);
    expect(&scene, "ttnn.multiply", TTM_CLASS_GROWING, true);
    ttm_report_done(&scene.report);
}

static void leaks_of_different_sessions_do_not_add_up(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    struct model model = make_model(&scene);
    run_session(&scene, &model, 20);
    model.leak = story_line(&scene.story, "x.py:19:other", "ttnn.divide");
    run_session(&scene, &model, 10);
    end_scene(&scene);
    expect(&scene, "ttnn.multiply", TTM_CLASS_GROWING, true);
    expect(&scene, "ttnn.divide", TTM_CLASS_GROWING, true);
    assert_int_equal(ttm_report_leaked_bytes(&scene.report),
                     find(scene.process, "ttnn.multiply", "")->remaining.footprint_bytes);
    ttm_report_done(&scene.report);
}

/* Its lives end as those of a device do, while others of the device stay. */
static void an_allocator_that_is_closed_within_a_session_ends_no_loop(void **state)
{
    struct session session = {0}, part = {0};
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const struct model model = make_model(&scene);
    keep(&scene, &session, model.weights, TTM_REGION_DRAM);
    for (unsigned i = 0; i < 10; i++) {
        keep(&scene, &part, scene.other, TTM_REGION_L1);
        keep(&scene, &session, model.leak, TTM_REGION_DRAM);
        close_device(&scene, &part);
    }
    close_device(&scene, &session);
    end_scene(&scene);
    expect(&scene, "ttnn.multiply", TTM_CLASS_GROWING, true);
    ttm_report_done(&scene.report);
}

/* A device that stays open goes on with its story, whatever others do. */
static void a_device_is_not_closed_by_another(void **state)
{
    struct session session = {0};
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    story_devices(&scene.story, 2);
    const struct model model = make_model(&scene);
    for (unsigned i = 0; i < 8; i++) {
        scene.story.devices = 1;
        keep(&scene, &session, model.leak, TTM_REGION_DRAM);
        scene.story.devices = 0;
        run_session(&scene, &model, 0);
    }
    end_scene(&scene);
    expect(&scene, "ttnn.multiply", TTM_CLASS_GROWING, true);
    expect(&scene, "ttnn.zeros", TTM_CLASS_STEADY, false);
    ttm_report_done(&scene.report);
}

static void more_sessions_than_are_told_apart_make_nobody_a_suspect(void **state)
{
    struct scene scene;
    (void)state;

    begin_scene(&scene);
    const struct model model = make_model(&scene);
    for (unsigned i = 0; i < TTM_LEDGER_REOPENED + 50; i++) {
        struct session session = {0};
        run_steps(&scene, 1);
        keep(&scene, &session, model.leak, TTM_REGION_DRAM);
        close_device(&scene, &session);
    }
    end_scene(&scene);
    const struct ttm_report_origin *origin = find(scene.process, "ttnn.multiply", "");
    assert_int_equal(origin->remaining.count, TTM_LEDGER_REOPENED + 50);
    assert_false(origin->verdict.is_suspect);
    assert_int_equal(ttm_report_leaked_bytes(&scene.report), 0);
    ttm_report_done(&scene.report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_each_session_left_does_not_grow),
        cmocka_unit_test(a_leak_of_any_session_is_found_and_takes_what_one_held),
        cmocka_unit_test(a_leak_is_found_where_the_close_seems_to_be_before_the_last_birth),
        cmocka_unit_test(leaks_of_different_sessions_do_not_add_up),
        cmocka_unit_test(an_allocator_that_is_closed_within_a_session_ends_no_loop),
        cmocka_unit_test(a_device_is_not_closed_by_another),
        cmocka_unit_test(more_sessions_than_are_told_apart_make_nobody_a_suspect),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
