/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracked - a process that reports through a shared segment.
 *
 * Its serials make the order of events of no account: a birth whose end was read
 * first meets that end. When events were lost, or the server
 * is new to the process, the process is asked to tell all that is live; what was
 * live here and is neither told nor born since has ended unheard.
 */
#ifndef TTM_SERVER_TRACKED_H
#define TTM_SERVER_TRACKED_H

#include <sys/types.h>

#include "base/pages_ahead.h"
#include "base/u64_set.h"
#include "model/brief.h"
#include "model/life_marks.h"
#include "ring/reader.h"
#include "server/doze.h"
#include "server/early_ends.h"
#include "server/failure.h"
#include "server/notes.h"
#include "server/state.h"

struct ttm_slice;

struct ttm_late_name {
    uint64_t serial;
    uint32_t origin;
};

/* Births that are alike but for serial, id, address and size have one site: what it was last time. */
struct ttm_alike {
    uint64_t words[2]; /* of the record; 0 in both: none */
    struct ttm_brief_site site;
};

#define TTM_ALIKE 256 /* a power of two */

/* What the worker of its user does for it: only that touches the socket and /proc of the process. */
enum ttm_tracked_job {
    TTM_JOB_NONE,
    TTM_JOB_EMPTY_SOCKET, /* of the messages that woke us */
    TTM_JOB_FIND_MAPPING, /* whether the process still has the segment */
    TTM_JOB_CLOSE,
};

struct ttm_tracked {
    struct ttm_watch wake_watch;
    struct ttm_list active_link; /* has something to read, or had a moment ago */
    struct ttm_list alone_link;  /* is perhaps unable to wake us */
    struct ttm_client *client;   /* not to be used once 'is_over' */
    struct ttm_account *account;
    pid_t pid;
    uint64_t segment_bytes;      /* of its user's share */
    uint32_t ring_count;         /* likewise */
    struct ttm_session *session; /* where it is asked; NULL while it is not connected */
    struct ttm_ring_reader reader;
    ino_t segment_inode; /* tells whether it is the same one again */
    int wake_fd;
    struct ttm_job job;
    enum ttm_tracked_job doing;
    bool is_over;            /* its memory goes with the job that closes it */
    bool is_unmapped;        /* TTM_JOB_FIND_MAPPING found that */
    uint64_t job_ns;         /* that one took */
    bool can_wake;           /* its socket is one that is watched */
    uint32_t wakes;          /* since the socket was emptied */
    uint64_t drain_until_ns; /* of a process that has ended; 0: it has not */
    uint32_t rings_pass;     /* of the server, when it was last read */
    uint32_t empty_reads;    /* in a row */
    struct ttm_slice *rest;  /* what a turn had no time for; NULL: nothing */
    uint32_t cost;           /* of what was applied last */
    uint32_t slice_count;    /* of records in the slice that is being applied */
    uint64_t looked_counted; /* 'looked' when passes were counted last */
    struct ttm_doze doze;
    uint64_t announced_ns; /* since when the process has been told that we sleep; 0: it has not */
    uint64_t looked;       /* times that all rings were looked at */
    uint64_t passed;       /* times that all which was in the rings at one moment was read */

    /* Telling: from the question until what was not told is swept. */
    uint32_t epoch;
    uint32_t announced; /* allocations, in this one */
    bool is_telling;
    bool is_sweeping;
    bool is_spoiled;             /* more ended meanwhile than could be remembered: ask again */
    uint64_t lost_known;         /* losses that a telling has made good; at first none has */
    uint64_t needed_ns;          /* since when a telling is needed: connection, loss, switch */
    uint64_t open_loss_ns;       /* since when events are lost that no resync has made good */
    uint64_t held_ns;            /* so long the peaks of its devices were held, for earlier ones */
    uint64_t lost_asked;         /* losses when the passes before the question began */
    uint64_t ask_at_pass;        /* all that was in the rings when the loss was seen was read */
    struct ttm_life_view before; /* what was known when it was asked */
    uint64_t told_pass;          /* 'passed' when the last telling was over */
    struct ttm_life_marks told;  /* of these, what was told */
    uint64_t told_until;      /* bytes of the session: what was in the rings then was read first */
    struct ttm_u64_set ended; /* since the last pass: births or tellings may be read later */
    struct ttm_u64_set ended_before;  /* in the pass before that */
    uint64_t sweep_at;                /* in 'before' */
    struct ttm_pages_ahead ahead;     /* for what is told */
    struct ttm_early_ends early_ends; /* whose births were not read yet */

