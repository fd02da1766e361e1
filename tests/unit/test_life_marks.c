/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "model/life_marks.h"

#define LIVES (3 * TTM_CHUNK_LIVES + 100)

static struct ttm_life_store store;
static struct ttm_life_view view;
static struct ttm_life_marks marks;
static uint32_t refs[LIVES];

static uint32_t add(uint64_t serial)
{
    const struct ttm_life life = {.serial = serial, .site = 0};
    uint32_t ref = TTM_LIFE_NONE;

    assert_int_equal(ttm_life_store_add(&store, &life, TTM_LIFE_NONE, &ref), 0);
    return ref;
}

/* Lives of serials 1 to LIVES, and a view of them without a mark. */
static int set_up(void **state)
{
    (void)state;
    ttm_life_store_init(&store);
    for (uint32_t i = 0; i < LIVES; i++)
        refs[i] = add(i + 1);
    assert_int_equal(ttm_life_view_take(&store, &view), 0);
    assert_int_equal(ttm_life_marks_init(&marks, &view), 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ttm_life_marks_done(&marks);
    (void)ttm_life_view_release(&view, UINT32_MAX);
    ttm_life_store_done(&store);
    return faults_pages_out() == 0 ? 0 : -1;
}

/* How many are not marked, and the sum of their serials. The view is used up. */
static uint32_t unmarked(uint64_t *ret_sum)
{
    const struct ttm_life *life;
    uint64_t at = 0;
    uint32_t count = 0;

    *ret_sum = 0;
    while ((life = ttm_life_marks_next(&marks, &view, &at)) != NULL) {
        *ret_sum += life->serial;
        count++;
    }
    return count;
}

static void without_marks_every_life_comes_once(void **state)
{
    uint64_t sum;
    (void)state;

    assert_int_equal(unmarked(&sum), LIVES);
    assert_int_equal(sum, (uint64_t)LIVES * (LIVES + 1) / 2);
}

static void those_that_are_marked_do_not_come(void **state)
{
    uint64_t sum, expected = 0;
    uint32_t count = 0;
    (void)state;

    for (uint32_t i = 0; i < LIVES; i++) {
        const bool is_left = i == 0 || i == 63 || i == 64 || i == TTM_CHUNK_LIVES - 1 ||
                             i == TTM_CHUNK_LIVES || i == LIVES - 1 || i % 1000 == 7;
        if (!is_left)
            ttm_life_marks_set(&marks, refs[i]);
        expected += is_left ? i + 1 : 0;
        count += is_left;
    }
    assert_int_equal(unmarked(&sum), count);
    assert_int_equal(sum, expected);
}

static void when_all_are_marked_none_comes(void **state)
{
    uint64_t sum;
    (void)state;

    for (uint32_t i = 0; i < LIVES; i++)
        ttm_life_marks_set(&marks, refs[i]);
    assert_int_equal(unmarked(&sum), 0);
}

static void lives_that_came_later_can_be_marked_and_change_nothing_for_the_others(void **state)
{
    uint64_t sum;
    (void)state;

    /* One takes the place of a life that is gone since, the others places that the view has not. */
    ttm_life_store_remove(&store, refs[5]);
    for (uint32_t i = 0; i < 2 * TTM_CHUNK_LIVES; i++)
        ttm_life_marks_set(&marks, add(LIVES + 1 + i));
    assert_int_equal(unmarked(&sum), LIVES - 1);
    assert_int_equal(sum, (uint64_t)LIVES * (LIVES + 1) / 2 - 6);
}

static void marks_of_an_empty_view_need_no_memory(void **state)
{
    struct ttm_life_marks none;
    struct ttm_life_view empty = {0};
    uint64_t at = 0;
    (void)state;

    faults_begin(0);
    const int r = ttm_life_marks_init(&none, &empty);
    assert_false(faults_end());
    assert_int_equal(r, 0);
    ttm_life_marks_set(&none, 0);
    assert_null(ttm_life_marks_next(&none, &empty, &at));
    ttm_life_marks_done(&none);
}

static void without_memory_there_are_no_marks(void **state)
{
    struct ttm_life_marks none;
    (void)state;

    faults_begin(0);
    const int r = ttm_life_marks_init(&none, &view);
    assert_true(faults_end());
    assert_int_equal(r, -ENOMEM);
    ttm_life_marks_done(&none);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_marks_every_life_comes_once),
        TEST(those_that_are_marked_do_not_come),
        TEST(when_all_are_marked_none_comes),
        TEST(lives_that_came_later_can_be_marked_and_change_nothing_for_the_others),
        TEST(marks_of_an_empty_view_need_no_memory),
        TEST(without_memory_there_are_no_marks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
