/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The original protocol: its messages become births and ends of the model, its
 * queries are answered in the layout the connection speaks.
 *
 * A FREE names device and id but no region, so it matches any buffer region. The
 * allocator of a life is its device: the protocol knows no meshes.
 */
#include "server/record.h"
#include "server/state.h"

#include <errno.h>

#include "wire/event.h"
#include "wire/hello.h"

#define BUFFER_REGIONS                                                                             \
    (1u << TTM_REGION_DRAM | 1u << TTM_REGION_L1 | 1u << TTM_REGION_SYSTEM_MEMORY |                \
     1u << TTM_REGION_L1_SMALL | 1u << TTM_REGION_TRACE)

static void refuse(struct ttm_session *session, enum ttm_counter why)
{
    session->server->counter[why]++;
    if (!session->client)
        return;
    session->client->process->counters.refused++;
    if (why == TTM_COUNTER_REFUSED_MEMORY)
        ttm_client_lack_memory(session->client);
}

static enum ttm_counter reason_of(const struct ttm_session *session, int r)
{
    if (r == -ENOSPC && !session->account->is_privileged)
        return TTM_COUNTER_REFUSED_SHARE;
    switch (r) {
    case -ERANGE:
        return TTM_COUNTER_REFUSED_SIZE;
    case -EINVAL:
        return TTM_COUNTER_REFUSED_REGION;
    case -EUSERS:
        return TTM_COUNTER_REFUSED_SHARE;
    default:
        return TTM_COUNTER_REFUSED_MEMORY;
    }
}

static bool is_device(int32_t id)
{
    return id >= 0 && id < TTM_DEVICE_COUNT;
}

/*
 * What the message says of the device itself: clients leave these fields zero
 * unless they know better than our tables.
 */
static void learn_device(struct ttm_session *session, const struct ttm_original_message *msg)
{
    const struct ttm_process *process = session->client ? session->client->process : NULL;

    if ((msg->arch_type == 0 && msg->total_dram_size == 0 && msg->total_l1_size == 0) ||
        !is_device(msg->device_id))
        return;
    /* Of a device that it does not use, no other user's word is taken. */
    const bool is_user = process && process->slots && process->slots[msg->device_id] != 0;
    const bool is_own = session->uid == 0 || session->uid == session->server->uid;
    struct ttm_device *device =
        is_user || is_own ? ttm_registry_device(session->server->reg, (uint32_t)msg->device_id)
                          : NULL;
    if (!device || (is_user && !ttm_registry_may_describe(device, process)))
        return;
    ttm_device_set_arch(device, msg->arch_type);
    if (msg->total_dram_size > 0 && msg->total_dram_size <= TTM_LIFE_BYTES_MAX)
        device->capacity_bytes[TTM_REGION_DRAM] = msg->total_dram_size;
    if (msg->total_l1_size > 0 && msg->total_l1_size <= TTM_LIFE_BYTES_MAX) {
        device->capacity_bytes[TTM_REGION_L1] = msg->total_l1_size;
        device->capacity_bytes[TTM_REGION_CB] = msg->total_l1_size;
    }
    if (msg->num_dram_channels > 0)
        device->dram_channels = msg->num_dram_channels;
    if (msg->dram_size_per_channel > 0)
        device->dram_channel_bytes = msg->dram_size_per_channel;
    if (msg->l1_size_per_core > 0)
        device->l1_per_core_bytes = msg->l1_size_per_core;
}

