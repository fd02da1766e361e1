/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call on the table of live allocations, interrupted at each of its steps by calls of others. The
 * table's source is compiled into this test, with a step before each atomic operation.
 */
#include "testing.h"

#include <stdatomic.h>

static void take_step(void);
static bool swap_after_step(volatile void *word, void *expected, uint64_t wanted, size_t size);

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_compare_exchange_strong_explicit
#define atomic_load_explicit(word, order) (take_step(), *(word))
#define atomic_store_explicit(word, value, order) (take_step(), (void)(*(word) = (value)))
#define atomic_compare_exchange_strong_explicit(word, expected, wanted, order, failed)             \
    swap_after_step(word, expected, wanted, sizeof(*(word)))

#include "client/live_spares.c"
#include "client/live_table.c"
#include "live_count.h"

enum { LIVES = 6, NEXT = 2, LATER = 3, AGAIN = 4, LIKE_IT = 5, MAX_STEPS = 200 };

static struct ttm_live_table table;
static struct ttm_live_cache cache, others_cache;
static struct ttm_live lives[LIVES];

static uint32_t taken_steps, interrupted_at[2]; /* UINT32_MAX: not */
static void (*interrupt[2])(void);
static bool is_interrupted;

static void take_step(void)
{
    for (uint32_t i = 0; i < COUNT_OF(interrupt) && !is_interrupted; i++) {
        if (taken_steps != interrupted_at[i])
            continue;
        is_interrupted = true;
        interrupt[i]();
        is_interrupted = false;
    }
    taken_steps += !is_interrupted;
}

static bool swap_after_step(volatile void *word, void *expected, uint64_t wanted, size_t size)
{
    take_step();
    const bool is_same = memcmp((const void *)word, expected, size) == 0;
    if (is_same)
        memcpy((void *)word, &wanted, size); /* of the lower bytes, where it is shorter */
    else
        memcpy(expected, (const void *)word, size);
    return is_same;
}

/* The first is in the nursery, and has grown up when the next is born, whose place is the same. */
static void begin(uint32_t at, void (*first)(void), uint32_t then_at, void (*second)(void))
{
    uint64_t replaced, id = 7;

    interrupted_at[0] = interrupted_at[1] = UINT32_MAX;
    memset(&cache, 0, sizeof(cache));
    memset(&others_cache, 0, sizeof(others_cache));
    assert_int_equal(ttm_live_table_init(&table, 0x5eed), 0);
    for (uint64_t i = 1; i < LIVES; i++, id += TTM_NURSERY_LINES)
        lives[i] = (struct ttm_live){
            .serial = i, .id = id, .birth_ns = i * GROWN_UP_NS, .origin = (uint32_t)i + 100};
    lives[AGAIN].id = lives[1].id;
    /* Its bucket and tag are those of the first. */
    const uint64_t hash = key_hash(&table, 0, lives[1].id);
    while (entry_of(key_hash(&table, 0, id), 0) != entry_of(hash, 0) ||
           bucket_of(&table, 0, key_hash(&table, 0, id)) != bucket_of(&table, 0, hash))
        id += TTM_NURSERY_LINES;
    lives[LIKE_IT].id = id;
    assert_int_equal(ttm_live_table_add_plain(&table, &cache, &lives[1], 0, &replaced), 0);
    interrupt[0] = first;
    interrupt[1] = second;
    interrupted_at[0] = at;
    interrupted_at[1] = then_at;
    taken_steps = 0;
}

/* Returns whether the call had so many steps. */
static bool had_step(uint32_t number)
{
    assert_in_range(taken_steps, 1, MAX_STEPS);
    ttm_live_table_done(&table);
    return number < taken_steps;
}

static void add_plain(uint64_t serial)
{
    uint64_t replaced;

    assert_int_equal(ttm_live_table_add_plain(&table, &others_cache, &lives[serial], 0, &replaced),
                     0);
}

static uint32_t origin_of(uint64_t serial)
{
    struct ttm_live got;

    interrupted_at[0] = interrupted_at[1] = UINT32_MAX;
    return ttm_live_table_get(&table, &lives[serial], &got) == 0 ? got.origin : 0;
}

static void move(void)
{
    add_plain(NEXT);
}

