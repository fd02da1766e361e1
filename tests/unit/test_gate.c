/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/gate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing.h"

#define PASSERS 4
#define CLOSINGS 5000
#define MOMENTS 500
#define MOMENT_US 100
#define CROWD 300 /* more threads than have a line to themselves */

/* Each passer raises its pair, one after the other; whoever is alone finds them equal. */
static struct {
    _Alignas(64) uint64_t first, second; /* plain: the gate is what keeps readers away */
} pairs[PASSERS];
static _Atomic bool has_ended;

static void *pass(void *argument)
{
    const uint32_t number = (uint32_t)(uintptr_t)argument;

    while (!atomic_load_explicit(&has_ended, memory_order_relaxed)) {
        ttm_gate_enter();
        pairs[number].first++;
        ttm_gate_enter(); /* nested */
        pairs[number].second++;
        ttm_gate_leave();
        ttm_gate_leave();
    }
    return NULL;
}

static uint64_t check_pairs(void)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < PASSERS; i++) {
        assert_int_equal(pairs[i].first, pairs[i].second);
        sum += pairs[i].first;
    }
    return sum;
}

static void who_closes_it_is_alone(void **state)
{
    pthread_t threads[PASSERS];
    uint64_t last = 0;
    (void)state;

    for (uintptr_t i = 0; i < PASSERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, pass, (void *)i), 0);
    for (unsigned i = 0; i < CLOSINGS; i++) {
        assert_true(ttm_gate_close());
        const uint64_t sum = check_pairs();
        assert_true(sum >= last);
        for (uint32_t k = 0; k < PASSERS; k++) /* nobody writes meanwhile */
            assert_int_equal(pairs[k].first, pairs[k].second);
        assert_int_equal(check_pairs(), sum);
        last = sum;
        ttm_gate_open();
    }
    while (last == 0) { /* on a machine with one processor nobody may have come yet */
        assert_true(ttm_gate_close());
        last = check_pairs();
        ttm_gate_open();
    }
    atomic_store(&has_ended, true);
    for (unsigned i = 0; i < PASSERS; i++)
        pthread_join(threads[i], NULL);
    (void)check_pairs();
}

static void a_closer_may_be_inside_and_enter_again(void **state)
{
    (void)state;

    ttm_gate_enter();
    assert_true(ttm_gate_close());
    ttm_gate_enter();
    ttm_gate_leave();
    ttm_gate_open();
    ttm_gate_leave();
    assert_true(ttm_gate_close());
    ttm_gate_enter();
    ttm_gate_leave();
    ttm_gate_open();
}

static pthread_barrier_t barrier;

static void *stay(void *unused)
{
    ttm_gate_enter();
    pthread_barrier_wait(&barrier); /* all are inside */
    ttm_gate_leave();
    pthread_barrier_wait(&barrier); /* all are outside */
    return unused;
}

static void threads_beyond_those_with_a_line_count_too(void **state)
{
    pthread_t threads[CROWD];
    (void)state;

    for (unsigned round = 0; round < 2; round++) { /* those who end give their lines back */
        pthread_barrier_init(&barrier, NULL, CROWD + 1);
        for (unsigned i = 0; i < CROWD; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, stay, NULL), 0);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        assert_true(ttm_gate_close());
        ttm_gate_open();
        for (unsigned i = 0; i < CROWD; i++)
            pthread_join(threads[i], NULL);
        pthread_barrier_destroy(&barrier);
    }
}

static _Atomic bool has_passed;

/* Closes the gate, and leaves time for one who should not to pass. Returns itself if one did. */
static void *keep_closed(void *self)
{
    void *passed = NULL;

    if (!ttm_gate_close())
        passed = self;
    pthread_barrier_wait(&barrier); /* it is closed */
    for (unsigned i = 0; i < MOMENTS && !passed; i++) {
        (void)usleep(MOMENT_US);
        passed = atomic_load(&has_passed) ? self : NULL;
    }
    ttm_gate_open();
    return passed;
}

/* Plays a signal that arrives when the thread has said that it is inside and has not looked yet. */
static void who_interrupts_an_entry_does_not_pass_a_closed_gate(void **state)
{
    pthread_t thread;
    void *passed;
    (void)state;

    ttm_gate_enter(); /* gives it a line */
    ttm_gate_leave();
    pthread_barrier_init(&barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, keep_closed, &has_passed), 0);
    pthread_barrier_wait(&barrier);
    const uint64_t seen = ttm_gate_go_in(ttm_own.gate.line);
    assert_int_equal(seen & TTM_GATE_CLOSED, TTM_GATE_CLOSED);
    ttm_gate_enter(); /* the handler's */
    atomic_store(&has_passed, true);
    ttm_gate_leave();
    ttm_gate_go_out(ttm_own.gate.line);
    pthread_join(thread, &passed);
    assert_null(passed);
    pthread_barrier_destroy(&barrier);
}

