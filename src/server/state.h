/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state - what the files of src/server share; nothing outside includes it.
 *
 *   server  owns  sessions (connections) and clients (processes that report)
 *   client  1 ── n  session: a process may connect more than once
 *   client  1 ── 1  ttm_process of the model
 *
 * All of it belongs to the loop thread.
 */
#ifndef TTM_SERVER_STATE_H
#define TTM_SERVER_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/queue.h"
#include "base/u64_set.h"
#include "base/worker.h"
#include "model/registry.h"
#include "model/snapshot.h"
#include "server/account.h"
#include "server/facts.h"
#include "server/heritage.h"
#include "server/latency.h"
#include "server/listener.h"
#include "server/server.h"
#include "wire/original.h"
#include "wire/request.h"
#include "wire/status.h"

struct ttm_chosen_lives;
struct ttm_failure_row;
struct ttm_left_out;
struct ttm_question;
struct ttm_server;
struct ttm_tracked;

/* What epoll hands back: the first member of everything that is watched. */
struct ttm_watch {
    void (*handle)(struct ttm_watch *watch, uint32_t events);
};

/*
 * One read takes at most so much, so that no client holds up another for long:
 * less while somebody asks questions, whose answers wait for a slice to end.
 */
#define TTM_SLICE_SIZE 32768
#define TTM_SLICE_SMALL 4096
#define TTM_SLICE_TOLD 131072          /* of what a process tells: about 0.1 ms */
#define TTM_ASKED_NS (50 * 1000000ull) /* how long a question counts as recent */

/* Answers that wait for a slow reader: above the first its requests wait too. */
#define TTM_OUT_HIGH (256u << 10)
#define TTM_OUT_LOW (64u << 10)

/* The doubt about a layout is settled by this much silence. */
#define TTM_SILENCE_NS (20 * 1000000ull)

/* A reader that takes nothing of a large answer for so long is let go. */
#define TTM_SLOW_NS (30 * 1000000000ull)
#define TTM_DUMP_NS (120 * 1000000000ull) /* and one that makes it last for ever */

struct ttm_client {
    struct ttm_watch watch; /* of pidfd: readable when the process has ended */
    struct ttm_list link;
    struct ttm_list pid_link; /* among those whose pid has the same hash */
    struct ttm_list sessions;
    struct ttm_server *server;
    struct ttm_account *account;
    struct ttm_process *process;
    struct ttm_tracked *tracked; /* of a process with a segment */
    pid_t pid;
    uid_t uid;
    int pidfd;        /* -1: it ends with its last connection */
    bool is_leaving;  /* its program has ended: what its connections still have is read */
    bool is_draining; /* and after them what its rings have */
    uint32_t session_count;
    uint32_t number;                   /* in the recording */
    struct ttm_u64_set recorded_notes; /* its notes that the recording has, */
    uint64_t note_bytes;               /* and what these take of its user's share */
};

/* An answer that is sent at the pace of its reader. */
struct ttm_lives_answer {
    struct ttm_snapshot *snap; /* NULL: none under way */
    uint32_t process;
    uint64_t began_ns;
    uint32_t origins_sent; /* of that process */
    uint32_t sites_sent;   /* likewise */
    uint64_t at;
    struct ttm_chosen_lives *chosen; /* NULL: all of them */
};

struct ttm_session {
    struct ttm_watch watch;
    struct ttm_list link;         /* in the server's sessions, or among the dead */
    struct ttm_list quiet_link;   /* waits for silence */
    struct ttm_list client_link;  /* among its client's */
    struct ttm_list dirty_link;   /* has output that was not yet tried */
    struct ttm_list busy_link;    /* has an answer under way, or subscribed to totals */
    struct ttm_list bulk_link;    /* is read in the second row */
    struct ttm_list account_link; /* among its user's */
    struct ttm_list wait_link;    /* its user has had its time in this turn */
    struct ttm_server *server;
    struct ttm_account *account;
    struct ttm_client *client;     /* NULL until its first event */
    struct ttm_question *question; /* what /proc says was asked for */
    int pidfd;                     /* of its process, until a client has it; -1: there is none */
    bool is_pidfd_sure;
    struct ttm_peer_facts *facts; /* and is here; NULL: it was not asked for */
    struct ttm_job closing;
    int fd;
    pid_t pid; /* by the kernel's word; 0 outside our namespace */
    uid_t uid;

