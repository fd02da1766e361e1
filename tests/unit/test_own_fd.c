/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/own_fd.h"

static int new_memfd(void)
{
    const int fd = memfd_create("own_fd", MFD_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void what_is_ours_is_known_and_closed(void **state)
{
    struct ttm_own_fd own = ttm_own_fd_of(new_memfd());
    const int number = own.fd;
    (void)state;

    assert_true(ttm_own_fd_is_ours(&own));
    ttm_own_fd_close(&own);
    assert_int_equal(own.fd, -1);
    assert_false(is_open(number));
    assert_false(ttm_own_fd_is_ours(&own));
    ttm_own_fd_close(&own); /* once more does no harm */
}

static void a_number_that_the_host_has_closed_is_not_ours(void **state)
{
    struct ttm_own_fd own = ttm_own_fd_of(new_memfd());
    (void)state;

    assert_int_equal(close(own.fd), 0);
    assert_false(ttm_own_fd_is_ours(&own));
    ttm_own_fd_close(&own);
    assert_int_equal(own.fd, -1);
}

static void a_file_of_the_host_under_our_number_is_left_open(void **state)
{
    struct ttm_own_fd own = ttm_own_fd_of(new_memfd());
    const int number = own.fd;
    const int other = new_memfd(); /* of the same file system, made alive at the same time */
    (void)state;

    assert_int_equal(dup2(other, number), number);
    assert_false(ttm_own_fd_is_ours(&own));
    ttm_own_fd_close(&own);
    assert_int_equal(own.fd, -1);
    assert_true(is_open(number));
    (void)close(number);
    (void)close(other);
}

static void pipes_are_told_apart(void **state)
{
    int ours[2], theirs[2];
    (void)state;

    assert_int_equal(pipe2(ours, O_CLOEXEC), 0);
    assert_int_equal(pipe2(theirs, O_CLOEXEC), 0);
    struct ttm_own_fd own = ttm_own_fd_of(ours[0]);
    assert_true(ttm_own_fd_is_ours(&own));
    assert_int_equal(dup2(theirs[0], ours[0]), ours[0]);
    assert_false(ttm_own_fd_is_ours(&own));
    for (int i = 0; i < 2; i++) {
        (void)close(ours[i]);
        (void)close(theirs[i]);
    }
}

/* The standard streams of the test, out of the way while it has none. */
static int kept[3];

static int close_streams(void **state)
{
    (void)state;
    (void)fflush(NULL);
    for (int i = 0; i < 3; i++) {
        kept[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
        (void)close(i);
    }
    return 0;
}

static int open_streams(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        if (kept[i] >= 0 && dup2(kept[i], i) != i)
            return -1;
        (void)close(kept[i]);
    }
    return 0;
}

static void the_numbers_of_standard_streams_stay_free(void **state)
{
    int pair[2];
    (void)state;

    const int one = ttm_own_fd_move_up(new_memfd());
    assert_true(one > STDERR_FILENO);
    assert_int_equal(fcntl(one, F_GETFD), FD_CLOEXEC);
    assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
    assert_int_equal(pair[1], STDOUT_FILENO);
    assert_int_equal(ttm_own_fd_pair_move_up(pair), 0);
    assert_int_equal(write(pair[1], "x", 1), 1); /* still the two ends of one pipe */
    assert_true(pair[0] > STDERR_FILENO && pair[1] > STDERR_FILENO);
    for (int i = 0; i < 3; i++)
        assert_false(is_open(i));
    assert_int_equal(ttm_own_fd_move_up(one), one);
    assert_int_equal(ttm_own_fd_move_up(-EMFILE), -EMFILE);
    (void)close(one);
    (void)close(pair[0]);
    (void)close(pair[1]);
}

static void without_another_number_there_is_none(void **state)
{
    struct rlimit before;
    int pair[2];
    (void)state;

    assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit none = {.rlim_cur = 3, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    const int r = ttm_own_fd_pair_move_up(pair);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(r < 0);
    assert_int_equal(pair[0], -1);
    assert_int_equal(pair[1], -1);
    for (int i = 0; i < 3; i++)
        assert_false(is_open(i));
}

static void set_limit(rlim_t most, struct rlimit *ret_before)
{
    assert_int_equal(getrlimit(RLIMIT_NOFILE, ret_before), 0);
    const struct rlimit limit = {.rlim_cur = most, .rlim_max = ret_before->rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* Where a new one goes under that limit. */
static int moved_under(rlim_t limit)
{
    struct rlimit before;

    const int fd = new_memfd();
    set_limit(limit, &before);
    const int moved = ttm_own_fd_move_up(fd);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(fcntl(moved, F_GETFD), FD_CLOEXEC);
    assert_true(moved == fd || !is_open(fd));
    (void)close(moved);
    return moved;
}

static void what_is_ours_lies_below_the_limit_and_never_far_up(void **state)
{
    (void)state;
    assert_int_equal(moved_under(1024), 1024 - 64);
    assert_int_equal(moved_under(512), 512 - 64);
    assert_int_equal(moved_under(32), 16);
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max > 4096)
        assert_int_equal(moved_under(4096), 1024 - 64);
}

static void where_all_high_numbers_are_taken_it_stays(void **state)
{
    struct rlimit before;
    int taken[16];
    (void)state;

    const int fd = new_memfd();
    set_limit(32, &before);
    for (int i = 0; i < 16; i++)
        taken[i] = fcntl(fd, F_DUPFD_CLOEXEC, 16);
    assert_int_equal(taken[15], 31);
    const int moved = ttm_own_fd_move_up(fd);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(moved, fd);
    assert_true(is_open(fd));
    for (int i = 0; i < 16; i++)
        (void)close(taken[i]);
    (void)close(fd);
}

static void a_program_with_few_numbers_keeps_them(void **state)
{
    struct rlimit before;
    (void)state;

    assert_true(ttm_own_fd_is_allowed());
    set_limit(31, &before);
    const bool is_allowed = ttm_own_fd_is_allowed();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_false(is_allowed);
}

static void nothing_is_never_ours(void **state)
{
    struct ttm_own_fd none = TTM_OWN_FD_NONE;
    (void)state;

    assert_false(ttm_own_fd_is_ours(&none));
    none = ttm_own_fd_of(-1);
    assert_int_equal(none.fd, -1);
    none = ttm_own_fd_of(1 << 20); /* not open */
    assert_int_equal(none.fd, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_ours_is_known_and_closed),
        cmocka_unit_test(a_number_that_the_host_has_closed_is_not_ours),
        cmocka_unit_test(a_file_of_the_host_under_our_number_is_left_open),
        cmocka_unit_test(pipes_are_told_apart),
        cmocka_unit_test_setup_teardown(the_numbers_of_standard_streams_stay_free, close_streams,
                                        open_streams),
        cmocka_unit_test_setup_teardown(without_another_number_there_is_none, close_streams,
                                        open_streams),
        cmocka_unit_test(what_is_ours_lies_below_the_limit_and_never_far_up),
        cmocka_unit_test(where_all_high_numbers_are_taken_it_stays),
        cmocka_unit_test(a_program_with_few_numbers_keeps_them),
        cmocka_unit_test(nothing_is_never_ours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
