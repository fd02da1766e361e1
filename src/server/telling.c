/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why the telling is exact. Let R be the moment of the question. The process
 * walks its live table after R, while its threads go on.
 *
 * - A life that is told is live unless its end has been read ('ended') or will be.
 * - A life that was known at R ('before') and is not told ('told' has a mark where
 *   one is both) has ended: the walk would have seen it. The process waits with the end
 *   of its telling until the record of such an end is in a ring, and the rings are read as
 *   far as they are written then: what is known still is swept, its end was lost. Of a
 *   thread that took too long the record comes later, finds nothing, and is forgotten when
 *   the telling is over.
 *   A life stays in its place; a mark where 'before' has another one than the life that
 *   was told says that the other one's end was read already.
 * - A life whose birth was read after R is kept: its end comes through a ring, or is
 *   lost; but a loss after R is seen, and asked about again.
 *
 * A loss is seen as a counter. Before the question the rings are read as far as
 * they were written when it was seen, so that a birth that was still in a ring
 * when its end was lost is read before R.
 *
 * Why the order of rings is of no account. A birth is in its ring before its end
 * is in any. Whoever reads the end has the birth behind him, or reads it before
 * he has read all that is in the rings at that moment: that long, two passes, an
 * end is remembered. A birth that comes meanwhile ends at once, as the end says
 * (early_ends.h): the history has both. A life that was told has a birth that may
 * still come after its end, and that is not believed. While it is told, nothing
 * is forgotten, as tellings may be on their way for long.
 * When two passes have gone by since the last telling, a life that is there was
 * born by its record; its end, which is the usual case, need not be remembered.
 */
#include "server/telling.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "server/intake.h"
#include "server/record.h"
#include "server/tracked.h"
#include "wire/attach.h"
#include "wire/frame.h"

#define SWEEP_COST 8192 /* of a slice, in frees on one device */
#define BLOCKS_AHEAD 2u
#define COST_OF_TURN 4096 /* of what is told, in allocations on one device */
#define COST_BEFORE 8192  /* of what is read before what is told */
#define ENDED_MAX (1u << 22)
#define ENDED_GROUPS_MAX (1u << 18)   /* 8 MiB, where no two of them follow each other */
#define HOLD_NS UINT64_C(10000000000) /* the peaks of devices, for all losses of one process */
#define PATIENCE_NS UINT64_C(50000000)

_Static_assert(TTM_AHEAD_BLOCK == TTM_LIFE_BLOCK_SIZE, "what is taken ahead is given as it is");

static void forget_before(struct ttm_tracked *tracked)
{
    ttm_registry_bury(tracked->client->server->reg, &tracked->before);
    ttm_life_marks_done(&tracked->told);
    ttm_life_table_expect(&tracked->client->process->lives, 0);
    ttm_quota_subtract(&tracked->account->resync_threads, tracked->ahead.has_begun);
    ttm_pages_ahead_end(&tracked->ahead);
}

/* Asks the process to tell all that is live. */
static void ask(struct ttm_tracked *tracked)
{
    uint8_t payload[TTM_TOLD_HEAD_SIZE];

    if (!tracked->session)
        return;
    forget_before(tracked);
    if (ttm_life_view_take(&tracked->client->process->lives.store, &tracked->before) < 0 ||
        ttm_life_marks_init(&tracked->told, &tracked->before) < 0) {
        forget_before(tracked);
        tracked->is_spoiled = true;
        return;
    }
    tracked->epoch++;
    tracked->announced = 0;
    tracked->is_telling = true;
    ttm_told_head_encode(tracked->epoch, 0, payload);
    (void)ttm_frame_append(&tracked->session->out, TTM_FRAME_TELL, payload, sizeof(payload));
    ttm_session_dirty(tracked->session);
}

void ttm_telling_ended(struct ttm_tracked *tracked, uint64_t serial, bool was_known)
{
    if (was_known && !ttm_telling_remembers(tracked))
        return;
    const size_t groups = tracked->ended.groups;
    struct ttm_quota *quota = &tracked->account->remembered_frees;

    if (tracked->ended.count >= ENDED_MAX || groups >= ENDED_GROUPS_MAX ||
        !ttm_quota_allows(quota, 1) || ttm_u64_set_add(&tracked->ended, serial) < 0)
        tracked->is_spoiled = true;
    ttm_quota_add(quota, tracked->ended.groups - groups);
}

