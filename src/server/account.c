/* SPDX-License-Identifier: Apache-2.0 */
#include "server/account.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/worker.h"
#include "server/state.h"

static struct ttm_quota quota_of(const struct ttm_account *account, uint64_t max)
{
    return (struct ttm_quota){.max = account->is_privileged ? TTM_QUOTA_NONE : max};
}

static void init_quotas(struct ttm_account *account)
{
    account->pending_frees = quota_of(account, TTM_USER_PENDING_FREES);
    account->remembered_frees = quota_of(account, TTM_USER_REMEMBERED_FREES);
    account->note_bytes = quota_of(account, TTM_USER_NOTE_BYTES);
    account->resync_threads = quota_of(account, TTM_USER_RESYNC_THREADS);
}

/* A few users at most are connected at the same time, so a list is enough to find one. */
struct ttm_account *ttm_account_of(struct ttm_server *server, uid_t uid)
{
    uid = ttm_id_ranges_user(&server->id_ranges, uid);
    TTM_LIST_FOR_EACH(pos, &server->accounts) {
        struct ttm_account *account = TTM_CONTAINER_OF(pos, struct ttm_account, link);
        if (account->uid == uid)
            return ttm_account_ref(account);
    }
    struct ttm_account *account = calloc(1, sizeof(*account));
    if (!account)
        return NULL;
    account->worker = ttm_worker_new(server->workers);
    if (!account->worker) {
        free(account);
        return NULL;
    }
    account->server = server;
    account->uid = uid;
    account->is_privileged = uid == 0 || uid == server->uid;
    account->refs = 1;
    init_quotas(account);
    ttm_list_init(&account->sessions);
    ttm_list_init(&account->waiting);
    ttm_list_append(&server->accounts, &account->link);
    server->account_count++;
    return account;
}

void ttm_account_unref(struct ttm_account *account)
{
    if (--account->refs > 0)
        return;
    account->server->account_count--;
    ttm_list_remove(&account->link);
    ttm_worker_release(account->worker);
    free(account);
}

bool ttm_account_has_time(const struct ttm_account *account, enum ttm_time what)
{
    return account->server->account_count == 1 || account->turn != account->server->turn ||
           account->spent_ns[what] < TTM_USER_TURN_NS;
}

void ttm_account_spend(struct ttm_account *account, enum ttm_time what, uint64_t since_ns)
{
    const uint64_t taken_ns = ttm_clock_monotonic_ns() - since_ns;

    if (account->turn != account->server->turn) {
        account->turn = account->server->turn;
        memset(account->spent_ns, 0, sizeof(account->spent_ns));
    }
    account->spent_ns[what] += taken_ns;
}

/* ---- closing ---- */

struct closing {
    struct ttm_job job;
    struct ttm_account *account;
    size_t count;
    int fds[];
};

static void close_all(struct ttm_job *job)
{
    const struct closing *closing = TTM_CONTAINER_OF(job, struct closing, job);

    for (size_t i = 0; i < closing->count; i++)
        (void)close(closing->fds[i]);
}

static void finish_closing(struct ttm_job *job)
{
    struct closing *closing = TTM_CONTAINER_OF(job, struct closing, job);

    closing->account->files -= (uint32_t)closing->count;
    ttm_account_unref(closing->account);
    free(closing);
}

void ttm_account_close_files(struct ttm_account *account, const int *fds, size_t count)
{
    struct closing *closing = count > 0 ? malloc(sizeof(*closing) + count * sizeof(fds[0])) : NULL;

    if (!closing) {
        for (size_t i = 0; i < count; i++) /* memory is short: better late than never */
            (void)close(fds[i]);
        return;
    }
    closing->job = (struct ttm_job){.run = close_all, .finish = finish_closing};
    closing->account = ttm_account_ref(account);
    closing->count = count;
    memcpy(closing->fds, fds, count * sizeof(fds[0]));
    account->files += (uint32_t)count;
    ttm_worker_add(account->worker, &closing->job);
}