    uint32_t alone_visits;
    struct ttm_notes notes;
    bool is_off;        /* tracking is switched off in the process: its rings are left alone */
    bool is_going_off;  /* once all is read that was in the rings then */
    bool is_forgetting; /* the recording ends what was live then, in slices: */
    struct ttm_life_view forgotten; /* these, */
    uint64_t forget_at;             /* from here on */
    bool has_told;                  /* one telling is over */

    /* Names given to lives whose birth may still come, since the last but one pass. */
    struct ttm_late_name *late_names;
    uint32_t late_name_count;
    uint32_t late_names_old; /* of these, from before the last pass */

    /* Of the rate: events since a moment. */
    uint64_t rate_since_ns;
    uint64_t rate_events;

    /* Of the sums of circular buffers; and of the program that was heard of last. */
    uint64_t cb_program;
    uint64_t cb_program_bytes;
    uint64_t cbs_summed_ns;
    uint64_t cbs_dispatched; /* programs sent to all devices, when they were summed */
    uint32_t cbs_unsummed;   /* devices whose circular buffers are still to be summed since then */
    uint32_t cbs_next; /* place of the next one among the devices of the process, in a circle */
    uint32_t
        *cbs_recorded;  /* for each device: programs sent there that were recorded; NULL: none */
    uint32_t mesh_set;  /* the last set of several devices with a circular buffer, */
    uint32_t mesh_note; /* and what the process calls it; 0: none yet */

    uint64_t clock_ahead_ns; /* its monotonic clock is so far ahead of ours; may be "negative" */
    struct ttm_failure_watch failures;
    struct ttm_alike alike[TTM_ALIKE];
};

/*
 * The process behind the session hands over its segment; both fds are taken, also on an error.
 * Returns 0; -EUSERS when its user has too much already; another negative errno.
 */
int ttm_tracked_attach(struct ttm_session *session, int segment_fd, int wake_fd, uint64_t run);

/* A time of the process by our clock. What lies ahead of it is not believed. */
static inline uint64_t ttm_tracked_time(const struct ttm_tracked *tracked, uint64_t time_ns,
                                        uint64_t now_ns)
{
    const uint64_t own_ns = time_ns - tracked->clock_ahead_ns;

    return own_ns > now_ns ? now_ns : own_ns;
}

/* Whether the session's next word has to wait until its last one has been acted on. */
bool ttm_tracked_is_switching(const struct ttm_session *session);

/* Frame SWITCHED. Returns 0 or -EBADMSG. */
int ttm_tracked_switched(struct ttm_session *session, const uint8_t *payload, size_t length);

/*
 * Reads what was in the rings when it was called, so that an answer has all that was reported
 * before it was asked for; as far as '*budget' goes, which it lowers by what that costs: an
 * allocation on one device costs 1. Returns whether that was enough.
 */
bool ttm_tracked_catch_up(struct ttm_tracked *tracked, uint32_t *budget);

/* Brings what the process says of itself, and the sums of circular buffers, up to date. */
void ttm_tracked_refresh(struct ttm_tracked *tracked);

/* Both, for an answer, as far as its user's share of a turn goes. Returns whether that was enough. */
bool ttm_tracked_prepare_answer(struct ttm_tracked *tracked);

/* The session has closed. */
void ttm_tracked_detach(struct ttm_session *session);

/* Looks after those who may be unable to wake us. */
void ttm_tracked_visit_alone(struct ttm_server *server);

/* Its rings are to be looked at in this turn. */
void ttm_tracked_activate(struct ttm_tracked *tracked);

/* Whether it was freed in this turn. */
bool ttm_tracked_is_gone(const struct ttm_tracked *tracked);

/* Reads a slice. Returns when to look again, in nanoseconds; 0: there may be more at once. */
uint64_t ttm_tracked_read(struct ttm_tracked *tracked);

/* Reads what there is, up to a quarter of a million records. */
void ttm_tracked_drain(struct ttm_tracked *tracked);

/*
 * The process has ended: what it left in its rings is read in the loop's own time, and then
 * ttm_client_drained() is called. Returns false when there is nothing to read.
 */
bool ttm_tracked_begin_drain(struct ttm_tracked *tracked);

/* Whether that has been read. */
bool ttm_tracked_is_drained(const struct ttm_tracked *tracked);

/* Whether events were lost that no telling has made good, so that its lives are not exact. */
bool ttm_tracked_is_behind(const struct ttm_tracked *tracked);

/* NULL is fine. Its memory goes after the turn: an event for it may be under way. */
void ttm_tracked_free(struct ttm_tracked *tracked);

/* The same, at the end of the turn. */
void ttm_tracked_close(struct ttm_tracked *tracked);

#endif /* TTM_SERVER_TRACKED_H */
