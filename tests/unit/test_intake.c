/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that are taken together leave the same behind as records that are taken one by
 * one: the same lives, sums, recording and events. What is taken one by one has no pairs. So do
 * lives that are told.
 */
#include "testing.h"

#include <unistd.h>

#include "base/clock.h"
#include "recording/recorder.h"
#include "ring/producer.h"
#include "server/intake.h"
#include "server/pairs.h"
#include "server/record.h"
#include "server/telling.h"
#include "server/tracked.h"
#include "wire/attach.h"
#include "wire/life_row.h"
#include "wire/note.h"

#define START_NS 1000000000000ull
#define ORIGINS 3

/* As much of a server as the intake looks at, with one process that has a segment. */
struct world {
    char path[64];
    struct ttm_server server;
    struct ttm_account account;
    struct ttm_client client;
    struct ttm_tracked tracked;
    struct ttm_session watcher;
    struct ttm_recorder *recorder;
};

static struct ttm_producer producer;
static uint32_t origins[ORIGINS];
static uint32_t devices_notes[2]; /* of sets that have a device in common */

static void make_notes(void)
{
    static const uint8_t two[] = {0, 0, 2, 0}, three[] = {1, 0, 2, 0, 3, 0};

    assert_int_equal(ttm_producer_new(&producer), 0);
    for (uint32_t i = 0; i < ORIGINS; i++) {
        uint8_t note[TTM_ORIGIN_NOTE_SIZE];
        const uint32_t name = ttm_producer_note(&producer, TTM_NOTE_STRING, "abc" + i, 1);
        ttm_origin_note_encode(&(struct ttm_origin_note){.name = name}, note);
        origins[i] = ttm_producer_note(&producer, TTM_NOTE_ORIGIN, note, sizeof(note));
        assert_int_not_equal(origins[i], 0);
    }
    devices_notes[0] = ttm_producer_note(&producer, TTM_NOTE_DEVICES, two, sizeof(two));
    devices_notes[1] = ttm_producer_note(&producer, TTM_NOTE_DEVICES, three, sizeof(three));
}

static void world_begin(struct world *world, bool is_recorded, bool is_watched)
{
    const struct ttm_process_info info = {.pid = 7, .source = TTM_SOURCE_TRACKED};
    struct ttm_server *server = &world->server;
    struct ttm_tracked *tracked = &world->tracked;

    *world = (struct world){.path = "/tmp/ttm-test-intake-XXXXXX"};
    ttm_list_init(&server->tails);
    ttm_list_init(&server->dirty);
    server->now_ns = START_NS;
    server->reg = ttm_registry_new(5);
    world->account = (struct ttm_account){.server = server, .is_privileged = true};
    world->account.remembered_frees.max = world->account.note_bytes.max = TTM_QUOTA_NONE;
    world->client =
        (struct ttm_client){.server = server, .account = &world->account, .pid = 7, .pidfd = -1};
    assert_int_equal(ttm_registry_add_process(server->reg, &info, &world->client.process), 0);
    world->client.process->has_serials = true;
    ttm_u64_set_init(&world->client.recorded_notes, 5);
    if (is_recorded) {
        const int fd = mkstemp(world->path);
        assert_true(fd >= 0);
        (void)close(fd);
        (void)unlink(world->path);
        const struct ttm_recorder_options options = {
            .path = world->path, .now_ns = START_NS, .seed = 9, .is_patient = true};
        assert_int_equal(ttm_recorder_open(&options, &world->recorder), 0);
        server->options.recorder = world->recorder;
        ttm_record_process(&world->client);
    }
    world->watcher = (struct ttm_session){.server = server, .tail.devices.is_all = true};
    ttm_list_init(&world->watcher.dirty_link);
    ttm_queue_init(&world->watcher.out);
    ttm_u64_set_init(&world->watcher.tail_origins, 5);
    if (is_watched)
        ttm_list_append(&server->tails, &world->watcher.tail_link);
    tracked->client = &world->client;
    tracked->passed = 2;
    assert_int_equal(ttm_ring_reader_open(producer.fd.fd, &tracked->reader), 0);
    ttm_u64_set_init(&tracked->ended, 5);
    ttm_u64_set_init(&tracked->ended_before, 5);
    ttm_early_ends_init(&tracked->early_ends, 5, NULL);
    tracked->account = &world->account;
    ttm_notes_init(&tracked->notes, &tracked->reader, &world->client);
}

