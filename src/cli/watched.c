/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/watched.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/quiet_thread.h"
#include "base/seed.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "query/answer.h"
#include "wire/event.h"
#include "wire/request.h"

#define INTERVAL_MS 100
#define ANSWER_MS 5000
#define LAST_WORDS_MS 1000
#define SEEN_MAX 4096
#define ANCESTORS_MAX 64

struct ttm_seen {
    int32_t pid;
    uint64_t start_ns; /* tells processes of one number apart */
    bool is_ours;
    bool has_ended;
    uint64_t lives; /* at its end */
    uint64_t bytes;
    struct ttm_process_row row;      /* as it was told last; empty: it was not */
    struct ttm_heard_process *heard; /* of one of ours that has not ended; NULL: memory is short */
};

/* ---- whose is it ---- */

/* State and parent of a process, from /proc. Returns whether it is there. */
static bool look_up(pid_t pid, char *ret_state, pid_t *ret_parent)
{
    char path[64], text[1024];
    int parent = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    const size_t n = fread(text, 1, sizeof(text) - 1, file);
    (void)fclose(file);
    text[n] = '\0';
    const char *behind_name = strrchr(text, ')'); /* the name may hold anything */
    /* NOLINTNEXTLINE(cert-err34-c): the kernel writes numbers */
    if (!behind_name || sscanf(behind_name, ") %c %d", ret_state, &parent) != 2)
        return false;
    *ret_parent = parent;
    return true;
}

static bool is_descendant(const struct ttm_watched *watched, pid_t pid)
{
    char state;

    for (int i = 0; watched->shares_pids && i < ANCESTORS_MAX && pid > 1; i++) {
        if (pid == watched->program)
            return true;
        if (!look_up(pid, &state, &pid))
            return false;
    }
    return false;
}

static bool has_gone(pid_t pid)
{
    char state = 0;
    pid_t parent;

    return !look_up(pid, &state, &parent) || state == 'Z' || state == 'X';
}

/* ---- what is heard ---- */

static struct ttm_seen *find_seen(struct ttm_watched *watched, int32_t pid, uint64_t start_ns)
{
    for (size_t i = 0; i < watched->seen_count; i++) {
        struct ttm_seen *seen = &watched->seen[i];
        if (seen->pid == pid && (start_ns == 0 || seen->start_ns == start_ns) && !seen->has_ended)
            return seen;
    }
    return NULL;
}

