/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads are started when there is something to do and end when there was nothing for a while, so
 * a quiet loop has none.
 *
 * A call that waits in the kernel but can be interrupted (the close of a socket that lingers) is
 * interrupted by a timer of its thread, every few milliseconds; the handler of the signal does
 * nothing.
 */
#include "base/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/older_headers.h"
#include "base/quiet_thread.h"

#define THREADS_PER_WORKER 4u
#define THREADS_MAX 256u
#define STACK_SIZE ((size_t)128 << 10)
#define IDLE_NS (2 * TTM_NS_PER_S)
#define NUDGE_NS (2 * TTM_NS_PER_MS)
#define END_NS TTM_NS_PER_S
#define NUDGE_SIGNAL SIGRTMAX

#ifndef sigev_notify_thread_id /* glibc has the field and not its name */
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* Everything in both is guarded by 'lock', but for 'event_fd' and what is said to be the loop's. */
struct ttm_workers {
    pthread_mutex_t lock;
    pthread_cond_t has_changed; /* a job has run, or a thread has ended */
    struct ttm_list finished;   /* jobs that have run */
    struct ttm_list starved;    /* workers with jobs and no thread */
    unsigned threads;
    unsigned refs; /* the loop's, and one of each worker */
    int event_fd;
};

struct ttm_worker {
    struct ttm_list link; /* among the starved ones */
    struct ttm_workers *workers;
    pthread_cond_t more;
    struct ttm_list waiting; /* jobs */
    unsigned waiting_count;
    unsigned threads;
    unsigned idle;
    bool is_released;
};

/* Waits are measured by the monotonic clock, which nobody sets. */
static void init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attr);
    pthread_condattr_destroy(&attr);
}

static struct timespec after_ns(uint64_t wait_ns)
{
    const uint64_t until_ns = ttm_clock_monotonic_ns() + wait_ns;

    return (struct timespec){.tv_sec = (time_t)(until_ns / TTM_NS_PER_S),
                             .tv_nsec = (long)(until_ns % TTM_NS_PER_S)};
}

static void ignore_signal(int number)
{
    (void)number;
}

int ttm_workers_new(struct ttm_workers **ret)
{
    const struct sigaction nudged = {.sa_handler = ignore_signal};
    struct ttm_workers *workers = calloc(1, sizeof(*workers));

    if (!workers)
        return -ENOMEM;
    workers->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (workers->event_fd < 0) {
        free(workers);
        return -errno;
    }
    (void)sigaction(NUDGE_SIGNAL, &nudged, NULL);
    pthread_mutex_init(&workers->lock, NULL);
    init_condition(&workers->has_changed);
    ttm_list_init(&workers->finished);
    ttm_list_init(&workers->starved);
    workers->refs = 1;
    *ret = workers;
    return 0;
}

int ttm_workers_fd(const struct ttm_workers *workers)
{
    return workers->event_fd;
}

/* The lock is held; it is not afterwards. */
static void unref_and_unlock(struct ttm_workers *workers)
{
    const bool is_last = --workers->refs == 0;

    pthread_mutex_unlock(&workers->lock);
    if (!is_last)
        return;
    (void)close(workers->event_fd);
    pthread_cond_destroy(&workers->has_changed);
    pthread_mutex_destroy(&workers->lock);
    free(workers);
}

/* The lock is held; it is not afterwards. Frees a worker that nobody needs any more. */
static void leave_and_unlock(struct ttm_worker *worker)
{
    struct ttm_workers *workers = worker->workers;

    if (!worker->is_released || worker->threads > 0 || worker->waiting_count > 0) {
        pthread_mutex_unlock(&workers->lock);
        return;
    }
    pthread_cond_destroy(&worker->more);
    free(worker);
    unref_and_unlock(workers);
}

void ttm_workers_finish(struct ttm_workers *workers)
{
    struct ttm_list finished;
    uint64_t count;

    (void)!read(workers->event_fd, &count, sizeof(count));
    ttm_list_init(&finished);
    pthread_mutex_lock(&workers->lock);
    while (!ttm_list_is_empty(&workers->finished)) {
        struct ttm_list *link = workers->finished.next;
        ttm_list_remove(link);
        ttm_list_append(&finished, link);
    }
    pthread_mutex_unlock(&workers->lock);
    while (!ttm_list_is_empty(&finished)) {
        struct ttm_job *job = TTM_CONTAINER_OF(finished.next, struct ttm_job, link);
        ttm_list_remove(&job->link);
        job->finish(job);
    }
}

/* At the end, jobs that no thread can be had for run here. The lock is held. */
static void run_starved(struct ttm_workers *workers)
{
    while (!ttm_list_is_empty(&workers->starved)) {
        struct ttm_worker *worker =
            TTM_CONTAINER_OF(workers->starved.next, struct ttm_worker, link);
        ttm_list_remove(&worker->link);
        while (worker->threads == 0 && !ttm_list_is_empty(&worker->waiting)) {
            struct ttm_job *job = TTM_CONTAINER_OF(worker->waiting.next, struct ttm_job, link);
            ttm_list_remove(&job->link);
            worker->waiting_count--;
            job->run(job);
            ttm_list_append(&workers->finished, &job->link);
        }
        leave_and_unlock(worker);
        pthread_mutex_lock(&workers->lock);
    }
}

