/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Those who watch events go by. Each has its own bounded queue: one that reads
 * too slowly loses events, is told how many, and slows nobody.
 */
#include "server/state.h"

#include <string.h>

#include "base/bytes.h"
#include "base/u64_set.h"
#include "model/origin_table.h"
#include "wire/event.h"
#include "wire/frame.h"
#include "wire/origin_row.h"

#define ORIGINS_MAX 65536 /* that a session is known to have been told of */
#define FRAMES_TOLD 16    /* of the stack of an event; of that of a failure, all */
#define FRAMES_ALL 0
#define STACKS_MAX 256 /* that are compared with that of a failure; of more origins, the newest */

bool ttm_tail_subscribe(struct ttm_session *session, const struct ttm_events_request *request)
{
    struct ttm_server *server = session->server;

    session->tail = *request;
    if (!ttm_list_is_empty(&session->tail_link))
        return true;
    if ((server->tail_count >= TTM_TAILS_MAX && !session->account->is_privileged) ||
        !ttm_account_has_room(session->account, session->account->tails, 1, TTM_USER_TAILS))
        return false;
    server->tail_count++;
    session->account->tails++;
    ttm_u64_set_init(&session->tail_origins, server->reg->seed);
    ttm_list_append(&server->tails, &session->tail_link);
    return true;
}

void ttm_tail_leave(struct ttm_session *session)
{
    if (ttm_list_is_empty(&session->tail_link))
        return;
    session->server->tail_count--;
    session->account->tails--;
    ttm_list_remove(&session->tail_link);
    ttm_u64_set_done(&session->tail_origins);
}

bool ttm_tail_report_loss(struct ttm_session *session)
{
    uint8_t lost[8];

    if (ttm_queue_length(&session->out) > TTM_OUT_LOW)
        return false;
    put_le64(lost, session->tail_lost);
    if (ttm_frame_append(&session->out, TTM_FRAME_LOST, lost, sizeof(lost)) < 0)
        return false;
    session->tail_lost = 0;
    return true;
}

/* Says where something comes from, unless that was said before. Returns what was said, or NULL. */
static const struct ttm_origin *tell_origin(struct ttm_session *session,
                                            const struct ttm_client *client, uint32_t number,
                                            uint32_t frames)
{
    const uint64_t key = (uint64_t)(uint32_t)client->pid << 32 | number;
    const struct ttm_origin *origin =
        number != 0 ? ttm_origin_table_find(&client->process->origins, number) : NULL;

    if (!origin || ttm_u64_set_has(&session->tail_origins, key))
        return NULL;
    if (session->tail_origins.count >= ORIGINS_MAX)
        ttm_u64_set_clear(&session->tail_origins);
    /* Without memory to remember it is told each time. */
    (void)ttm_u64_set_add(&session->tail_origins, key);
    ttm_native_put_origin(session, (uint32_t)client->pid, origin, frames);
    return origin;
}

static void give(struct ttm_session *session, const struct ttm_client *client,
                 const struct ttm_event *event)
{
    const bool has_room = session->tail_lost > 0 ? ttm_tail_report_loss(session)
                                                 : ttm_queue_length(&session->out) < TTM_OUT_HIGH;

    if (has_room)
        (void)tell_origin(session, client, event->origin, FRAMES_TOLD);
    uint8_t *payload =
        has_room ? ttm_frame_begin(&session->out, TTM_FRAME_EVENTS, TTM_EVENT_SIZE) : NULL;

    if (!payload) {
        session->tail_lost++;
        session->server->counter[TTM_COUNTER_LOST_TAIL_EVENTS]++;
        return;
    }
    ttm_event_encode(event, payload);
    ttm_session_dirty(session);
}

static void publish(struct ttm_server *server, const struct ttm_client *client,
                    const struct ttm_event *event)
{
    TTM_LIST_FOR_EACH(pos, &server->tails) {
        struct ttm_session *session = TTM_CONTAINER_OF(pos, struct ttm_session, tail_link);

        if (session->tail.pid != 0 && session->tail.pid != client->pid)
            continue;
        /* The end of a process is on no device in particular. */
        if (event->op != TTM_EVENT_PROCESS_END &&
            !ttm_device_filter_has(&session->tail.devices, event->device_id))
            continue;
        if (ttm_session_may_see(session, client->uid))
            give(session, client, event);
    }
}

void ttm_tail_life(struct ttm_server *server, const struct ttm_client *client, uint64_t time_ns,
                   uint8_t op, const struct ttm_site *site, const struct ttm_life *life)
{
    const struct ttm_device_set set = ttm_device_sets_get(&server->reg->sets, site->device_set);
    struct ttm_event event = {
        .time_ns = time_ns + server->wall_offset_ns,
        .id = life->id,
        .address = life->address,
        .bytes = life->bytes,
        .footprint_bytes = life->footprint_bytes,
        .pid = client->pid,
        .op = op,
        .region = site->region,
        .kind = site->kind,
        .origin = site->origin,
    };

    for (uint16_t i = 0; i < set.count; i++) {
        event.device_id = set.devices[i];
        event.total_bytes =
            server->reg->devices[event.device_id]->totals.region[site->region].bytes;
        publish(server, client, &event);
    }
}