    bool is_original;
    bool is_bulk;           /* a busy producer: read in the second row, at intervals */
    bool is_paused;         /* does not read its answers, so it is not read either */
    bool has_requests;      /* native: whole ones in 'in', which wait until 'out' has room */
    bool had_answer;        /* native: in this turn; further requests wait for the next one */
    uint32_t prepare_turns; /* native: so long the question at hand has waited */
    uint32_t told_cost;     /* native: of what a resync brought in this turn */
    uint32_t told_done;     /* native: so many of the frame at the head of 'in' are applied */
    bool wants_out;         /* epoll watches for room */
    bool is_dead;
    bool is_watched;   /* one of the two rows has it */
    bool awaits_facts; /* and is not read until then */
    bool
        has_hung_up; /* its peer reads no more; what it has said is read once the rest is acted on */
    bool is_at_end;  /* its peer says no more; what it has said waits to be acted on */
    bool has_said_hello;
    bool is_closing;      /* close once 'out' is sent */
    uint32_t burst_reads; /* reads since 'burst_ns' */
    uint64_t read_bytes;  /* in all */
    uint32_t last_pass;   /* of the second row that found something */
    uint64_t burst_ns;
    uint64_t accepted_ns; /* CLOCK_BOOTTIME */
    uint64_t opened_ns;   /* the same moment, monotonic */
    uint64_t leave_bytes; /* with a leaving client: what it still had to say */
    uint64_t deadline_ns; /* of the silence */
    uint64_t progress_ns; /* last time 'out' got shorter */

    int fds[2];          /* that came with a message, -1: none */
    ino_t segment_inode; /* of what was attached by it, 0: nothing */
    struct ttm_queue in; /* native: a frame that has begun */
    struct ttm_queue out;
    struct ttm_original_reader reader;

    struct ttm_lives_answer lives;
    struct ttm_snapshot_check *check; /* under way */
    uint32_t totals_interval_ms;      /* 0: not subscribed */
    uint64_t totals_due_ns;
    uint64_t worked_turn;      /* the turn in which its answers were last worked on */
    struct ttm_list tail_link; /* among those subscribed to events */
    struct ttm_events_request tail;
    uint64_t tail_lost;
    struct ttm_u64_set tail_origins; /* those it was told of: process id and number */
};

/* Lives kept for somebody who will ask for them in a moment. */
struct ttm_ticket {
    uint32_t number; /* 0: free */
    uint64_t deadline_ns;
    struct ttm_snapshot *snap;
    struct ttm_account *account; /* of who asked; NULL: several did */
};

#define TTM_TICKETS 4

/*
 * Dumps and checks under way at once, and readers of events, for users that have a share of them
 * (server/account.h).
 */
#define TTM_DUMPS_MAX 16
#define TTM_TAILS_MAX 64

/* Buckets of clients by pid: a power of two. */
#define TTM_PID_BUCKETS 1024

/* While so many connections are on their way to be closed, others wait to be accepted. */
#define TTM_CLOSING_MAX 128
#define TTM_REFUSED_MAX 64 /* that are closed together */

/* The most files that one message can bring. */
#define TTM_RECEIVED_FDS 253

struct ttm_server {
    struct ttm_server_options options;
    struct ttm_registry *reg;
    struct ttm_listener native;
    struct ttm_listener legacy;
    struct ttm_heritage heritage;
    uint32_t to_be_told; /* lives, to the next server, as of this turn */
    struct ttm_workers *workers;
    struct ttm_worker *closer; /* of connections */
    bool are_workers_starved;  /* no thread could be had for some of their jobs */
    struct ttm_watch workers_watch;
    struct ttm_id_ranges id_ranges; /* of users that have their shares together */
    struct ttm_list accounts;
    uint32_t account_count;
    uint64_t turn;             /* counts them, from 1 on */
    bool has_waiting;          /* somebody's user has had its time in this turn */
    struct ttm_list questions; /* by deadline */
    struct ttm_watch native_watch;
    struct ttm_watch legacy_watch;
    struct ttm_watch signal_watch;
    struct ttm_watch stop_watch;
    int epoll_fd;
    int bulk_fd;
    int signal_fd;
    int stop_fd;
    int reserve_fd; /* given up for a moment when fds run out, to turn a caller away */
    bool is_stopping;
    bool is_accepting;
    bool is_full;             /* fds have run out, and that was said */
    bool is_short;            /* memory has run out, and that was said */
    uid_t uid;                /* the server's own */
    bool has_backlog;         /* a producer had more than a slice */
    uint64_t rings_pause_ns;  /* how long the active rings can be left alone */
    uint32_t rings_pass;      /* over the active rings */
    uint32_t pass;            /* of the second row */
    uint64_t accept_again_ns; /* fds had run out */

