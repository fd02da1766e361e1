/* SPDX-License-Identifier: Apache-2.0 */
#include "server/record.h"

#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/older_headers.h"
#include "recording/recorder.h"
#include "wire/life_row.h"

#define NOTE_COST 64 /* beside its bytes, while it is kept */

static struct ttm_encoder *encoder_of(const struct ttm_client *client)
{
    struct ttm_recorder *recorder = client->server->options.recorder;

    return recorder ? ttm_recorder_encoder(recorder) : NULL;
}

/*
 * When the process started, by the wall clock of the recording. That clock is the one of the moment
 * in which the file was begun; since then the machine's may have been set.
 */
static uint64_t recorded_start_ns(const struct ttm_encoder *encoder, uint64_t start_wall_ns)
{
    const uint64_t now_offset_ns = ttm_clock_wall_offset_ns(CLOCK_MONOTONIC);

    if (start_wall_ns == 0)
        return 0;
    return start_wall_ns - now_offset_ns + (uint64_t)ttm_encoder_wall_offset_ns(encoder);
}

void ttm_record_process(struct ttm_client *client)
{
    struct ttm_encoder *encoder = encoder_of(client);
    const struct ttm_process_info *info = &client->process->info;

    if (!encoder)
        return;
    const struct ttm_recorded_process seen = {
        .pid = info->pid,
        .uid = info->uid,
        .source = info->source,
        .start_wall_ns = recorded_start_ns(encoder, info->start_ns),
        .command = info->command,
        .command_length = strlen(info->command),
    };
    client->number = ++client->server->recorded_processes;
    (void)ttm_encoder_process(encoder, client->server->now_ns, client->number, &seen);
}

/* Of a child of ours the kernel tells more; whoever waits for it still can. */
static struct ttm_recorded_process_end how_it_ended(const struct ttm_client *client)
{
    struct ttm_recorded_process_end end = {.how = TTM_PROCESS_VANISHED};
    siginfo_t info = {0};