static void world_end(struct world *world)
{
    struct ttm_tracked *tracked = &world->tracked;

    ttm_ring_reader_close(&tracked->reader);
    ttm_u64_set_done(&tracked->ended);
    ttm_u64_set_done(&tracked->ended_before);
    ttm_early_ends_done(&tracked->early_ends);
    ttm_notes_done(&tracked->notes);
    free(tracked->late_names);
    ttm_queue_done(&world->watcher.out);
    ttm_u64_set_done(&world->watcher.tail_origins);
    ttm_u64_set_done(&world->client.recorded_notes);
    ttm_registry_free(world->server.reg);
    if (world->recorder)
        (void)unlink(world->path);
}

/* ---- comparing ---- */

static int compare_lives(const void *a, const void *b)
{
    const struct ttm_life *x = a, *y = b;

    return x->serial < y->serial ? -1 : x->serial > y->serial;
}

static struct ttm_life *lives_of(const struct world *world, uint32_t *ret_count)
{
    const struct ttm_life_store *store = &world->client.process->lives.store;
    struct ttm_life *lives = calloc(store->live + 1, sizeof(lives[0]));
    const struct ttm_life *life;
    struct ttm_life_view view;
    uint64_t at = 0;

    assert_non_null(lives);
    *ret_count = 0;
    assert_int_equal(ttm_life_view_take(store, &view), 0);
    while ((life = ttm_life_view_next(&view, &at)) != NULL) {
        lives[*ret_count] = *life;
        lives[(*ret_count)++].next = 0; /* where it lies in the table is no matter */
    }
    (void)ttm_life_view_release(&view, UINT32_MAX);
    qsort(lives, *ret_count, sizeof(lives[0]), compare_lives);
    return lives;
}

static void assert_same_lives(const struct world *a, const struct world *b)
{
    uint32_t n, m;
    struct ttm_life *some = lives_of(a, &n), *others = lives_of(b, &m);

    assert_int_equal(n, m);
    assert_memory_equal(some, others, n * sizeof(some[0]));
    free(some);
    free(others);
}

static void assert_same_process(const struct ttm_process *a, const struct ttm_process *b)
{
    assert_memory_equal(&a->counters, &b->counters, sizeof(a->counters));
    assert_int_equal(a->bytes, b->bytes);
    assert_int_equal(a->program_parts, b->program_parts);
    assert_int_equal(a->program_bytes, b->program_bytes);
    assert_int_equal(a->births, b->births);
    assert_int_equal(a->story.failure_count, b->story.failure_count);
    assert_int_equal(a->closed.total, b->closed.total);
    assert_int_equal(a->device_count, b->device_count);
    for (uint32_t i = 0; i < a->device_count; i++)
        assert_memory_equal(&a->devices[i].totals, &b->devices[i].totals,
                            sizeof(a->devices[i].totals));
    assert_int_equal(a->sites.count, b->sites.count);
    for (uint32_t i = 0; i < a->sites.count; i++)
        assert_memory_equal(&a->sites.counts[i], &b->sites.counts[i], sizeof(a->sites.counts[i]));
}

