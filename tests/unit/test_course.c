/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "analysis/course.h"

#define START_NS 1000ull

/* The least and the most in the spans that a stretch of time touches. */
static struct ttm_course_span range_of(const struct ttm_course *course, uint64_t from, uint64_t to)
{
    struct ttm_course_span sum = {UINT64_MAX, 0, 0};

    for (uint64_t i = from >> course->shift; i <= to >> course->shift; i++) {
        const struct ttm_course_span last = course->spans[course->count - 1];
        const struct ttm_course_span span =
            i < course->count ? course->spans[i]
                              : (struct ttm_course_span){last.last, last.last, last.last};
        sum.min = span.min < sum.min ? span.min : sum.min;
        sum.max = span.max > sum.max ? span.max : sum.max;
    }
    return sum;
}

static void a_value_holds_until_the_next(void **state)
{
    struct ttm_course *course = ttm_course_new(START_NS);
    (void)state;

    ttm_course_put(course, START_NS + (5 << 10), 70);
    ttm_course_put(course, START_NS + (9 << 10), 30);
    assert_int_equal(course->count, 10);
    assert_int_equal(course->spans[4].max, 0);
    assert_int_equal(course->spans[5].min, 0); /* it was, when the span began */
    assert_int_equal(course->spans[5].max, 70);
    assert_int_equal(course->spans[7].min, 70);
    assert_int_equal(course->spans[7].max, 70);
    assert_int_equal(course->spans[9].min, 30);
    assert_int_equal(course->spans[9].max, 70);
    assert_int_equal(course->spans[9].last, 30);
    ttm_course_free(course);
}

/* A million changes with one spike and one dip, each of a nanosecond. */
static void the_shortest_peak_and_dip_survive_a_million_changes(void **state)
{
    struct ttm_course *course = ttm_course_new(0);
    uint64_t random = 4711, time_ns = 0, spike_ns = 0, dip_ns = 0;
    (void)state;

    for (unsigned i = 0; i < 1000000; i++) {
        time_ns += 1 + random_below(&random, 100000);
        ttm_course_put(course, time_ns, 1000 + random_below(&random, 1000));
        if (i == 333333) {
            spike_ns = time_ns + 1;
            ttm_course_put(course, spike_ns, 999999);
        }
        if (i == 777777) {
            dip_ns = time_ns + 1;
            ttm_course_put(course, dip_ns, 3);
        }
    }
    assert_true(course->count <= TTM_COURSE_SPANS);
    assert_true(course->count > TTM_COURSE_SPANS / 2 - 1);
    assert_true(time_ns >> course->shift < TTM_COURSE_SPANS);
    assert_int_equal(course->spans[spike_ns >> course->shift].max, 999999);
    assert_int_equal(course->spans[dip_ns >> course->shift].min, 3);
    unsigned spikes = 0, dips = 0;
    for (uint32_t i = 0; i < course->count; i++) {
        assert_true(course->spans[i].min <= course->spans[i].last);
        assert_true(course->spans[i].last <= course->spans[i].max);
        spikes += course->spans[i].max == 999999;
        dips += course->spans[i].min == 3;
    }
    assert_in_range(spikes, 1, 2); /* it may still hold when the next span begins */
    assert_in_range(dips, 1, 2);
    ttm_course_free(course);
}

static void random_courses_agree_with_all_their_values(void **state)
{
    static uint64_t times[3000], values[3000];
    (void)state;

    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct ttm_course *course = ttm_course_new(0);
        uint64_t random = seed, time_ns = 0;
        for (unsigned i = 0; i < COUNT_OF(times); i++) {
            time_ns += random_below(&random, 1u << random_below(&random, 24));
            times[i] = time_ns;
            values[i] = random_below(&random, 1000);
            ttm_course_put(course, times[i], values[i]);
        }
        if (seed % 2 == 0)
            ttm_course_thin(course, 10);
        assert_true(course->count <= (seed % 2 == 0 ? 10 : TTM_COURSE_SPANS));
        for (unsigned i = 0; i + 1 < COUNT_OF(times); i++) {
            const struct ttm_course_span range = range_of(course, times[i], times[i + 1]);
            assert_true(range.min <= values[i] && values[i] <= range.max);
        }
        const struct ttm_course_span all = range_of(course, 0, time_ns);
        uint64_t most = 0;
        for (unsigned i = 0; i < COUNT_OF(times); i++)
            most = values[i] > most ? values[i] : most;
        assert_int_equal(all.max, most);
        assert_int_equal(course->spans[course->count - 1].last, values[COUNT_OF(times) - 1]);
        ttm_course_free(course);
    }
}

static void times_before_the_last_count_as_the_last(void **state)
{
    struct ttm_course *course = ttm_course_new(START_NS);
    (void)state;

    ttm_course_put(course, 0, 5);
    assert_int_equal(course->count, 1);
    assert_int_equal(course->spans[0].max, 5);
    ttm_course_put(course, START_NS + (100 << 10), 6);
    ttm_course_put(course, START_NS + (50 << 10), 7);
    assert_int_equal(course->count, 101);
    assert_int_equal(course->spans[50].max, 5);
    assert_int_equal(course->spans[100].last, 7);
    ttm_course_free(course);
}

static void the_end_of_time_is_within_bounds(void **state)
{
    struct ttm_course *course = ttm_course_new(0);
    (void)state;

    ttm_course_put(course, 1, 1);
    ttm_course_put(course, UINT64_MAX, 2);
    assert_true(course->count <= TTM_COURSE_SPANS);
    assert_int_equal(course->spans[0].max, 1);
    assert_int_equal(course->spans[course->count - 1].last, 2);
    ttm_course_thin(course, 1);
    assert_int_equal(course->spans[course->count - 1].max, 2);
    ttm_course_free(course);
}

static void copies_are_their_own(void **state)
{
    struct ttm_course *course = ttm_course_new(0);
    struct ttm_arena arena;
    (void)state;

    ttm_course_put(course, 5, 5);
    struct ttm_course *copy = ttm_course_copy(course);
    ttm_arena_init(&arena);
    const struct ttm_course *kept = ttm_course_keep(course, &arena);
    ttm_course_put(course, 6, 9);
    assert_int_equal(copy->spans[0].max, 5);
    assert_int_equal(kept->spans[0].max, 5);
    assert_null(ttm_course_copy(NULL));
    assert_null(ttm_course_keep(NULL, &arena));
    assert_false(arena.failed);
    ttm_course_free(copy);
    ttm_course_free(course);
    ttm_course_free(NULL);
    ttm_arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_holds_until_the_next),
        cmocka_unit_test(the_shortest_peak_and_dip_survive_a_million_changes),
        cmocka_unit_test(random_courses_agree_with_all_their_values),
        cmocka_unit_test(times_before_the_last_count_as_the_last),
        cmocka_unit_test(the_end_of_time_is_within_bounds),
        cmocka_unit_test(copies_are_their_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
