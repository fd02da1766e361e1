/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/pages.h"
#include "model/life_store.h"
#include "server/heritage.h"

#define S TTM_NS_PER_S
#define BLOCK TTM_LIFE_BLOCK_LIVES
#define SOON (100 * TTM_NS_PER_MS)

static struct ttm_heritage last, next;
static int lock_fd;

static int set_up(void **state)
{
    (void)state;
    last = next = (struct ttm_heritage){0};
    lock_fd = memfd_create("lock", MFD_CLOEXEC);
    return lock_fd >= 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    (void)ttm_heritage_end(&next, -1, 0);
    (void)close(lock_fd);
    return faults_pages_out() == 0 ? 0 : -1;
}

/* The last server knew so many, and was killed. */
static void leave(uint32_t lives)
{
    ttm_heritage_begin(&last, lock_fd, 10 * S);
    ttm_heritage_tick(&last, lock_fd, lives, 12 * S);
}

static uint32_t take_all(uint32_t wanted)
{
    uint32_t taken = 0;
    void *block;

    while (taken < wanted) {
        if ((block = ttm_heritage_take_block(&next))) {
            ttm_pages_free(block, TTM_AHEAD_BLOCK);
            taken++;
        }
        (void)sched_yield();
    }
    return taken;
}

static void a_server_has_memory_for_the_crowd_that_the_last_one_knew(void **state)
{
    (void)state;

    leave(3 * BLOCK + 5);
    ttm_heritage_begin(&next, lock_fd, 20 * S);
    assert_int_equal(take_all(3), 3);
    assert_null(ttm_heritage_take_block(&next));
}

static void after_a_few_seconds_it_goes_back(void **state)
{
    (void)state;

    leave(3 * BLOCK);
    ttm_heritage_begin(&next, lock_fd, 20 * S);
    assert_true(ttm_heritage_due_ns(&next, 3 * BLOCK) == 23 * S);
    assert_true(ttm_heritage_due_ns(&next, 0) == 23 * S); /* they are on their way */
    while (atomic_load(&next.ahead.made) < 3)
        (void)sched_yield();
    ttm_heritage_tick(&next, lock_fd, 3 * BLOCK, 23 * S - 1);
    assert_true(faults_pages_out() > 0);
    for (int i = 0; i < 3; i++) { /* some with each turn */
        assert_true(ttm_heritage_due_ns(&next, 3 * BLOCK) <= 23 * S);
        ttm_heritage_tick(&next, lock_fd, 3 * BLOCK, 23 * S);
        if (faults_pages_out() == 0)
            break;
    }
    ttm_heritage_tick(&next, lock_fd, 3 * BLOCK, 23 * S);
    assert_int_equal(faults_pages_out(), 0);
    assert_null(ttm_heritage_take_block(&next));
    assert_true(ttm_heritage_due_ns(&next, 3 * BLOCK) == UINT64_MAX);
}

static void for_few_nothing_is_taken(void **state)
{
    (void)state;

    ttm_heritage_begin(&next, lock_fd, 20 * S); /* an empty file */
    assert_true(next.until_ns == 0);
    leave(BLOCK + BLOCK / 2);
    ttm_heritage_begin(&next, lock_fd, 20 * S);
    assert_true(next.until_ns == 0);
    assert_null(ttm_heritage_take_block(&next));
}

static void whatever_the_file_says_there_is_a_bound(void **state)
{
    static const char *const nonsense[] = {"",   "x",    "-1 ",      "99999999999",
                                           "12", "1e9 ", "\xff\xff "};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(nonsense); i++) {
        assert_int_equal(ftruncate(lock_fd, 0), 0);
        assert_true(pwrite(lock_fd, nonsense[i], strlen(nonsense[i]), 0) >= 0);
        ttm_heritage_begin(&next, lock_fd, 20 * S);
        assert_true(next.until_ns == 0);
    }
    assert_true(pwrite(lock_fd, "4000000000 ", 11, 0) == 11);
    ttm_heritage_begin(&next, lock_fd, 20 * S);
    assert_int_equal(next.ahead.wanted, TTM_AHEAD_MOST);
    ttm_heritage_begin(&last, -1, 20 * S); /* no file at all */
    assert_true(last.until_ns == 0);
}

static void the_number_is_left_when_it_has_changed_by_much_and_not_all_the_time(void **state)
{
    (void)state;

    ttm_heritage_begin(&last, lock_fd, 10 * S);
    assert_true(ttm_heritage_due_ns(&last, 100) == UINT64_MAX);
    assert_true(ttm_heritage_due_ns(&last, 3 * BLOCK) == 10 * S + SOON);
    ttm_heritage_tick(&last, lock_fd, 3 * BLOCK, 10 * S + SOON - 1);
    assert_int_equal(last.written, 0);
    ttm_heritage_tick(&last, lock_fd, 3 * BLOCK, 10 * S + SOON);
    assert_int_equal(last.written, 3 * BLOCK);
    ttm_heritage_tick(&last, lock_fd, 3 * BLOCK + 10, 15 * S);
    assert_int_equal(last.written, 3 * BLOCK);
    ttm_heritage_tick(&last, lock_fd, 5, 16 * S); /* all were freed */
    ttm_heritage_begin(&next, lock_fd, 20 * S);
    assert_int_equal(next.written, 5);
    assert_true(next.until_ns == 0);
}

static void a_lock_that_is_also_something_else_is_not_written(void **state)
{
    char path[] = "/tmp/ttm-heritage-XXXXXX", other[64];
    const int fd = mkstemp(path);
    (void)state;

    assert_true(fd >= 0);
    (void)snprintf(other, sizeof(other), "%s.other", path);
    assert_int_equal(link(path, other), 0);
    assert_true(ttm_heritage_end(&last, fd, 4 * BLOCK));
    assert_int_equal(lseek(fd, 0, SEEK_END), 0);
    assert_int_equal(unlink(other), 0);
    assert_true(ttm_heritage_end(&last, fd, 4 * BLOCK));
    assert_true(lseek(fd, 0, SEEK_END) > 0);
    assert_int_equal(unlink(path), 0);
    (void)close(fd);
}

static void a_server_that_ends_leaves_it_where_there_is_a_crowd(void **state)
{
    (void)state;

    assert_false(ttm_heritage_end(&last, lock_fd, 5));
    assert_true(ttm_heritage_end(&last, lock_fd, 4 * BLOCK));
    ttm_heritage_begin(&next, lock_fd, 20 * S);
    assert_int_equal(next.ahead.wanted, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_server_has_memory_for_the_crowd_that_the_last_one_knew,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(after_a_few_seconds_it_goes_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(for_few_nothing_is_taken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(whatever_the_file_says_there_is_a_bound, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            the_number_is_left_when_it_has_changed_by_much_and_not_all_the_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_lock_that_is_also_something_else_is_not_written, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_server_that_ends_leaves_it_where_there_is_a_crowd, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