static void assert_same(struct world *a, struct world *b)
{
    const struct ttm_registry *x = a->server.reg, *y = b->server.reg;
    struct ttm_queue *some = &a->watcher.out, *others = &b->watcher.out;

    assert_same_lives(a, b);
    assert_same_process(a->client.process, b->client.process);
    assert_int_equal(x->lives, y->lives);
    assert_int_equal(x->births, y->births);
    assert_int_equal(x->ends, y->ends);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(x->devices[i] != NULL, y->devices[i] != NULL);
        if (x->devices[i])
            assert_memory_equal(&x->devices[i]->totals, &y->devices[i]->totals,
                                sizeof(x->devices[i]->totals));
    }
    assert_memory_equal(a->server.counter, b->server.counter, sizeof(a->server.counter));
    assert_int_equal(a->tracked.ended.count, b->tracked.ended.count);
    assert_int_equal(a->tracked.early_ends.ages[0].count, b->tracked.early_ends.ages[0].count);
    assert_int_equal(a->tracked.late_name_count, b->tracked.late_name_count);
    assert_int_equal(ttm_queue_length(some), ttm_queue_length(others));
    if (ttm_queue_length(some) > 0)
        assert_memory_equal(ttm_queue_front(some), ttm_queue_front(others), ttm_queue_length(some));
    ttm_queue_consume(some, ttm_queue_length(some));
    ttm_queue_consume(others, ttm_queue_length(others));
}

static struct bytes recording_of(struct world *world)
{
    static uint8_t data[1u << 22];

    assert_int_equal(ttm_recorder_close(world->recorder, NULL), 0);
    FILE *file = fopen(world->path, "rb");
    assert_non_null(file);
    const size_t n = fread(data, 1, sizeof(data), file);
    (void)fclose(file);
    assert_true(n > 0 && n < sizeof(data));
    return bytes_of(data, n);
}

static void assert_same_recording(struct world *a, struct world *b)
{
    struct bytes some = recording_of(a), others = recording_of(b);

    assert_int_equal(some.length, others.length);
    assert_memory_equal(some.data, others.data, some.length);
    bytes_done(&some);
    bytes_done(&others);
}

/* ---- what a process may say ---- */

#define LIVE_MAX 16

struct program {
    uint64_t random;
    uint64_t now_ns;
    uint64_t next[2]; /* serials, of each thread */
    uint64_t live[LIVE_MAX];
    uint32_t live_count; /* of one that does not lie */
};

static uint64_t serial_near(struct program *program, uint32_t within)
{
    const uint32_t thread = random_below(&program->random, 2);
    const uint64_t back = random_below(&program->random, within);

    return (uint64_t)(thread + 1) << 48 |
           (program->next[thread] > back ? program->next[thread] - back : 1);
}

static struct ttm_record birth(struct program *program, uint32_t which)
{
    const uint32_t thread = random_below(&program->random, 2);
    struct ttm_record record = {
        .op = TTM_RECORD_BIRTH,
        .serial = (uint64_t)(thread + 1) << 48 | ++program->next[thread],
        .id = next_random(&program->random) >> 40,
        .address = next_random(&program->random) >> 40 << 5,
        .bytes = 1 + random_below(&program->random, 5000),
        .footprint_bytes = 8192,
        .banks = 12,
        .region = (uint8_t)(which % 3),
        .origin = which % 5 == 0 ? 0 : origins[which % ORIGINS],
        .devices = which % 7 < 3 ? devices_notes[which % 2] : which % 4,
    };

    switch (which) { /* what makes no sense, and what is summed in other ways */
    case 1:
        record.bytes = 0;
        break;
    case 2:
        record.region = TTM_REGION_COUNT;
        break;
    case 3:
        record.devices = TTM_NOTE_FIRST;
        break;
    case 4:
        record.flags = TTM_RECORD_ALIAS;
        break;
    case 5:
        record.region = TTM_REGION_KERNEL;
        break;
    case 6:
        record.region = TTM_REGION_CB;
        break;
    case 8:
        record.serial = serial_near(program, 20);
        break;
    case 9:
        record.serial = 0;
        break;
    case 10:
        record.origin = 5;
        break;
    case 11:
        record.footprint_bytes = TTM_LIFE_BYTES_MAX + 1;
        break;
    case 12:
        record.time_ns = UINT64_MAX;
        break;
    default:
        break;
    }
    return record;
}