void ttm_telling_forget_frees(struct ttm_tracked *tracked)
{
    ttm_quota_subtract(&tracked->account->remembered_frees,
                       tracked->ended.groups + tracked->ended_before.groups);
    ttm_u64_set_done(&tracked->ended);
    ttm_u64_set_done(&tracked->ended_before);
}

static struct ttm_tracked *telling_of(struct ttm_session *session, uint32_t epoch)
{
    struct ttm_tracked *tracked = session->client ? session->client->tracked : NULL;

    return tracked && tracked->session == session && tracked->is_telling && !tracked->is_sweeping &&
                   tracked->epoch == epoch
               ? tracked
               : NULL;
}

/*
 * What is told was born before, and most of it is in the rings: in the order it happened. All that
 * waits in the connection is written already; so the rings are read once for all of that, and what
 * begins and ends meanwhile is found in them together.
 */
static void read_rings_first(struct ttm_tracked *tracked)
{
    const struct ttm_session *session = tracked->session;
    uint32_t budget = COST_BEFORE;
    int waiting = 0;

    if (session->read_bytes <= tracked->told_until)
        return;
    if (ioctl(session->fd, SIOCINQ, &waiting) < 0 || waiting < 0)
        waiting = 0;
    tracked->told_until = session->read_bytes + (uint64_t)waiting;
    (void)ttm_tracked_catch_up(tracked, &budget);
}

bool ttm_telling_comes_first(const struct ttm_tracked *tracked)
{
    return tracked->is_telling && !tracked->is_sweeping && !tracked->is_going_off &&
           tracked->session && tracked->session->read_bytes < tracked->told_until;
}

/* Takes some lives that were told. Nothing is read from the rings meanwhile. */
static void take_lives(struct ttm_tracked *tracked, const uint8_t *lives, uint32_t count)
{
    uint64_t serials[TTM_FIND_MAX] = {0};
    uint32_t refs[TTM_FIND_MAX];
    const uint8_t *unknown[TTM_FIND_MAX];
    uint32_t unknown_count = 0;

    for (uint32_t i = 0; i < count; i++) {
        serials[i] = ttm_told_serial(lives + (size_t)i * TTM_TOLD_SIZE);
        ttm_u64_set_fetch(&tracked->ended, serials[i]);
        ttm_u64_set_fetch(&tracked->ended_before, serials[i]);
    }
    ttm_registry_find(tracked->client->process, serials, count, refs);
    for (uint32_t i = 0; i < count; i++) {
        if (refs[i] != TTM_LIFE_NONE)
            ttm_life_marks_set(&tracked->told, refs[i]);
        else if (serials[i] != 0 && !ttm_telling_has_ended(tracked, serials[i]))
            unknown[unknown_count++] = lives + (size_t)i * TTM_TOLD_SIZE;
    }
    ttm_intake_told(tracked, unknown, unknown_count);
}

/*
 * Takes the lives of a frame, from where the last turn had no more time. Returns whether all of them
 * were taken.
 */
static bool take_frame(struct ttm_tracked *tracked, const uint8_t *lives, uint32_t count,
                       uint32_t *done)
{
    uint32_t cost = tracked->session->told_cost;

    while (*done < count) {
        const uint8_t *first = lives + (size_t)*done * TTM_TOLD_SIZE;
        uint32_t n = 0;
        while (n < TTM_FIND_MAX && *done + n < count && (n == 0 || cost < COST_OF_TURN)) {
            const uint8_t *one = first + (size_t)n * TTM_TOLD_SIZE;
            cost += n > 0 && ttm_told_is_alike(one - TTM_TOLD_SIZE, one)
                        ? 1 + tracked->client->process->largest_set
                        : ttm_intake_cost_of_told(tracked, one);
            n++;
        }
        take_lives(tracked, first, n);
        *done += n;
        tracked->session->told_cost = cost;
        if (cost >= COST_OF_TURN && *done < count)
            return false;
    }
    *done = 0;
    return true;
}

