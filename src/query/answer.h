/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer - what a server has said about one moment, as data.
 *
 * Everything is checked here: indexes point into the answer, device ids and
 * regions are in range, so a renderer need not check again.
 */
#ifndef TTM_QUERY_ANSWER_H
#define TTM_QUERY_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "query/connection.h"
#include "wire/life_row.h"
#include "wire/origin_row.h"
#include "wire/site_sum.h"
#include "wire/status.h"
#include "wire/totals.h"

/* What lives share; as ttm_site_row, with its devices allocated to size. */
struct ttm_answer_site {
    uint64_t births;
    uint64_t ends;
    uint32_t origin; /* index among the origins of the process + 1, 0: not known */
    uint8_t region;
    uint8_t kind;
    uint8_t flags;
    uint16_t banks; /* of each device; 0: not known */
    uint16_t device_count;
    uint16_t *devices;
    bool has_sum; /* the answer tells what it holds, not each life */
    struct ttm_site_sum sum;
};

/* As ttm_origin_row, with its texts allocated. */
struct ttm_answer_origin {
    uint32_t number;
    char *context;
    char *name;
    char *thread;
    char *operation;
    char *python;
    char *native;
};

struct ttm_answer_process {
    struct ttm_process_row row;
    struct ttm_process_device_row *devices;
    size_t device_count;
    struct ttm_answer_origin *origins; /* by number */
    size_t origin_count;
    struct ttm_mark_row *marks;
    size_t mark_count;
    struct ttm_failure_row *failures; /* origins are indexes as those of sites */
    size_t failure_count;
    struct ttm_answer_site *sites;
    size_t site_count;
    struct ttm_life_row *lives;
    size_t live_count;
    size_t live_room;
};

struct ttm_answer {
    struct ttm_moment moment;
    struct ttm_status status;
    struct ttm_checked checked;
    struct ttm_device_row *devices;
    size_t device_count;
    struct ttm_answer_process *processes;
    size_t process_count;
    struct ttm_left_out left_out;
};

void ttm_answer_init(struct ttm_answer *answer);
void ttm_answer_done(struct ttm_answer *answer);

/*
 * Reads frames into an empty answer until the server says that it is complete.
 * Returns 0, or a negative errno as ttm_connection_receive(), -ETIMEDOUT, -EPROTO.
 */
int ttm_answer_receive(struct ttm_connection *conn, int timeout_ms, struct ttm_answer *answer);

/*
 * Takes what has come already and never waits. Returns 1 when the answer is complete,
 * 0 when more is to come, or a negative errno as ttm_connection_receive().
 */
int ttm_answer_take(struct ttm_connection *conn, struct ttm_answer *answer);

/* One request without payload and its answer. */
int ttm_answer_ask(struct ttm_connection *conn, uint16_t request, struct ttm_answer *answer);

/* Keeps what a row says. Returns 0 or -ENOMEM. */
int ttm_answer_origin_copy(const struct ttm_origin_row *row, struct ttm_answer_origin *ret);
void ttm_answer_origin_done(struct ttm_answer_origin *origin);

/* What is known of the origin of a site or failure, or NULL. */
const struct ttm_answer_origin *ttm_answer_origin(const struct ttm_answer_process *process,
                                                  uint32_t origin);

/* The device of that id, or NULL. */
const struct ttm_device_row *ttm_answer_device(const struct ttm_answer *answer, unsigned id);

#endif /* TTM_QUERY_ANSWER_H */
