/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper - the thread that talks to the server on behalf of a tracked process.
 *
 * Finds a server, hands over the segment, tells what is live when asked, and looks
 * for a new one when it goes. It has all signals blocked and is the only part of
 * the library that may wait.
 */
#ifndef TTM_CLIENT_HELPER_H
#define TTM_CLIENT_HELPER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "client/tracker.h"

struct ttm_helper {
    struct ttm_tracker *tracker;
    pthread_t thread;
    _Atomic bool is_stopping;
};

/* Returns 0 or a negative errno. */
int ttm_helper_start(struct ttm_helper *helper, struct ttm_tracker *tracker);

/* Ends the thread and waits for it; it never waits for long itself. */
void ttm_helper_stop(struct ttm_helper *helper);

#endif /* TTM_CLIENT_HELPER_H */