void ttm_tail_unknown(struct ttm_server *server, const struct ttm_client *client, uint16_t device,
                      uint8_t region, uint64_t id)
{
    const struct ttm_event event = {
        .time_ns = server->now_ns + server->wall_offset_ns,
        .id = id,
        .address = id,
        .pid = client->pid,
        .device_id = device,
        .op = TTM_EVENT_UNKNOWN_END,
        .region = region,
    };

    publish(server, client, &event);
}

/* ---- what is said of a process ---- */

/* Whether the session wants to hear it, and no more than 'room' waits for it already. */
static bool listens(const struct ttm_session *session, const struct ttm_client *client, size_t room)
{
    return session->tail.has_last_words && session->tail_lost == 0 &&
           ttm_queue_length(&session->out) < room &&
           (session->tail.pid == 0 || session->tail.pid == client->pid) &&
           ttm_session_may_see(session, client->uid);
}

static bool has_same_line(const struct ttm_origin *a, const struct ttm_origin *b)
{
    const char *one = a->text[TTM_ORIGIN_PYTHON], *other = b->text[TTM_ORIGIN_PYTHON];
    const size_t length = strcspn(one, "\n");

    return length > 0 && strncmp(one, other, length + 1) == 0;
}

/*
 * An origin of a failure, and those that come through the same line: only who has them can say
 * which caller tells it from the others. However long their stacks are, there is room for ends.
 */
static void tell_origins(struct ttm_session *session, const struct ttm_client *client,
                         uint32_t number)
{
    const struct ttm_origin_table *table = &client->process->origins;
    const bool has_room = ttm_queue_length(&session->out) < TTM_OUT_HIGH / 2;
    const struct ttm_origin *origin =
        has_room ? tell_origin(session, client, number, FRAMES_ALL) : NULL;

    for (uint32_t i = table->count; origin && i > 0 && table->count - i < STACKS_MAX; i--) {
        const struct ttm_origin *other = table->origins[i - 1];
        if (ttm_queue_length(&session->out) >= TTM_OUT_LOW)
            return;
        if (has_same_line(origin, other))
            (void)tell_origin(session, client, other->number, FRAMES_ALL);
    }
}

/* The row of the process comes before it, and tells how many failures there were with this one. */
static void tell_failure(struct ttm_session *session, const struct ttm_client *client,
                         const struct ttm_failure_row *failure)
{
    const struct ttm_device *device = session->server->reg->devices[failure->device_id];

    if (device)
        ttm_native_put_device(session, failure->device_id, device);
    tell_origins(session, client, failure->origin);
    for (uint32_t i = 0; i < failure->owner_count; i++)
        tell_origins(session, client, failure->owners[i].origin);
    ttm_native_put_failure(session, (uint32_t)client->pid, failure);
}

static void tell_process(struct ttm_session *session, const struct ttm_process *proc)
{
    ttm_native_put_process(session, 0, proc, &proc->counters, proc->lives.store.live);
    ttm_session_dirty(session);
}

/*
 * A program may fail as fast as it can. So only some of the queue is for failures, and they never
 * take the place of an end; those that are left out count as all do.
 */
void ttm_tail_failure(struct ttm_server *server, const struct ttm_client *client,
                      const struct ttm_failure_row *failure)
{
    TTM_LIST_FOR_EACH(pos, &server->tails) {
        struct ttm_session *session = TTM_CONTAINER_OF(pos, struct ttm_session, tail_link);

        if (!listens(session, client, TTM_OUT_LOW))
            continue;
        tell_process(session, client->process);
        tell_failure(session, client, failure);
    }
}

/* With its last failure: that one may have been left out. */
void ttm_tail_last_words(struct ttm_server *server, const struct ttm_client *client)
{
    const struct ttm_story *story = &client->process->story;
    const uint32_t failures = ttm_story_failures(story);

    TTM_LIST_FOR_EACH(pos, &server->tails) {
        struct ttm_session *session = TTM_CONTAINER_OF(pos, struct ttm_session, tail_link);

        if (!listens(session, client, TTM_OUT_HIGH))
            continue;
        tell_process(session, client->process);
        if (failures > 0)
            tell_failure(session, client, ttm_story_failure(story, failures - 1));
    }
}

void ttm_tail_process_end(struct ttm_server *server, const struct ttm_client *client, uint64_t run,
                          const struct ttm_departure *departure)
{
    const struct ttm_event event = {
        .time_ns = server->now_ns + server->wall_offset_ns,
        .id = departure->lives,
        .address = departure->closed,
        .bytes = departure->bytes,
        .footprint_bytes = departure->closed_bytes,
        .total_bytes = run,
        .pid = client->pid,
        .op = TTM_EVENT_PROCESS_END,
    };

    publish(server, client, &event);
    /* Another process may get its id. */
    TTM_LIST_FOR_EACH(pos, &server->tails)
        ttm_u64_set_clear(&TTM_CONTAINER_OF(pos, struct ttm_session, tail_link)->tail_origins);
}