/* Of a loop: some lives at a time, and now and then something that is not a birth or an end. */
static struct ttm_record next_of_loop(struct program *program)
{
    program->now_ns += random_below(&program->random, 3000);
    if (random_below(&program->random, 200) == 0)
        return (struct ttm_record){.op = TTM_RECORD_PEAKS};
    if (random_below(&program->random, 200) == 0)
        return (struct ttm_record){.op = TTM_RECORD_FAILURE, .id = 100, .time_ns = program->now_ns};
    if (program->live_count < LIVE_MAX && random_below(&program->random, 2) == 0) {
        struct ttm_record record = birth(program, 13 + random_below(&program->random, 32));
        record.time_ns = program->now_ns - random_below(&program->random, 5000);
        if (program->live_count > 0 && random_below(&program->random, 20) == 0)
            record.serial = program->live[0]; /* which it is already */
        else
            program->live[program->live_count++] = record.serial;
        return record;
    }
    if (program->live_count == 0)
        return (struct ttm_record){
            .op = TTM_RECORD_MARK, .serial = 'm', .time_ns = program->now_ns};
    const uint32_t which = random_below(&program->random, program->live_count);
    const uint64_t serial = program->live[which];
    if (random_below(&program->random, 50) == 0)
        return (struct ttm_record){.op = TTM_RECORD_NAMED,
                                   .serial = serial,
                                   .time_ns = program->now_ns,
                                   .origin = origins[which % ORIGINS]};
    program->live[which] = program->live[--program->live_count];
    return (struct ttm_record){.op = TTM_RECORD_END, .serial = serial, .time_ns = program->now_ns};
}

static struct ttm_record next_of_liar(struct program *program)
{
    const uint32_t which = random_below(&program->random, 100);
    struct ttm_record record = {.op = TTM_RECORD_END, .serial = serial_near(program, 12)};

    program->now_ns += random_below(&program->random, 3000);
    if (which < 48)
        record = birth(program, random_below(&program->random, 64));
    else if (which == 92)
        record = (struct ttm_record){.op = TTM_RECORD_PEAKS};
    else if (which == 93)
        record.op = TTM_RECORD_CLOSED;
    else if (which == 94)
        record.op = TTM_RECORD_REPLACED;
    else if (which == 95)
        record = (struct ttm_record){.op = TTM_RECORD_FAILURE, .id = 100, .devices = 0};
    else if (which == 96)
        record.op = 77;
    else if (which == 97)
        record = (struct ttm_record){.op = TTM_RECORD_MARK, .serial = 'm'};
    else if (which > 97) {
        record.op = TTM_RECORD_NAMED;
        record.origin = origins[random_below(&program->random, ORIGINS)];
    }
    if (record.time_ns == 0)
        record.time_ns = program->now_ns;
    return record;
}

enum { IS_RECORDED = 1, IS_WATCHED = 2, IS_LOOP = 4, IS_TOLD = 8 };

static void pass(struct ttm_tracked *tracked)
{
    ttm_telling_pass(tracked);
    ttm_intake_pass(tracked);
}

static void take_both_ways(unsigned how, uint64_t seed)
{
    static struct ttm_record records[TTM_PAIRS_MAX];
    static uint16_t order[TTM_PAIRS_MAX];
    static struct world together, one_by_one;
    struct program program = {.random = seed, .now_ns = START_NS};

    world_begin(&together, how & IS_RECORDED, how & IS_WATCHED);
    world_begin(&one_by_one, how & IS_RECORDED, how & IS_WATCHED);
    together.tracked.told_pass = one_by_one.tracked.told_pass = how & IS_TOLD ? 2 : 0;
    for (uint32_t slice = 0; slice < 30; slice++) {
        const uint32_t n =
            1 + random_below(&program.random, how & IS_WATCHED ? 500 : TTM_PAIRS_MAX);
        for (uint32_t i = 0; i < n; i++) {
            order[i] = (uint16_t)i;
            records[i] = how & IS_LOOP ? next_of_loop(&program) : next_of_liar(&program);
        }
        together.server.now_ns = one_by_one.server.now_ns = program.now_ns;
        ttm_intake_records(&together.tracked, records, order, n);
        for (uint32_t i = 0; i < n; i++)
            ttm_intake_records(&one_by_one.tracked, &records[i], (const uint16_t[]){0}, 1);
        assert_same(&together, &one_by_one);
        pass(&together.tracked);
        pass(&one_by_one.tracked);
    }
    if (how & IS_RECORDED)
        assert_same_recording(&together, &one_by_one);
    world_end(&together);
    world_end(&one_by_one);
}