    if (client->pidfd < 0 ||
        waitid(P_PIDFD, (id_t)client->pidfd, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
        info.si_pid == 0)
        return end;
    end.how = info.si_code == CLD_EXITED ? TTM_PROCESS_EXITED : TTM_PROCESS_SIGNALLED;
    end.code = info.si_status;
    return end;
}

void ttm_record_counters(struct ttm_client *client)
{
    struct ttm_encoder *encoder = encoder_of(client);
    const struct ttm_process_counters *c = &client->process->counters;
    const struct ttm_recorded_counters counters = {
        .unknown_frees = c->unknown_frees,
        .ambiguous_frees = c->ambiguous_frees,
        .replaced = c->replaced,
        .refused = ttm_process_refused(c),
        .lost_events = c->lost_events,
        .untracked = c->untracked,
        .notes_left_out = c->notes_left_out,
        .trouble = client->process->trouble_note,
        .has_gap = c->has_gap,
        .is_off = c->is_disabled,
        .is_inexact = c->is_inexact,
    };

    if (encoder)
        (void)ttm_encoder_counters(encoder, client->server->now_ns, client->number, &counters);
}

void ttm_record_process_end(struct ttm_client *client)
{
    struct ttm_encoder *encoder = encoder_of(client);
    struct ttm_recorded_process_end end = how_it_ended(client);

    if (!encoder)
        return;
    ttm_record_counters(client);
    (void)ttm_encoder_process_end(encoder, client->server->now_ns, client->number, &end);
    ttm_u64_set_done(&client->recorded_notes);
    ttm_quota_subtract(&client->account->note_bytes, client->note_bytes);
    client->note_bytes = 0;
}

bool ttm_record_wants_note(struct ttm_client *client, uint32_t number)
{
    return number != 0 && encoder_of(client) && !ttm_u64_set_has(&client->recorded_notes, number);
}

void ttm_record_note(struct ttm_client *client, uint32_t number, uint32_t kind,
                     const uint8_t *bytes, size_t length)
{
    struct ttm_encoder *encoder = encoder_of(client);
    const struct ttm_recorded_note note = {
        .number = number, .kind = kind, .bytes = bytes, .length = length};

    if (!encoder || ttm_u64_set_has(&client->recorded_notes, number))
        return;
    const uint64_t kept = length + NOTE_COST;
    if (!ttm_quota_allows(&client->account->note_bytes, kept))
        return; /* the recording does without it */
    if (ttm_encoder_note(encoder, client->number, &note) < 0)
        return;
    (void)ttm_u64_set_add(&client->recorded_notes, number);
    client->note_bytes += kept;
    ttm_quota_add(&client->account->note_bytes, kept);
}

void ttm_record_device(struct ttm_client *client, const struct ttm_device_note *note)
{
    struct ttm_encoder *encoder = encoder_of(client);
    struct ttm_recorded_device device = {
        .id = note->id,
        .arch = note->arch,
        .core_count = note->core_count,
        .asic_id = note->asic_id,
        .board = note->board,
        .board_length = strlen(note->board),
    };

    if (!encoder)
        return;
    memcpy(device.bank_bytes, note->bank_bytes, sizeof(device.bank_bytes));
    memcpy(device.bank_count, note->bank_count, sizeof(device.bank_count));
    (void)ttm_encoder_device(encoder, client->server->now_ns, client->number, &device);
}

void ttm_record_birth(struct ttm_client *client, const struct ttm_told *told, uint32_t origin,
                      bool is_news)
{
    struct ttm_encoder *encoder = encoder_of(client);
    const bool has_cores = (told->flags & TTM_SITE_CORES) != 0;

    if (!encoder)
        return;
    const struct ttm_recorded_life life = {
        .serial = told->serial,
        .birth_ns = told->birth_ns,
        .id = told->id,
        .address = told->address,
        .bytes = has_cores ? told->footprint_bytes : told->bytes,
        .footprint_bytes = told->footprint_bytes,
        .allocator = told->allocator,
        .devices = told->devices,
        .origin = origin,
        .cores = has_cores ? (uint32_t)told->bytes : 0,
        .banks = told->banks,
        .region = told->region,
        .kind = told->kind,
        .flags = told->flags,
        .is_told = !is_news,
        .process = client->number,
    };

    (void)ttm_encoder_birth(encoder, &life);
}

bool ttm_record_takes_brief(const struct ttm_client *client, uint32_t n)
{
    const struct ttm_encoder *encoder = encoder_of(client);

    return !encoder || ttm_encoder_takes_brief(encoder, n);
}

#define NOT_RECORDED UINT64_MAX /* as its ordinal */

void ttm_record_brief_birth(struct ttm_client *client, const struct ttm_record *record,
                            struct ttm_encoder_brief *ret)
{
    struct ttm_encoder *encoder = encoder_of(client);

