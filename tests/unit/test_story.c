/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "model/story.h"

static struct ttm_story story;

static int set_up(void **state)
{
    (void)state;
    ttm_story_init(&story);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_story_done(&story);
    return 0;
}

static void a_new_story_is_empty(void **state)
{
    (void)state;
    assert_int_equal(ttm_story_marks(&story), 0);
    assert_int_equal(ttm_story_failures(&story), 0);
}

static void add_marks(uint64_t first, uint64_t count)
{
    for (uint64_t i = first; i < first + count; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "step %llu", (unsigned long long)i);
        assert_int_equal(ttm_story_add_mark(&story, i, name), 0);
    }
}

static void assert_marks(uint64_t first, uint32_t count)
{
    assert_int_equal(ttm_story_marks(&story), count);
    for (uint32_t i = 0; i < count; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "step %llu", (unsigned long long)(first + i));
        assert_true(ttm_story_mark(&story, i)->time_ns == first + i);
        assert_string_equal(ttm_story_mark(&story, i)->name, name);
    }
}

static void the_newest_marks_are_kept_oldest_first(void **state)
{
    (void)state;
    add_marks(0, 1);
    assert_marks(0, 1);
    add_marks(1, TTM_MARKS_MAX - 1);
    assert_marks(0, TTM_MARKS_MAX);
    add_marks(TTM_MARKS_MAX, 1);
    assert_marks(1, TTM_MARKS_MAX);
    add_marks(TTM_MARKS_MAX + 1, 3 * TTM_MARKS_MAX);
    assert_marks(3 * TTM_MARKS_MAX + 1, TTM_MARKS_MAX);
}

static void the_newest_failures_are_kept_oldest_first(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 2 * TTM_FAILURES_MAX + 7; i++) {
        const struct ttm_failure_row row = {.time_ns = i, .wanted_bytes = 2 * i, .region = 1};
        assert_int_equal(ttm_story_add_failure(&story, &row), 0);
        const uint32_t kept = ttm_story_failures(&story);
        assert_int_equal(kept, i + 1 < TTM_FAILURES_MAX ? i + 1 : TTM_FAILURES_MAX);
        for (uint32_t k = 0; k < kept; k++) {
            assert_true(ttm_story_failure(&story, k)->time_ns == i + 1 - kept + k);
            assert_true(ttm_story_failure(&story, k)->wanted_bytes == 2 * (i + 1 - kept + k));
        }
    }
}

static void when_memory_is_short_the_story_stays_as_it_was(void **state)
{
    const struct ttm_failure_row row = {.time_ns = 1};
    (void)state;

    faults_begin(0);
    assert_int_equal(ttm_story_add_mark(&story, 1, "a"), -ENOMEM);
    assert_true(faults_end());
    assert_int_equal(ttm_story_marks(&story), 0);
    faults_begin(0);
    assert_int_equal(ttm_story_add_failure(&story, &row), -ENOMEM);
    assert_true(faults_end());
    assert_int_equal(ttm_story_failures(&story), 0);
    add_marks(5, 2);
    assert_marks(5, 2);
}

#define WITH_STORY(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_STORY(a_new_story_is_empty),
        WITH_STORY(the_newest_marks_are_kept_oldest_first),
        WITH_STORY(the_newest_failures_are_kept_oldest_first),
        WITH_STORY(when_memory_is_short_the_story_stays_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
