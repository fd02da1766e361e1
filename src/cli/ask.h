/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask - how a command finds its server and says what went wrong.
 */
#ifndef TTM_CLI_ASK_H
#define TTM_CLI_ASK_H

#include "query/answer.h"
#include "query/connection.h"

/*
 * Connects to 'path', or where that is NULL to the one server there is. Returns
 * TTM_EXIT_OK, or says why not and returns what to exit with. Close it in any case.
 */
int ttm_ask_connect(const char *path, struct ttm_connection *ret);

/*
 * As ttm_ask_connect(), for who can do without: where no server is running, it says
 * nothing and returns TTM_ASK_NONE.
 */
#define TTM_ASK_NONE (-1)
int ttm_ask_find(const char *path, struct ttm_connection *ret);

/* Says that no server is running, at 'path' or anywhere, and returns TTM_EXIT_FAILED. */
int ttm_ask_none(const char *path);

/* Says why an answer did not come, and returns TTM_EXIT_FAILED. */
int ttm_ask_failed(const struct ttm_connection *conn, int r);

/* Says why output could not be written and returns TTM_EXIT_FAILED; a closed pipe is no news. */
int ttm_ask_unwritten(int r);

#endif /* TTM_CLI_ASK_H */
