/* SPDX-License-Identifier: Apache-2.0 */
/* The nursery of the table of live allocations, and what moves out of it. */
#include "testing.h"

#include "base/hash.h"
#include "client/live_table.h"
#include "live_count.h"
#include "live_crowd.h"

#define APART (UINT64_C(1) << 63) /* as in live_table.c */
#define GROWN_UP_NS (UINT64_C(1) << 21)

static struct ttm_live_table table;
static struct ttm_live_cache cache;

static int set_up(void **state)
{
    (void)state;
    memset(&cache, 0, sizeof(cache));
    return ttm_live_table_init(&table, 0x5eed);
}

static int tear_down(void **state)
{
    (void)state;
    ttm_live_table_done(&table);
    return 0;
}

/* A life whose every field follows from its serial and id, so that a torn one shows. */
static struct ttm_live life_of(uint64_t serial, uint64_t id, uint64_t birth_ns)
{
    const uint64_t mixed = ttm_hash_u64(serial);

    return (struct ttm_live){
        .serial = serial,
        .id = id,
        .birth_ns = birth_ns & ~UINT64_C(63),
        .address = ttm_hash_u64(mixed ^ 2) & TTM_LIVE_NUMBER_MAX,
        .bytes = ttm_hash_u64(mixed ^ 3) & TTM_LIVE_NUMBER_MAX,
        .footprint_bytes = ttm_hash_u64(mixed ^ 4) & TTM_LIVE_NUMBER_MAX,
        .devices = (uint32_t)mixed & TTM_LIVE_NOTE_MAX,
        .origin = (uint32_t)(mixed >> 32) & TTM_LIVE_NOTE_MAX,
        .allocator = (uint16_t)(id % 5),
        .banks = mixed >> 24 & TTM_LIVE_BANKS_MAX,
        .region = (uint8_t)(id % 5),
    };
}

static int add(struct ttm_live_cache *own, const struct ttm_live *live)
{
    uint64_t replaced;

    return ttm_live_table_add_plain(&table, own, live, ttm_live_key_of(live), &replaced);
}

static uint64_t end(struct ttm_live_cache *own, const struct ttm_live *live)
{
    return ttm_live_table_remove_plain(&table, own, ttm_live_key_of(live), live->id);
}

/* Whether it can be found, with all that it is. */
static bool is_live(const struct ttm_live *live)
{
    struct ttm_live got;

    return ttm_live_table_get(&table, live, &got) == 0 && got.serial == live->serial &&
           got.id == live->id && got.birth_ns == live->birth_ns && got.address == live->address &&
           got.bytes == live->bytes && got.footprint_bytes == live->footprint_bytes &&
           got.devices == live->devices && got.origin == live->origin &&
           got.allocator == live->allocator && got.banks == live->banks &&
           got.region == live->region && got.kind == 0 && got.flags == 0;
}

/* How often a walk from here on meets the life. */
static uint32_t meetings(struct ttm_live_walk *walk, uint64_t serial)
{
    struct ttm_live live;
    uint32_t count = 0;

    while (ttm_live_table_next(&table, walk, &live))
        count += live.serial == serial;
    return count;
}

static uint64_t word_in_nursery(uint64_t id)
{
    return atomic_load(&table.nursery[id % TTM_NURSERY_LINES].place.words[TTM_PLACE_SERIAL]);
}

/* ---- one thread ---- */

static void what_comes_and_goes_touches_the_nursery_alone(void **state)
{
    (void)state;
    for (uint64_t id = 0; id < (uint64_t)1000 * TTM_NURSERY_LINES; id++) {
        const struct ttm_live live = life_of(id + 1, id, id);
        assert_int_equal(add(&cache, &live), 0);
        assert_int_equal(word_in_nursery(id), live.serial);
        assert_true(is_live(&live));
        assert_int_equal(end(&cache, &live), live.serial);
        assert_false(is_live(&live));
        assert_int_equal(end(&cache, &live), 0);
    }
    assert_int_equal(atomic_load(&table.next_place), 0);
    assert_int_equal(live_count(&table), 0);
}

static void what_has_grown_up_makes_room(void **state)
{
    const struct ttm_live old = life_of(1, 7, 64000);
    const struct ttm_live newborn = life_of(2, 7 + TTM_NURSERY_LINES, old.birth_ns + GROWN_UP_NS);
    (void)state;

    assert_int_equal(add(&cache, &old), 0);
    assert_int_equal(add(&cache, &newborn), 0);
    assert_int_equal(word_in_nursery(7), newborn.serial);
    assert_true(is_live(&old) && is_live(&newborn));
    assert_int_equal(live_count(&table), 2);
    assert_int_equal(ttm_live_table_estimate(&table), 2);
    assert_int_equal(end(&cache, &old), old.serial);
    assert_int_equal(end(&cache, &newborn), newborn.serial);
    assert_int_equal(live_count(&table), 0);
}