void ttm_workers_free(struct ttm_workers *workers)
{
    const struct timespec until = after_ns(END_NS);
    int r = 0;

    if (!workers)
        return;
    pthread_mutex_lock(&workers->lock);
    run_starved(workers);
    while (r == 0 && (workers->threads > 0 || !ttm_list_is_empty(&workers->finished))) {
        if (ttm_list_is_empty(&workers->finished)) {
            r = pthread_cond_timedwait(&workers->has_changed, &workers->lock, &until);
            continue;
        }
        pthread_mutex_unlock(&workers->lock);
        ttm_workers_finish(workers); /* which may be what the last workers are released by */
        pthread_mutex_lock(&workers->lock);
    }
    unref_and_unlock(workers);
}

/* ---- threads ---- */

/* A timer that interrupts the calling thread. Returns whether there is one. */
static bool make_timer(timer_t *ret)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = NUDGE_SIGNAL};
    sigset_t set;

    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    if (timer_create(CLOCK_MONOTONIC, &event, ret) < 0)
        return false;
    sigemptyset(&set);
    sigaddset(&set, NUDGE_SIGNAL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    return true;
}

static void set_timer(timer_t timer, uint64_t interval_ns)
{
    const struct timespec interval = {.tv_nsec = (long)interval_ns};
    const struct itimerspec spec = {.it_interval = interval, .it_value = interval};

    (void)timer_settime(timer, 0, &spec, NULL);
}

/* The lock is held, and let go while the job runs. */
static void run_job(struct ttm_workers *workers, struct ttm_job *job, timer_t timer, bool has_timer)
{
    const uint64_t one = 1;

    pthread_mutex_unlock(&workers->lock);
    if (has_timer)
        set_timer(timer, NUDGE_NS);
    job->run(job);
    if (has_timer)
        set_timer(timer, 0);
    pthread_mutex_lock(&workers->lock);
    ttm_list_append(&workers->finished, &job->link);
    pthread_cond_signal(&workers->has_changed);
    (void)!write(workers->event_fd, &one, sizeof(one));
}

/* The lock is held. Returns whether there is a job; if not, the thread is to end. */
static bool await_job(struct ttm_worker *worker)
{
    const struct timespec until = after_ns(IDLE_NS);
    int r = 0;

    worker->idle++;
    while (ttm_list_is_empty(&worker->waiting) && !worker->is_released && r == 0)
        r = pthread_cond_timedwait(&worker->more, &worker->workers->lock, &until);
    worker->idle--;
    return !ttm_list_is_empty(&worker->waiting);
}

static void *run_thread(void *argument)
{
    struct ttm_worker *worker = argument;
    struct ttm_workers *workers = worker->workers;
    timer_t timer;
    const bool has_timer = make_timer(&timer);

    pthread_mutex_lock(&workers->lock);
    while (await_job(worker)) {
        struct ttm_job *job = TTM_CONTAINER_OF(worker->waiting.next, struct ttm_job, link);
        ttm_list_remove(&job->link);
        worker->waiting_count--;
        run_job(workers, job, timer, has_timer);
    }
    worker->threads--;
    workers->threads--;
    pthread_cond_signal(&workers->has_changed);
    leave_and_unlock(worker);
    if (has_timer)
        (void)timer_delete(timer);
    return NULL;
}

/* The lock is held. Returns 0 or a negative errno. */
static int start_thread(struct ttm_worker *worker)
{
    pthread_attr_t attr;
    pthread_t thread;

    if (worker->threads > 0 && worker->workers->threads >= THREADS_MAX)
        return -EAGAIN;
    if (pthread_attr_init(&attr) != 0)
        return -ENOMEM;
    (void)pthread_attr_setstacksize(&attr, STACK_SIZE);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    const int r = ttm_quiet_thread_start(&thread, &attr, run_thread, worker);
    (void)pthread_attr_destroy(&attr);
    if (r < 0)
        return r;
    worker->threads++;
    worker->workers->threads++;
    return 0;
}

struct ttm_worker *ttm_worker_new(struct ttm_workers *workers)
{
    struct ttm_worker *worker = calloc(1, sizeof(*worker));

    if (!worker)
        return NULL;
    worker->workers = workers;
    ttm_list_init(&worker->link);
    init_condition(&worker->more);
    ttm_list_init(&worker->waiting);
    pthread_mutex_lock(&workers->lock);
    workers->refs++;
    pthread_mutex_unlock(&workers->lock);
    return worker;
}

void ttm_worker_release(struct ttm_worker *worker)
{
    if (!worker)
        return;
    pthread_mutex_lock(&worker->workers->lock);
    worker->is_released = true;
    pthread_cond_broadcast(&worker->more);
    leave_and_unlock(worker);
}

void ttm_worker_add(struct ttm_worker *worker, struct ttm_job *job)
{
    struct ttm_workers *workers = worker->workers;

    pthread_mutex_lock(&workers->lock);
    ttm_list_append(&worker->waiting, &job->link);
    worker->waiting_count++;
    if (worker->waiting_count > worker->idle && worker->threads < THREADS_PER_WORKER)
        (void)start_thread(worker);
    pthread_cond_signal(&worker->more);
    if (worker->threads == 0 && ttm_list_is_empty(&worker->link))
        ttm_list_append(&workers->starved, &worker->link);
    pthread_mutex_unlock(&workers->lock);
}

bool ttm_workers_retry(struct ttm_workers *workers)
{
    pthread_mutex_lock(&workers->lock);
    TTM_LIST_FOR_EACH_SAFE(pos, &workers->starved) {
        struct ttm_worker *worker = TTM_CONTAINER_OF(pos, struct ttm_worker, link);
        if (worker->threads == 0 && start_thread(worker) < 0)
            break;
        ttm_list_remove(pos);
    }
    const bool is_any_starved = !ttm_list_is_empty(&workers->starved);
    pthread_mutex_unlock(&workers->lock);
    return is_any_starved;
}