static void take_many(unsigned how)
{
    for (uint64_t seed = 1; seed <= 5; seed++)
        take_both_ways(how, seed);
}

static void sums_and_lives_are_the_same(void **state)
{
    (void)state;
    take_many(0);
    take_many(IS_LOOP);
}

static void recordings_are_the_same(void **state)
{
    (void)state;
    take_many(IS_RECORDED);
    take_many(IS_RECORDED | IS_LOOP);
}

static void who_watches_sees_the_same(void **state)
{
    (void)state;
    take_many(IS_WATCHED);
    take_many(IS_WATCHED | IS_LOOP);
}

static void ends_are_remembered_the_same_after_a_telling(void **state)
{
    (void)state;
    take_many(IS_TOLD);
    take_many(IS_TOLD | IS_LOOP);
}

/* Else all of the above would compare one way with itself. */
static void a_life_that_ends_in_its_slice_is_not_entered(void **state)
{
    static const uint16_t order[] = {0, 1, 2, 3};
    const struct ttm_record alike = {
        .op = TTM_RECORD_BIRTH, .bytes = 64, .footprint_bytes = 64, .time_ns = START_NS};
    struct ttm_record records[] = {
        alike, alike, {.op = TTM_RECORD_END, .serial = 1}, {.op = TTM_RECORD_END, .serial = 2}};
    static struct world world;
    (void)state;

    world_begin(&world, false, false);
    records[0].serial = 1;
    records[1].serial = 2;
    ttm_intake_records(&world.tracked, records, order, 4);
    /* The first of its kind is looked at in full. */
    assert_int_equal(*ttm_serials_seen(world.client.process, 1) >> 16, 1);
    assert_int_equal(world.server.reg->births, 2);
    assert_int_equal(world.server.reg->ends, 2);
    assert_int_equal(world.client.process->devices[0].totals.region[0].peak_bytes, 128);
    world_end(&world);
}

static void nor_is_it_while_ends_of_others_are_remembered(void **state)
{
    static const uint16_t order[] = {0, 1, 2, 3, 4, 5};
    const struct ttm_record alike = {
        .op = TTM_RECORD_BIRTH, .bytes = 64, .footprint_bytes = 64, .time_ns = START_NS};
    const struct ttm_record end = {.op = TTM_RECORD_END, .time_ns = START_NS};
    struct ttm_record records[] = {alike, alike, alike, end, end, end};
    static struct world world;
    (void)state;

    world_begin(&world, false, false);
    world.tracked.is_telling = true;
    ttm_telling_ended(&world.tracked, 1000, true);
    ttm_telling_ended(&world.tracked, 3, true); /* it was told, and has ended since */
    for (uint32_t i = 0; i < 3; i++)
        records[i].serial = records[i + 3].serial = i + 1;
    ttm_intake_records(&world.tracked, records, order, 6);
    assert_int_equal(*ttm_serials_seen(world.client.process, 1) >> 16, 1);
    assert_int_equal(world.server.reg->births, 2);
    assert_int_equal(world.server.reg->ends, 2);
    assert_true(ttm_telling_has_ended(&world.tracked, 2));
    world_end(&world);
}

/* ---- what a process tells ---- */