static struct ttm_seen *new_seen(struct ttm_watched *watched, int32_t pid, uint64_t start_ns,
                                 uint64_t run)
{
    if (watched->seen_count == SEEN_MAX)
        return NULL;
    struct ttm_seen *grown =
        realloc(watched->seen, (watched->seen_count + 1) * sizeof(watched->seen[0]));
    if (!grown)
        return NULL;
    watched->seen = grown;
    struct ttm_seen *seen = &grown[watched->seen_count++];
    *seen = (struct ttm_seen){
        .pid = pid,
        .start_ns = start_ns,
        .is_ours = run == watched->run || is_descendant(watched, pid),
    };
    return seen;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* What one of our processes has on a device, on top of what others of ours have. */
static void add_device(struct ttm_watched *watched, const struct ttm_answer *answer,
                       const struct ttm_process_device_row *row)
{
    const struct ttm_device_row *known = ttm_answer_device(answer, row->device_id);
    struct ttm_departed_device *device = ttm_departed_device_of(&watched->departed, row->device_id);

    if (!device)
        return;
    if (known) {
        device->arch = known->arch;
        memcpy(device->capacity_bytes, known->capacity_bytes, sizeof(device->capacity_bytes));
        memcpy(device->board, known->board, sizeof(device->board));
    }
    for (unsigned r = 0; r < TTM_REGION_COUNT; r++) {
        struct ttm_totals *sum = &device->totals.region[r];
        const struct ttm_totals *own = &row->totals.region[r];
        sum->footprint_bytes += own->footprint_bytes;
        sum->births = larger(sum->births, own->births);
        sum->peak_footprint_bytes = larger(sum->peak_footprint_bytes,
                                           larger(sum->footprint_bytes, own->peak_footprint_bytes));
    }
    struct ttm_cb_totals *cb = &device->totals.cb;
    cb->resident_bytes += row->totals.cb.resident_bytes;
    cb->peak_resident_bytes = larger(
        cb->peak_resident_bytes, larger(cb->resident_bytes, row->totals.cb.peak_resident_bytes));
}

static void forget_sums(struct ttm_departed *departed)
{
    for (uint32_t i = 0; i < departed->device_count; i++) {
        for (unsigned r = 0; r < TTM_REGION_COUNT; r++)
            departed->devices[i].totals.region[r].footprint_bytes = 0;
        departed->devices[i].totals.cb.resident_bytes = 0;
    }
}

/* Returns the process when it is one of ours, else NULL. */
static struct ttm_seen *take_row(struct ttm_watched *watched, const struct ttm_process_row *row)
{
    struct ttm_seen *seen = find_seen(watched, row->pid, row->start_ns);

    if (!seen)
        seen = new_seen(watched, row->pid, row->start_ns, row->run);
    if (!seen)
        return NULL;
    /* It may have been met by a row that has no run, of the original protocol. */
    seen->is_ours |= row->run == watched->run;
    seen->row = *row;
    if (!seen->is_ours)
        return NULL;
    if (!seen->heard)
        seen->heard = ttm_heard_process_new(&watched->failures, seen->pid);
    return seen;
}

static void take_totals(struct ttm_watched *watched, const struct ttm_answer *answer)
{
    bool is_first = true; /* where none of ours is left, what was last seen of them stays */

    for (size_t i = 0; i < answer->process_count; i++) {
        const struct ttm_answer_process *process = &answer->processes[i];
        if (!take_row(watched, &process->row))
            continue;
        if (is_first)
            forget_sums(&watched->departed);
        is_first = false;
        for (size_t d = 0; d < process->device_count; d++)
            add_device(watched, answer, &process->devices[d]);
    }
}

static int hear_totals(struct ttm_watched *watched)
{
    struct ttm_answer answer;

    ttm_answer_init(&answer);
    const int r = ttm_answer_receive(&watched->totals, ANSWER_MS, &answer);
    if (r == 0)
        take_totals(watched, &answer);
    ttm_answer_done(&answer);
    return r;
}

/* Its last one is told of now, if it was not before. */
static void forget_failures(struct ttm_watched *watched, struct ttm_seen *seen)
{
    ttm_heard_process_end(&watched->failures, seen->heard);
    seen->heard = NULL;
}

static void take_end(struct ttm_watched *watched, const struct ttm_event *event)
{
    struct ttm_seen *seen = find_seen(watched, event->pid, 0);

    if (!seen) /* it was too short to be seen */
        seen = new_seen(watched, event->pid, 0, event->total_bytes);
    if (!seen)
        return;
    forget_failures(watched, seen);
    seen->has_ended = true;
    seen->lives = event->id + event->address; /* what had ended with its device remains too */
    seen->bytes = event->bytes + event->footprint_bytes;
}

static int take_frame(struct ttm_watched *watched, const struct ttm_frame *frame)
{
    struct ttm_process_row row;

    if (frame->type == TTM_FRAME_PROCESS) { /* its last words, or it has failed */
        if (ttm_process_row_decode(frame->payload, frame->length, &row) < 0)
            return -EBADMSG;
        const struct ttm_seen *seen = take_row(watched, &row);
        ttm_heard_failures_row(&watched->failures, seen ? seen->heard : NULL, row.failures);
    }
    if (frame->type != TTM_FRAME_EVENTS)
        return ttm_heard_failures_take(&watched->failures, frame);
    for (size_t at = 0; at < frame->length; at += TTM_EVENT_SIZE) {
        struct ttm_event event;
        if (ttm_event_decode(frame->payload + at, frame->length - at, &event) < 0)
            return -EBADMSG;
        if (event.op == TTM_EVENT_PROCESS_END)
            take_end(watched, &event);
    }
    return 0;
}

static int hear_ends(struct ttm_watched *watched)
{
    struct ttm_frame frame;
    int r = ttm_connection_receive(&watched->ends, ANSWER_MS, &frame);

    if (r == 0)
        return -ETIMEDOUT;
    /* What has come along with it would not wake us again. */
    for (; r > 0; r = ttm_connection_receive(&watched->ends, 0, &frame)) {
        const int taken = take_frame(watched, &frame);
        if (taken < 0)
            return taken;
    }
    return r;
}

/* ---- the thread ---- */

/* Whether one of ours has ended that the server has not spoken of. */
static bool is_waiting_for_ends(const struct ttm_watched *watched)
{
    for (size_t i = 0; i < watched->seen_count; i++) {
        const struct ttm_seen *seen = &watched->seen[i];
        if (seen->is_ours && !seen->has_ended && (!watched->shares_pids || has_gone(seen->pid)))
            return true;
    }
    return false;
}

/* Waits for either connection, or to be stopped. Returns 0 or a negative errno; -ECANCELED. */
static int hear(struct ttm_watched *watched, int timeout_ms)
{
    struct pollfd fds[] = {
        {.fd = watched->ends.fd, .events = POLLIN},
        {.fd = watched->totals.fd, .events = POLLIN},
        {.fd = watched->stop_fd, .events = POLLIN},
    };
    int r = 0;

    const int n = poll(fds, timeout_ms < 0 ? 3 : 2, timeout_ms);
    if (n <= 0)
        return n < 0 && errno != EINTR ? -errno : n < 0 ? 0 : -ETIMEDOUT;
    /* Totals first: what they say of a process is from before its end. */
    if (fds[1].revents)
        r = hear_totals(watched);
    if (r == 0 && fds[0].revents)
        r = hear_ends(watched);
    if (r == 0 && timeout_ms < 0 && fds[2].revents)
        r = -ECANCELED;
    return r;
}

/* The program has ended: what the server has to say of ours yet. */
static int hear_last_words(struct ttm_watched *watched)
{
    const uint64_t until_ns = ttm_clock_monotonic_ns() + LAST_WORDS_MS * TTM_NS_PER_MS;
    int r = 0;

    /* Two more totals: one may have been on its way, the next one has all that came before. */
    for (int i = 0; r == 0 && (i < 2 || is_waiting_for_ends(watched)); i++) {
        if (ttm_clock_monotonic_ns() >= until_ns)
            return 0;
        r = hear(watched, INTERVAL_MS * 2);
        r = r == -ETIMEDOUT ? 0 : r;
    }
    return r;
}

static void *watch(void *arg)
{
    struct ttm_watched *watched = arg;
    int r = 0;

    while (r == 0)
        r = hear(watched, -1);
    if (r == -ECANCELED)
        r = hear_last_words(watched);
    watched->is_server_gone = r < 0;
    return NULL;
}

/* ---- from outside ---- */

/* Whether the server counts processes as we do: the kernel knows it by the pid it has for itself. */
static bool shares_pids(const struct ttm_connection *conn)
{
    struct ucred peer = {0};
    socklen_t size = sizeof(peer);

    return getsockopt(conn->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid > 0 &&
           peer.pid == conn->server.pid;
}

/* A number that no other run has; where the kernel has none to give, one that hardly has. */
static uint64_t make_up_run(void)
{
    uint64_t run = 0;

    if (getrandom(&run, sizeof(run), GRND_NONBLOCK) != sizeof(run) || run == 0)
        run = ttm_clock_wall_ns() ^ (uint64_t)getpid() << 40;
    return run;
}

void ttm_watched_init(struct ttm_watched *watched)
{
    *watched = (struct ttm_watched){.totals.fd = -1, .ends.fd = -1, .stop_fd = -1};
    ttm_departed_init(&watched->departed, ttm_seed_random());
}

int ttm_watched_open(struct ttm_watched *watched, const char *socket_path)
{
    /* On no device: then only ends of processes come, and failures. */
    const struct ttm_events_request ends = {.has_last_words = true};
    uint8_t number[TTM_NUMBER_REQUEST_SIZE], events[TTM_EVENTS_REQUEST_SIZE];

    int status = ttm_ask_connect(socket_path, &watched->ends);
    if (status == TTM_EXIT_OK)
        status = ttm_ask_connect(socket_path, &watched->totals);
    if (status != TTM_EXIT_OK)
        return status;
    const struct ttm_terminal terminal = ttm_terminal_of(STDERR_FILENO);
    ttm_heard_failures_init(&watched->failures, &terminal);
    watched->run = make_up_run();
    watched->shares_pids = shares_pids(&watched->totals);
    ttm_events_request_encode(&ends, events);
    ttm_number_request_encode(INTERVAL_MS, number);
    int r = ttm_connection_send(&watched->ends, TTM_FRAME_SUBSCRIBE_EVENTS, events, sizeof(events));
    if (r == 0)
        r = ttm_connection_send(&watched->totals, TTM_FRAME_SUBSCRIBE_TOTALS, number,
                                sizeof(number));
    return r < 0 ? ttm_ask_failed(&watched->totals, r) : TTM_EXIT_OK;
}

int ttm_watched_start(struct ttm_watched *watched, pid_t program)
{
    watched->program = program;
    watched->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (watched->stop_fd < 0)
        return -errno;
    const int r = ttm_quiet_thread_start(&watched->thread, NULL, watch, watched);
    watched->is_running = r == 0;
    return r;
}

static void forget_all_failures(struct ttm_watched *watched)
{
    for (size_t i = 0; i < watched->seen_count; i++)
        forget_failures(watched, &watched->seen[i]);
}

static void put_processes(struct ttm_watched *watched)
{
    for (size_t i = 0; i < watched->seen_count; i++) {
        const struct ttm_seen *seen = &watched->seen[i];
        if (!seen->is_ours)
            continue;
        struct ttm_departed_process process = {
            .pid = seen->pid,
            .is_running = !seen->has_ended && !watched->is_server_gone,
            /* As requested: what it took on devices is not told. */
            .sums = {.remaining = seen->lives,
                     .remaining_footprint_bytes = seen->bytes,
                     .events = seen->row.events,
                     .lost_events = seen->row.lost_events,
                     .unknown_frees = seen->row.unknown_frees,
                     .replaced = seen->row.replaced,
                     .refused = seen->row.refused,
                     .untracked = seen->row.untracked,
                     .notes_left_out = seen->row.notes_left_out,
                     .failures = seen->row.failures},
        };
        memcpy(process.command, seen->row.command, sizeof(process.command));
        memcpy(process.trouble, seen->row.trouble, sizeof(process.trouble));
        watched->departed.inexact_count += seen->has_ended && seen->row.is_behind;
        watched->departed.gap_count += seen->row.has_gap;
        watched->departed.off_count += seen->row.is_disabled;
        ttm_departed_put_process(&watched->departed, &process);
    }
}

static void stop(struct ttm_watched *watched)
{
    const uint64_t one = 1;

    if (!watched->is_running)
        return;
    (void)!write(watched->stop_fd, &one, sizeof(one));
    (void)pthread_join(watched->thread, NULL);
    watched->is_running = false;
}

void ttm_watched_finish(struct ttm_watched *watched)
{
    stop(watched);
    forget_all_failures(watched);
    put_processes(watched);
    if (watched->departed.sums.remaining == 0)
        forget_sums(&watched->departed); /* given back since it was seen */
}

void ttm_watched_done(struct ttm_watched *watched)
{
    stop(watched);
    ttm_connection_close(&watched->totals);
    ttm_connection_close(&watched->ends);
    ttm_departed_done(&watched->departed);
    forget_all_failures(watched);
    ttm_heard_failures_done(&watched->failures);
    free(watched->seen);
    if (watched->stop_fd >= 0)
        (void)close(watched->stop_fd);
    ttm_watched_init(watched);
}
