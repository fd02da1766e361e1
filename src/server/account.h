/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account - what one user has of the server: connections, files, answers and the loop's time.
 *
 * Every user of a host may connect to root's server. So that none can keep the others out, each
 * has a share of whatever is limited. Root and the server's own user are bound by the limits of
 * the server alone. docs/sharing.md lists the shares; those of the model are in model/user.h.
 *
 * Belongs to the loop thread. An account exists while something refers to it.
 */
#ifndef TTM_SERVER_ACCOUNT_H
#define TTM_SERVER_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "model/quota.h"

struct ttm_server;
struct ttm_worker;

/* What a user other than root and the server's own may have at once. */
#define TTM_USER_CONNECTIONS 1024 /* at most three quarters of all */
#define TTM_USER_PROCESSES 1024   /* at most a quarter of all */
#define TTM_USER_FILES 512 /* handed over and not closed yet; one message may bring 253 more */
#define TTM_USER_SEGMENT_BYTES (UINT64_C(512) << 30) /* of address space */
#define TTM_USER_RINGS (1u << 19)
#define TTM_USER_QUESTIONS 1024                    /* to /proc, that are not answered */
#define TTM_USER_SNAPSHOTS 4                       /* dumps, and checks of the totals, under way */
#define TTM_USER_PRINTS 1                          /* asked for by the original protocol */
#define TTM_USER_TAILS 16                          /* readers of events */
#define TTM_USER_ANSWER_BYTES (UINT64_C(32) << 20) /* that wait to be read */

/* Of memory that its processes make the server take, beside what is in model/user.h. */
#define TTM_USER_PENDING_FREES (1u << 20)         /* frees that were read before their allocs */
#define TTM_USER_REMEMBERED_FREES (1u << 20)      /* groups of up to 64 serials, during resyncs */
#define TTM_USER_NOTE_BYTES (UINT64_C(256) << 20) /* kept for the recording */
#define TTM_USER_RESYNC_THREADS 4                 /* that make memory for many allocations */

/*
 * What bringing the reports of this user's processes up to date may cost in one turn, for somebody
 * who asks: in allocations on one device, and in steps over circular buffers of a nanosecond each.
 * Where that is not enough the answer waits for the next turns, but not for ever.
 */
#define TTM_USER_REFRESH_COST 2048u
#define TTM_USER_REFRESH_STEPS (UINT64_C(1) << 18)

/*
 * The time of the loop that one user may take while others wait: for its connections and answers,
 * and as much for its rings, so that who asks much loses no events.
 */
#define TTM_USER_TURN_NS UINT64_C(1000000)

enum ttm_time { TTM_TIME_ANSWERS, TTM_TIME_RINGS, TTM_TIME_COUNT };

struct ttm_account {
    struct ttm_list link; /* among the server's */
    struct ttm_server *server;
    uid_t uid;          /* of subordinate ids of a user the first */
    bool is_privileged; /* root, or the server's own user: no share binds it */
    uint32_t refs;
    uint32_t connections; /* open, or on their way to be closed */
    uint32_t processes;
    uint32_t files; /* that its processes handed over, nobody claimed, and are to be closed */
    uint32_t rings;
    uint32_t questions;
    uint32_t snapshots;
    uint32_t prints;
    uint32_t tails;
    uint64_t segment_bytes;
    struct ttm_quota pending_frees;
    struct ttm_quota remembered_frees;
    struct ttm_quota note_bytes;
    struct ttm_quota resync_threads;
    struct ttm_list sessions; /* open, the newest last */
    struct ttm_list waiting;  /* of these, those that are handled in the next turn */
    uint64_t turn;            /* of the server, in which 'spent_ns' was spent */
    uint64_t spent_ns[TTM_TIME_COUNT];
    uint64_t refresh;          /* the turn that the two below are of */
    uint32_t refresh_cost;     /* what is left */
    uint64_t refresh_steps;    /* likewise */
    uint64_t next_look_ns;     /* into /proc/PID/maps of its processes, which costs time */
    struct ttm_worker *worker; /* for calls that its processes can make last */
};

/* The account of that user, with one more reference; NULL when memory is short. */
struct ttm_account *ttm_account_of(struct ttm_server *server, uid_t uid);
void ttm_account_unref(struct ttm_account *account);

static inline struct ttm_account *ttm_account_ref(struct ttm_account *account)
{
    account->refs++;
    return account;
}

/* Whether 'count' more keep it within its share of 'max'. */
static inline bool ttm_account_has_room(const struct ttm_account *account, uint64_t used,
                                        uint64_t count, uint64_t max)
{
    return account->is_privileged || used + count <= max;
}

/* Whether it may take more of the loop's time in this turn. Alone, a user may take all of it. */
bool ttm_account_has_time(const struct ttm_account *account, enum ttm_time what);

/* Adds the time since 'since_ns' to what it has taken in this turn. */
void ttm_account_spend(struct ttm_account *account, enum ttm_time what, uint64_t since_ns);

/*
 * Has files that a process of the user handed over closed, which that process can make last. They
 * count until they are closed.
 */
void ttm_account_close_files(struct ttm_account *account, const int *fds, size_t count);

#endif /* TTM_SERVER_ACCOUNT_H */