static struct ttm_told told_of(const struct ttm_record *record)
{
    return (struct ttm_told){
        .serial = record->serial,
        .id = record->id,
        .address = record->address,
        .bytes = record->bytes,
        .footprint_bytes = record->footprint_bytes,
        .birth_ns = record->time_ns,
        .devices = record->devices,
        .origin = record->origin,
        .allocator = record->allocator,
        .banks = record->banks,
        .region = record->region,
        .kind = record->kind,
        .flags = record->flags,
    };
}

/* Most are like the one before, as those of a loop are; some make no sense. */
static void next_told(struct program *program, struct ttm_told *told, uint32_t n)
{
    uint32_t which = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (i == 0 || random_below(&program->random, 8) == 0)
            which = random_below(&program->random, 32);
        /* One that is live already, or has no serial, is not taken: see telling.c. */
        struct ttm_record record = birth(program, which == 8 || which == 9 ? 0 : which);
        if (which == 13)
            record.flags |= TTM_RECORD_PROGRAM;
        if (random_below(&program->random, 30) == 0)
            record.bytes = TTM_LIFE_BYTES_MAX + 1;
        if (record.time_ns == 0)
            record.time_ns = program->now_ns - random_below(&program->random, 5000);
        told[i] = told_of(&record);
    }
}

static void tell_both_ways(unsigned how, uint64_t seed)
{
    static struct world together, one_by_one;
    struct program program = {.random = seed, .now_ns = START_NS};
    struct ttm_told told[TTM_FIND_MAX];
    uint8_t sent[TTM_FIND_MAX][TTM_TOLD_SIZE];
    const uint8_t *lives[TTM_FIND_MAX];

    world_begin(&together, how & IS_RECORDED, false);
    world_begin(&one_by_one, how & IS_RECORDED, false);
    for (uint32_t frame = 0; frame < 50; frame++) {
        const uint32_t n = 1 + random_below(&program.random, TTM_FIND_MAX);
        next_told(&program, told, n);
        if (frame == 25) { /* a name that came before the birth */
            const struct ttm_record name = {
                .op = TTM_RECORD_NAMED, .serial = told[n - 1].serial, .origin = origins[0]};
            ttm_intake_records(&together.tracked, &name, (const uint16_t[]){0}, 1);
            ttm_intake_records(&one_by_one.tracked, &name, (const uint16_t[]){0}, 1);
        }
        for (uint32_t i = 0; i < n; i++) {
            ttm_told_encode(&told[i], sent[i]);
            lives[i] = sent[i];
        }
        ttm_intake_told(&together.tracked, lives, n);
        for (uint32_t i = 0; i < n; i++) {
            memset(one_by_one.tracked.alike, 0, sizeof(one_by_one.tracked.alike));
            ttm_intake_told(&one_by_one.tracked, &lives[i], 1);
        }
        assert_same(&together, &one_by_one);
        if (frame > 30) {
            pass(&together.tracked);
            pass(&one_by_one.tracked);
        }
    }
    assert_true(together.server.reg->lives > 500);
    if (how & IS_RECORDED)
        assert_same_recording(&together, &one_by_one);
    world_end(&together);
    world_end(&one_by_one);
}

static void lives_that_are_told_together_are_the_same(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        tell_both_ways(0, seed);
        tell_both_ways(IS_RECORDED, seed);
    }
}

/* ---- times ---- */

static void push_birth(struct ttm_ring *ring, uint64_t serial, uint64_t time_ns)
{
    const struct ttm_record record = {.op = TTM_RECORD_BIRTH,
                                      .serial = serial,
                                      .time_ns = time_ns,
                                      .region = TTM_REGION_DRAM,
                                      .bytes = 64,
                                      .footprint_bytes = 64};

    assert_true(ttm_ring_push(&producer, ring, &record));
}

