/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top_feed - what the dashboard is fed with: servers, chips, processes, the runtime.
 *
 * Never waits: chips are read by threads of their own, servers are asked and answer
 * when they can. Servers come and go, and are found again. One thread.
 */
#ifndef TTM_CLI_TOP_FEED_H
#define TTM_CLI_TOP_FEED_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/machine.h"
#include "cli/process_list.h"
#include "dashboard/facts.h"
#include "dashboard/origins.h"
#include "query/locate.h"

#define TTM_FEED_SERVERS_MAX 16

enum ttm_feed_link_state {
    TTM_LINK_GREETING, /* our hello is sent */
    TTM_LINK_READY,
    TTM_LINK_ASKED_TOTALS,
    TTM_LINK_ASKED_SITES,
    TTM_LINK_ASKED_CLOSER,
};

/* A server, and what it said last. */
struct ttm_feed_link {
    enum ttm_feed_link_state state;
    struct ttm_connection conn;
    struct ttm_answer coming; /* what has come of the answer */
    struct ttm_answer totals;
    struct ttm_answer sites;  /* of a server that has no sums: all lives */
    struct ttm_answer closer; /* lives of 'look' */
    bool has_totals, has_sites, has_closer;
    struct ttm_closer_look look, asked_look;
    uint64_t closer_asked_ns; /* when these lives were asked for last */
    uint64_t closer_print;    /* of the sites at that time, see ttm_closer_look_print() */
    bool is_closer_old;       /* there are others by now, or that cannot be told */
    bool is_over;             /* it cannot be asked any more; ttm_top_feed_take() closes it */
    uint64_t asked_ns;        /* when the request, or our hello, was sent */
};

struct ttm_top_feed {
    const char *root;
    const char *socket_path; /* NULL: all that are found */
    struct ttm_device_filter devices;
    struct ttm_telemetry *telemetry;
    struct ttm_feed_link links[TTM_FEED_SERVERS_MAX];
    size_t link_count;
    uint64_t located_ns; /* when servers were looked for last */
    bool has_lost;       /* a server has gone */
    char refusal[128];   /* why one does not want us */

    uint64_t sites_asked_ns; /* when sites were asked for last */
    uint64_t sites_cpu_ns;   /* what that took, of the processor */
    uint64_t closer_cpu_ns;  /* what the last closer look took */

    struct ttm_process_cache cache;
    struct ttm_process_list list;
    struct ttm_machine machine; /* its answers are those of the links */
    struct ttm_facts_device *fact_devices;
    struct ttm_facts_process *fact_processes;
    struct ttm_facts facts;
    struct ttm_answer sources[TTM_FEED_SERVERS_MAX]; /* the links' sites, side by side */
    struct ttm_answer lives[TTM_FEED_SERVERS_MAX];   /* likewise, those with lives */
    uint64_t lives_version;                          /* counts answers that have any */
    uint16_t numbers[TTM_DEVICE_COUNT]; /* TT-Metal's id of a device → the driver's */
    struct {
        uint32_t uid;
        char name[TTM_FACTS_NAME_SIZE];
    } users[32];
    size_t user_count;
};

/* Begins to read chips every 'interval_ms'. Returns 0 or -ENOMEM. Close it in any case. */
int ttm_top_feed_open(struct ttm_top_feed *feed, const char *root, const char *socket_path,
                      const struct ttm_device_filter *devices, unsigned interval_ms);
void ttm_top_feed_close(struct ttm_top_feed *feed);

/* Looks for servers when it is time to, and asks those that are not busy. */
void ttm_top_feed_ask(struct ttm_top_feed *feed, uint64_t now_ns, bool wants_sites);

/* Asks those that are not busy for the lives of a closer look, when it is another one or time to. */
void ttm_top_feed_ask_closer(struct ttm_top_feed *feed, uint64_t now_ns,
                             const struct ttm_closer_look *look);

/* Fills in what to poll for; returns how many. 'ret' has room for TTM_FEED_SERVERS_MAX. */
size_t ttm_top_feed_poll(const struct ttm_top_feed *feed, struct pollfd *ret);

enum ttm_fed {
    TTM_FED_SITES = 1 << 0,  /* what all origins hold */
    TTM_FED_CLOSER = 1 << 1, /* lives of a closer look */
};

/* Takes what has come. Returns what is complete that was not before. */
unsigned ttm_top_feed_take(struct ttm_top_feed *feed, uint64_t now_ns);

/* Whether nothing more is to be expected soon: every server has answered, or is late. */
bool ttm_top_feed_is_settled(const struct ttm_top_feed *feed, uint64_t now_ns);

/* All that is known now, good until the next call. Returns 0 or -ENOMEM. */
int ttm_top_feed_look(struct ttm_top_feed *feed, uint64_t now_ns, const struct ttm_facts **ret);

/* What came last, good until ttm_top_feed_take() says that there is something new. */
struct ttm_origins_source ttm_top_feed_origins(struct ttm_top_feed *feed);

/* What working with the last of these took; they are asked for less often when it is much. */
void ttm_top_feed_cost(struct ttm_top_feed *feed, enum ttm_fed what, uint64_t cpu_ns);

#endif /* TTM_CLI_TOP_FEED_H */