static void begin_ahead(struct ttm_tracked *tracked, uint32_t blocks)
{
    struct ttm_quota *quota = &tracked->account->resync_threads;

    if (tracked->ahead.has_begun || !ttm_quota_allows(quota, 1))
        return;
    ttm_pages_ahead_begin(&tracked->ahead, blocks, BLOCKS_AHEAD);
    ttm_quota_add(quota, tracked->ahead.has_begun);
}

/* For a crowd that is being told another thread takes the memory, and we do not wait for it. */
static void take_memory_ahead(struct ttm_tracked *tracked)
{
    struct ttm_life_store *store = &tracked->client->process->lives.store;
    const uint32_t blocks = ttm_life_store_wants_blocks(store);
    void *block;

    if (blocks == 0)
        return;
    if (!(block = ttm_heritage_take_block(&tracked->client->server->heritage))) {
        begin_ahead(tracked, blocks);
        block = ttm_pages_ahead_take(&tracked->ahead);
    }
    if (block)
        ttm_life_store_give_block(store, block);
}

int ttm_telling_take(struct ttm_session *session, const uint8_t *payload, size_t length)
{
    uint32_t epoch;
    const long count = ttm_told_head_decode(payload, length, &epoch);

    if (count < 0)
        return -EBADMSG;
    struct ttm_tracked *tracked = telling_of(session, epoch);
    if (!tracked) {
        session->told_done = 0;
        return 0;
    }
    if (session->told_cost >= COST_OF_TURN)
        return 1;
    if (session->told_done > 0)
        return take_frame(tracked, payload + TTM_TOLD_HEAD_SIZE, (uint32_t)count,
                          &session->told_done)
                   ? 0
                   : 1;
    const uint32_t announced = ttm_told_announced(payload, length);
    /* To make room takes time, so a process that announces more and more is not believed each time. */
    if (announced > 2 * tracked->announced) {
        tracked->announced = announced;
        ttm_life_table_expect(&tracked->client->process->lives, announced < TTM_PROCESS_LIVES_MAX
                                                                    ? announced
                                                                    : TTM_PROCESS_LIVES_MAX);
    }
    read_rings_first(tracked);
    take_memory_ahead(tracked);
    return take_frame(tracked, payload + TTM_TOLD_HEAD_SIZE, (uint32_t)count, &session->told_done)
               ? 0
               : 1;
}

int ttm_telling_take_end(struct ttm_session *session, const uint8_t *payload, size_t length)
{
    uint32_t epoch;

    if (ttm_told_head_decode(payload, length, &epoch) < 0)
        return -EBADMSG;
    struct ttm_tracked *tracked = telling_of(session, epoch);
    if (!tracked)
        return 0;
    tracked->sweep_at = 0;
    tracked->is_sweeping = true;
    ttm_ring_reader_aim(&tracked->reader);
    ttm_tracked_activate(tracked);
    return 0;
}

/* Ends what was known at R and not told. Returns whether all was looked at. */
static bool sweep(struct ttm_tracked *tracked)
{
    struct ttm_client *client = tracked->client;
    const struct ttm_life *life;
    struct ttm_ended ended;

    for (uint32_t cost = 0; cost < SWEEP_COST;) {
        life = ttm_life_marks_next(&tracked->told, &tracked->before, &tracked->sweep_at);
        if (!life)
            return true;
        const uint64_t serial = life->serial;
        if (ttm_registry_end_serial(client->server->reg, client->process, serial, TTM_END_UNHEARD,
                                    &ended) == 0) {
            ttm_record_unheard(client, serial);
            cost += ttm_device_sets_get(&client->server->reg->sets, ended.site.device_set).count;
        }
        cost++;
    }
    return false;
}

/* How long its lives were not exact, or might not have been. */
static void take_time(struct ttm_tracked *tracked)
{
    const uint64_t us = (ttm_clock_monotonic_ns() - tracked->needed_ns) / 1000;

    if (ttm_ring_reader_lost(&tracked->reader) != tracked->lost_known)
        return; /* something was lost meanwhile: it is not over yet */
    if (tracked->needed_ns != 0)
        tracked->client->process->counters.resync_us = us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
    tracked->needed_ns = 0;
}