static void what_another_is_moving_stays(void **state)
{
    const struct ttm_live old = life_of(1, 7, 64000);
    const struct ttm_live newborn = life_of(2, 7 + TTM_NURSERY_LINES, old.birth_ns + GROWN_UP_NS);
    const struct ttm_live last = life_of(3, 7 + 2 * TTM_NURSERY_LINES, newborn.birth_ns + 64);
    _Atomic uint64_t *mover_of = &table.nursery[7].mover_of;
    (void)state;

    assert_int_equal(add(&cache, &old), 0);
    atomic_store(mover_of, old.serial); /* who has made a copy, perhaps, and does not go on */
    assert_int_equal(add(&cache, &newborn), 0);
    assert_int_equal(word_in_nursery(7), old.serial);
    assert_true(is_live(&old) && is_live(&newborn));
    assert_int_equal(live_count(&table), 2);
    assert_int_equal(end(&cache, &old), old.serial);
    assert_int_equal(add(&cache, &last), 0); /* for what comes after it that is of no account */
    assert_int_equal(word_in_nursery(7), last.serial);
    assert_int_equal(end(&cache, &newborn), newborn.serial);
    assert_int_equal(atomic_load(mover_of), old.serial);
    const struct ttm_live next = life_of(4, 7 + 3 * TTM_NURSERY_LINES, last.birth_ns + GROWN_UP_NS);
    assert_int_equal(add(&cache, &next), 0);
    assert_int_equal(atomic_load(mover_of), last.serial);
    assert_int_equal(word_in_nursery(7), next.serial);
    assert_true(is_live(&last) && is_live(&next));
    assert_int_equal(live_count(&table), 2);
}

static void what_is_young_stays(void **state)
{
    const struct ttm_live old = life_of(1, 7, 64000);
    const struct ttm_live newborn =
        life_of(2, 7 + TTM_NURSERY_LINES, old.birth_ns + GROWN_UP_NS / 2);
    (void)state;

    assert_int_equal(add(&cache, &old), 0);
    assert_int_equal(add(&cache, &newborn), 0);
    assert_int_equal(word_in_nursery(7), old.serial);
    assert_true(is_live(&old) && is_live(&newborn));
    assert_int_equal(end(&cache, &newborn), newborn.serial);
    assert_int_equal(end(&cache, &old), old.serial);
    assert_int_equal(live_count(&table), 0);
}

static void more_lives_than_the_nursery_has_room_for_are_all_there(void **state)
{
    enum { MANY = 20000 };
    (void)state;

    for (uint64_t id = 0; id < MANY; id++) {
        const struct ttm_live live = life_of(id + 1, id, id << 14);
        assert_int_equal(add(&cache, &live), 0);
    }
    assert_int_equal(live_count(&table), MANY);
    for (uint64_t id = 0; id < MANY; id++) {
        const struct ttm_live live = life_of(id + 1, id, id << 14);
        assert_true(is_live(&live));
        /* By whoever does not know that it is plain, too. */
        assert_int_equal(id % 2 == 0 ? end(&cache, &live)
                                     : ttm_live_table_remove(&table, &cache, ttm_live_key_of(&live),
                                                             id, id % 3 == 0 ? live.serial : 0),
                         live.serial);
    }
    assert_int_equal(live_count(&table), 0);
    ttm_live_table_flush(&table, &cache);
    assert_in_range(atomic_load(&table.next_place), 1, MANY + TTM_LIVE_CACHE);
}

static void only_the_serial_that_is_meant_is_ended(void **state)
{
    const struct ttm_live live = life_of(5, 3, 0);
    (void)state;

    assert_int_equal(add(&cache, &live), 0);
    assert_int_equal(ttm_live_table_remove(&table, &cache, ttm_live_key_of(&live), live.id, 4), 0);
    assert_true(is_live(&live));
    assert_int_equal(ttm_live_table_remove(&table, &cache, ttm_live_key_of(&live), live.id, 5), 5);
    assert_false(is_live(&live));
}

static void a_key_that_is_born_again_in_the_table_replaces_the_one_in_the_nursery(void **state)
{
    const struct ttm_live nursed = life_of(1, 9, 0), again = life_of(2, 9, 64);
    uint64_t replaced = 0;
    (void)state;

    assert_int_equal(add(&cache, &nursed), 0);
    assert_int_equal(ttm_live_table_add(&table, &cache, &again, &replaced), 1);
    assert_int_equal(replaced, nursed.serial);
    assert_true(is_live(&again));
    assert_int_equal(live_count(&table), 1);
}

