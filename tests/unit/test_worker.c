/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/worker.h"

struct task {
    struct ttm_job job;
    sem_t *waits_for; /* NULL: nothing */
    sem_t has_begun;
    pthread_t ran_by;
    int finished; /* times */
};

static struct ttm_workers *workers;

static int set_up(void **state)
{
    (void)state;
    return ttm_workers_new(&workers);
}

static int tear_down(void **state)
{
    (void)state;
    ttm_workers_free(workers);
    return 0;
}

static void run_task(struct ttm_job *job)
{
    struct task *task = TTM_CONTAINER_OF(job, struct task, job);

    task->ran_by = pthread_self();
    sem_post(&task->has_begun);
    while (task->waits_for && sem_wait(task->waits_for) < 0)
        assert_int_equal(errno, EINTR); /* calls that last are interrupted now and then */
}

static void finish_task(struct ttm_job *job)
{
    TTM_CONTAINER_OF(job, struct task, job)->finished++;
}

static void init_task(struct task *task, sem_t *waits_for)
{
    *task = (struct task){.job = {.run = run_task, .finish = finish_task}, .waits_for = waits_for};
    sem_init(&task->has_begun, 0, 0);
}

static void finish_until(const struct task *task)
{
    while (task->finished == 0) {
        struct pollfd p = {.fd = ttm_workers_fd(workers), .events = POLLIN};
        assert_int_equal(poll(&p, 1, 60000), 1);
        ttm_workers_finish(workers);
    }
}

static void a_job_runs_elsewhere_and_is_finished_here(void **state)
{
    struct ttm_worker *worker = ttm_worker_new(workers);
    struct task task;
    (void)state;

    init_task(&task, NULL);
    ttm_worker_add(worker, &task.job);
    finish_until(&task);
    assert_int_equal(task.finished, 1);
    assert_false(pthread_equal(task.ran_by, pthread_self()));
    ttm_worker_release(worker);
}

static void a_job_that_lasts_delays_none_of_another_worker(void **state)
{
    struct ttm_worker *slow = ttm_worker_new(workers), *quick = ttm_worker_new(workers);
    struct task lasting[8], task;
    sem_t go_on;
    (void)state;

    sem_init(&go_on, 0, 0);
    for (size_t i = 0; i < COUNT_OF(lasting); i++) {
        init_task(&lasting[i], &go_on);
        ttm_worker_add(slow, &lasting[i].job);
    }
    sem_wait(&lasting[0].has_begun);
    init_task(&task, NULL);
    ttm_worker_add(quick, &task.job);
    finish_until(&task);
    for (size_t i = 0; i < COUNT_OF(lasting); i++) {
        assert_int_equal(lasting[i].finished, 0);
        sem_post(&go_on);
    }
    for (size_t i = 0; i < COUNT_OF(lasting); i++)
        finish_until(&lasting[i]);
    ttm_worker_release(slow);
    ttm_worker_release(quick);
}

static void one_job_that_lasts_does_not_delay_the_next_of_its_worker(void **state)
{
    struct ttm_worker *worker = ttm_worker_new(workers);
    struct task lasting, task;
    sem_t go_on;
    (void)state;

    sem_init(&go_on, 0, 0);
    init_task(&lasting, &go_on);
    ttm_worker_add(worker, &lasting.job);
    sem_wait(&lasting.has_begun);
    init_task(&task, NULL);
    ttm_worker_add(worker, &task.job);
    finish_until(&task);
    assert_int_equal(lasting.finished, 0);
    sem_post(&go_on);
    finish_until(&lasting);
    ttm_worker_release(worker);
}

static void what_was_given_to_a_released_worker_is_done(void **state)
{
    struct ttm_worker *worker = ttm_worker_new(workers);
    struct task tasks[100];
    (void)state;

    for (size_t i = 0; i < COUNT_OF(tasks); i++) {
        init_task(&tasks[i], NULL);
        ttm_worker_add(worker, &tasks[i].job);
    }
    ttm_worker_release(worker);
    ttm_workers_free(workers);
    workers = NULL;
    for (size_t i = 0; i < COUNT_OF(tasks); i++)
        assert_int_equal(tasks[i].finished, 1);
}

static void set_thread_limit(rlim_t most)
{
    struct rlimit limit;

    (void)getrlimit(RLIMIT_NPROC, &limit);
    limit.rlim_cur = most;
    (void)setrlimit(RLIMIT_NPROC, &limit);
}

/* In a child, whose user may have no more threads. Returns the line that is wrong, 0: none. */
static int work_without_threads(void)
{
    struct ttm_worker *worker;
    struct rlimit limit;
    struct task task;

    if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
        return __LINE__;
    (void)getrlimit(RLIMIT_NPROC, &limit);
    set_thread_limit(0);
    if (ttm_workers_new(&workers) < 0)
        return __LINE__;
    worker = ttm_worker_new(workers);
    init_task(&task, NULL);
    ttm_worker_add(worker, &task.job);
    ttm_workers_finish(workers);
    if (task.finished != 0 || !ttm_workers_retry(workers))
        return __LINE__;
    set_thread_limit(limit.rlim_cur);
    if (ttm_workers_retry(workers))
        return __LINE__;
    finish_until(&task);
    ttm_worker_release(worker);
    ttm_workers_free(workers);
    return pthread_equal(task.ran_by, pthread_self()) ? __LINE__ : 0;
}

static void a_job_waits_while_no_thread_can_be_had(void **state)
{
    int status = -1;
    (void)state;

    const pid_t child = fork();
    if (child == 0)
        _exit(work_without_threads() == 0 ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_waits_while_no_thread_can_be_had), /* before there are threads */
        cmocka_unit_test_setup_teardown(a_job_runs_elsewhere_and_is_finished_here, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_job_that_lasts_delays_none_of_another_worker, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(one_job_that_lasts_does_not_delay_the_next_of_its_worker,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_given_to_a_released_worker_is_done, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
