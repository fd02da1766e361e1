/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper - the thread that talks to the server on behalf of a tracked process.
 *
 * Finds a server, hands over the segment, tells what is live when asked, and looks
 * for a new one when it goes. It has all signals blocked and is the only part of
 * the library that may wait. When tracking is switched off it says so, and ends.
 */
#ifndef TTM_CLIENT_HELPER_H
#define TTM_CLIENT_HELPER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/own_fd.h"
#include "client/tracker.h"
#include "ring/control.h"

/* The path of a socket has at most 107 bytes: one that was cut to this is too long, and is seen to be. */
#define TTM_HELPER_PATH_SIZE 128

/*
 * What the environment says of servers. It is read on threads of the program alone: one that sets a
 * variable meanwhile would take the memory away from under our thread.
 */
struct ttm_helper_places {
    char chosen[TTM_HELPER_PATH_SIZE];  /* TTMEM_SOCKET, or "" */
    char runtime[TTM_HELPER_PATH_SIZE]; /* XDG_RUNTIME_DIR, or "" */
    uint64_t run;                       /* that this process is part of, 0: none */
};

struct ttm_helper {
    struct ttm_tracker *tracker;
    struct ttm_control *control;
    bool (*on_wish)(void); /* a command may have said what it wants; whether it was looked at */
    bool (*may_leave)(
        void); /* tracking is off: whether the thread has left, see ttm_helper_leave() */
    pthread_t thread;
    _Atomic bool is_stopping;
    _Atomic bool is_watching_end;
    struct ttm_own_fd nudge_read; /* a pipe, as commands can open one that a process has */
    struct ttm_own_fd nudge_write;
    struct ttm_own_fd connection; /* for a child of a fork to let go */
    uint32_t epoch_introduced;    /* of tracking, when the connection was made */
    pthread_mutex_t places_lock;  /* guards 'places', for as long as a copy takes */
    struct ttm_helper_places places;
};

/* Returns 0 or a negative errno. */
int ttm_helper_start(struct ttm_helper *helper, struct ttm_tracker *tracker,
                     struct ttm_control *control, bool (*on_wish)(void), bool (*may_leave)(void));

/* On a thread of the program: the environment may name another server by now. */
void ttm_helper_look_at_environment(struct ttm_helper *helper);

/* Connects to a server and hands over the segment, for a process that is about to exit. No thread. */
void ttm_helper_introduce(struct ttm_helper *helper, struct ttm_tracker *tracker);

/* Ends the thread and waits for it; it never waits for long itself. */
void ttm_helper_stop(struct ttm_helper *helper);

/*
 * On the helper's own thread, within may_leave(): lets go of all that it has. Nobody waits for the
 * thread, which ends without another look at 'helper'.
 */
void ttm_helper_leave(struct ttm_helper *helper);

/* Has it look at the switch. */
void ttm_helper_nudge(const struct ttm_helper *helper);

/* In the child of a fork, where the thread is not: lets go of what it had open. */
void ttm_helper_forget(struct ttm_helper *helper);

/*
 * The main thread has ended by itself. A process ends with its last thread, and
 * ours must not keep it: from now on it looks now and then whether it is alone.
 */
void ttm_helper_watch_end(struct ttm_helper *helper);

#endif /* TTM_CLIENT_HELPER_H */