static void the_origin_of_a_life_goes_with_it(void **state)
{
    struct ttm_live old = life_of(1, 7, 0);
    const struct ttm_live newborn = life_of(2, 7 + TTM_NURSERY_LINES, GROWN_UP_NS);
    (void)state;

    assert_int_equal(add(&cache, &old), 0);
    old.origin = 77;
    assert_int_equal(ttm_live_table_set_origin(&table, &old, 77), 0);
    assert_int_equal(add(&cache, &newborn), 0);
    assert_true(is_live(&old));
    old.origin = 78;
    assert_int_equal(ttm_live_table_set_origin(&table, &old, 78), 0);
    assert_true(is_live(&old) && is_live(&newborn));
}

static void a_walk_does_not_meet_what_moves_on_before_it_twice(void **state)
{
    const struct ttm_live old = life_of(1, 0, 0), other = life_of(2, 1, 0);
    const struct ttm_live newborn = life_of(3, TTM_NURSERY_LINES, GROWN_UP_NS);
    struct ttm_live_walk walk = {0};
    struct ttm_live live;
    (void)state;

    assert_int_equal(add(&cache, &old), 0);
    assert_int_equal(add(&cache, &other), 0);
    assert_true(ttm_live_table_next(&table, &walk, &live));
    assert_int_equal(live.serial, old.serial);
    assert_int_equal(add(&cache, &newborn), 0); /* 'old' moves to the table */
    assert_true(ttm_live_table_next(&table, &walk, &live));
    assert_int_equal(live.serial, other.serial);
    assert_false(ttm_live_table_next(&table, &walk, &live));
    assert_int_equal(live_count(&table), 3);
}

/* ---- a thread that ended in the middle of a move ---- */

/* Where a life stands whose move was left at one of its steps. */
struct left_move {
    bool is_copied, has_left, has_arrived;
    bool has_ended; /* by another thread, while it was copied */
};

/* Makes it so. The copy is the only place in the table. */
static void leave_move(const struct ttm_live *live, const struct left_move *move)
{
    _Atomic uint64_t *nursed =
        &table.nursery[live->id % TTM_NURSERY_LINES].place.words[TTM_PLACE_SERIAL];
    uint64_t replaced;

    if (move->is_copied) {
        assert_int_equal(ttm_live_table_add(&table, &cache, live, &replaced), 0);
        for (uint32_t i = 0; i < atomic_load(&table.next_place); i++) {
            _Atomic uint64_t *copy = &table.places[i].words[TTM_PLACE_SERIAL];
            if (atomic_load(copy) != 0)
                atomic_store(copy, live->serial | (move->has_arrived ? 0 : APART));
        }
    }
    assert_int_equal(atomic_load(nursed), 0);
    ttm_place_fill(&table.nursery[live->id % TTM_NURSERY_LINES].place, live, ttm_live_key_of(live));
    if (!move->has_ended)
        atomic_store(nursed, live->serial | (move->has_left ? APART : 0));
}

static void a_move_that_is_left_at_any_step_leaves_one_life(void **state)
{
    static const struct left_move moves[] = {
        {0},
        {.is_copied = true},
        {.is_copied = true, .has_left = true},
        {.is_copied = true, .has_left = true, .has_arrived = true},
    };

    for (size_t i = 0; i < COUNT_OF(moves); i++) {
        const struct ttm_live live = life_of(1, 4, 0);
        struct ttm_live_walk walk = {0};
        struct ttm_live named = live;
        assert_int_equal(set_up(state), 0);
        leave_move(&live, &moves[i]);
        assert_true(is_live(&live));
        assert_int_equal(meetings(&walk, live.serial), 1);
        named.origin = 99;
        assert_int_equal(ttm_live_table_set_origin(&table, &live, 99), 0);
        assert_true(is_live(&named));
        assert_int_equal(i % 2 == 0 ? end(&cache, &live)
                                    : ttm_live_table_remove(&table, &cache, ttm_live_key_of(&live),
                                                            live.id, live.serial),
                         live.serial);
        assert_false(is_live(&live));
        assert_int_equal(end(&cache, &live), 0);
        assert_int_equal(live_count(&table), 0);
        (void)tear_down(state);
    }
}