    struct ttm_list sessions;
    struct ttm_list dead; /* freed at the end of the turn: events for them may be under way */
    struct ttm_list clients;
    struct ttm_list clients_by_pid[TTM_PID_BUCKETS];
    struct ttm_list dead_clients; /* likewise */
    struct ttm_list quiet;        /* by deadline */
    struct ttm_list dirty;
    struct ttm_list busy;
    struct ttm_list bulk;
    struct ttm_list rings; /* segments that are read at intervals */
    struct ttm_list dead_rings;
    struct ttm_list alone; /* segments whose process may be unable to wake us */
    uint64_t visit_alone_ns;
    struct ttm_list tails;
    struct ttm_ticket tickets[TTM_TICKETS];
    uint32_t last_ticket;
    uint32_t check_budget; /* sums that checks may still work on in this turn */
    uint32_t tail_count;
    uint32_t snapshots;        /* of dumps and checks under way */
    uint32_t late_prints;      /* bits of enum ttm_print: asked for while all tickets were out */
    uint32_t next_late_print;  /* of these, modulo the number of kinds */
    uint64_t session_max;      /* each may need a pidfd and a socket that wakes us, too */
    uint64_t open_connections; /* those on their way to be closed too */
    uint64_t refused_open;     /* refused ones, on their way to be closed */
    uint32_t refused_count;    /* refused ones, not on their way yet */
    int refused[TTM_REFUSED_MAX];
    uint32_t recorded_processes;

    uint64_t start_ns;
    uint64_t turn_ns;        /* when this turn began, monotonic */
    uint64_t turn_cpu_ns;    /* the processor time of the loop thread at that moment */
    uint64_t now_ns;         /* in it: then, or when rings were last read */
    uint64_t arrived_ns;     /* what this poll returned cannot have arrived before */
    uint64_t asked_ns;       /* when a question was last answered */
    uint64_t wall_offset_ns; /* wall = monotonic + this; read anew each turn */
    uint64_t counter[TTM_COUNTER_COUNT];
    struct ttm_latency latency;
    uint8_t slice[TTM_SLICE_TOLD];
};

static inline uint64_t ttm_server_closing(const struct ttm_server *server)
{
    return server->open_connections - server->counter[TTM_COUNTER_CONNECTIONS] +
           server->refused_open;
}

/* session.c */
void ttm_session_new(struct ttm_server *server, int fd, bool is_original);
/* A connection is to be none: it is closed with others, when the next function is called. */
void ttm_session_refuse(struct ttm_server *server, int fd);
void ttm_session_close_refused(struct ttm_server *server);
void ttm_session_close(struct ttm_session *session);
void ttm_session_free(struct ttm_session *session);
void ttm_session_silence(struct ttm_session *session);
/* Has said nothing for a while: back to the first row, where it costs nothing. */
void ttm_session_calm_down(struct ttm_session *session);
/* Closes files that came with what it has said, unless something of that waits to be acted on. */
void ttm_session_drop_fds(struct ttm_session *session);
/* Of a peer that is gone: goes on with what it has said, and closes it after that. */
void ttm_session_end(struct ttm_session *session);
/* It cannot go on without what /proc says of its process. */
void ttm_session_await_facts(struct ttm_session *session);
/* Its facts are here, or were waited for long enough. */
void ttm_session_resume(struct ttm_session *session);
/* Sessions of the user that wait for its next turn go on. */
void ttm_account_end_wait(struct ttm_account *account);
/* Output was appended: it is sent before the turn ends. */
void ttm_session_dirty(struct ttm_session *session);
void ttm_session_flush(struct ttm_session *session);
/* The process of its client has ended: read what is there, then close. */
void ttm_session_leave(struct ttm_session *session);
/* May this peer see the lives of a process of 'uid'? */
bool ttm_session_may_see(const struct ttm_session *session, uid_t uid);

/* client.c */
/*
 * Another program runs in the process, after an exec: the session is of a client of its own, and
 * what the program before has left is read. Returns 0 or -ENOMEM.
 */
int ttm_client_replace(struct ttm_session *session, struct ttm_client **ret);
/* All that its program has left in its rings was read. */
void ttm_client_drained(struct ttm_client *client);
/* Memory is too short for something that the process holds; said here the first time. */
void ttm_client_lack_memory(struct ttm_client *client);
/* It has no connection, and its program is not there any more. */
void ttm_client_end(struct ttm_client *client);

