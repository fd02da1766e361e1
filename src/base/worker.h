/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker - threads for system calls that may last, so that an event loop need not wait for them.
 *
 * A job runs on one of the worker's threads and is then finished on the thread of the loop. Workers
 * do not share threads: a call that never returns delays no job of another worker.
 *
 * All functions belong to the loop's thread, but for 'run' of a job.
 */
#ifndef TTM_BASE_WORKER_H
#define TTM_BASE_WORKER_H

#include <stdbool.h>

#include "base/list.h"

struct ttm_worker;
struct ttm_workers;

/* Embedded in what the job is about, which has to stay until it is finished. */
struct ttm_job {
    struct ttm_list link;
    void (*run)(struct ttm_job *job);    /* on a thread of the worker; may last */
    void (*finish)(struct ttm_job *job); /* on the loop's thread; may free the job */
};

/* All workers of one loop. Returns 0 or a negative errno. */
int ttm_workers_new(struct ttm_workers **ret);

/*
 * Runs and finishes what was given to the workers, all of which were released. A call that has not
 * returned after a second is left behind, with the memory it uses. NULL is fine.
 */
void ttm_workers_free(struct ttm_workers *workers);

/* Becomes readable when a job has run. */
int ttm_workers_fd(const struct ttm_workers *workers);

/* Finishes the jobs that have run. */
void ttm_workers_finish(struct ttm_workers *workers);

/*
 * Starts threads for workers that could not have one. Returns whether some still cannot: then it is
 * to be called again in a while.
 */
bool ttm_workers_retry(struct ttm_workers *workers);

/* Returns NULL when memory is short. */
struct ttm_worker *ttm_worker_new(struct ttm_workers *workers);

/* What it was given is still run and finished. NULL is fine. */
void ttm_worker_release(struct ttm_worker *worker);

/*
 * Has the job run. While a job of the worker lasts, others of it run on up to three more threads.
 * Where no thread can be had at all, it waits until one can: see ttm_workers_retry().
 */
void ttm_worker_add(struct ttm_worker *worker, struct ttm_job *job);

#endif /* TTM_BASE_WORKER_H */