static void a_copy_of_what_has_ended_is_nothing(void **state)
{
    const struct ttm_live live = life_of(1, 4, 0), next = life_of(2, 4 + TTM_NURSERY_LINES, 64);
    (void)state;

    leave_move(&live, &(struct left_move){.is_copied = true, .has_ended = true});
    assert_false(is_live(&live));
    assert_int_equal(live_count(&table), 0);
    assert_int_equal(end(&cache, &live), 0);
    assert_int_equal(add(&cache, &next), 0);
    assert_true(is_live(&next));
    assert_int_equal(end(&cache, &live), 0);
    assert_true(is_live(&next));
}

static void who_ends_what_was_left_on_its_way_makes_room(void **state)
{
    const struct ttm_live live = life_of(1, 4, 0), next = life_of(2, 4 + TTM_NURSERY_LINES, 64);
    (void)state;

    leave_move(&live, &(struct left_move){.is_copied = true, .has_left = true});
    assert_int_equal(end(&cache, &live), live.serial);
    assert_int_equal(word_in_nursery(4), 0);
    assert_int_equal(add(&cache, &next), 0);
    assert_int_equal(word_in_nursery(4), next.serial);
}

static void a_place_that_is_never_filled_is_nobody(void **state)
{
    const struct ttm_live next = life_of(2, 4, GROWN_UP_NS);
    (void)state;

    atomic_store(&table.nursery[4].place.words[TTM_PLACE_SERIAL], APART);
    assert_int_equal(live_count(&table), 0);
    assert_int_equal(add(&cache, &next), 0);
    assert_int_equal(word_in_nursery(4), APART);
    assert_true(is_live(&next));
    assert_int_equal(live_count(&table), 1);
    assert_int_equal(end(&cache, &next), next.serial);
}

/* ---- several threads ---- */

/* Time goes by with each birth, so that once around the nursery a life has nearly grown up. */
static struct ttm_live numbered(uint64_t serial)
{
    return life_of(serial, serial, (serial & 0xffffffff) << 16);
}

static uint64_t add_numbered(struct ttm_live_cache *own, uint64_t serial)
{
    const struct ttm_live live = numbered(serial);

    return add(own, &live) != 0;
}

/* Names a life and ends it, wherever it is by then. */
static uint64_t name_and_end(struct ttm_live_cache *own, uint64_t serial)
{
    struct ttm_live live = numbered(serial);
    uint64_t wrong = !is_live(&live);

    if (serial % 4 == 0) {
        live.origin = (uint32_t)serial & TTM_LIVE_NOTE_MAX;
        wrong += ttm_live_table_set_origin(&table, &live, live.origin) != 0;
        wrong += !is_live(&live);
    }
    return wrong + (end(own, &live) != serial) + (end(own, &live) != 0);
}

/* All but its origin, which may be another by now. */
static uint64_t is_torn(const struct ttm_live *live)
{
    const struct ttm_live expected = numbered(live->serial);

    return live->id != expected.id || live->address != expected.address ||
           live->bytes != expected.bytes || live->birth_ns != expected.birth_ns;
}

static void lives_that_move_while_others_end_and_name_and_walk_are_never_lost(void **state)
{
    struct crowd crowd = {.table = &table,
                          .lives_each = 100000,
                          .staying = 200,
                          .ahead = 64,
                          .add = add_numbered,
                          .end = name_and_end,
                          .meet = is_torn};
    (void)state;

    crowd_run(&crowd);
    const uint64_t left = crowd.staying + CROWD_PAIRS * crowd_stays(&crowd);
    assert_int_equal(live_count(&table), left);
    assert_in_range(atomic_load(&table.moves), crowd.lives_each / 100,
                    CROWD_PAIRS * crowd.lives_each);
    assert_in_range(atomic_load(&table.next_place), 1, 4 * left);
}

#define WITH_TABLE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TABLE(what_comes_and_goes_touches_the_nursery_alone),
        WITH_TABLE(what_has_grown_up_makes_room),
        WITH_TABLE(what_another_is_moving_stays),
        WITH_TABLE(what_is_young_stays),
        WITH_TABLE(more_lives_than_the_nursery_has_room_for_are_all_there),
        WITH_TABLE(only_the_serial_that_is_meant_is_ended),
        WITH_TABLE(a_key_that_is_born_again_in_the_table_replaces_the_one_in_the_nursery),
        WITH_TABLE(the_origin_of_a_life_goes_with_it),
        WITH_TABLE(a_walk_does_not_meet_what_moves_on_before_it_twice),
        cmocka_unit_test(a_move_that_is_left_at_any_step_leaves_one_life),
        WITH_TABLE(a_copy_of_what_has_ended_is_nothing),
        WITH_TABLE(who_ends_what_was_left_on_its_way_makes_room),
        WITH_TABLE(a_place_that_is_never_filled_is_nobody),
        WITH_TABLE(lives_that_move_while_others_end_and_name_and_walk_are_never_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