/* A turn may have been interrupted for long before it reads the rings. */
static void the_future_begins_when_rings_are_read(void **state)
{
    const uint64_t hour_ns = 3600 * TTM_NS_PER_S;
    struct world world;
    (void)state;

    world_begin(&world, false, false);
    struct ttm_ring *ring = ttm_producer_claim(&producer, 1);
    const uint64_t now_ns = ttm_clock_monotonic_ns();
    world.server.now_ns = now_ns - TTM_NS_PER_S;
    ttm_list_init(&world.tracked.active_link);
    push_birth(ring, 1, now_ns);
    push_birth(ring, 2, now_ns + hour_ns);
    (void)ttm_tracked_read(&world.tracked);
    uint32_t count;
    struct ttm_life *lives = lives_of(&world, &count);
    assert_int_equal(count, 2);
    assert_int_equal(lives[0].birth_ns, now_ns);
    assert_true(lives[1].birth_ns >= now_ns && lives[1].birth_ns < now_ns + hour_ns / 2);
    assert_int_equal(lives[1].birth_ns, world.server.now_ns); /* so that no age is negative */
    free(lives);
    world_end(&world);
}

/* ---- shares of a user, and of a turn ---- */

static void frees_that_are_remembered_have_a_share(void **state)
{
    static struct world world;
    (void)state;

    world_begin(&world, false, false);
    world.account.remembered_frees.max = 2;
    world.tracked.is_telling = true;
    ttm_telling_ended(&world.tracked, 64, true);
    ttm_telling_ended(&world.tracked, 65, true); /* beside the first */
    ttm_telling_ended(&world.tracked, 640, true);
    assert_false(world.tracked.is_spoiled);
    assert_int_equal(world.account.remembered_frees.used, 2);
    ttm_telling_ended(&world.tracked, 6400, true);
    assert_true(world.tracked.is_spoiled);
    ttm_telling_forget_frees(&world.tracked);
    assert_int_equal(world.account.remembered_frees.used, 0);
    world_end(&world);
}

/* As many as it takes to have memory made ahead for more. */
static void add_many(struct world *world)
{
    static const uint16_t order[] = {0};

    for (uint64_t i = 1; i <= TTM_LIFE_BLOCK_LIVES; i++) {
        const struct ttm_record record = {.op = TTM_RECORD_BIRTH, .serial = i, .bytes = 64};
        ttm_intake_records(&world->tracked, &record, order, 1);
    }
    assert_int_equal(world->client.process->lives.store.live, TTM_LIFE_BLOCK_LIVES);
}

static void threads_that_make_memory_for_resyncs_have_a_share(void **state)
{
    uint8_t frame[TTM_TOLD_ANNOUNCE_SIZE];
    static struct world world;
    (void)state;

    world_begin(&world, false, false);
    add_many(&world);
    struct ttm_session session = {
        .server = &world.server, .account = &world.account, .client = &world.client, .fd = -1};
    struct ttm_tracked *tracked = &world.tracked;
    ttm_list_init(&tracked->active_link);
    world.client.tracked = tracked;
    tracked->session = &session;
    tracked->is_telling = true;
    tracked->epoch = 1;
    ttm_told_announce_encode(1, 8 * TTM_LIFE_BLOCK_LIVES, frame);

    assert_int_equal(world.account.resync_threads.max, 0);
    assert_int_equal(ttm_telling_take(&session, frame, sizeof(frame)), 0);
    assert_false(tracked->ahead.has_begun);
    world.account.resync_threads.max = 1;
    assert_int_equal(ttm_telling_take(&session, frame, sizeof(frame)), 0);
    assert_true(tracked->ahead.has_begun);
    assert_int_equal(world.account.resync_threads.used, 1);
    ttm_telling_stop(tracked);
    assert_false(tracked->ahead.has_begun);
    assert_int_equal(world.account.resync_threads.used, 0);
    world_end(&world);
}

