/* SPDX-License-Identifier: Apache-2.0 */
/* The encoder, and the decoder that turns its blocks back. */
#include "recording_testing.h"

#include "recording/decoder.h"
#include "recording/varint.h"

/* ---- encoder and decoder with nothing between, but blocks that may be lost ---- */

struct pair {
    struct ttm_block block;
    struct ttm_encoder *encoder;
    struct ttm_decoder *decoder;
    struct mirror mirror;
    uint64_t start_wall_ns; /* of the process that was read last */
    uint64_t passed;
    uint64_t refuse_from, refuse_until; /* blocks that the encoder cannot get rid of */
    uint64_t lose_from, lose_until;     /* blocks that never reach the decoder */
};

static struct ttm_block *pair_pass(void *arg, struct ttm_block *full)
{
    struct pair *pair = arg;
    const struct ttm_recorded *record;
    const uint64_t n = pair->passed++;
    int r;

    if (n >= pair->refuse_from && n < pair->refuse_until)
        return NULL;
    if (n >= pair->lose_from && n < pair->lose_until)
        return full;
    if (ttm_decoder_begin(pair->decoder, full) < 0)
        return full;
    while ((r = ttm_decoder_next(pair->decoder, &record)) > 0) {
        mirror_apply(&pair->mirror, record);
        if (record->type == TTM_RECORDED_PROCESS)
            pair->start_wall_ns = record->seen.start_wall_ns;
    }
    assert_int_equal(r, 0);
    return full;
}

static void pair_begin(struct pair *pair, uint32_t section_events)
{
    assert_int_equal(ttm_block_init(&pair->block), 0);
    const struct ttm_encoder_options options = {.start_ns = START_NS,
                                                .seed = 3,
                                                .section_events = section_events,
                                                .pass = pair_pass,
                                                .pass_arg = pair,
                                                .block = &pair->block};
    pair->encoder = ttm_encoder_new(&options);
    pair->decoder = ttm_decoder_new(17);
    assert_non_null(pair->encoder);
    assert_non_null(pair->decoder);
}

static void pair_end(struct pair *pair)
{
    (void)ttm_encoder_free(pair->encoder);
    ttm_decoder_free(pair->decoder);
    ttm_block_done(&pair->block);
    mirror_done(&pair->mirror);
}

/* ---- a random run and its truth ---- */

#define PROCESSES 3
#define LIVE_MAX 40 /* few, so that sections come often */

struct truth {
    uint64_t serials[PROCESSES][LIVE_MAX];
    uint32_t bytes[PROCESSES][LIVE_MAX];
    uint32_t live[PROCESSES];
    bool is_there[PROCESSES];
    uint32_t number[PROCESSES];
    uint32_t next_number;
    uint64_t next_serial;
    uint64_t now;
    uint64_t random;
};

#define BRIEF_EVENTS 6

/* Two brief lives, and one between them that is not. */
static void act_briefly(struct truth *truth, struct ttm_encoder *enc, uint32_t process)
{
    const uint64_t stream = (uint64_t)random_below(&truth->random, 4) << 48;
    struct ttm_recorded_life life = sample_life(process, 0);
    struct ttm_encoder_brief briefs[2];

    if (!ttm_encoder_takes_brief(enc, BRIEF_EVENTS))
        return;
    for (uint32_t i = 0; i < 3; i++) {
        life.serial = stream | ++truth->next_serial;
        life.birth_ns = truth->now += 1000;
        life.bytes = 32 * random_below(&truth->random, 3);
        if (i < 2)
            assert_int_equal(ttm_encoder_brief_birth(enc, &life, &briefs[i]), 0);
        else
            assert_int_equal(ttm_encoder_birth(enc, &life), 0);
    }
    assert_int_equal(ttm_encoder_brief_end(enc, truth->now, process, &briefs[0]), 0);
    assert_int_equal(ttm_encoder_end(enc, truth->now, process, life.serial, TTM_ENDED_FREED), 0);
    assert_int_equal(ttm_encoder_brief_end(enc, truth->now, process, &briefs[1]), 0);
}

