/* SPDX-License-Identifier: Apache-2.0 */
/*
 * facts - what /proc says of the process behind a connection, asked for without waiting.
 *
 * A session that is about to become a client asks first and is not read meanwhile. Its process can
 * keep the answer back for ever, so after TTM_FACTS_WAIT_NS the session goes on with what is known
 * by then. Belongs to the loop thread, but for the reading itself.
 */
#ifndef TTM_SERVER_FACTS_H
#define TTM_SERVER_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "server/peer.h"

struct ttm_server;
struct ttm_session;

#define TTM_FACTS_WAIT_NS UINT64_C(1000000000)

/* Returns whether the session has its facts; else ttm_session_resume() is called when it has. */
bool ttm_facts_ask(struct ttm_session *session);

/* The session has closed. */
void ttm_facts_forget(struct ttm_session *session);

/* Those who have waited long enough go on. */
void ttm_facts_expire(struct ttm_server *server);

/* When that is due next; UINT64_MAX: nobody waits. */
uint64_t ttm_facts_due_ns(const struct ttm_server *server);

#endif /* TTM_SERVER_FACTS_H */