static void notes_that_are_kept_for_the_recording_have_a_share(void **state)
{
    static const uint16_t order[] = {0, 1};
    struct ttm_record records[] = {{.op = TTM_RECORD_BIRTH, .bytes = 64, .time_ns = START_NS},
                                   {.op = TTM_RECORD_BIRTH, .bytes = 64, .time_ns = START_NS}};
    static struct world world;
    (void)state;

    for (uint32_t i = 0; i < 2; i++) {
        records[i].serial = i + 1;
        records[i].origin = origins[i];
    }
    world_begin(&world, true, false);
    ttm_intake_records(&world.tracked, records, order, 1);
    const uint64_t used = world.account.note_bytes.used;
    assert_true(used > 0);
    assert_int_equal(world.client.note_bytes, used);
    world.account.note_bytes.max = used;
    ttm_intake_records(&world.tracked, records, order + 1, 1);
    assert_int_equal(world.account.note_bytes.used, used);
    assert_int_equal(world.client.process->lives.store.live, 2);
    ttm_record_process_end(&world.client);
    assert_int_equal(world.account.note_bytes.used, 0);
    world_end(&world);
}

static void a_turn_takes_as_many_records_as_it_has_time_for(void **state)
{
    enum { COUNT = 64 };
    struct ttm_record records[COUNT];
    uint16_t order[COUNT];
    static struct world world;
    uint32_t cost;
    (void)state;

    world_begin(&world, false, false);
    for (uint16_t i = 0; i < COUNT; i++) {
        records[i] = (struct ttm_record){.op = TTM_RECORD_BIRTH, .serial = i + 1, .bytes = 64};
        order[i] = i;
    }
    assert_int_equal(ttm_intake_affordable(&world.tracked, records, order, COUNT, &cost), COUNT);
    assert_int_equal(cost, COUNT);
    /* Of devices that are not known yet the most is assumed, until they are. */
    for (uint32_t i = 0; i < COUNT; i++)
        records[i].devices = devices_notes[0];
    const uint32_t few = ttm_intake_affordable(&world.tracked, records, order, COUNT, &cost);
    assert_true(few >= 1 && few < COUNT);
    ttm_intake_records(&world.tracked, records, order, few);
    assert_int_equal(
        ttm_intake_affordable(&world.tracked, records, order + few, COUNT - few, &cost),
        COUNT - few);
    assert_int_equal(cost, 2 * (COUNT - few));
    world_end(&world);
}

static void what_a_turn_has_no_time_for_is_applied_in_the_next(void **state)
{
    static struct world world;
    uint32_t turns = 0;
    (void)state;

    world_begin(&world, false, false);
    world.server.now_ns = START_NS;
    ttm_list_init(&world.tracked.active_link);
    struct ttm_ring *ring = ttm_producer_claim(&producer, 1);
    for (uint32_t i = 0; i < ORIGINS; i++) { /* to put an origin together takes long */
        const struct ttm_record record = {.op = TTM_RECORD_BIRTH,
                                          .serial = 100 + i,
                                          .time_ns = START_NS,
                                          .bytes = 64,
                                          .origin = origins[i]};
        assert_true(ttm_ring_push(&producer, ring, &record));
    }
    do {
        (void)ttm_tracked_read(&world.tracked);
        turns++;
        assert_int_equal(world.client.process->lives.store.live, turns);
    } while (world.tracked.rest);
    assert_int_equal(turns, ORIGINS);
    world_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lives_that_are_told_together_are_the_same),
        cmocka_unit_test(sums_and_lives_are_the_same),
        cmocka_unit_test(recordings_are_the_same),
        cmocka_unit_test(who_watches_sees_the_same),
        cmocka_unit_test(ends_are_remembered_the_same_after_a_telling),
        cmocka_unit_test(a_life_that_ends_in_its_slice_is_not_entered),
        cmocka_unit_test(nor_is_it_while_ends_of_others_are_remembered),
        cmocka_unit_test(the_future_begins_when_rings_are_read),
        cmocka_unit_test(frees_that_are_remembered_have_a_share),
        cmocka_unit_test(threads_that_make_memory_for_resyncs_have_a_share),
        cmocka_unit_test(notes_that_are_kept_for_the_recording_have_a_share),
        cmocka_unit_test(a_turn_takes_as_many_records_as_it_has_time_for),
        cmocka_unit_test(what_a_turn_has_no_time_for_is_applied_in_the_next),
    };
    make_notes();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