static void act(struct truth *truth, struct ttm_encoder *enc)
{
    const uint32_t p = random_below(&truth->random, PROCESSES);
    const uint32_t what = random_below(&truth->random, 100);
    const struct ttm_recorded_process_end end = {.how = TTM_PROCESS_EXITED};

    truth->now += random_below(&truth->random, 100000);
    truth->now -= random_below(&truth->random, 3) == 0 ? 5000 : 0; /* rings are not in order */
    if (!truth->is_there[p]) {
        truth->number[p] = ++truth->next_number;
        sample_process(enc, truth->number[p]);
        truth->is_there[p] = true;
        truth->live[p] = 0;
    } else if (what == 1) {
        act_briefly(truth, enc, truth->number[p]);
    } else if (what == 0 && random_below(&truth->random, 20) == 0) {
        assert_int_equal(ttm_encoder_process_end(enc, truth->now, truth->number[p], &end), 0);
        truth->is_there[p] = false;
    } else if ((what < 52 || truth->live[p] == 0) && truth->live[p] < LIVE_MAX) {
        struct ttm_recorded_life life =
            sample_life(truth->number[p],
                        (uint64_t)random_below(&truth->random, 4) << 48 | ++truth->next_serial);
        life.birth_ns = truth->now;
        life.bytes = 32 * random_below(&truth->random, 1 << random_below(&truth->random, 12));
        life.address = random_below(&truth->random, 8) == 0 ? next_random(&truth->random)
                                                            : 64 * random_below(&truth->random, 50);
        life.id = random_below(&truth->random, 10) == 0 ? next_random(&truth->random)
                                                        : truth->next_serial;
        life.is_told = random_below(&truth->random, 50) == 0;
        life.region = (uint8_t)random_below(&truth->random, TTM_REGION_COUNT);
        assert_int_equal(ttm_encoder_birth(enc, &life), 0);
        truth->serials[p][truth->live[p]] = life.serial;
        truth->bytes[p][truth->live[p]++] = (uint32_t)life.bytes;
    } else if (what < 97) {
        const uint32_t which = random_below(&truth->random, truth->live[p]);
        assert_int_equal(ttm_encoder_end(enc, truth->now, truth->number[p],
                                         truth->serials[p][which],
                                         (enum ttm_recorded_how)random_below(&truth->random, 7)),
                         0);
        truth->live[p]--;
        truth->serials[p][which] = truth->serials[p][truth->live[p]];
        truth->bytes[p][which] = truth->bytes[p][truth->live[p]];
    } else {
        const uint32_t which = random_below(&truth->random, truth->live[p]);
        assert_int_equal(ttm_encoder_rename(enc, truth->now, truth->number[p],
                                            truth->serials[p][which], 1100 + what),
                         0);
    }
}

static void assert_mirror_is_truth(const struct mirror *mirror, const struct truth *truth)
{
    uint64_t bytes = 0, live = 0;

    for (size_t p = 0; p < PROCESSES; p++) {
        for (uint32_t i = 0; truth->is_there[p] && i < truth->live[p]; i++) {
            const struct ttm_recorded_life life = {.process = truth->number[p],
                                                   .serial = truth->serials[p][i]};
            uint32_t found = 0;
            assert_true(ttm_u64_map_find(&mirror->live, mirror_key(&life), &found));
            assert_int_equal(found, truth->bytes[p][i]);
            bytes += truth->bytes[p][i];
            live++;
        }
    }
    assert_int_equal(mirror->live.count, live);
    assert_int_equal(mirror->bytes, bytes);
}

static void what_is_read_is_what_was_live(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct pair pair = {0};
        struct truth truth = {.random = seed, .now = START_NS};
        pair_begin(&pair, 500);
        for (unsigned i = 0; i < 5000; i++) {
            act(&truth, pair.encoder);
            if (i % 97 == 0) {
                ttm_encoder_flush(pair.encoder);
                assert_mirror_is_truth(&pair.mirror, &truth);
            }
        }
        ttm_encoder_finish(pair.encoder);
        assert_mirror_is_truth(&pair.mirror, &truth);
        assert_true(ttm_decoder_is_exact(pair.decoder));
        assert_int_equal(pair.mirror.gaps, 0);
        assert_int_equal(ttm_decoder_live(pair.decoder), pair.mirror.live.count);
        pair_end(&pair);
    }
}

static void blocks_that_find_no_room_are_counted_and_what_is_live_is_right_again(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct pair pair = {.refuse_from = 5 + seed % 7, .refuse_until = 6 + seed % 7 + seed % 5};
        struct truth truth = {.random = seed, .now = START_NS};
        pair_begin(&pair, 300);
        for (unsigned i = 0; i < 8000; i++) {
            act(&truth, pair.encoder);
            if (i % 61 == 0)
                ttm_encoder_flush(pair.encoder);
        }
        ttm_encoder_finish(pair.encoder);
        assert_mirror_is_truth(&pair.mirror, &truth);
        assert_true(ttm_decoder_is_exact(pair.decoder));
        assert_true(pair.mirror.gaps > 0);
        assert_true(pair.mirror.lost > 0);
        assert_int_equal(pair.mirror.lost, ttm_encoder_lost_events(pair.encoder));
        assert_int_equal(ttm_decoder_lost_events(pair.decoder), pair.mirror.lost);
        pair_end(&pair);
    }
}

