/* SPDX-License-Identifier: Apache-2.0 */
#include "server/facts.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/worker.h"
#include "server/account.h"
#include "server/state.h"

/* One question. The session may go on, or be gone, before it is answered. */
struct ttm_question {
    struct ttm_job job;
    struct ttm_list link;        /* among those that are waited for, by deadline */
    struct ttm_session *session; /* NULL: nobody waits any more */
    struct ttm_account *account;
    uint64_t deadline_ns;
    pid_t pid;
    pthread_mutex_t lock;
    struct ttm_peer_facts facts; /* guarded by 'lock': as far as they are known */
};

static void publish(struct ttm_question *question, const struct ttm_peer_facts *facts)
{
    pthread_mutex_lock(&question->lock);
    question->facts = *facts;
    pthread_mutex_unlock(&question->lock);
}

static void read_facts(struct ttm_job *job)
{
    struct ttm_question *question = TTM_CONTAINER_OF(job, struct ttm_question, job);
    struct ttm_peer_facts facts = {0};

    ttm_peer_read_facts(question->pid, &facts);
    publish(question, &facts);
    ttm_peer_read_command(question->pid, facts.command); /* waits for a lock of the process */
    publish(question, &facts);
}

/* The session goes on with what is known. */
static void answer(struct ttm_question *question)
{
    struct ttm_session *session = question->session;

    ttm_list_remove(&question->link);
    question->session = NULL;
    if (!session)
        return;
    pthread_mutex_lock(&question->lock);
    *session->facts = question->facts;
    pthread_mutex_unlock(&question->lock);
    session->question = NULL;
    ttm_session_resume(session);
}

static void finish_question(struct ttm_job *job)
{
    struct ttm_question *question = TTM_CONTAINER_OF(job, struct ttm_question, job);

    answer(question);
    question->account->questions--;
    ttm_account_unref(question->account);
    pthread_mutex_destroy(&question->lock);
    free(question);
}

bool ttm_facts_ask(struct ttm_session *session)
{
    struct ttm_server *server = session->server;

    if (session->question)
        return false;
    if (session->facts)
        return true;
    session->facts = calloc(1, sizeof(*session->facts));
    /* Before its start is read: where the kernel is not sure, that tells whether it is the same one. */
    session->pidfd = ttm_peer_open_pidfd(session->fd, session->pid, &session->is_pidfd_sure);
    const bool may_ask =
        session->facts && session->pid > 0 && session->account->questions < TTM_USER_QUESTIONS;
    struct ttm_question *question = may_ask ? calloc(1, sizeof(*question)) : NULL;
    if (!question) /* outside our namespace, too many, or memory is short: nothing is known */
        return true;
    session->account->questions++;
    question->job = (struct ttm_job){.run = read_facts, .finish = finish_question};
    question->session = session;
    question->account = ttm_account_ref(session->account);
    question->pid = session->pid;
    question->deadline_ns = server->now_ns + TTM_FACTS_WAIT_NS;
    pthread_mutex_init(&question->lock, NULL);
    ttm_list_append(&server->questions, &question->link);
    session->question = question;
    ttm_worker_add(session->account->worker, &question->job);
    return !session->question;
}

void ttm_facts_forget(struct ttm_session *session)
{
    if (session->question) {
        ttm_list_remove(&session->question->link);
        session->question->session = NULL;
    }
    session->question = NULL;
}

void ttm_facts_expire(struct ttm_server *server)
{
    while (ttm_facts_due_ns(server) <= server->now_ns)
        answer(TTM_CONTAINER_OF(server->questions.next, struct ttm_question, link));
}

uint64_t ttm_facts_due_ns(const struct ttm_server *server)
{
    return ttm_list_is_empty(&server->questions)
               ? UINT64_MAX
               : TTM_CONTAINER_OF(server->questions.next, struct ttm_question, link)->deadline_ns;
}
