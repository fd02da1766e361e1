/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "analysis/seats.h"

static void neighbours_of_one_origin_are_one_run(void **state)
{
    struct ttm_bank_piece pieces[] = {
        {0x3000, 0x4000, 2}, {0x1000, 0x1800, 1}, {0x1800, 0x2000, 1}, {0x2000, 0x2100, 7}};
    struct ttm_arena arena;
    (void)state;

    ttm_arena_init(&arena);
    const struct ttm_bank *bank = ttm_bank_draw(pieces, COUNT_OF(pieces), 100, &arena);
    assert_int_equal(bank->start, 0x1000);
    assert_int_equal(bank->end, 0x4000);
    assert_int_equal(bank->count, 4);
    assert_int_equal(bank->held_bytes, 0x2100);
    assert_int_equal(bank->gap_count, 1);
    assert_int_equal(bank->largest_gap_start, 0x2100);
    assert_int_equal(bank->largest_gap_bytes, 0xf00);
    assert_int_equal(bank->run_count, 3);
    assert_int_equal(bank->runs[0].end, 0x2000);
    assert_int_equal(bank->runs[0].count, 2);
    assert_false(bank->runs[0].is_mixed);
    assert_int_equal(bank->runs[1].origin, 7);
    assert_int_equal(bank->runs[2].origin, 2);
    ttm_arena_done(&arena);
}

static void what_lies_on_another_counts_as_far_as_it_sticks_out(void **state)
{
    struct ttm_bank_piece pieces[] = {{100, 200, 1}, {150, 250, 2}, {160, 180, 3}};
    struct ttm_arena arena;
    (void)state;

    ttm_arena_init(&arena);
    const struct ttm_bank *bank = ttm_bank_draw(pieces, COUNT_OF(pieces), 100, &arena);
    assert_int_equal(bank->held_bytes, 150);
    assert_int_equal(bank->count, 3);
    assert_int_equal(bank->gap_count, 0);
    assert_int_equal(bank->run_count, 2);
    assert_int_equal(bank->runs[1].start, 200);
    assert_int_equal(bank->runs[1].end, 250);
    ttm_arena_done(&arena);
}

/* However many there are, the runs are few, lie in order and hold all of it. */
static void a_crowd_is_drawn_as_few_runs_that_add_up(void **state)
{
    static struct ttm_bank_piece pieces[50000];
    (void)state;

    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct ttm_arena arena;
        uint64_t random = seed, at = 0x100000, held = 0, gaps = 0, largest = 0;
        for (unsigned i = 0; i < COUNT_OF(pieces); i++) {
            const uint64_t gap =
                i > 0 && random_below(&random, 4) == 0 ? 32ull * random_below(&random, 100) : 0;
            const uint64_t bytes = 32ull * (1 + random_below(&random, 50));
            gaps += gap > 0;
            largest = gap > largest ? gap : largest;
            held += bytes;
            pieces[i] =
                (struct ttm_bank_piece){at + gap, at + gap + bytes, random_below(&random, 5)};
            at += gap + bytes;
        }
        for (unsigned i = 0; i < COUNT_OF(pieces); i++) { /* in any order */
            const uint32_t k = random_below(&random, COUNT_OF(pieces));
            const struct ttm_bank_piece piece = pieces[i];
            pieces[i] = pieces[k];
            pieces[k] = piece;
        }
        ttm_arena_init(&arena);
        const struct ttm_bank *bank = ttm_bank_draw(pieces, COUNT_OF(pieces), 64, &arena);
        assert_in_range(bank->run_count, 32, 64);
        assert_int_equal(bank->held_bytes, held);
        assert_int_equal(bank->gap_count, gaps);
        assert_int_equal(bank->largest_gap_bytes, largest);
        uint64_t sum = 0, count = 0, end = bank->start;
        for (uint32_t i = 0; i < bank->run_count; i++) {
            const struct ttm_bank_run *run = &bank->runs[i];
            assert_true(run->start >= end && run->end > run->start);
            assert_true(run->held_bytes <= run->end - run->start);
            assert_true(run->is_mixed);
            sum += run->held_bytes;
            count += run->count;
            end = run->end;
        }
        assert_int_equal(end, bank->end);
        assert_int_equal(sum, held);
        assert_int_equal(count, COUNT_OF(pieces));
        ttm_arena_done(&arena);
    }
}

static void nothing_is_no_bank_and_the_last_address_is_in_one(void **state)
{
    struct ttm_bank_piece last[] = {{UINT64_MAX - 64, UINT64_MAX, 1}, {0, 64, 2}};
    struct ttm_arena arena;
    (void)state;

    ttm_arena_init(&arena);
    assert_null(ttm_bank_draw(NULL, 0, 10, &arena));
    const struct ttm_bank *bank = ttm_bank_draw(last, 2, 1, &arena);
    assert_int_equal(bank->run_count, 1);
    assert_int_equal(bank->held_bytes, 128);
    assert_false(arena.failed);
    ttm_arena_done(&arena);
}

static void seats_are_kept_as_they_come(void **state)
{
    struct ttm_seats seats;
    (void)state;

    ttm_seats_init(&seats);
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(ttm_seats_add(&seats, &(struct ttm_seat){.address = i, .cell = i}), 0);
    assert_int_equal(seats.count, 1000);
    assert_int_equal(seats.seats[999].cell, 999);
    ttm_seats_done(&seats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_of_one_origin_are_one_run),
        cmocka_unit_test(what_lies_on_another_counts_as_far_as_it_sticks_out),
        cmocka_unit_test(a_crowd_is_drawn_as_few_runs_that_add_up),
        cmocka_unit_test(nothing_is_no_bank_and_the_last_address_is_in_one),
        cmocka_unit_test(seats_are_kept_as_they_come),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
