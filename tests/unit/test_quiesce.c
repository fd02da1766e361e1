/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "hook/quiesce.h"

static sem_t arrived, go_on;
static _Atomic bool is_over;

/*
 * The function that is watched. Its size is not known to C: what lies between it and the next one,
 * which are put beside each other.
 */
__attribute__((noinline, section(".text.watched"))) static int watched(void)
{
    (void)sem_post(&arrived);
    while (sem_wait(&go_on) != 0)
        ;
    return atomic_load(&is_over) ? 1 : 2; /* so that the wait is no tail call */
}

__attribute__((noinline, section(".text.watched"))) static int behind_it(void)
{
    return 3;
}

static struct ttm_code code(void)
{
    const uintptr_t start = (uintptr_t)&watched, next = (uintptr_t)&behind_it;

    return (struct ttm_code){start, next > start ? next : start + 256};
}

static void *sleep_inside(void *unused)
{
    (void)unused;
    (void)watched();
    return NULL;
}

static void *sleep_outside(void *unused)
{
    (void)unused;
    (void)sem_post(&arrived);
    while (sem_wait(&go_on) != 0)
        ;
    return NULL;
}

static void *spin(void *unused)
{
    (void)unused;
    (void)sem_post(&arrived);
    while (!atomic_load(&is_over))
        ;
    return NULL;
}

static pthread_t start(void *(*work)(void *))
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, work, NULL), 0);
    while (sem_wait(&arrived) != 0)
        ;
    (void)usleep(20000); /* it has gone to sleep; if not, the answer is the same, later */
    return thread;
}

static uint64_t waited_ms(bool *ret_is_known)
{
    const struct ttm_code functions[] = {code()};
    const uint64_t start_ns = ttm_clock_monotonic_ns();

    *ret_is_known = ttm_quiesce(functions, 1);
    return (ttm_clock_monotonic_ns() - start_ns) / 1000000;
}

static void who_sleeps_elsewhere_is_not_waited_for(void **state)
{
    bool is_known;
    (void)state;

    pthread_t thread = start(sleep_outside);
    (void)waited_ms(&is_known);
    assert_true(is_known);
    (void)sem_post(&go_on);
    pthread_join(thread, NULL);
}

static void who_sleeps_inside_is_waited_for_and_then_given_up(void **state)
{
    bool is_known;
    (void)state;

    pthread_t thread = start(sleep_inside);
    assert_true(waited_ms(&is_known) >= 50);
    assert_false(is_known);
    (void)sem_post(&go_on);
    pthread_join(thread, NULL);
    (void)waited_ms(&is_known);
    assert_true(is_known);
}

static void *leave_later(void *unused)
{
    (void)unused;
    (void)usleep(10000);
    (void)sem_post(&go_on);
    return NULL;
}

static void who_leaves_meanwhile_is_known_to_have_left(void **state)
{
    pthread_t helper;
    bool is_known;
    (void)state;

    pthread_t thread = start(sleep_inside);
    assert_int_equal(pthread_create(&helper, NULL, leave_later, NULL), 0);
    (void)waited_ms(&is_known);
    pthread_join(thread, NULL);
    pthread_join(helper, NULL);
    /* On a machine that did not let it leave within 50 ms it is honestly not known. */
    if (!is_known)
        skip();
}

static void who_runs_is_waited_for_until_it_ran(void **state)
{
    bool is_known;
    (void)state;

    pthread_t thread = start(spin);
    (void)waited_ms(&is_known);
    assert_true(is_known);
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_sleeps_elsewhere_is_not_waited_for),
        cmocka_unit_test(who_sleeps_inside_is_waited_for_and_then_given_up),
        cmocka_unit_test(who_leaves_meanwhile_is_known_to_have_left),
        cmocka_unit_test(who_runs_is_waited_for_until_it_ran),
    };

    if (behind_it() != 3 || sem_init(&arrived, 0, 0) != 0 || sem_init(&go_on, 0, 0) != 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