/* The last thing that happens is that a block is refused; then all is quiet. */
static void after_a_loss_no_event_is_needed_to_be_right_again(void **state)
{
    struct pair pair = {0};
    struct truth truth = {.random = 5, .now = START_NS};
    uint64_t since;
    (void)state;

    pair_begin(&pair, 1 << 20);
    for (unsigned i = 0; i < 500; i++)
        act(&truth, pair.encoder);
    ttm_encoder_flush(pair.encoder);
    assert_false(ttm_encoder_is_dirty(pair.encoder, &since));
    for (unsigned i = 0; i < 500; i++)
        act(&truth, pair.encoder);
    pair.refuse_from = pair.passed;
    pair.refuse_until = pair.passed + 3;
    for (unsigned i = 0; i < 3; i++) {
        ttm_encoder_flush(pair.encoder);
        assert_true(ttm_encoder_is_dirty(pair.encoder, &since));
    }
    ttm_encoder_flush(pair.encoder);
    assert_false(ttm_encoder_is_dirty(pair.encoder, &since));
    assert_mirror_is_truth(&pair.mirror, &truth);
    assert_int_equal(pair.mirror.gaps, 1);
    assert_int_equal(pair.mirror.lost, ttm_encoder_lost_events(pair.encoder));
    assert_true(ttm_decoder_is_exact(pair.decoder));
    pair_end(&pair);
}

static void blocks_that_never_arrive_leave_a_gap_until_the_next_section(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct pair pair = {.lose_from = seed % 9, .lose_until = 1 + seed % 9 + seed % 5};
        struct truth truth = {.random = seed, .now = START_NS};
        pair_begin(&pair, 300);
        for (unsigned i = 0; i < 8000; i++) {
            act(&truth, pair.encoder);
            if (i % 61 == 0)
                ttm_encoder_flush(pair.encoder);
        }
        ttm_encoder_finish(pair.encoder);
        assert_mirror_is_truth(&pair.mirror, &truth);
        assert_true(ttm_decoder_is_exact(pair.decoder));
        pair_end(&pair);
    }
}

/* The file that is asked for begins with all that is live. */
static void the_next_file_can_be_read_alone(void **state)
{
    struct pair pair = {0};
    struct truth truth = {.random = 9, .now = START_NS};
    (void)state;

    pair_begin(&pair, 1 << 20);
    for (unsigned i = 0; i < 3000; i++)
        act(&truth, pair.encoder);
    ttm_encoder_next_file(pair.encoder, 2, 0);
    ttm_decoder_restart(pair.decoder);
    mirror_done(&pair.mirror);
    pair.mirror = (struct mirror){0};
    for (unsigned i = 0; i < 3000; i++)
        act(&truth, pair.encoder);
    ttm_encoder_finish(pair.encoder);
    assert_mirror_is_truth(&pair.mirror, &truth);
    assert_int_equal(pair.mirror.gaps, 0);
    pair_end(&pair);
}

static void the_next_file_has_starts_by_its_own_wall_clock(void **state)
{
    const uint64_t start_ns = 1690000000000000000ull; /* see sample_process() */
    struct pair pair = {0};
    (void)state;

    pair_begin(&pair, 1 << 20);
    sample_process(pair.encoder, 1);
    ttm_encoder_flush(pair.encoder);
    assert_int_equal(pair.start_wall_ns, start_ns);
    assert_int_equal(ttm_encoder_wall_offset_ns(pair.encoder), 0);
    /* The clock was set, once ahead and once back. */
    static const int64_t offsets[] = {3600000000000, -86400000000000};
    for (size_t i = 0; i < COUNT_OF(offsets); i++) {
        ttm_encoder_next_file(pair.encoder, 2 + i, offsets[i]);
        ttm_decoder_restart(pair.decoder);
        mirror_done(&pair.mirror);
        pair.mirror = (struct mirror){0};
        struct ttm_recorded_life life = sample_life(1, 5 + i);
        assert_int_equal(ttm_encoder_birth(pair.encoder, &life), 0);
        ttm_encoder_finish(pair.encoder);
        assert_true(pair.start_wall_ns == start_ns + (uint64_t)offsets[i]);
        assert_true(ttm_encoder_wall_offset_ns(pair.encoder) == offsets[i]);
    }
    pair_end(&pair);
}

