/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "base/queue.h"

static void a_new_queue_is_empty_and_holds_no_memory(void **state)
{
    struct ttm_queue queue;
    (void)state;

    ttm_queue_init(&queue);
    assert_int_equal(ttm_queue_length(&queue), 0);
    assert_null(queue.data);
    ttm_queue_consume(&queue, 0);
    ttm_queue_done(&queue);
}

static void what_goes_in_comes_out_in_order_whatever_the_pieces(void **state)
{
    struct ttm_queue queue;
    uint64_t seed = 42;
    uint8_t in = 0, out = 0;
    (void)state;

    ttm_queue_init(&queue);
    for (int round = 0; round < 20000; round++) {
        uint8_t piece[700];
        const uint32_t n = random_below(&seed, sizeof(piece)) + 1;
        for (uint32_t i = 0; i < n; i++)
            piece[i] = in++;
        assert_int_equal(ttm_queue_append(&queue, piece, n), 0);

        const size_t length = ttm_queue_length(&queue);
        /* Now and then all of it, else about as much as comes in. */
        size_t take = random_below(&seed, 50) == 0 ? length : random_below(&seed, 1400);
        if (take > length)
            take = length;
        for (size_t i = 0; i < take; i++)
            assert_int_equal(ttm_queue_front(&queue)[i], out++);
        ttm_queue_consume(&queue, take);
        assert_int_equal(ttm_queue_length(&queue), length - take);
    }
    ttm_queue_done(&queue);
}

static void a_queue_that_is_drained_as_fast_as_it_fills_does_not_grow(void **state)
{
    struct ttm_queue queue;
    uint8_t piece[100] = {0};
    (void)state;

    ttm_queue_init(&queue);
    assert_int_equal(ttm_queue_append(&queue, piece, 50), 0);
    faults_begin(0); /* nor does it take memory anew */
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(ttm_queue_append(&queue, piece, sizeof(piece)), 0);
        ttm_queue_consume(&queue, sizeof(piece));
    }
    assert_false(faults_end());
    assert_int_equal(ttm_queue_length(&queue), 50);
    assert_true(queue.room <= 1024);
    ttm_queue_done(&queue);
}

static void an_empty_queue_that_was_large_gives_its_memory_back(void **state)
{
    struct ttm_queue queue;
    (void)state;

    ttm_queue_init(&queue);
    assert_non_null(ttm_queue_reserve(&queue, 1 << 20));
    ttm_queue_commit(&queue, 1 << 20);
    ttm_queue_consume(&queue, (1 << 20) - 1);
    assert_non_null(queue.data);
    ttm_queue_consume(&queue, 1);
    assert_null(queue.data);
    assert_int_equal(queue.room, 0);
    ttm_queue_done(&queue);
}

static void what_is_reserved_and_not_committed_is_not_in_the_queue(void **state)
{
    struct ttm_queue queue;
    (void)state;

    ttm_queue_init(&queue);
    assert_int_equal(ttm_queue_append(&queue, "ab", 2), 0);
    uint8_t *room = ttm_queue_reserve(&queue, 5000);
    assert_non_null(room);
    memset(room, 'x', 5000);
    assert_int_equal(ttm_queue_length(&queue), 2);
    ttm_queue_commit(&queue, 3);
    assert_int_equal(ttm_queue_length(&queue), 5);
    assert_memory_equal(ttm_queue_front(&queue), "abxxx", 5);
    ttm_queue_done(&queue);
}

static void short_memory_leaves_the_queue_as_it_was(void **state)
{
    struct ttm_queue queue;
    uint8_t large[4096] = {0};
    (void)state;

    ttm_queue_init(&queue);
    assert_int_equal(ttm_queue_append(&queue, "abc", 3), 0);
    faults_begin(0);
    assert_int_equal(ttm_queue_append(&queue, large, sizeof(large)), -ENOMEM);
    assert_null(ttm_queue_reserve(&queue, sizeof(large)));
    assert_true(faults_end());
    assert_int_equal(ttm_queue_length(&queue), 3);
    assert_memory_equal(ttm_queue_front(&queue), "abc", 3);
    ttm_queue_done(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_queue_is_empty_and_holds_no_memory),
        cmocka_unit_test(what_goes_in_comes_out_in_order_whatever_the_pieces),
        cmocka_unit_test(a_queue_that_is_drained_as_fast_as_it_fills_does_not_grow),
        cmocka_unit_test(an_empty_queue_that_was_large_gives_its_memory_back),
        cmocka_unit_test(what_is_reserved_and_not_committed_is_not_in_the_queue),
        cmocka_unit_test(short_memory_leaves_the_queue_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
