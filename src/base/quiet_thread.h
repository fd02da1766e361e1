/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quiet_thread - a thread that takes no signals.
 *
 * What is sent to the process goes on to the threads that it is meant for: those of the program that is
 * tracked, or the one that runs a command.
 */
#ifndef TTM_BASE_QUIET_THREAD_H
#define TTM_BASE_QUIET_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/* As pthread_create(); returns 0 or a negative error. It is quiet from its first instruction on. */
static inline int ttm_quiet_thread_start(pthread_t *ret, const pthread_attr_t *attr,
                                         void *(*run)(void *), void *argument)
{
    sigset_t all, before;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int r = pthread_create(ret, attr, run, argument);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -r;
}

#endif /* TTM_BASE_QUIET_THREAD_H */