static void a_serial_that_is_told_again_changes_nothing(void **state)
{
    struct pair pair = {0};
    struct ttm_recorded_life life = sample_life(1, 5);
    (void)state;

    pair_begin(&pair, 0);
    sample_process(pair.encoder, 1);
    assert_int_equal(ttm_encoder_birth(pair.encoder, &life), 0);
    assert_int_equal(ttm_encoder_birth(pair.encoder, &life), -EEXIST);
    life.is_told = true;
    assert_int_equal(ttm_encoder_birth(pair.encoder, &life), 1);
    ttm_encoder_finish(pair.encoder);
    assert_int_equal(pair.mirror.births, 1);
    pair_end(&pair);
}

static void where_a_section_may_begin_no_life_is_brief(void **state)
{
    struct pair pair = {.refuse_from = 3};
    struct ttm_recorded_life life = sample_life(1, 5);
    (void)state;

    pair_begin(&pair, 10);
    assert_false(ttm_encoder_takes_brief(pair.encoder, 1)); /* the first one is yet to come */
    sample_process(pair.encoder, 1);
    assert_int_equal(ttm_encoder_birth(pair.encoder, &life), 0);
    ttm_encoder_flush(pair.encoder);
    assert_true(ttm_encoder_takes_brief(pair.encoder, 1));
    assert_false(ttm_encoder_takes_brief(pair.encoder, 1000)); /* one is due by then */
    assert_int_equal(ttm_encoder_rename(pair.encoder, START_NS, 1, 5, 6), 0);
    pair.refuse_from = pair.passed;
    pair.refuse_until = UINT64_MAX;
    ttm_encoder_flush(pair.encoder);
    assert_false(ttm_encoder_takes_brief(pair.encoder, 1)); /* a block was not taken */
    pair_end(&pair);
}

static void what_cannot_be_is_refused(void **state)
{
    struct pair pair = {0};
    struct ttm_recorded_life life = sample_life(1, 5);
    const struct ttm_recorded_process seen = {.command_length = TTM_RECORDED_TEXT_MAX + 1};
    const struct ttm_recorded_note note = {.length = TTM_RECORDED_NOTE_MAX + 1};
    (void)state;

    pair_begin(&pair, 0);
    assert_int_equal(ttm_encoder_birth(pair.encoder, &life), -ENOENT);
    assert_int_equal(ttm_encoder_process(pair.encoder, 0, 1, &seen), -E2BIG);
    sample_process(pair.encoder, 1);
    assert_int_equal(ttm_encoder_note(pair.encoder, 1, &note), -E2BIG);
    assert_int_equal(ttm_encoder_end(pair.encoder, 0, 1, 5, TTM_ENDED_FREED), -ENOENT);
    assert_int_equal(ttm_encoder_end(pair.encoder, 0, 1, 5, TTM_ENDED_COUNT), -EINVAL);
    assert_int_equal(ttm_encoder_rename(pair.encoder, 0, 1, 5, 1), -ENOENT);
    life.region = TTM_REGION_COUNT;
    assert_int_equal(ttm_encoder_birth(pair.encoder, &life), -EINVAL);
    life.region = 0;
    life.bytes = TTM_RECORDED_BYTES_MAX + 1;
    assert_int_equal(ttm_encoder_birth(pair.encoder, &life), -EINVAL);
    life.bytes = TTM_RECORDED_BYTES_MAX;
    assert_int_equal(ttm_encoder_birth(pair.encoder, &life), 0);
    ttm_encoder_finish(pair.encoder);
    assert_int_equal(pair.mirror.bytes, TTM_RECORDED_BYTES_MAX);
    pair_end(&pair);
}

/* More different sites than there are numbers for. */
static void site_numbers_are_used_again_when_they_run_out(void **state)
{
    struct pair pair = {0};
    uint64_t sum = 0;
    (void)state;

    pair_begin(&pair, 1 << 20);
    sample_process(pair.encoder, 1);
    for (uint64_t i = 1; i <= 70000; i++) {
        struct ttm_recorded_life life = sample_life(1, i);
        life.bytes = i;
        sum += i;
        assert_int_equal(ttm_encoder_birth(pair.encoder, &life), 0);
        if (i > 100) {
            assert_int_equal(
                ttm_encoder_end(pair.encoder, life.birth_ns, 1, i - 100, TTM_ENDED_FREED), 0);
            sum -= i - 100;
        }
    }
    ttm_encoder_finish(pair.encoder);
    assert_int_equal(pair.mirror.live.count, 100);
    assert_int_equal(pair.mirror.bytes, sum);
    pair_end(&pair);
}