    ret->ordinal = NOT_RECORDED;
    if (!encoder)
        return;
    const struct ttm_recorded_life life = {
        .serial = record->serial,
        .birth_ns = record->time_ns,
        .id = record->id,
        .address = record->address,
        .bytes = record->bytes,
        .footprint_bytes = record->footprint_bytes,
        .allocator = record->allocator,
        .devices = record->devices,
        .origin = record->origin,
        .banks = record->banks,
        .region = record->region,
        .kind = record->kind,
        .flags = record->flags,
        .process = client->number,
    };
    if (ttm_encoder_brief_birth(encoder, &life, ret) < 0)
        ret->ordinal = NOT_RECORDED;
}

void ttm_record_brief_end(struct ttm_client *client, uint64_t time_ns,
                          const struct ttm_encoder_brief *brief)
{
    struct ttm_encoder *encoder = encoder_of(client);

    if (encoder && brief->ordinal != NOT_RECORDED)
        (void)ttm_encoder_brief_end(encoder, time_ns, client->number, brief);
}

void ttm_record_original_birth(struct ttm_client *client, const struct ttm_birth *birth,
                               uint64_t serial)
{
    struct ttm_encoder *encoder = encoder_of(client);
    const struct ttm_recorded_life life = {
        .serial = serial,
        .birth_ns = birth->time_ns,
        .id = birth->id,
        .address = birth->address,
        .bytes = birth->bytes,
        .footprint_bytes = birth->footprint_bytes,
        .allocator = birth->site.allocator,
        .devices = birth->site.device_set, /* one device */
        .region = birth->site.region,
        .kind = birth->site.kind,
        .flags = birth->site.flags,
        .process = client->number,
    };

    if (encoder)
        (void)ttm_encoder_birth(encoder, &life);
}

void ttm_record_end(struct ttm_client *client, uint64_t time_ns, uint64_t serial, enum ttm_end how)
{
    static const enum ttm_recorded_how hows[] = {
        [TTM_END_FREED] = TTM_ENDED_FREED,
        [TTM_END_REPLACED] = TTM_ENDED_REPLACED,
        [TTM_END_CLOSED] = TTM_ENDED_DEVICE_CLOSED,
        [TTM_END_UNHEARD] = TTM_ENDED_UNHEARD,
    };
    struct ttm_encoder *encoder = encoder_of(client);

    if (encoder)
        (void)ttm_encoder_end(encoder, time_ns, client->number, serial, hows[how]);
}

void ttm_record_unheard(struct ttm_client *client, uint64_t serial)
{
    struct ttm_encoder *encoder = encoder_of(client);

    if (encoder)
        (void)ttm_encoder_end(encoder, client->server->now_ns, client->number, serial,
                              TTM_ENDED_UNHEARD);
}

void ttm_record_rename(struct ttm_client *client, uint64_t time_ns, uint64_t serial,
                       uint32_t origin)
{
    struct ttm_encoder *encoder = encoder_of(client);

    if (encoder)
        (void)ttm_encoder_rename(encoder, time_ns, client->number, serial, origin);
}

bool ttm_record_is_on(const struct ttm_client *client)
{
    return encoder_of(client) != NULL;
}

void ttm_record_dispatch(struct ttm_client *client, uint64_t program, uint32_t devices)
{
    struct ttm_encoder *encoder = encoder_of(client);
    const struct ttm_recorded_dispatch dispatch = {.program = program, .devices = devices};

    if (encoder)
        (void)ttm_encoder_dispatch(encoder, client->server->now_ns, client->number, &dispatch);
}

void ttm_record_mark(struct ttm_client *client, uint64_t time_ns, const char *name)
{
    struct ttm_encoder *encoder = encoder_of(client);
    const struct ttm_recorded_mark mark = {.name = name, .name_length = strlen(name)};

    if (encoder)
        (void)ttm_encoder_mark(encoder, time_ns, client->number, &mark);
}

void ttm_record_failure(struct ttm_client *client, const struct ttm_failure_row *row,
                        uint32_t devices, uint32_t allocator)
{
    struct ttm_encoder *encoder = encoder_of(client);
    const struct ttm_recorded_failure failure = {
        .wanted_bytes = row->wanted_bytes,
        .bank_wanted_bytes = row->bank_wanted_bytes,
        .bank_free_bytes = row->bank_free_bytes,
        .bank_largest_bytes = row->bank_largest_bytes,
        .allocator = allocator,
        .devices = devices,
        .origin = row->origin,
        .region = row->region,
        .kind = row->kind,
    };

    if (encoder)
        (void)ttm_encoder_failure(encoder, row->time_ns, client->number, &failure);
}

void ttm_record_loss(struct ttm_client *client, uint64_t events)
{
    struct ttm_encoder *encoder = encoder_of(client);

    if (encoder)
        (void)ttm_encoder_loss(encoder, client->server->now_ns, client->number, events);
}

void ttm_record_made_good(struct ttm_client *client)
{
    ttm_record_loss(client, 0);
}

uint64_t ttm_record_due_ns(const struct ttm_server *server)
{
    const struct ttm_recorder *recorder = server->options.recorder;
    const int wait_ms = recorder ? ttm_recorder_timeout_ms(recorder, server->now_ns) : -1;

    return wait_ms < 0 ? UINT64_MAX : server->now_ns + (uint64_t)(unsigned)wait_ms * TTM_NS_PER_MS;
}

void ttm_record_tick(struct ttm_server *server)
{
    struct ttm_recorder *recorder = server->options.recorder;

    if (!recorder || ttm_record_due_ns(server) > server->now_ns)
        return;
    const int r = ttm_recorder_tick(recorder, server->now_ns, ttm_clock_wall_ns());
    if (r > 0)
        ttm_log("the disk is too slow for the recording: some of it is missing");
    if (r < 0)
        ttm_log("cannot go on recording: %s; tracking goes on without it", strerror(-r));
}

int ttm_record_error(const struct ttm_server *server)
{
    struct ttm_recorder_status status = {0};

    if (server->options.recorder)
        ttm_recorder_status(server->options.recorder, &status);
    return status.error;
}