static void take_birth(struct ttm_session *session, const struct ttm_original_message *msg,
                       uint8_t region, uint8_t kind)
{
    struct ttm_server *server = session->server;
    struct ttm_client *client;
    struct ttm_ended replaced;

    int r = ttm_client_of(session, TTM_SOURCE_ORIGINAL, &client);
    if (r < 0) {
        refuse(session, reason_of(session, r));
        return;
    }
    if (!is_device(msg->device_id)) {
        refuse(session, TTM_COUNTER_REFUSED_DEVICE);
        return;
    }
    client->process->counters.events++;
    const struct ttm_birth birth = {
        .id = msg->buffer_id,
        .address = msg->buffer_id,
        .bytes = msg->size,
        .footprint_bytes = msg->size, /* all that the protocol tells */
        .time_ns = server->now_ns,
        .site = {.allocator = (uint32_t)msg->device_id,
                 .device_set = (uint32_t)msg->device_id,
                 .region = region,
                 .kind = kind},
    };
    r = ttm_registry_birth(server->reg, client->process, &birth, &replaced);
    if (r < 0) {
        refuse(session, reason_of(session, r));
        return;
    }
    learn_device(session, msg);
    if (r > 0)
        ttm_record_end(client, birth.time_ns, replaced.life.serial, TTM_END_REPLACED);
    ttm_record_original_birth(client, &birth, client->process->births);
    if (ttm_list_is_empty(&server->tails))
        return;
    if (r > 0)
        ttm_tail_life(server, client, server->now_ns, TTM_EVENT_REPLACED, &replaced.site,
                      &replaced.life);
    const struct ttm_life life = {
        .id = birth.id,
        .address = birth.address,
        .bytes = birth.bytes,
        .footprint_bytes = birth.footprint_bytes,
    };
    ttm_tail_life(server, client, server->now_ns, TTM_EVENT_BIRTH, &birth.site, &life);
}

static void take_end(struct ttm_session *session, const struct ttm_original_message *msg,
                     uint32_t region_bits)
{
    struct ttm_server *server = session->server;
    struct ttm_client *client;
    struct ttm_ended ended;

    int r = ttm_client_of(session, TTM_SOURCE_ORIGINAL, &client);
    if (r < 0) {
        refuse(session, reason_of(session, r));
        return;
    }
    if (!is_device(msg->device_id)) {
        refuse(session, TTM_COUNTER_REFUSED_DEVICE);
        return;
    }
    client->process->counters.events++;
    r = ttm_registry_end(server->reg, client->process, (uint32_t)msg->device_id, region_bits,
                         msg->buffer_id, &ended);
    if (r >= 0)
        ttm_record_end(client, server->now_ns, ended.life.serial, TTM_END_FREED);
    if (ttm_list_is_empty(&server->tails))
        return;
    if (r < 0)
        ttm_tail_unknown(server, client, (uint16_t)msg->device_id,
                         (uint8_t)__builtin_ctz(region_bits), msg->buffer_id);
    else
        ttm_tail_life(server, client, server->now_ns, TTM_EVENT_END, &ended.site, &ended.life);
}

static void answer(struct ttm_session *session, const struct ttm_original_message *msg)
{
    const enum ttm_original_layout layout = (enum ttm_original_layout)session->reader.layout;
    uint8_t *room = ttm_queue_reserve(&session->out, layout);

    if (!room) {
        refuse(session, TTM_COUNTER_REFUSED_MEMORY);
        return;
    }
    ttm_original_encode(msg, layout, room);
    ttm_queue_commit(&session->out, layout);
    ttm_server_count_latency(session->server);
    ttm_session_dirty(session);
}

static const struct ttm_device *known_device(const struct ttm_server *server, int32_t id)
{
    return is_device(id) ? server->reg->devices[id] : NULL;
}

static void answer_query(struct ttm_session *session, const struct ttm_original_message *query)
{
    const struct ttm_device *device = known_device(session->server, query->device_id);
    struct ttm_original_message msg = {
        .type = TTM_ORIGINAL_RESPONSE,
        .device_id = query->device_id,
        .timestamp = session->server->now_ns + session->server->wall_offset_ns,
    };

    if (device) { /* zeros for any other id, as it always was */
        const struct ttm_totals *t = device->totals.region;
        msg.dram_allocated = t[TTM_REGION_DRAM].bytes;
        msg.l1_allocated = t[TTM_REGION_L1].bytes;
        msg.l1_small_allocated = t[TTM_REGION_L1_SMALL].bytes;
        msg.trace_allocated = t[TTM_REGION_TRACE].bytes;
        msg.cb_allocated = t[TTM_REGION_CB].bytes;
        msg.kernel_allocated = t[TTM_REGION_KERNEL].bytes;
    }
    answer(session, &msg);
}

/* Monitors ask for devices 0 to count - 1, so the count covers the largest id. */
static uint32_t count_devices(const struct ttm_server *server)
{
    uint32_t count = TTM_DEVICE_COUNT;

    while (count > 0 && !server->reg->devices[count - 1])
        count--;
    return count;
}