/* Every allocation that fails in turn: an error, and what is written afterwards can be read. */
static void without_memory_events_are_lost_and_the_recording_goes_on(void **state)
{
    const struct ttm_recorded_process seen = {.command = "x", .command_length = 1};
    static uint8_t large[100000];
    (void)state;

    for (unsigned grants = 0;; grants++) {
        struct pair pair = {0};
        const struct ttm_recorded_note note = {
            .number = 5, .bytes = large, .length = sizeof(large)};
        struct ttm_recorded_life life = sample_life(1, 5), later = sample_life(2, 6);
        pair_begin(&pair, 0);
        faults_begin(grants);
        int r = ttm_encoder_process(pair.encoder, START_NS, 1, &seen);
        if (r == 0)
            r = ttm_encoder_note(pair.encoder, 1, &note);
        if (r == 0)
            r = ttm_encoder_birth(pair.encoder, &life);
        const bool has_failed = faults_end();
        assert_int_equal(r, has_failed ? -ENOMEM : 0);
        sample_process(pair.encoder, 2);
        ttm_encoder_flush(pair.encoder);
        assert_int_equal(ttm_encoder_birth(pair.encoder, &later), 0);
        ttm_encoder_finish(pair.encoder);
        uint32_t bytes;
        assert_true(ttm_u64_map_find(&pair.mirror.live, mirror_key(&later), &bytes));
        assert_int_equal(ttm_decoder_live(pair.decoder), pair.mirror.live.count);
        pair_end(&pair);
        if (!has_failed)
            break;
        assert_true(grants < 100);
    }
}

static void a_number_has_one_spelling(void **state)
{
    const uint64_t numbers[] = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_MAX};
    static const uint8_t wrong[][11] = {
        {0x80, 0x00},
        {0xff, 0x80, 0x00},
        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02},
        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        uint8_t buf[TTM_VARINT_MAX];
        const size_t n = ttm_varint_put(buf, numbers[i]);
        for (size_t cut = 0; cut <= n; cut++) {
            const uint8_t *at = buf;
            uint64_t value = 0;
            assert_int_equal(ttm_varint_get(&at, buf + cut, &value), cut == n);
            if (cut == n)
                assert_true(value == numbers[i] && at == buf + n);
        }
        assert_true(ttm_unfold(ttm_fold(numbers[i])) == numbers[i]);
    }
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        const uint8_t *at = wrong[i];
        uint64_t value;
        assert_false(ttm_varint_get(&at, wrong[i] + sizeof(wrong[i]), &value));
    }
}

static void a_loop_takes_few_bytes_an_event(void **state)
{
    struct memory_file file;
    uint64_t random = 7, now = START_NS;
    (void)state;

    memory_begin(&file, 0);
    sample_process(file.encoder, 1);
    for (uint64_t i = 1; i <= 50000; i++) {
        struct ttm_recorded_life life = sample_life(1, i);
        now += 30000 + random_below(&random, 50000);
        life.birth_ns = now;
        life.id = i;
        assert_int_equal(ttm_encoder_birth(file.encoder, &life), 0);
        if (i > 8)
            assert_int_equal(ttm_encoder_end(file.encoder, now + 4000, 1, i - 8, TTM_ENDED_FREED),
                             0);
    }
    struct bytes bytes = memory_end(&file, true);
    assert_in_range(bytes.length, 100000, 400000); /* 100,000 events: at most 4 bytes each */
    bytes_done(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_is_what_was_live),
        cmocka_unit_test(blocks_that_find_no_room_are_counted_and_what_is_live_is_right_again),
        cmocka_unit_test(after_a_loss_no_event_is_needed_to_be_right_again),
        cmocka_unit_test(blocks_that_never_arrive_leave_a_gap_until_the_next_section),
        cmocka_unit_test(the_next_file_can_be_read_alone),
        cmocka_unit_test(the_next_file_has_starts_by_its_own_wall_clock),
        cmocka_unit_test(a_serial_that_is_told_again_changes_nothing),
        cmocka_unit_test(where_a_section_may_begin_no_life_is_brief),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(site_numbers_are_used_again_when_they_run_out),
        cmocka_unit_test(without_memory_events_are_lost_and_the_recording_goes_on),
        cmocka_unit_test(a_number_has_one_spelling),
        cmocka_unit_test(a_loop_takes_few_bytes_an_event),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