static void *close_and_open(void *self)
{
    void *failed = ttm_gate_close() ? NULL : self;

    ttm_gate_open();
    return failed;
}

static void who_is_inside_enters_again_while_another_waits_to_close(void **state)
{
    pthread_t thread;
    void *failed;
    (void)state;

    ttm_gate_enter();
    assert_int_equal(pthread_create(&thread, NULL, close_and_open, &has_passed), 0);
    while ((atomic_load(&ttm_hot.state) & TTM_GATE_CLOSED) == 0)
        (void)usleep(MOMENT_US);
    ttm_gate_enter();
    ttm_gate_leave();
    ttm_gate_leave();
    pthread_join(thread, &failed);
    assert_null(failed); /* it would have waited for us in vain */
}

static void others_can_close(void)
{
    pthread_t thread;
    void *failed;

    assert_int_equal(pthread_create(&thread, NULL, close_and_open, &has_passed), 0);
    pthread_join(thread, &failed);
    assert_null(failed);
}

static void a_fork_waits_until_the_gate_is_open(void **state)
{
    pthread_t thread;
    void *passed;
    (void)state;

    atomic_store(&has_passed, false);
    pthread_barrier_init(&barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, keep_closed, &has_passed), 0);
    pthread_barrier_wait(&barrier);
    ttm_gate_before_fork();
    atomic_store(&has_passed, true);
    ttm_gate_after_fork_in_parent();
    pthread_join(thread, &passed);
    assert_null(passed);
    pthread_barrier_destroy(&barrier);
    others_can_close();
}

static void a_fork_by_who_has_closed_the_gate_or_is_inside_does_not_wait(void **state)
{
    pthread_t thread;
    void *failed;
    (void)state;

    assert_true(ttm_gate_close());
    ttm_gate_before_fork();
    ttm_gate_after_fork_in_parent();
    ttm_gate_open();
    others_can_close();

    ttm_gate_before_fork();
    assert_true(ttm_gate_close()); /* in a signal handler */
    ttm_gate_open();
    ttm_gate_after_fork_in_parent();
    others_can_close();

    ttm_gate_enter();
    assert_int_equal(pthread_create(&thread, NULL, close_and_open, &has_passed), 0);
    while ((atomic_load(&ttm_hot.state) & TTM_GATE_CLOSED) == 0)
        (void)usleep(MOMENT_US);
    ttm_gate_before_fork();
    ttm_gate_after_fork_in_parent();
    ttm_gate_leave();
    pthread_join(thread, &failed);
    assert_null(failed);
    others_can_close();
}

static void *enter_and_end(void *unused)
{
    ttm_gate_enter();
    return unused;
}

static void a_thread_that_ends_inside_is_no_longer_there(void **state)
{
    pthread_t thread;
    (void)state;

    assert_int_equal(pthread_create(&thread, NULL, enter_and_end, NULL), 0);
    pthread_join(thread, NULL);
    assert_true(ttm_gate_close());
    ttm_gate_open();
}

static void in_a_child_of_fork_nobody_else_is_inside(void **state)
{
    pthread_t thread;
    int status;
    (void)state;

    pthread_barrier_init(&barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, stay, NULL), 0);
    pthread_barrier_wait(&barrier);
    ttm_gate_enter();
    const pid_t child = fork();
    if (child == 0) {
        ttm_gate_after_fork();
        const bool is_alone = ttm_gate_close();
        ttm_gate_open();
        const bool is_inside = atomic_load(ttm_own.gate.line) == 1; /* as its thread was */
        ttm_gate_leave();
        _exit(is_alone && is_inside && atomic_load(ttm_own.gate.line) == 0 ? 0 : 1);
    }
    ttm_gate_leave();
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    pthread_barrier_destroy(&barrier);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_closes_it_is_alone),
        cmocka_unit_test(a_closer_may_be_inside_and_enter_again),
        cmocka_unit_test(who_interrupts_an_entry_does_not_pass_a_closed_gate),
        cmocka_unit_test(who_is_inside_enters_again_while_another_waits_to_close),
        cmocka_unit_test(a_fork_waits_until_the_gate_is_open),
        cmocka_unit_test(a_fork_by_who_has_closed_the_gate_or_is_inside_does_not_wait),
        cmocka_unit_test(threads_beyond_those_with_a_line_count_too),
        cmocka_unit_test(a_thread_that_ends_inside_is_no_longer_there),
        cmocka_unit_test(in_a_child_of_fork_nobody_else_is_inside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
