/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/tick_clock.h"

#define MS TTM_NS_PER_MS
#define S TTM_NS_PER_S

/* A processor of 2.5 ticks a nanosecond, whose count began 7 ticks before the clock. */
static uint64_t ticks_at(uint64_t ns)
{
    return ns * 5 / 2 + 7;
}

/* It was set twice, so that it can be used, at 100 ms. */
static struct ttm_tick_clock make_clock(void)
{
    struct ttm_tick_clock clock = {.is_trusted = true};

    assert_int_equal(ttm_tick_clock_set(&clock, ticks_at(40 * MS), 40 * MS), 40 * MS);
    assert_int_equal(ttm_tick_clock_set(&clock, ticks_at(100 * MS), 100 * MS), 100 * MS);
    return clock;
}

static void assert_near(uint64_t ns, uint64_t expected, uint64_t by)
{
    assert_in_range(ns, expected - by, expected + by);
}

static void a_clock_that_nobody_trusts_is_the_kernels(void **state)
{
    struct ttm_tick_clock clock = {0};
    (void)state;

    const uint64_t before = ttm_clock_monotonic_ns();
    const uint64_t ns = ttm_tick_clock_ns(&clock);
    assert_in_range(ns, before, ttm_clock_monotonic_ns());
    assert_int_equal(ttm_tick_clock_at(&clock, ticks_at(S)), 0);
}

static void a_tick_is_known_after_a_while(void **state)
{
    struct ttm_tick_clock clock = {.is_trusted = true};
    (void)state;

    (void)ttm_tick_clock_set(&clock, ticks_at(40 * MS), 40 * MS);
    assert_int_equal(ttm_tick_clock_at(&clock, ticks_at(41 * MS)), 0);
    assert_int_equal(ttm_tick_clock_set(&clock, ticks_at(60 * MS), 60 * MS), 60 * MS);
    assert_int_equal(ttm_tick_clock_at(&clock, ticks_at(61 * MS)), 0);

    clock = make_clock();
    assert_near(ttm_tick_clock_at(&clock, ticks_at(100 * MS)), 100 * MS, 1);
    assert_near(ttm_tick_clock_at(&clock, ticks_at(700 * MS)), 700 * MS, 2);
}

static void it_is_asked_before_it_was_set_and_when_it_is_old(void **state)
{
    struct ttm_tick_clock clock = make_clock();
    const uint64_t base = ticks_at(100 * MS);
    (void)state;

    assert_int_equal(ttm_tick_clock_at(&clock, base - 1), 0);
    assert_int_not_equal(ttm_tick_clock_at(&clock, base + TTM_TICKS_MAX - 1), 0);
    assert_int_equal(ttm_tick_clock_at(&clock, base + TTM_TICKS_MAX), 0);
}

static void it_bends_to_the_kernels_time_and_does_not_step(void **state)
{
    struct ttm_tick_clock clock = make_clock();
    const int64_t errors_ns[] = {30000, -40000, 5000, 0, 90000, -90000, 0, 0};
    uint64_t at_ns = 100 * MS;
    (void)state;

    for (size_t i = 0; i < COUNT_OF(errors_ns); i++) {
        at_ns += 850 * MS;
        const uint64_t ticks = ticks_at(at_ns);
        const uint64_t before = ttm_tick_clock_at(&clock, ticks - 1);
        const uint64_t set =
            ttm_tick_clock_set(&clock, ticks, (uint64_t)((int64_t)at_ns + errors_ns[i]));
        assert_in_range(set, before, before + 2);
        assert_in_range(ttm_tick_clock_at(&clock, ticks + 1), set, set + 2);
        assert_near(set, at_ns, MS);
    }
    /* It has been right for two periods. */
    assert_near(ttm_tick_clock_at(&clock, ticks_at(at_ns + 100)), at_ns + 100, 100000);
    assert_true(clock.is_trusted);
}

static void after_a_silence_it_is_the_kernels_time(void **state)
{
    struct ttm_tick_clock clock = make_clock();
    (void)state;

    /* A day later they are ten seconds apart. */
    assert_int_equal(ttm_tick_clock_set(&clock, ticks_at(86400 * S), 86390 * S), 86390 * S);
    assert_near(ttm_tick_clock_at(&clock, ticks_at(86400 * S + MS)), 86390 * S + MS, 200);
    assert_true(clock.is_trusted);
}

static void ticks_that_run_away_are_left_alone(void **state)
{
    struct ttm_tick_clock clock = make_clock();
    (void)state;

    /* The machine slept: many ticks, hardly any time. To go on from there would be to step back. */
    assert_int_equal(ttm_tick_clock_set(&clock, ticks_at(500 * S), 300 * MS), 300 * MS);
    assert_false(clock.is_trusted);
    assert_int_equal(ttm_tick_clock_at(&clock, ticks_at(500 * S) + 1), 0);
}

static void ticks_that_go_back_are_left_alone(void **state)
{
    struct ttm_tick_clock clock = make_clock();
    (void)state;

    assert_int_equal(ttm_tick_clock_set(&clock, 5, S), S);
    assert_false(clock.is_trusted);
}

static void ticks_that_are_slow_are_left_alone(void **state)
{
    struct ttm_tick_clock clock = {.is_trusted = true};
    (void)state;

    (void)ttm_tick_clock_set(&clock, 1000, 40 * MS);
    assert_int_equal(ttm_tick_clock_set(&clock, 1000 + 60 * MS, 100 * MS), 100 * MS);
    assert_false(clock.is_trusted);
    assert_int_equal(ttm_tick_clock_at(&clock, 2000 + 60 * MS), 0);
}

static _Atomic bool is_over;

/* Looks, and sets it now and then, as threads with events do. */
static void *look(void *shared)
{
    uint64_t last_ns = 0, looks = 0;

    while (!is_over) {
        const uint64_t before = ttm_clock_monotonic_ns();
        const uint64_t ns = ttm_tick_clock_ns(shared);
        const uint64_t after = ttm_clock_monotonic_ns();
        /* A thread that asks the kernel in between may be as much behind as the two are apart. */
        if (ns + 2 * MS < before || ns > after + 2 * MS || ns + 2 * MS < last_ns)
            return NULL;
        last_ns = ns;
        looks++;
    }
    return looks > 0 ? shared : NULL;
}

static void threads_that_look_see_the_kernels_time(void **state)
{
    struct ttm_tick_clock clock = {0};
    pthread_t threads[3];
    (void)state;

    ttm_tick_clock_begin(&clock);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, look, &clock), 0);
    (void)nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
    is_over = true;
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_non_null(result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clock_that_nobody_trusts_is_the_kernels),
        cmocka_unit_test(a_tick_is_known_after_a_while),
        cmocka_unit_test(it_is_asked_before_it_was_set_and_when_it_is_old),
        cmocka_unit_test(it_bends_to_the_kernels_time_and_does_not_step),
        cmocka_unit_test(after_a_silence_it_is_the_kernels_time),
        cmocka_unit_test(ticks_that_run_away_are_left_alone),
        cmocka_unit_test(ticks_that_go_back_are_left_alone),
        cmocka_unit_test(ticks_that_are_slow_are_left_alone),
        cmocka_unit_test(threads_that_look_see_the_kernels_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