static void answer_device_info(struct ttm_session *session,
                               const struct ttm_original_message *query)
{
    const struct ttm_device *device = known_device(session->server, query->device_id);
    struct ttm_original_message msg = {
        .type = TTM_ORIGINAL_DEVICE_INFO_RESPONSE,
        .device_id = query->device_id,
        .num_devices = count_devices(session->server),
    };

    if (query->device_id == -1)
        msg.is_available = msg.num_devices > 0;
    if (device) {
        msg.is_available = 1;
        msg.arch_type = device->arch;
        msg.total_dram_size = device->capacity_bytes[TTM_REGION_DRAM];
        msg.total_l1_size = device->capacity_bytes[TTM_REGION_L1];
        msg.num_dram_channels = device->dram_channels;
        msg.dram_size_per_channel = device->dram_channel_bytes;
        msg.l1_size_per_core = device->l1_per_core_bytes;
    }
    answer(session, &msg);
}

static void print(struct ttm_session *session, enum ttm_print what)
{
    struct ttm_server *server = session->server;

    if (!server->options.print)
        return;
    const uint32_t ticket = ttm_ticket_take(server, session->account);
    if (ticket != 0)
        server->options.print(server->options.print_context, what, ticket);
    else /* the printer is behind: once it has caught up, it prints how things are then */
        server->late_prints |= 1u << what;
}

static void take_message(struct ttm_session *session, const struct ttm_original_message *msg)
{
    switch ((enum ttm_original_type)msg->type) {
    case TTM_ORIGINAL_ALLOC:
        take_birth(session, msg,
                   msg->buffer_type <= TTM_REGION_TRACE ? msg->buffer_type : TTM_REGION_COUNT, 0);
        break;
    case TTM_ORIGINAL_CB_ALLOC:
        take_birth(session, msg, TTM_REGION_CB, 0);
        break;
    case TTM_ORIGINAL_KERNEL_LOAD:
        take_birth(session, msg, TTM_REGION_KERNEL, msg->buffer_type);
        break;
    case TTM_ORIGINAL_FREE:
        take_end(session, msg, BUFFER_REGIONS);
        break;
    case TTM_ORIGINAL_CB_FREE:
        take_end(session, msg, 1u << TTM_REGION_CB);
        break;
    case TTM_ORIGINAL_KERNEL_UNLOAD:
        take_end(session, msg, 1u << TTM_REGION_KERNEL);
        break;
    case TTM_ORIGINAL_QUERY:
        answer_query(session, msg);
        break;
    case TTM_ORIGINAL_DEVICE_INFO_QUERY:
        answer_device_info(session, msg);
        break;
    case TTM_ORIGINAL_DUMP_REMAINING:
        print(session, TTM_PRINT_REMAINING);
        break;
    case TTM_ORIGINAL_DUMP_KERNELS:
        print(session, TTM_PRINT_KERNELS);
        break;
    case TTM_ORIGINAL_DEVICE_INFO_RESPONSE: /* from a client: it tells us of its device */
        learn_device(session, msg);
        break;
    case TTM_ORIGINAL_RESPONSE:
        refuse(session, TTM_COUNTER_REFUSED_TYPE);
        break;
    }
}

static int take_messages(struct ttm_session *session)
{
    struct ttm_original_message msg;
    uint64_t count = 0;
    int r;

    while ((r = ttm_original_reader_next(&session->reader, &msg)) > 0) {
        take_message(session, &msg);
        count++;
    }
    session->server->counter[TTM_COUNTER_EVENTS] += count;
    return r;
}

/* One of our own commands was sent to this socket: it is served all the same. */
static int turn_native(struct ttm_session *session)
{
    const struct ttm_original_rest rest = ttm_original_reader_give_up(&session->reader);

    session->is_original = false;
    const int r = ttm_native_input(session, rest.stash, rest.stash_length);
    return r < 0 || rest.input_length == 0
               ? r
               : ttm_native_input(session, rest.input, rest.input_length);
}

int ttm_original_input(struct ttm_session *session, const uint8_t *bytes, size_t length)
{
    ttm_original_reader_push(&session->reader, bytes, length);
    const uint8_t *head = ttm_original_reader_peek(&session->reader, TTM_HELLO_PROBE_SIZE);
    if (head && ttm_hello_begins(head))
        return turn_native(session);
    const int r = take_messages(session);
    if (r < 0)
        return r;
    ttm_original_reader_keep(&session->reader);
    return 0;
}

int ttm_original_silence(struct ttm_session *session)
{
    ttm_original_reader_silence(&session->reader);
    return take_messages(session);
}