static void a_life_that_moves_is_replaced(void **state)
{
    uint32_t at = 0;
    (void)state;

    do {
        uint64_t replaced = 0;
        begin(at, move, UINT32_MAX, NULL);
        assert_int_equal(ttm_live_table_add(&table, &cache, &lives[AGAIN], &replaced), 1);
        const uint32_t steps = taken_steps;
        assert_int_equal(replaced, 1);
        if (at < steps)
            assert_int_equal(origin_of(NEXT), lives[NEXT].origin);
        assert_int_equal(origin_of(AGAIN), lives[AGAIN].origin);
        assert_int_equal(live_count(&table), at < steps ? 2 : 1);
        taken_steps = steps;
    } while (had_step(at++));
}

static void name_it(void)
{
    assert_int_equal(ttm_live_table_set_origin(&table, &lives[1], 70), 0);
}

static void name_it_as_before(void)
{
    assert_int_equal(ttm_live_table_set_origin(&table, &lives[1], lives[1].origin), 0);
}

static void a_life_that_moves_keeps_its_last_name(void **state)
{
    uint32_t at = 0, steps;
    (void)state;

    do {
        uint32_t then_at = at + 1;
        do {
            begin(at, name_it, then_at, name_it_as_before);
            move();
            steps = taken_steps;
            assert_int_equal(origin_of(1), then_at < steps ? lives[1].origin
                                           : at < steps    ? 70
                                                           : lives[1].origin);
            assert_int_equal(origin_of(NEXT), lives[NEXT].origin);
            taken_steps = steps;
        } while (had_step(then_at++));
    } while (at++ < steps);
}

static void end_it_and_add_one_like_it(void)
{
    uint64_t replaced;

    /* Who is meant to end it may have done so. */
    (void)ttm_live_table_remove(&table, &cache, 0, lives[1].id, 1);
    assert_int_equal(ttm_live_table_add(&table, &cache, &lives[LIKE_IT], &replaced), 0);
}

static void what_comes_to_the_place_of_a_life_that_moved_is_not_ended_for_it(void **state)
{
    uint32_t at = 0;
    (void)state;

    do {
        uint32_t number;
        begin(UINT32_MAX, end_it_and_add_one_like_it, UINT32_MAX, NULL);
        /* A move that was left when the life had gone from the nursery. */
        const uint64_t hash = key_hash(&table, 0, lives[1].id);
        assert_true(copy_out(&table, &cache, hash, &lives[1], &number));
        assert_true(ttm_place_swap_serial(nursery_place(&table, 7), 1, 1 | APART));
        interrupted_at[0] = at;
        taken_steps = 0;
        assert_in_range(ttm_live_table_remove(&table, &others_cache, 0, lives[1].id, 0), 0, 1);
        const uint32_t steps = taken_steps;
        assert_int_equal(origin_of(1), 0);
        assert_int_equal(origin_of(LIKE_IT), at < steps ? lives[LIKE_IT].origin : 0);
        taken_steps = steps;
    } while (had_step(at++));
}

static void let_another_be_moved(void)
{
    assert_int_equal(ttm_live_table_remove_plain(&table, &others_cache, 0, lives[1].id), 1);
    add_plain(LATER);
    atomic_store(&ttm_nursery_line(table.nursery, 7)->mover_of, LATER); /* by who does not go on */
}

static void who_comes_late_to_move_a_life_leaves_the_claim_of_the_next(void **state)
{
    uint32_t at = 0;
    (void)state;

    do {
        uint64_t replaced;
        begin(at, let_another_be_moved, UINT32_MAX, NULL);
        assert_int_equal(ttm_live_table_add_plain(&table, &cache, &lives[NEXT], 0, &replaced), 0);
        if (at < taken_steps)
            assert_int_equal(atomic_load(&ttm_nursery_line(table.nursery, 7)->mover_of), LATER);
    } while (had_step(at++));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_life_that_moves_is_replaced),
        cmocka_unit_test(a_life_that_moves_keeps_its_last_name),
        cmocka_unit_test(what_comes_to_the_place_of_a_life_that_moved_is_not_ended_for_it),
        cmocka_unit_test(who_comes_late_to_move_a_life_leaves_the_claim_of_the_next),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
