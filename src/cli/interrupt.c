/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/interrupt.h"

#include <signal.h>
#include <time.h>

static volatile sig_atomic_t has_come;
static bool is_caught;

static void note(int signal)
{
    (void)signal;
    has_come = 1;
}

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
#define SIGNALS (sizeof(signals) / sizeof(signals[0]))

void ttm_interrupt_catch(void)
{
    const struct sigaction action = {.sa_handler = note}; /* no SA_RESTART: it ends a wait */
    struct sigaction before;

    is_caught = true;
    for (size_t i = 0; i < SIGNALS; i++) {
        /* Who has started us with nohup wants none of it. */
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            (void)sigaction(signals[i], &action, NULL);
    }
}

bool ttm_interrupt_came(void)
{
    return has_come;
}

bool ttm_interrupt_is_caught(void)
{
    return is_caught;
}

void ttm_interrupt_poll(struct pollfd *fds, size_t count, int64_t timeout_ms)
{
    const struct timespec timeout = {.tv_sec = timeout_ms / 1000,
                                     .tv_nsec = timeout_ms % 1000 * 1000000L};
    sigset_t ours, before;

    for (size_t i = 0; i < count; i++)
        fds[i].revents = 0;
    (void)sigemptyset(&ours);
    for (size_t i = 0; i < SIGNALS; i++)
        (void)sigaddset(&ours, signals[i]);
    (void)sigprocmask(SIG_BLOCK, &ours, &before);
    if (!has_come) /* from here on a signal waits for the poll */
        (void)ppoll(fds, count, timeout_ms < 0 ? NULL : &timeout, &before);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
}