static void make_good(struct ttm_tracked *tracked)
{
    struct ttm_client *client = tracked->client;

    if (!client->process->counters.has_open_loss || ttm_tracked_is_behind(tracked))
        return;
    ttm_record_made_good(client);
    tracked->held_ns += client->server->now_ns - tracked->open_loss_ns;
    client->process->counters.has_open_loss = false;
    ttm_registry_hold_peaks(client->server->reg, client->process, false);
}

static void leave_telling(struct ttm_tracked *tracked)
{
    tracked->is_telling = false;
    tracked->told_pass = tracked->passed;
}

static void end_telling(struct ttm_tracked *tracked)
{
    forget_before(tracked);
    tracked->is_sweeping = false;
    leave_telling(tracked);
    tracked->lost_known = tracked->lost_asked;
    if (tracked->has_told || tracked->client->process->counters.has_gap)
        tracked->client->process->counters.resyncs++;
    tracked->has_told = true;
    take_time(tracked);
    make_good(tracked);
}

void ttm_telling_need(struct ttm_tracked *tracked)
{
    tracked->lost_known = UINT64_MAX;
    tracked->needed_ns = tracked->client->server->now_ns;
    ttm_tracked_activate(tracked);
}

/* A loss was seen: the rings are read as far as they are written now. */
static void prepare_to_ask(struct ttm_tracked *tracked, uint64_t lost)
{
    tracked->ask_at_pass = tracked->passed + 2;
    if (tracked->needed_ns == 0)
        tracked->needed_ns = tracked->client->server->now_ns;
    tracked->lost_asked = lost; /* what is lost from here on is asked about another time */
    tracked->empty_reads = 0;
}

/* Rings that were full go on losing until they were read; one that loses for ever is asked all the same. */
static bool is_patient(const struct ttm_tracked *tracked)
{
    return tracked->client->server->now_ns - tracked->needed_ns < PATIENCE_NS;
}

void ttm_telling_count_losses(struct ttm_tracked *tracked)
{
    struct ttm_client *client = tracked->client;
    const uint64_t lost = ttm_ring_reader_lost(&tracked->reader);
    const uint64_t known = client->process->counters.lost_events;

    if (lost > known) {
        ttm_record_loss(client, lost - known);
        if (!client->process->counters.has_open_loss)
            tracked->open_loss_ns = client->server->now_ns;
        client->process->counters.has_open_loss = true;
        ttm_registry_hold_peaks(client->server->reg, client->process, true);
    }
    if (client->process->counters.has_open_loss &&
        client->server->now_ns - tracked->open_loss_ns + tracked->held_ns > HOLD_NS)
        ttm_registry_release_device_peaks(client->server->reg, client->process);
    client->process->counters.lost_events = lost;
}

void ttm_telling_watch_losses(struct ttm_tracked *tracked)
{
    const uint64_t lost = ttm_ring_reader_lost(&tracked->reader);

    if (tracked->is_spoiled && !tracked->is_telling) {
        tracked->lost_known = UINT64_MAX;
        tracked->is_spoiled = false;
    }
    if (lost == tracked->lost_known || tracked->is_telling) {
        tracked->ask_at_pass = 0;
        return;
    }
    if (tracked->ask_at_pass == 0)
        prepare_to_ask(tracked, lost);
    else if (tracked->passed < tracked->ask_at_pass && tracked->empty_reads <= 1)
        return;
    else if (lost != tracked->lost_asked && is_patient(tracked))
        prepare_to_ask(tracked, lost); /* once it stops, all is told once and not twice */
    else
        ask(tracked);
}

void ttm_telling_go_on(struct ttm_tracked *tracked)
{
    if (tracked->is_sweeping && ttm_ring_reader_is_past_aim(&tracked->reader) && sweep(tracked))
        end_telling(tracked);
}

void ttm_telling_stop(struct ttm_tracked *tracked)
{
    if (tracked->is_sweeping)
        end_telling(tracked);
    leave_telling(tracked);
    forget_before(tracked);
}

void ttm_telling_pass(struct ttm_tracked *tracked)
{
    /* An end without a birth is one whose birth was lost: the process reports only its own. */
    const struct ttm_u64_set emptied = tracked->ended_before;

    ttm_quota_subtract(&tracked->account->remembered_frees, emptied.groups);
    tracked->ended_before = tracked->ended;
    tracked->ended = emptied;
    ttm_u64_set_clear(&tracked->ended);
}
