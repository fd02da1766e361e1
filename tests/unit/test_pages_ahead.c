/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <sched.h>

#include "base/pages.h"
#include "base/pages_ahead.h"

#define MOST 2u

static struct ttm_pages_ahead ahead;

static int tear_down(void **state)
{
    (void)state;
    ttm_pages_ahead_end(&ahead);
    return faults_pages_out() == 0 ? 0 : -1;
}

static uint8_t *wait_for_block(void)
{
    uint8_t *block;

    while (!(block = ttm_pages_ahead_take(&ahead)))
        (void)sched_yield();
    return block;
}

static void wait_until_made(uint32_t blocks)
{
    while (atomic_load(&ahead.made) < blocks)
        (void)sched_yield();
}

static void as_many_blocks_come_as_were_wanted(void **state)
{
    uint8_t *blocks[3 * MOST];
    (void)state;

    assert_null(ttm_pages_ahead_take(&ahead));
    ttm_pages_ahead_begin(&ahead, COUNT_OF(blocks), MOST);
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
        blocks[i] = wait_for_block();
        assert_int_equal((uintptr_t)blocks[i] % TTM_AHEAD_BLOCK, 0);
        for (size_t k = 0; k < i; k++)
            assert_ptr_not_equal(blocks[k], blocks[i]);
    }
    assert_int_equal(atomic_load(&ahead.made), COUNT_OF(blocks));
    assert_null(ttm_pages_ahead_take(&ahead));
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
        for (size_t at = 0; at < TTM_AHEAD_BLOCK; at += 512)
            assert_int_equal(blocks[i][at], 0);
        ttm_pages_free(blocks[i], TTM_AHEAD_BLOCK);
    }
}

static void no_more_are_made_than_may_wait(void **state)
{
    int room;
    (void)state;

    ttm_pages_ahead_begin(&ahead, UINT32_MAX, MOST);
    wait_until_made(MOST);
    assert_int_equal(sem_getvalue(&ahead.room, &room), 0);
    assert_int_equal(room, 0);
    ttm_pages_free(wait_for_block(), TTM_AHEAD_BLOCK);
    wait_until_made(MOST + 1);
}

static void what_was_not_taken_goes_back_and_it_can_begin_again(void **state)
{
    (void)state;

    for (int i = 0; i < 3; i++) {
        ttm_pages_ahead_begin(&ahead, 100, MOST);
        if (i == 1)
            wait_until_made(MOST);
        ttm_pages_ahead_end(&ahead);
        assert_int_equal(faults_pages_out(), 0);
    }
    ttm_pages_ahead_end(&ahead);
}

static void to_begin_twice_is_to_begin_once(void **state)
{
    (void)state;

    ttm_pages_ahead_begin(&ahead, 1, MOST);
    const pthread_t first = ahead.thread;
    ttm_pages_ahead_begin(&ahead, 5, MOST);
    assert_true(pthread_equal(ahead.thread, first));
    assert_int_equal(ahead.wanted, 1);
}

static void without_memory_there_are_none(void **state)
{
    (void)state;

    faults_begin(1);
    ttm_pages_ahead_begin(&ahead, 100, MOST);
    wait_until_made(1);
    (void)pthread_join(ahead.thread, NULL);
    assert_true(faults_end());
    ahead.has_thread = false;
    ttm_pages_free(wait_for_block(), TTM_AHEAD_BLOCK);
    assert_null(ttm_pages_ahead_take(&ahead));
    assert_int_equal(sem_destroy(&ahead.room), 0);
}

#define TEST(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(as_many_blocks_come_as_were_wanted),
        TEST(no_more_are_made_than_may_wait),
        TEST(what_was_not_taken_goes_back_and_it_can_begin_again),
        TEST(to_begin_twice_is_to_begin_once),
        TEST(without_memory_there_are_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