/* Returns 0; -EUSERS when its user has too many; -ENOMEM. */
int ttm_client_of(struct ttm_session *session, enum ttm_source source, struct ttm_client **ret);
void ttm_client_drop_session(struct ttm_session *session);
void ttm_client_free(struct ttm_client *client);

/* original_session.c: returns 0, or -EBADMSG to close it. */
int ttm_original_input(struct ttm_session *session, const uint8_t *bytes, size_t length);
int ttm_original_silence(struct ttm_session *session);

/* native_session.c */
int ttm_native_input(struct ttm_session *session, const uint8_t *bytes, size_t length);
/* Carries on with the answers under way; called each turn while there are any. Returns whether it wants another turn at once. */
bool ttm_native_work(struct ttm_session *session);
void ttm_native_done(struct ttm_session *session);
/* Has it go on with what waits in its input, in its user's time. */
void ttm_native_go_on(struct ttm_session *session);
/* The rows of an answer: a site under that number, an origin with so many lines (0: all). */
void ttm_native_put_site(struct ttm_session *session, uint32_t process_index,
                         const struct ttm_site *site, const struct ttm_site_counts *counts,
                         uint32_t number);
void ttm_native_put_process(struct ttm_session *session, uint32_t index,
                            const struct ttm_process *proc,
                            const struct ttm_process_counters *counters, uint32_t lives);
void ttm_native_put_device(struct ttm_session *session, uint16_t id,
                           const struct ttm_device *device);
/* The time of 'failure' is monotonic. */
void ttm_native_put_failure(struct ttm_session *session, uint32_t process_index,
                            const struct ttm_failure_row *failure);
void ttm_native_put_origin(struct ttm_session *session, uint32_t process_index,
                           const struct ttm_origin *origin, uint32_t frames);
void ttm_native_life_row(const struct ttm_life *life, uint32_t site, uint64_t now_ns, uint8_t *buf);

/* sites.c: what all sites hold, behind the totals. Returns 0 or -ENOMEM. */
int ttm_sites_put(struct ttm_session *session, uint32_t frames);
/* Nothing, when nothing was left out. */
void ttm_left_out_put(struct ttm_session *session, const struct ttm_left_out *left_out);

/* lives_of.c: which lives of 'snap' are sent; NULL when memory is short. */
struct ttm_chosen_lives *ttm_chosen_lives_new(const struct ttm_lives_request *request,
                                              struct ttm_snapshot *snap);
/* NULL is fine. */
void ttm_chosen_lives_free(struct ttm_chosen_lives *chosen);
/* Puts more of them into 'out'. Returns 1 when all are there, 0, or -ENOMEM. */
int ttm_chosen_lives_continue(struct ttm_session *session);

/* tail.c */
/* Returns whether there was room for one more. */
bool ttm_tail_subscribe(struct ttm_session *session, const struct ttm_events_request *request);
void ttm_tail_leave(struct ttm_session *session);
/* Tells the reader of a gap, once there is room again. Returns whether there is. */
bool ttm_tail_report_loss(struct ttm_session *session);
/* 'time_ns', of the server's clock, is when it happened: a ring is read some time later. */
void ttm_tail_life(struct ttm_server *server, const struct ttm_client *client, uint64_t time_ns,
                   uint8_t op, const struct ttm_site *site, const struct ttm_life *life);
void ttm_tail_unknown(struct ttm_server *server, const struct ttm_client *client, uint16_t device,
                      uint8_t region, uint64_t id);
/* It is in the story of the process already. */
void ttm_tail_failure(struct ttm_server *server, const struct ttm_client *client,
                      const struct ttm_failure_row *failure);
void ttm_tail_last_words(struct ttm_server *server, const struct ttm_client *client);
void ttm_tail_process_end(struct ttm_server *server, const struct ttm_client *client, uint64_t run,
                          const struct ttm_departure *departure);

/* ticket.c */
/* Returns 0 when there is none, or none for that user; NULL: for nobody in particular. */
uint32_t ttm_ticket_take(struct ttm_server *server, struct ttm_account *account);
struct ttm_snapshot *ttm_ticket_redeem(struct ttm_server *server, uint32_t number);
void ttm_ticket_print_late(struct ttm_server *server);
void ttm_ticket_expire(struct ttm_server *server, uint64_t now_ns);

/* server.c */
int ttm_server_watch(struct ttm_server *server, int epoll_fd, int fd, uint32_t events,
                     struct ttm_watch *watch);
void ttm_server_count_latency(struct ttm_server *server);
/* How much the next read may take. */
size_t ttm_server_slice_size(const struct ttm_server *server);

#endif /* TTM_SERVER_STATE_H */
